"""The connection that tells tasks whether the process of their flow still runs.

Spark notices only after minutes that a client of Spark Connect has died, and until then continues
its work. A task that sends its items to the client notices its death at once; a task whose results
stay on the cluster holds a connection to the client only for this purpose.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, final

from flow_spark.channel.abandoned import ended_when
from flow_spark.channel.reception import Reception
from flow_spark.channel.wire import Target, dial, greet, is_closed
from flow_spark.errors import ChannelError

__all__ = ["Client", "Hold", "Lifeline", "held", "reach"]

_TRIED_FOR_S: Final = 1.0
"""The time, in seconds, that a first connection may take, while other tasks wait for it."""


@final
@dataclass(frozen=True, slots=True)
class Client:
    """The process whose flow the tasks run, as the tasks know it.

    Attributes:
        target: where the client listens.
        hosts: the hosts from which tasks have reached the client, each as `_this_host` returns it.
            Other hosts may not reach it: then a missing answer means nothing.
    """

    target: Target
    hosts: frozenset[int]


@final
class Hold:
    """A task's side: a connection to the client, which is opened when `is_gone` is first called.

    Args:
        client: the process whose flow the task runs.
        within_s: how long the client may take to answer; see `dial`.
    """

    __slots__ = ("_client", "_connection", "_reached", "_within_s")

    def __init__(self, client: Client, within_s: float | None = None) -> None:
        self._client: Final = client
        self._within_s: Final = within_s
        self._connection: socket.socket | None = None
        self._reached = True

    def is_gone(self) -> bool:
        """Return whether the client has ended. Only one thread at a time may call this."""
        if self._connection is None and self._reached:
            try:
                self._connection = dial(self._client.target, self._within_s)
                greet(self._connection, self._client.target, 0, _this_host())
            except (ChannelError, OSError):
                self._reached = False
        if not self._reached:
            return _this_host() in self._client.hosts
        return self._connection is not None and is_closed(self._connection)

    def close(self) -> None:
        """Close the connection. Any thread may call this."""
        if self._connection is not None:
            self._connection.close()


def _this_host() -> int:
    return zlib.crc32(socket.gethostname().encode())


def reach(target: tuple[Any, ...], hosts: frozenset[int]) -> None:
    """Connect to a client once, to find out whether it can be reached.

    Args:
        target: the parts of `Client.target`; the target comes from a process that may have other
            classes.
        hosts: see `Client`.
    """
    with contextlib.closing(Hold(Client(Target(*target), hosts), _TRIED_FOR_S)) as hold:
        hold.is_gone()


@contextmanager
def held(client: Client | None) -> Generator[None, None, None]:
    """Kill this worker if `client` ends within the block, but the block continues.

    Args:
        client: the process whose flow the block runs; None if Spark itself ends with that process.
    """
    if client is None:
        yield
        return
    with contextlib.closing(Hold(client)) as hold, ended_when(hold.is_gone):
        yield


@final
class Lifeline:
    """The client's side: takes connections, and keeps them as long as this process lives.

    Args:
        host: the address to listen on.
        advertised: the address that is given to tasks.
    """

    __slots__ = ("_closed", "_hosts", "_reception", "_target")

    def __init__(self, host: str, advertised: str) -> None:
        self._reception: Final[Reception[socket.socket]] = Reception(host)
        self._target: Final = Target(advertised, self._reception.port)
        self._reception.target = self._target
        self._closed = False
        self._hosts: frozenset[int] = frozenset()
        threading.Thread(target=self._keep, name="flow-spark-lifeline", daemon=True).start()

    def client(self) -> Client:
        """Return the description of this process for tasks."""
        return Client(self._target, self._hosts)

    def close(self) -> None:
        """Close all connections, and accept no more.

        Any thread may call this, and more than once.
        """
        self._closed = True
        self._reception.wake()

    def _keep(self) -> None:
        kept: set[socket.socket] = set()
        while not self._closed:
            # Tasks send nothing, but close their connections when they have ended.
            for left in self._reception.wait(None):
                self._reception.unregister(left)
                kept.remove(left)
                left.close()
            while self._reception.guests:
                guest = self._reception.guests.popleft()
                self._hosts |= {guest.task}
                self._reception.register(guest.sock, guest.sock)
                kept.add(guest.sock)
        self._reception.close()
        for connection in kept:
            connection.close()
