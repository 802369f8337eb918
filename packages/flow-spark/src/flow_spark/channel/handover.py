"""How a streaming query hands over its micro-batches, and waits for each to be consumed.

The function that Spark calls for a micro-batch runs in the driver, or in a process of a Spark
Connect server: it connects to whoever subscribed, in both cases. It proves that it belongs to the
query as a task does (see `wire`), is told the port that its tasks push to, reports how the job
ended, and returns only when it gets the acknowledgement. Without one it raises, so that Spark
does not commit the micro-batch and gives it again after a restart.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import threading
from collections.abc import Iterable
from typing import Final, final

from flow_spark.channel.receiver import PartitionResult, listen
from flow_spark.channel.wire import HELLO, MAC_SIZE, MAGIC, NONCE_SIZE, Target, dial, sign, tune
from flow_spark.errors import ChannelError

__all__ = ["BatchLine", "BatchListener", "Handover", "label_of"]

_START: Final = struct.Struct(">H")
"""The port for the tasks."""

_OUTCOME: Final = struct.Struct(">BQ")
"""Whether the job succeeded, and how many bytes follow."""

_RESULT: Final = struct.Struct(">iqqq")
_ACKNOWLEDGED: Final = b"\1"
_HELLO_WITHIN_S: Final = 10.0


def label_of(batch_id: int) -> bytes:
    """What a micro-batch's own secrets are derived by."""
    return b"micro-batch %d" % batch_id


@final
class Handover:
    """The query's end: one micro-batch.

    Args:
        target: where the subscriber's driver listens.
        batch_id: which micro-batch it is.

    Attributes:
        target: where the tasks of this micro-batch push their items.

    Raises:
        ChannelError: if the driver is gone, or cannot be reached.
    """

    __slots__ = ("_batch_id", "_socket", "target")

    def __init__(self, target: Target, batch_id: int) -> None:
        self._batch_id: Final = batch_id
        self._socket: Final = dial(target)
        try:
            nonce = self._read(NONCE_SIZE)
            hello = HELLO.pack(MAGIC, target.query, 0, batch_id)
            self._socket.sendall(hello + sign(target.token, nonce, hello))
            port: int = _START.unpack(self._read(_START.size))[0]
        except BaseException as error:
            self._socket.close()
            if isinstance(error, OSError):
                raise _gone(batch_id) from error
            raise
        self.target: Final = target.derived(port, label_of(batch_id))

    def finish(self, results: Iterable[tuple[int, int, int, int]]) -> None:
        """Report that the job has succeeded, and wait until its items are consumed.

        Raises:
            ChannelError: if they never will be; the micro-batch must not be committed then.
        """
        self._report(True, b"".join(_RESULT.pack(*result) for result in results))
        self._read(len(_ACKNOWLEDGED))

    def fail(self) -> None:
        """Report that the job has failed; why, the query itself will say."""
        with contextlib.suppress(ChannelError):
            self._report(False, b"")

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _report(self, succeeded: bool, payload: bytes) -> None:
        try:
            self._socket.sendall(_OUTCOME.pack(succeeded, len(payload)) + payload)
        except OSError as error:
            raise _gone(self._batch_id) from error

    def _read(self, size: int) -> bytes:
        try:
            return _read(self._socket, size)
        except OSError as error:
            raise _gone(self._batch_id) from error


@final
class BatchLine:
    """The driver's end of one `Handover`.

    Attributes:
        batch_id: which micro-batch it is.
    """

    __slots__ = ("_socket", "batch_id")

    def __init__(self, connection: socket.socket, batch_id: int) -> None:
        self._socket: Final = connection
        self.batch_id: Final = batch_id

    def start(self, port: int) -> None:
        """Say where the tasks are to push their items.

        Raises:
            OSError: if the query is gone.
        """
        self._socket.sendall(_START.pack(port))

    def outcome(self) -> list[PartitionResult] | None:
        """Wait until the job of this micro-batch has ended; None if it has failed.

        Raises:
            OSError: if the query is gone.
        """
        succeeded, size = _OUTCOME.unpack(_read(self._socket, _OUTCOME.size))
        payload = _read(self._socket, size)
        if not succeeded:
            return None
        return [PartitionResult(*result) for result in _RESULT.iter_unpack(payload)]

    def acknowledge(self) -> None:
        """Say that all items are consumed: the query may commit the micro-batch.

        Raises:
            OSError: if the query is gone, which has not committed it then.
        """
        self._socket.sendall(_ACKNOWLEDGED)

    def close(self) -> None:
        """End it; an unacknowledged micro-batch is not committed. Wakes whoever waits."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@final
class BatchListener:
    """Where the driver waits for micro-batches.

    Args:
        host: the address to listen on.
        advertised: the address that the query is told.

    Attributes:
        target: what the query is told.
    """

    __slots__ = ("_closed", "_closing", "_listener", "_waiting", "target")

    def __init__(self, host: str, advertised: str) -> None:
        self._listener: Final = listen(host)
        self._listener.setblocking(True)
        self._closing: Final = threading.Lock()
        self._waiting: Final = threading.Lock()
        """Held by the thread that waits for a micro-batch; it also closes what it waits at."""
        self._closed = False
        self.target: Final = Target(advertised, int(self._listener.getsockname()[1]))

    def next_line(self) -> BatchLine | None:
        """Wait for the next micro-batch; None once this is closed. One thread at a time."""
        with self._waiting:
            while not self._closed:
                connection, _ = self._listener.accept()
                batch_id = None if self._closed else self._greeted(connection)
                if batch_id is not None:
                    return BatchLine(connection, batch_id)
                connection.close()
            self._listener.close()
            return None

    def close(self) -> None:
        """Wait for no more. Idempotent, callable from any thread."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            address = self._listener.getsockname()[:2]
        while not self._waiting.acquire(blocking=False):
            with contextlib.suppress(OSError):  # wakes who waits; who is there no more has closed
                socket.create_connection(address, timeout=_HELLO_WITHIN_S).close()
                return
        self._listener.close()
        self._waiting.release()

    def _greeted(self, connection: socket.socket) -> int | None:
        """The micro-batch that it brings, or None if it cannot prove that it is of the query."""
        nonce = secrets.token_bytes(NONCE_SIZE)
        try:
            connection.settimeout(_HELLO_WITHIN_S)
            tune(connection)
            connection.sendall(nonce)
            hello = _read(connection, HELLO.size)
            mac = _read(connection, MAC_SIZE)
            connection.settimeout(None)
        except OSError:
            return None
        magic, query, _, batch_id = HELLO.unpack(hello)
        known = (magic, query) == (MAGIC, self.target.query)
        proven = hmac.compare_digest(mac, sign(self.target.token, nonce, hello))
        return int(batch_id) if known and proven else None


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionResetError("the other end has closed")
        parts += part
    return bytes(parts)


def _gone(batch_id: int) -> ChannelError:
    return ChannelError(
        f"nobody consumes micro-batch {batch_id}: the flow was cancelled or has failed, or its "
        "process has ended. Spark does not commit the micro-batch, and gives it again after a "
        "restart from the checkpoint"
    )
