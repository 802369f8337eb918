"""The task's side of the channel: connects, pushes batches, blocks until the driver reads."""

from __future__ import annotations

import zlib
from typing import Final, final

from flow_spark.channel.wire import (
    COUNTS,
    FEWER,
    FRAME,
    LONGEST_FRAME,
    WELCOME,
    Answer,
    Kind,
    Target,
    dial,
    greet,
    is_closed,
    received,
)
from flow_spark.errors import ChannelError, LimitExceededError, PartitionChangedError

__all__ = ["Push"]

_JOINED: Final = 64 * 1024


@final
class Push:
    """One attempt at one partition. Every call blocks until the driver reads: that is the demand.

    Attributes:
        skip: how many items the driver has from earlier attempts; the caller drops that many.
    """

    __slots__ = (
        "_batches",
        "_checksum",
        "_expected",
        "_held",
        "_known",
        "_read",
        "_rows",
        "_socket",
        "skip",
    )

    def __init__(self, target: Target, partition: int, task: int) -> None:
        """Connect and introduce the task; return once the driver wants items.

        Args:
            target: where the driver listens.
            partition: the partition's number.
            task: the id of the task attempt; of two attempts at a partition, the later one has the
                higher id.

        Raises:
            ChannelError: if the driver is gone or cannot be reached, or a later attempt has taken
                over.
        """
        self._rows = 0
        self._batches = 0
        self._read = 0
        self._checksum = 0
        self._held: Final[list[tuple[Kind, int, bytes | memoryview]]] = []
        self._socket: Final = dial(target)
        try:
            try:
                greet(self._socket, target, partition, task)
            except OSError as error:
                raise _closed() from error
            answer, self.skip, self._known, self._expected = WELCOME.unpack(
                self._received(WELCOME.size)
            )
        except BaseException:
            self._socket.close()
            raise
        if answer != Answer.ACCEPTED:
            self._socket.close()
            raise ChannelError(
                f"a later attempt at partition {partition} has taken over from task {task}"
            )

    def has_read(self, checksum: int) -> None:
        """Note that another batch of the input was read.

        Args:
            checksum: the checksum of the batch's rows; it depends on their order.

        Raises:
            PartitionChangedError: if the previous attempt had read different rows up to this point.
        """
        self._checksum = zlib.crc32(checksum.to_bytes(4), self._checksum)
        if self._read + 1 == self._known and self._checksum != self._expected:
            raise self._changed(b"")  # the batch does not count as read, so nothing more is sent
        self._read += 1

    def send(self, kind: Kind, rows: int, payload: bytes | memoryview) -> None:
        """Send one batch, once this attempt has read as much as the previous attempt had read.

        Args:
            kind: the encoding of `payload`.
            rows: the number of items in `payload`.
            payload: the encoded items.

        Raises:
            LimitExceededError: if the items need more bytes than a frame may hold; then nothing has
                been sent.
        """
        if len(payload) > LONGEST_FRAME:
            raise LimitExceededError(
                f"{rows} item{'s' if rows != 1 else ''} of {len(payload):,} bytes cannot be sent "
                f"to this process: {LONGEST_FRAME:,} at once are the most. Make less of it on "
                "Spark before (map), divide it (flat_map_iterable), or leave it there (write)"
            )
        # The previous attempt has read at most one batch more than it sent, so few items wait here.
        self._held.append((kind, rows, payload))
        if self._read < self._known:
            return
        for held in self._held:
            self._frame(*held)
            self._rows += held[1]
            self._batches += 1
        self._held.clear()

    def send_schema(self, payload: bytes | memoryview) -> None:
        """Send the schema of the following Arrow batches."""
        self._frame(Kind.SCHEMA, 0, payload)

    def end(self, skipped: int) -> tuple[int, int]:
        """Report that the partition is complete; wait until the driver has taken all of it.

        Args:
            skipped: how many items were dropped at the start; less than `skip` if the partition had
                no more.

        Returns:
            The number of items of the whole partition, and of batches of this attempt.

        Raises:
            PartitionChangedError: if earlier attempts have delivered more items than there are now,
                or have read more of the input.
            ChannelError: if the driver is gone or has counted differently.
        """
        if self._read < self._known:
            raise self._changed(FEWER)
        rows = skipped + self._rows
        self._frame(Kind.END, 0, COUNTS.pack(rows, self._batches))
        answer = self._received(1)[0]
        if answer == Answer.SHORTER:
            raise PartitionChangedError(
                f"this attempt gave {rows} items, but an earlier one had delivered {self.skip}"
            )
        if answer != Answer.ACCEPTED:
            raise ChannelError(
                f"the driver has counted other than {rows} items, {self._batches} batches"
            )
        return rows, self._batches

    def fail(self, payload: bytes) -> None:
        """Send the pickled exception that ended this attempt; wait until the driver has it."""
        self._frame(Kind.FAILED, 0, payload)
        self._received(1)

    def is_closed(self) -> bool:
        """Return whether the driver has closed the connection. Any thread may call this."""
        return is_closed(self._socket)

    def close(self) -> None:
        """Close the connection. If `end` was not called first, the attempt counts as broken."""
        self._socket.close()

    def _frame(self, kind: Kind, rows: int, payload: bytes | memoryview) -> None:
        head = FRAME.pack(kind, rows, len(payload), self._read, self._checksum)
        if len(payload) < _JOINED:
            self._write(head + payload)
        else:
            self._write(head)
            self._write(payload)

    def _write(self, data: bytes | memoryview) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise _closed() from error

    def _changed(self, how: bytes) -> PartitionChangedError:
        """Report the difference to the driver, which explains it."""
        self._frame(Kind.CHANGED, 0, how)
        self._received(1)
        return PartitionChangedError(
            f"this attempt reads other rows, or in another order, than the one before, of which "
            f"{self.skip} items were taken"
        )

    def _received(self, size: int) -> bytes:
        try:
            return received(self._socket, size)
        except OSError as error:
            raise _closed() from error


def _closed() -> ChannelError:
    return ChannelError(
        "the driver has closed the channel: the flow was cancelled or has failed, or a later "
        "attempt at this partition has taken over"
    )
