"""The connections to this process, until each has proved that it belongs to the query."""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import selectors
import socket
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, cast, final

from flow_spark.channel.wire import (
    HELLO,
    MAC_SIZE,
    MAGIC,
    NONCE_SIZE,
    SOCKET_BUFFER,
    Target,
    sign,
    tune,
)

__all__ = ["Guest", "Reception"]

T = TypeVar("T")

_log: Final = logging.getLogger("flow.spark")

_BACKLOG: Final = 4096
_HELLO_SIZE: Final = HELLO.size + MAC_SIZE

_HELLO_WITHIN_S: Final = 10.0
"""The time, in seconds, that an unknown peer may take to identify itself."""

_GRACE_S: Final = 0.25
"""The time, in seconds, that an unknown peer may take even if others wait for its place."""

_MOST_STRANGERS: Final = 256
_RETRY_S: Final = 0.1
"""The time, in seconds, for which no connection is accepted after the machine has refused one."""


@final
@dataclass(frozen=True, slots=True)
class Guest:
    """A connection that belongs to the query.

    Attributes:
        sock: the connection; it does not block.
        number: the number of the partition that the connection is about.
        task: the task attempt, or the micro-batch.
    """

    sock: socket.socket
    number: int
    task: int


@final
class _Stranger:
    """A connection that has not yet proved to belong to the query."""

    __slots__ = ("buffer", "nonce", "since", "sock")

    def __init__(self, sock: socket.socket, since: float) -> None:
        self.sock: Final = sock
        self.since: Final = since
        self.nonce: Final = secrets.token_bytes(NONCE_SIZE)
        self.buffer: Final = bytearray()


@final
class Reception(Generic[T]):
    """A port of this machine, with its connections, and other sockets that its owner waits for.

    The thread that calls `wait` does all the work; any thread may call `wake`.

    Strangers (connections that have not identified themselves) cannot keep a task out. Each has ten
    seconds to identify itself. If there are many strangers, the first of them is closed when
    another one comes, but not within its first quarter of a second. When the machine has no
    descriptor left, no connection is accepted for a moment.

    Args:
        host: the address to listen on.

    Attributes:
        port: the port.
        target: proves that a connection belongs to the query; set it before waiting.
        guests: the connections that have proved this, and that the owner has not yet taken.
        rejected: how many connections could not prove this.
    """

    __slots__ = (
        "_closed",
        "_complained",
        "_limit",
        "_listener",
        "_resting_until",
        "_selector",
        "_strangers",
        "_wake_in",
        "_wake_out",
        "_waking",
        "guests",
        "port",
        "rejected",
        "target",
    )

    def __init__(self, host: str) -> None:
        self._listener: Final = _listening(host)
        self.port: Final = int(self._listener.getsockname()[1])
        self.target = Target(host, self.port)
        self.guests: Final[deque[Guest]] = deque()
        self.rejected = 0
        self._strangers: Final[dict[_Stranger, None]] = {}  # in the order in which they came
        self._limit: Final = _most_strangers()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._waking: Final = threading.Lock()
        self._selector: Final = selectors.DefaultSelector()
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._resting_until: float | None = None
        self._complained = False
        self._closed = False

    def register(self, sock: socket.socket, data: T) -> None:
        """Let `wait` return `data` when something can be read from `sock`."""
        self._selector.register(sock, selectors.EVENT_READ, data)

    def unregister(self, sock: socket.socket) -> None:
        """Stop watching `sock`."""
        self._selector.unregister(sock)

    def wait(self, timeout_s: float | None) -> list[T]:
        """Wait until there is something to do; there may be new `guests` then.

        Args:
            timeout_s: how long to wait at most, in seconds; None for no limit.

        Returns:
            The data of the sockets that can be read. It may be empty, before the
            time has passed.
        """
        ready: list[T] = []
        for key, _ in self._selector.select(self._shorter(timeout_s)):
            if key.fileobj is self._wake_in:
                with contextlib.suppress(BlockingIOError):
                    self._wake_in.recv(4096)
            elif key.fileobj is self._listener:
                self._accept(time.monotonic())
            elif isinstance(key.data, _Stranger):
                self._hear(key.data)
            else:
                ready.append(cast("T", key.data))  # the data that `register` was given
        self._tidy(time.monotonic())
        return ready

    def wake(self) -> None:
        """Let `wait` return. Any thread may call this, also when this is closed."""
        # A full pipe wakes as well as an empty one; a closed one has no thread to wake. The lock
        # keeps the byte from going to a new file with the number of a descriptor that is just
        # closed.
        with self._waking, contextlib.suppress(OSError):
            self._wake_out.send(b"\0")

    def turn_away(self) -> None:
        """Close all connections, except those that were taken.

        No thread may be in `wait`.
        """
        with contextlib.suppress(OSError):  # the other end has gone
            while True:
                self._listener.accept()[0].close()
        for stranger in tuple(self._strangers):
            self._forget(stranger)
            stranger.sock.close()
        while self.guests:
            self.guests.popleft().sock.close()

    def close(self) -> None:
        """Close everything except registered sockets and taken connections.

        Calling this twice is harmless.

        No thread may be in `wait`.
        """
        if self._closed:
            return
        self._closed = True
        self._selector.close()
        for stranger in self._strangers:
            stranger.sock.close()
        self._strangers.clear()
        while self.guests:
            self.guests.popleft().sock.close()
        self._listener.close()
        self._wake_in.close()
        with self._waking:
            self._wake_out.close()

    def _shorter(self, timeout_s: float | None) -> float | None:
        """Return how long the selector may wait, at most `timeout_s` seconds."""
        due = [] if self._resting_until is None else [self._resting_until]
        if self._strangers:
            due.append(next(iter(self._strangers)).since + _HELLO_WITHIN_S)
        if not due:
            return timeout_s
        left = max(0.0, min(due) - time.monotonic())
        return left if timeout_s is None else min(left, timeout_s)

    def _accept(self, now: float) -> None:
        if len(self._strangers) >= self._limit:
            first = next(iter(self._strangers))
            if now < first.since + _GRACE_S:
                self._rest(first.since + _GRACE_S)
                return
            self._part_with(first)
        try:
            sock, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # the peer has gone already
            return
        except OSError as error:
            if not self._complained:
                self._complained = True
                _log.warning("no connection can be accepted (%s); it is tried again", error)
            self._rest(now + _RETRY_S)
            return
        stranger = _Stranger(sock, now)
        try:
            sock.setblocking(False)
            tune(sock)
            sock.send(stranger.nonce)
        except OSError:  # the peer has gone already
            sock.close()
            return
        self._strangers[stranger] = None
        self._selector.register(sock, selectors.EVENT_READ, stranger)

    def _rest(self, until: float) -> None:
        """Do not watch the listener for a moment: a waiting connection would wake us at once."""
        self._resting_until = until
        self._selector.unregister(self._listener)

    def _tidy(self, now: float) -> None:
        while self._strangers:
            first = next(iter(self._strangers))
            if now < first.since + _HELLO_WITHIN_S:
                break
            self._part_with(first)
        if self._resting_until is not None and self._resting_until <= now:
            self._resting_until = None
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _part_with(self, stranger: _Stranger) -> None:
        """Close the connection of `stranger`, unless it turns out to have identified itself."""
        self._hear(stranger)
        if stranger in self._strangers:
            self._reject(stranger)

    def _hear(self, stranger: _Stranger) -> None:
        """Read what a stranger sends; it becomes a guest when that is complete and right."""
        if stranger not in self._strangers:  # it was closed in this very round
            return
        try:
            said = stranger.sock.recv(_HELLO_SIZE - len(stranger.buffer))
        except BlockingIOError:
            return
        except OSError:
            said = b""
        stranger.buffer.extend(said)
        if said and len(stranger.buffer) < _HELLO_SIZE:
            return
        if not said or not self._is_proof(stranger):
            self._reject(stranger)
            return
        _, _, number, task = HELLO.unpack(stranger.buffer[: HELLO.size])
        self._forget(stranger)
        self.guests.append(Guest(stranger.sock, number, task))

    def _is_proof(self, stranger: _Stranger) -> bool:
        hello, mac = bytes(stranger.buffer[: HELLO.size]), bytes(stranger.buffer[HELLO.size :])
        magic, query, _, _ = HELLO.unpack(hello)
        expected = sign(self.target.token, stranger.nonce, hello)
        known = (magic, query) == (MAGIC, self.target.query)
        return hmac.compare_digest(mac, expected) and known

    def _reject(self, stranger: _Stranger) -> None:
        self.rejected += 1
        self._forget(stranger)
        stranger.sock.close()

    def _forget(self, stranger: _Stranger) -> None:
        del self._strangers[stranger]
        self._selector.unregister(stranger.sock)


def _most_strangers() -> int:
    """Return how many strangers there may be: at most a quarter of all descriptors."""
    if sys.platform == "win32":
        return _MOST_STRANGERS
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_STRANGERS if allowed < 0 else min(_MOST_STRANGERS, max(1, allowed // 4))


def _listening(host: str) -> socket.socket:
    """Return a non-blocking socket that listens on some port of `host`."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        # Before listen: accepted sockets inherit this, and their window is negotiated when they
        # connect.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
