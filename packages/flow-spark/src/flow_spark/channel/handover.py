"""The handover of a streaming query's micro-batches, each of which waits until it is consumed.

The function that Spark calls for a micro-batch runs in the driver, or in a process of a Spark
Connect server: in both cases it connects to the subscriber's process. It proves, as a task does
(see `wire`), that it belongs to the query, receives the port that its tasks push to, reports how
the job ended, and returns only when it gets the acknowledgement. Without an acknowledgement it
raises: then Spark does not commit the micro-batch, and runs it again after a restart.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from typing import Final, Never, final

from flow_spark.channel.receiver import PartitionResult
from flow_spark.channel.reception import Reception
from flow_spark.channel.wire import Target, dial, greet, received
from flow_spark.errors import ChannelError

__all__ = ["BatchLine", "BatchListener", "Handover", "label_of"]

_START: Final = struct.Struct(">H")
"""The message with the port for the tasks."""

_OUTCOME: Final = struct.Struct(">BQ")
"""The message at the end of the job: a flag, true if it succeeded, and the number of bytes that
follow."""

_RESULT: Final = struct.Struct(">iqqq")
_ACKNOWLEDGED: Final = b"\1"


def label_of(batch_id: int) -> bytes:
    """Return the label from which a micro-batch's own secrets are derived."""
    return b"micro-batch %d" % batch_id


@final
class Handover:
    """The query's side of the handover of one micro-batch.

    Args:
        target: where the subscriber's driver listens.
        batch_id: the number of the micro-batch.

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
            greet(self._socket, target, 0, batch_id)
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
            ChannelError: if the items will never be consumed; the micro-batch must not be committed
                then.
        """
        self._report(True, b"".join(_RESULT.pack(*result) for result in results))
        self._read(len(_ACKNOWLEDGED))

    def fail(self) -> None:
        """Report that the job has failed; the query itself reports the reason."""
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
            return received(self._socket, size)
        except OSError as error:
            raise _gone(self._batch_id) from error


@final
class BatchLine:
    """The driver's side of one `Handover`.

    Attributes:
        batch_id: the number of the micro-batch.
        acknowledged: whether all items were consumed before the query was gone.
    """

    __slots__ = ("_over", "_socket", "_undecided", "acknowledged", "batch_id")

    def __init__(self, connection: socket.socket, batch_id: int) -> None:
        self._socket: Final = connection
        self._undecided: Final = [True]
        """Not empty until the end: the thread that pops the entry decides how the handover ends."""
        self._over: Final[SimpleQueue[None]] = SimpleQueue()
        self.acknowledged = False
        self.batch_id: Final = batch_id

    def start(self, port: int) -> None:
        """Send the port that the tasks push their items to.

        Raises:
            OSError: if the query is gone.
        """
        self._socket.sendall(_START.pack(port))

    def outcome(self) -> list[PartitionResult] | None:
        """Wait until the job of this micro-batch has ended; return None if it has failed.

        Raises:
            OSError: if the query is gone.
        """
        succeeded, size = _OUTCOME.unpack(received(self._socket, _OUTCOME.size))
        payload = received(self._socket, size)
        if not succeeded:
            return None
        return [PartitionResult(*result) for result in _RESULT.iter_unpack(payload)]

    def acknowledge(self) -> None:
        """Report that all items are consumed: the query may commit. This ends the handover.

        If the query is gone, it has not committed the micro-batch.
        """
        if self._is_first():
            self.acknowledged = True
            try:
                self._socket.sendall(_ACKNOWLEDGED)
            except OSError:
                self.acknowledged = False
            finally:
                self._end()

    def close(self) -> None:
        """End the handover, and wake a waiting thread.

        A micro-batch that was not acknowledged is not committed.
        """
        if self._is_first():
            self._end()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the handover ends, or for `timeout_s` seconds; return whether it has ended.

        Only one thread at a time may call this.
        """
        with contextlib.suppress(Empty):
            self._over.get(timeout=timeout_s)
            return True
        return False

    def _is_first(self) -> bool:
        with contextlib.suppress(IndexError):
            return self._undecided.pop()
        return False

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._over.put(None)


@final
class BatchListener:
    """The port on which the driver waits for micro-batches.

    Args:
        host: the address to listen on.
        advertised: the address that is given to the query.

    Attributes:
        target: the address and secrets for the query.
    """

    __slots__ = ("_closed", "_reception", "_waiting", "target")

    def __init__(self, host: str, advertised: str) -> None:
        self._reception: Final[Reception[Never]] = Reception(host)
        self.target: Final = Target(advertised, self._reception.port)
        self._reception.target = self.target
        self._waiting: Final = threading.Lock()
        """Held by the thread that waits for a micro-batch; it also closes the sockets."""
        self._closed = False

    def next_line(self) -> BatchLine | None:
        """Wait for the next micro-batch; return None once this is closed.

        Only one thread at a time may call this.
        """
        try:
            with self._waiting:
                return self._next()
        finally:
            # `close` may have found the lock taken a moment ago; then this thread closes.
            if self._closed:
                self._try_close()

    def close(self) -> None:
        """Stop waiting. Any thread may call this, and more than once."""
        self._closed = True
        self._reception.wake()
        self._try_close()

    def _next(self) -> BatchLine | None:
        guests = self._reception.guests
        while not self._closed:
            if guests:
                guest = guests.popleft()
                guest.sock.setblocking(True)
                return BatchLine(guest.sock, guest.task)
            self._reception.wait(None)
        return None

    def _try_close(self) -> None:
        if self._waiting.acquire(blocking=False):
            try:
                self._reception.close()
            finally:
                self._waiting.release()


def _gone(batch_id: int) -> ChannelError:
    return ChannelError(
        f"micro-batch {batch_id} has no consumer: the flow was cancelled or has failed, or its "
        "process has ended. Spark does not commit the micro-batch, and gives it again after a "
        "restart from the checkpoint"
    )
