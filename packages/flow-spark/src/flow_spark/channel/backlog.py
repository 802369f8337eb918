"""Batches that came before they were requested: kept in memory, then in files without a name."""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import tempfile
from collections import deque
from dataclasses import dataclass
from typing import Final, final

from flow_spark.channel.wire import Kind

__all__ = ["MIB", "Backlog", "Batch"]

_log: Final = logging.getLogger("flow.spark")

MIB: Final = 1024 * 1024

_MEMORY: Final = 8 * MIB
_SEGMENT: Final = 64 * MIB
_LIMIT: Final = 1024 * MIB

_MEMORY_ALONE: Final = 256 * MIB
"""The most bytes in memory if nothing can or may be written to a disk."""

_OVERHEAD: Final = 512
"""The approximate size of a batch object in memory; a batch counts as that much more than its
items."""

_HEAD: Final = struct.Struct("<IIIBQ")
"""Partition, items, number of the schema, kind, bytes that follow."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some items of one partition, still encoded.

    Attributes:
        partition: the partition of the items; within it, batches come in order.
        rows: how many items there are.
        kind: the encoding of `payload`.
        payload: the encoded items.
        schema: the encoded Arrow schema, if `kind` is ARROW.
    """

    partition: int
    rows: int
    kind: Kind
    payload: bytearray
    schema: bytes


@final
class Backlog:
    """Holds batches, and returns them in the order in which they came.

    One thread may `put` while another thread takes. No lock is involved, so a signal handler or a
    finaliser may `clear` at any moment.

    The first `memory` bytes are kept in memory. The rest goes to files of `segment` bytes that have
    no name: the system frees them when the last batch is taken, or when the process ends in any
    way. Where the disk is full, or `files` is false, everything stays in memory.

    Args:
        memory: how many bytes are kept in memory.
        limit: the most bytes, in memory and in files.
        segment: how many bytes a file may have.
        files: whether files may be written.
    """

    __slots__ = (
        "_closed",
        "_complained",
        "_entries",
        "_files",
        "_limit",
        "_memory",
        "_memory_in",
        "_memory_out",
        "_numbers",
        "_schemas",
        "_segment",
        "_stored_in",
        "_stored_out",
    )

    def __init__(
        self,
        *,
        memory: int = _MEMORY,
        limit: int = _LIMIT,
        segment: int = _SEGMENT,
        files: bool = True,
    ) -> None:
        self._memory: Final = memory
        self._limit: Final = limit
        self._segment: Final = segment
        self._files: Final = files
        self._entries: Final[deque[Batch | _Segment]] = deque()
        self._schemas: Final[list[bytes]] = []
        self._numbers: Final[dict[bytes, int]] = {}
        # Each is written by one thread: "in" by the one that puts, "out" by the one that takes.
        self._memory_in = self._memory_out = 0
        self._stored_in = self._stored_out = 0
        self._complained = False
        self._closed = False

    @property
    def in_memory(self) -> int:
        """The bytes in memory."""
        return self._memory_in - self._memory_out

    @property
    def size(self) -> int:
        """The bytes in memory and in files; 0 once `clear` was called."""
        return 0 if self._closed else self.in_memory + self._stored_in - self._stored_out

    @property
    def limit(self) -> int:
        """The most bytes, in memory and in files, as long as no disk is full."""
        return self._limit if self._files else min(self._limit, _MEMORY_ALONE)

    def is_full(self) -> bool:
        """True if there is no room for a further batch."""
        return self.size >= self.limit or self.in_memory >= max(self._memory, _MEMORY_ALONE)

    def put(self, batch: Batch) -> None:
        """Add a batch behind all others. It is accepted even if there is no room."""
        size = _size(batch)
        last = self._last()
        if last is not None or (self._files and self.in_memory + size > self._memory):
            if last is None or last.written >= self._segment:
                last = self._next_segment(last)
            if last is not None and self._store(batch, last):
                self._stored_in += size
                return
        self._memory_in += size
        self._append(batch)

    def take(self) -> Batch | None:
        """Return the batch that came first, or None if there is none."""
        batch = None
        with contextlib.suppress(IndexError):  # there is none, or `clear` was faster
            while batch is None:
                first = self._entries[0]
                if isinstance(first, Batch):
                    batch = first
                    self._entries.popleft()
                    self._memory_out += _size(batch)
                    continue
                over = first.closed  # read before the file is: the file may have grown just before
                batch = self._load(first)
                if batch is not None:
                    self._stored_out += _size(batch)
                elif over:
                    self._entries.popleft()
                else:
                    break
        # Once it was cleared, a batch that was put in just after must not be taken.
        return None if self._closed else batch

    def clear(self) -> None:
        """Drop everything, and accept nothing any more. Any thread may call this."""
        self._closed = True
        self._entries.clear()

    def _last(self) -> _Segment | None:
        """Return the file that is still written to; no batch may overtake the batches in it."""
        try:
            last = self._entries[-1]
        except IndexError:
            return None
        if not isinstance(last, _Segment) or last.closed:
            return None
        if last.read < last.written:
            return last
        last.closed = True  # all of it was taken, so there may be room in memory
        return None

    def _append(self, entry: Batch | _Segment) -> None:
        self._entries.append(entry)
        if self._closed:
            self._entries.clear()

    def _next_segment(self, last: _Segment | None) -> _Segment | None:
        if last is not None:
            last.closed = True
        try:
            made = _Segment()
        except OSError as error:
            self._complain(error)
            return None
        self._append(made)
        return made

    def _store(self, batch: Batch, segment: _Segment) -> bool:
        """Write `batch`; return False if there is no room for it."""
        number = self._numbers.get(batch.schema)
        if number is None:
            number = self._numbers[batch.schema] = len(self._schemas)
            self._schemas.append(batch.schema)
        head = _HEAD.pack(batch.partition, batch.rows, number, batch.kind, len(batch.payload))
        try:
            segment.write(head, batch.payload)
        except OSError as error:
            segment.closed = True  # further batches in memory come after those in the file
            self._complain(error)
            return False
        return True

    def _load(self, segment: _Segment) -> Batch | None:
        if segment.read == segment.written:
            return None
        head: tuple[int, int, int, int, int] = _HEAD.unpack(segment.next(_HEAD.size))
        partition, rows, number, kind, size = head
        payload = segment.next(size)
        return Batch(partition, rows, Kind(kind), payload, self._schemas[number])

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            _log.warning(
                "items of Spark that are not requested cannot be kept in a file of %s (%s); they "
                "stay in memory, up to %d MiB",
                tempfile.gettempdir(),
                error,
                _MEMORY_ALONE // MIB,
            )


@final
class _Segment:
    """A file without a name. One thread may write while another one reads.

    It is closed when there is no reference to it any more, so never while its descriptor is in use.
    """

    __slots__ = ("_descriptor", "closed", "read", "written")

    def __init__(self) -> None:
        self._descriptor = -1
        self.read = 0
        self.written = 0
        self.closed = False
        with tempfile.TemporaryFile(prefix="flow-spark-", buffering=0) as file:
            self._descriptor = os.dup(file.fileno())

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def write(self, *parts: bytes | bytearray) -> None:
        """Append `parts`, or nothing.

        Raises:
            OSError: if the disk is full or broken.
        """
        at = self.written
        try:
            for part in parts:
                with memoryview(part) as view:
                    done = 0
                    while done < len(view):
                        done += os.pwrite(self._descriptor, view[done:], at + done)
                    at += done
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.written)
            raise
        self.written = at

    def next(self, size: int) -> bytearray:
        """Return the next `size` bytes, which have been written.

        Raises:
            OSError: if the disk is broken.
        """
        data = bytearray(size)
        with memoryview(data) as view:
            done = 0
            while done < size:
                got = os.preadv(self._descriptor, [view[done:]], self.read + done)
                if not got:
                    raise OSError("a file without a name has become shorter")
                done += got
        self.read += size
        return data


def _size(batch: Batch) -> int:
    return len(batch.payload) + _OVERHEAD
