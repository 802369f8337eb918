"""The driver's side of the channel: batches of all partitions, read only on request.

There are no threads here. `BatchReceiver.next_batch` reads in the thread of its caller; bytes that
it does not read stay in the sockets, and block the tasks. While no thread is in `next_batch`,
another thread may call `BatchReceiver.take_in` to read the batches of tasks, so that the tasks can
end.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Final, final

from flow_spark.channel.backlog import Backlog, Batch
from flow_spark.channel.reception import Guest, Reception
from flow_spark.channel.turn import Turn
from flow_spark.channel.wire import (
    COUNTS,
    FEWER,
    FRAME,
    LONGEST_FRAME,
    WELCOME,
    Answer,
    Kind,
    Target,
)
from flow_spark.errors import ChannelError, PartitionChangedError

__all__ = ["Batch", "BatchReceiver", "Failure", "PartitionResult", "Statistics"]

_log: Final = logging.getLogger("flow.spark")


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The Spark job's own report about a partition; no other report is trusted."""

    partition: int
    task: int
    rows: int
    batches: int


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that a function of the flow has raised in a task, still pickled."""

    partition: int
    task: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Statistics:
    """The state of a receiver at one moment.

    Attributes:
        asked: how often a batch was requested.
        connections: the number of tasks that are connected and known.
        partial: the number of batches of which some bytes have been read; never more than the
            capacity.
        batches: the number of batches that have been read.
        rows: the number of items in these batches.
        waiting: the number of bytes of batches that were read and not requested yet.
        fenced: the number of attempts that were replaced by a later one, or came too late.
        rejected: the number of connections that could not prove that they belong to the query.
    """

    asked: int
    connections: int
    partial: int
    batches: int
    rows: int
    waiting: int
    fenced: int
    rejected: int


class _BrokenError(Exception):
    """The peer has closed, or does not follow the protocol."""


@final
class _Connection:
    """One task's socket, and how much of the current piece (head or body) has arrived."""

    __slots__ = (
        "body",
        "buffer",
        "checksum",
        "filled",
        "kind",
        "partition",
        "queued",
        "read",
        "rows",
        "sock",
        "task",
    )

    def __init__(self, sock: socket.socket, task: int, partition: _Partition) -> None:
        self.sock: Final = sock
        self.task: Final = task
        self.partition: Final = partition
        self.queued = False
        self.body = False
        self.kind = Kind.SCHEMA
        self.rows = 0
        self.read = 0
        self.checksum = 0
        self.expect(FRAME.size)

    def expect(self, size: int) -> None:
        self.buffer = bytearray(size)
        self.filled = 0

    def fill(self) -> bool:
        """Read what has arrived; return True if the current piece is complete."""
        missing = len(self.buffer) - self.filled
        with memoryview(self.buffer) as view:
            while missing:
                try:
                    got = self.sock.recv_into(view[self.filled :], missing)
                except BlockingIOError:
                    return False
                except OSError as error:
                    raise _BrokenError from error
                if not got:
                    raise _BrokenError
                self.filled += got
                missing -= got
        return True

    def answer(self, data: bytes) -> None:
        try:
            self.sock.send(data)
        except OSError as error:
            raise _BrokenError from error


@final
@dataclass(slots=True)
class _Partition:
    """The state of a partition.

    `task` is the attempt that may send, and `copies` are later attempts that wait for its end. To
    make the `rows` items that have come, `read` batches of the input were read, whose checksum is
    `checksum`. When `ended` is true, `task` has reported that nothing is missing. `let_go` is true
    after the tasks have left, until the attempt that starts at the next request sends something.
    """

    number: int
    task: int = -1
    connection: _Connection | None = None
    rows: int = 0
    batches: int = 0
    read: int = 0
    checksum: int = 0
    schema: bytes = b""
    ended: bool = False
    let_go: bool = False
    copies: list[_Connection] = field(default_factory=list[_Connection])
    failure: Failure | None = None
    changed: PartitionChangedError | None = None


@final
@dataclass(slots=True)
class _Outcome:
    """The end of the Spark job."""

    results: Sequence[PartitionResult] = ()
    error: BaseException | None = None


@final
class BatchReceiver:
    """Receives the items of the tasks of one Spark job, exactly once even when tasks are retried.

    A partition's items are accepted from one attempt at a time. A later attempt replaces the
    earlier one and gets the number of items to skip, so the partition has to yield the same items
    again. If it yields fewer items, or reads other rows, or rows in another order, this is
    detected. The end counts only when the job itself reports the same numbers of items.

    Where Spark speculates, a later attempt may be a copy of an attempt that is only slow, such as a
    task whose items are not read. The copy then waits until the connection of the earlier one has
    ended, and resumes if anything is left.

    One thread at a time may be in `next_batch`, and another thread in `take_in`; every other method
    may be called from any thread.

    Args:
        host: the address to listen on.
        advertised: the address that is given to tasks, if it differs from `host`.
        capacity: the most batches that are being read at a time; further tasks wait.
        of: the target that the receiver's own target is derived from, and the label for that; None
            to make new secrets.
        speculation: whether Spark speculates.
        backlog: holds the batches that `take_in` reads; None for one with the usual limits.
    """

    __slots__ = (
        "_asked",
        "_backlog",
        "_batches",
        "_capacity",
        "_closed",
        "_connections",
        "_fenced",
        "_outcome",
        "_over",
        "_partial",
        "_partitions",
        "_ready",
        "_reception",
        "_rows",
        "_speculation",
        "_turn",
        "_waiting",
        "target",
    )

    def __init__(
        self,
        host: str = "127.0.0.1",
        *,
        advertised: str | None = None,
        capacity: int = 8,
        of: tuple[Target, bytes] | None = None,
        speculation: bool = False,
        backlog: Backlog | None = None,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1 batch, not {capacity}")
        self._capacity: Final = capacity
        self._speculation: Final = speculation
        self._reception: Final[Reception[_Connection]] = Reception(host)
        port = self._reception.port
        self.target: Final = (
            Target(advertised or host, port) if of is None else of[0].derived(port, of[1])
        )
        self._reception.target = self.target
        self._turn: Final = Turn(self._reception.wake)
        self._backlog: Final = Backlog() if backlog is None else backlog
        self._asked = 0
        self._closed = False
        self._outcome: _Outcome | None = None
        self._over: Final[SimpleQueue[None]] = SimpleQueue()
        self._connections: Final[set[_Connection]] = set()
        self._partitions: Final[dict[int, _Partition]] = {}
        self._ready: Final[deque[_Connection]] = deque()
        self._waiting: Final[deque[_Connection]] = deque()
        self._partial = 0
        self._batches = 0
        self._rows = 0
        self._fenced = 0

    def next_batch(self, timeout_s: float | None = None) -> Batch | None:
        """Wait for a batch of any partition; partitions that have batches take turns.

        Args:
            timeout_s: how long to wait, in seconds; None for no limit.

        Returns:
            A batch, or None when there is none any more: the job is complete and everything was
            delivered, or `cancel` was called.

        Raises:
            TimeoutError: if nothing came in time.
            ChannelError: if the items that arrived differ from the job's report.
            BaseException: the error that was given to `fail`.
        """
        if not self._turn.ask():
            raise ChannelError("two threads are in next_batch at once; it has one reader at a time")
        self._asked += 1
        try:
            return self._next(timeout_s)
        finally:
            self._turn.leave()
            # `cancel` may have found this thread reading a moment ago; then this thread closes.
            if self._closed:
                self._try_close()

    def take_in(self, timeout_s: float) -> bool:
        """Read the batches of tasks, and keep these, while no thread is in `next_batch`.

        Args:
            timeout_s: how long to read, in seconds.

        Returns:
            Whether to continue: no batch was requested, there is room for more, and the job has
            not ended.
        """
        if not self._turn.take():
            return False
        deadline = time.monotonic() + timeout_s
        try:
            while not (self.is_over() or self._turn.is_asked() or self._backlog.is_full()):
                left = deadline - time.monotonic()
                if left <= 0:
                    return True
                batch = self._ready_batch()
                if batch is None:
                    self._select(left)
                else:
                    self._backlog.put(batch)
            return False
        finally:
            self._turn.give()
            if self._closed:
                self._try_close()

    def is_over(self) -> bool:
        """Return whether the job has ended, or is no longer needed."""
        return self._closed or self._outcome is not None

    def wait_until_over(self, timeout_s: float) -> bool:
        """Wait until `is_over` is true, or for `timeout_s` seconds; return whether it is."""
        if not self.is_over():
            with contextlib.suppress(Empty):
                self._over.get(timeout=timeout_s)
        return self.is_over()

    def is_full(self) -> bool:
        """Return whether `take_in` has no room for more items."""
        return self._backlog.is_full()

    def was_reached(self) -> bool:
        """Return whether any task has connected."""
        return bool(self._partitions)

    def has_tasks(self) -> bool:
        """Return whether tasks are connected, so that they hold slots."""
        return bool(self._connections)

    def knows(self, partition: int) -> bool:
        """Return whether a task of the partition has come (since it was let go, if it was)."""
        known = self._partitions.get(partition)
        return known is not None and not known.let_go

    def silence_s(self) -> float:
        """Return for how many seconds no thread has been in `next_batch`."""
        return self._turn.silence_s()

    def let_go(self, end: Callable[[], None]) -> bool:
        """Disconnect all tasks, while no thread is in `next_batch`.

        Later attempts continue where these tasks have stopped.

        Args:
            end: cancels the tasks on the cluster. It is called before their sockets are closed;
                otherwise Spark would retry them.

        Returns:
            False if a thread reads or requests, or the job has ended: then nothing was done.
        """
        if not self._turn.take():
            return False
        try:
            if self.is_over() or self._turn.is_asked():
                return False
            end()
            for partition in self._partitions.values():
                partition.let_go = True
            self._drop_all()
            self._reception.turn_away()
            return True
        finally:
            self._turn.give()
            if self._closed:
                self._try_close()

    def abandon(self, error: BaseException) -> bool:
        """Disconnect all tasks; `next_batch` returns what was taken in, and then raises `error`.

        Returns:
            False if a thread reads, or the job has ended: then nothing was done.
        """
        if not self._turn.take():
            return False
        try:
            if self.is_over():
                return False
            self._outcome = _Outcome(error=error)
            self._leave()
            return True
        finally:
            self._turn.give()
            if self._closed:
                self._try_close()

    def finish(self, results: Sequence[PartitionResult]) -> None:
        """Note that the Spark job has succeeded, with these results."""
        self._end(_Outcome(results=tuple(results)))

    def fail(self, error: BaseException) -> None:
        """Note that the Spark job has failed with `error`."""
        self._end(_Outcome(error=error))

    def cancel(self) -> None:
        """Stop reading, and refuse all tasks. Calling this twice is harmless."""
        self._closed = True
        self._over.put(None)
        self._reception.wake()
        self._try_close()

    def failure(self) -> Failure | None:
        """Return an error of the user's function in a task that no other replaced; None without."""
        for partition in tuple(self._partitions.values()):
            if partition.failure is not None:
                return partition.failure
        return None

    def changed(self) -> PartitionChangedError | None:
        """Return the report on a retry that differs from the previous attempt, if there is one."""
        for partition in tuple(self._partitions.values()):
            if partition.changed is not None:
                return partition.changed
        return None

    def statistics(self) -> Statistics:
        """Return numbers that show the state of the channel."""
        return Statistics(
            asked=self._asked,
            connections=len(self._connections),
            partial=self._partial,
            batches=self._batches,
            rows=self._rows,
            waiting=self._backlog.size,
            fenced=self._fenced,
            rejected=self._reception.rejected,
        )

    def _next(self, timeout_s: float | None) -> Batch | None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._closed:
            batch = self._backlog.take()
            if batch is None and self._turn.take():
                try:
                    # Batches that were taken in just before come first.
                    batch = self._backlog.take()
                    return self._read_next(deadline) if batch is None else batch
                finally:
                    self._turn.give(tell=False)
            if batch is not None:
                return batch
            self._turn.wait(_left(deadline))
        return None

    def _read_next(self, deadline: float | None) -> Batch | None:
        while not self._closed:
            batch = self._ready_batch()
            if batch is not None:
                return batch
            outcome = self._outcome
            if outcome is not None:
                self._closed = True
                if outcome.error is not None:
                    raise outcome.error
                self._verify(outcome.results)
                break
            self._select(_left(deadline))
        return None

    def _ready_batch(self) -> Batch | None:
        """Return a batch that is complete, without waiting; None if there is none yet."""
        while self._ready:
            connection = self._ready.popleft()
            connection.queued = False
            batch = self._read(connection)
            if batch is not None:
                return batch
        return None

    def _select(self, timeout_s: float | None) -> None:
        for connection in self._reception.wait(timeout_s):
            if not connection.queued:
                connection.queued = True
                self._ready.append(connection)
        while self._reception.guests:
            self._welcome(self._reception.guests.popleft())

    def _read(self, connection: _Connection) -> Batch | None:
        """Read from one task until a batch is complete, no bytes are left, or it must wait."""
        try:
            while connection.fill():
                if connection.body:
                    batch = self._complete(connection, connection.partition)
                    if batch is not None:
                        return batch
                elif not self._begin(connection):
                    return None
        except _BrokenError:
            self._drop(connection)
        return None

    def _welcome(self, guest: Guest) -> None:
        partition = self._partitions.setdefault(guest.number, _Partition(guest.number))
        connection = _Connection(guest.sock, guest.task, partition)
        self._connections.add(connection)
        self._reception.register(guest.sock, connection)
        try:
            if guest.task <= partition.task:
                self._fenced += 1
                connection.answer(WELCOME.pack(Answer.FENCED, 0, 0, 0))
                self._drop(connection)
            elif self._speculation and partition.connection is not None:
                partition.copies.append(connection)
            else:
                self._admit(connection, partition)
        except _BrokenError:
            self._drop(connection)

    def _admit(self, connection: _Connection, partition: _Partition) -> None:
        """Let the attempt behind `connection` send."""
        lost = partition.task >= 0 and not partition.let_go
        if lost and not (self._speculation and partition.ended):
            _log.warning(
                "partition %d: task %d takes over from task %d, which was lost or has failed; "
                "the %d items that had arrived are not sent again",
                partition.number,
                connection.task,
                partition.task,
                partition.rows,
            )
        if partition.connection is not None:
            self._fenced += 1
            self._drop(partition.connection)
        partition.task = connection.task
        partition.connection = connection
        partition.batches = 0
        partition.ended = False
        partition.failure = None
        connection.answer(
            WELCOME.pack(Answer.ACCEPTED, partition.rows, partition.read, partition.checksum)
        )

    def _begin(self, connection: _Connection) -> bool:
        """Handle a frame's head; return False if there is no room for its body now."""
        if self._partial >= self._capacity:
            # Its head stays as it is, complete; `_free` brings it back.
            self._reception.unregister(connection.sock)
            self._waiting.append(connection)
            return False
        code, connection.rows, length, connection.read, connection.checksum = FRAME.unpack(
            connection.buffer
        )
        if length > LONGEST_FRAME:
            raise _BrokenError
        try:
            connection.kind = Kind(code)
        except ValueError as error:
            raise _BrokenError from error
        connection.body = True
        connection.expect(length)
        self._partial += 1
        return True

    def _complete(self, connection: _Connection, partition: _Partition) -> Batch | None:
        kind, rows, payload = connection.kind, connection.rows, connection.buffer
        self._free(connection)
        connection.expect(FRAME.size)
        partition.let_go = False
        if kind is Kind.SCHEMA:
            partition.schema = bytes(payload)
            return None
        if kind is Kind.FAILED:
            partition.failure = Failure(partition.number, partition.task, bytes(payload))
            connection.answer(bytes([Answer.ACCEPTED]))
            return None
        if kind is Kind.END:
            connection.answer(bytes([self._judge(partition, payload)]))
            return None
        if kind is Kind.CHANGED:
            partition.changed = _other_rows(partition)
            connection.answer(bytes([Answer.ACCEPTED]))
            # Another attempt will not find them either. But the attempt before a copy may have
            # ended well, and an input that was cut short may be complete the next time.
            if not self._speculation and payload != FEWER:
                self.fail(partition.changed)
            return None
        partition.rows += rows
        partition.batches += 1
        partition.read, partition.checksum = connection.read, connection.checksum
        self._rows += rows
        self._batches += 1
        return Batch(partition.number, rows, kind, payload, partition.schema)

    def _judge(self, partition: _Partition, payload: bytearray) -> Answer:
        if len(payload) != COUNTS.size:
            raise _BrokenError
        rows, batches = COUNTS.unpack(payload)
        if rows < partition.rows:
            # Not the end of the flow yet: an executor that was killed may have cut the input of
            # this attempt, and another one may follow. If none does, the job fails.
            partition.changed = PartitionChangedError(
                f"partition {partition.number} gave {partition.rows} items at first and {rows} "
                f"when it was retried (task {partition.task}). A retry resumes where the attempt "
                "before it stopped, so a partition has to give the same items in the same order "
                "each time. Make the functions deterministic, or persist the DataFrame first: "
                "df.persist() or df.write."
            )
            return Answer.SHORTER
        if rows != partition.rows or batches != partition.batches:
            return Answer.WRONG_COUNTS
        partition.changed = None
        partition.ended = True
        return Answer.ACCEPTED

    def _verify(self, results: Sequence[PartitionResult]) -> None:
        reported = {result.partition: result.rows for result in results}
        received = {number: part.rows for number, part in self._partitions.items()}
        wrong = [
            f"partition {number}: {received.get(number, 0)} items received, "
            f"{reported.get(number, 0)} reported by the job"
            for number in sorted(reported.keys() | received.keys())
            if received.get(number, 0) != reported.get(number, 0)
        ]
        if len(reported) != len(results):
            wrong.append("the job reports a partition twice")
        if wrong:
            raise ChannelError(
                "what arrived is not what the Spark job reports:\n  " + "\n  ".join(wrong)
            )

    def _free(self, connection: _Connection) -> None:
        """Give up the place of a body, and let a task that waits for one continue."""
        connection.body = False
        self._partial -= 1
        if self._waiting:
            waiting = self._waiting.popleft()
            self._reception.register(waiting.sock, waiting)
            # The whole head has been read, so the selector may not report it.
            waiting.queued = True
            self._ready.append(waiting)

    def _drop(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        if connection in self._waiting:
            self._waiting.remove(connection)
        else:
            self._reception.unregister(connection.sock)
        if connection.queued:
            connection.queued = False
            self._ready.remove(connection)
        connection.sock.close()
        if connection.body:
            self._free(connection)
        partition = connection.partition
        if connection in partition.copies:
            partition.copies.remove(connection)
        if partition.connection is connection:
            partition.connection = None
            if partition.copies and not self._closed:
                self._admit_copy(partition)

    def _admit_copy(self, partition: _Partition) -> None:
        first = min(partition.copies, key=lambda copy: copy.task)
        partition.copies.remove(first)
        try:
            self._admit(first, partition)
        except _BrokenError:
            self._drop(first)

    def _end(self, outcome: _Outcome) -> None:
        if self._outcome is None:
            self._outcome = outcome
        self._over.put(None)
        self._reception.wake()

    def _try_close(self) -> None:
        """Close everything, unless a thread reads: then that thread does so when it leaves."""
        if not self._turn.take():
            return
        try:
            self._backlog.clear()
            self._leave()
        finally:
            self._turn.give()

    def _leave(self) -> None:
        """Disconnect all tasks, and accept no more."""
        self._drop_all()
        self._reception.close()

    def _drop_all(self) -> None:
        for partition in self._partitions.values():
            for copy in tuple(partition.copies):  # before they take the place of another one
                self._drop(copy)
        for connection in tuple(self._connections):
            self._drop(connection)


def _left(deadline: float | None) -> float | None:
    """Return how many seconds are left until `deadline`."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left < 0:
        raise TimeoutError("no batch has come in time")
    return left


def _other_rows(partition: _Partition) -> PartitionChangedError:
    return PartitionChangedError(
        f"partition {partition.number} was read again (task {partition.task}), and Spark gave "
        "other rows than to the attempt before, or the same in another order. Of that one "
        f"{partition.rows} items were taken, and a retry continues behind them, so items would be "
        "lost and others come twice. What the DataFrame computes differs from run to run (random "
        "numbers, the time, a function with a memory, limit() without an order), or its sort() "
        "does not tell all rows apart. Ways out:\n"
        "  - df.persist(StorageLevel.DISK_ONLY_2), df.checkpoint() or df.write, so that nothing is "
        "computed again\n"
        "  - functions that give the same each time (a random generator seeded by the row)\n"
        "  - df.sort(...) or df.sortWithinPartitions(...) by columns that tell all rows apart"
    )
