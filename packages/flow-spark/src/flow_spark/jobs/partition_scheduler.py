"""Runs the partitions of a job a few at a time, so that few wait for a slot without a reader."""

from __future__ import annotations

import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, final

from flow_spark.channel.background_reader import PATIENCE_S
from flow_spark.channel.receiver import BatchReceiver

__all__ = ["PartitionScheduler", "Parts"]

_log: Final = logging.getLogger("flow.spark")

_Rows = list[tuple[Any, ...]]

_LOOK_EVERY_S: Final = 0.02
"""The interval at which to check whether the next wave should start, in seconds."""

_CANCEL_EVERY_S: Final = 0.2
"""The interval at which running jobs are cancelled, in seconds: a wave that is being planned has
nothing to cancel yet."""

_SOON_S: Final = 0.2
"""The time that the first items may take before other tasks start as well, in seconds."""

_AHEAD_S: Final = 1.0
"""For how long a wave should keep the cluster busy, in seconds, if not twice the last is more."""

_LOW: Final = 1024 * 1024
"""The most bytes that may wait here when the next wave starts."""


class Parts(Protocol):
    """The partitions of a job of Spark, all of one plan."""

    count: int
    """The number of partitions."""

    slots: int
    """About how many tasks run at once."""

    are_few: bool
    """True if all of them should start at once, since waves would make no difference."""

    @abstractmethod
    def run(self, partitions: range) -> _Rows:
        """Run some partitions, and wait until they have ended. Any thread may call this.

        Returns:
            Their rows.
        """


@final
class PartitionScheduler:
    """Starts the partitions of a job wave by wave, while their items are requested.

    Running partitions may `leave`: they start again at the next request, and continue after the
    items that have come already.

    The second wave starts when more than the first items are requested. From then on, the next wave
    starts when few tasks wait for a slot, so that no slot is ever free, and only while the consumer
    requests items. So if the consumer goes away, only a few tasks are ahead of those of other jobs.

    Args:
        parts: the partitions.
        receiver: reads the items of tasks.
        first: how many partitions start at once; None for two for each slot.
        branches: how many numbers `receiver` has for each partition.
        repeats: returns whether a partition has the same items each time.
        tell: passes this thread's settings for Spark's jobs on to the thread of a wave.
        cancel: ends the running parts of the job on the cluster.
        what: the name of the job, for messages.
    """

    __slots__ = (
        "_branches",
        "_cancel",
        "_ended",
        "_first",
        "_left",
        "_may_leave",
        "_parts",
        "_receiver",
        "_repeats",
        "_rest",
        "_running",
        "_since",
        "_tell",
        "_waiting",
        "_wave",
        "_what",
    )

    def __init__(
        self,
        parts: Parts,
        receiver: BatchReceiver,
        *,
        first: int | None,
        branches: int,
        repeats: Callable[[], bool],
        tell: Callable[[], None],
        cancel: Callable[[], None],
        what: str,
    ) -> None:
        self._parts: Final = parts
        self._receiver: Final = receiver
        self._first = parts.count if parts.are_few else first or 2 * parts.slots
        self._branches: Final = branches
        self._repeats: Final = repeats
        self._tell: Final = tell
        self._cancel: Final = cancel
        self._what: Final = what
        self._rest: tuple[range, ...] = (range(parts.count),) if parts.count else ()
        self._wave = range(0)
        self._waiting: list[int] = []
        self._running = 0
        self._left = 0
        self._may_leave: bool | None = None
        self._since = time.monotonic()
        self._ended: Final[SimpleQueue[tuple[range, int, _Rows | BaseException]]] = SimpleQueue()

    @property
    def later(self) -> int:
        """Return how many partitions have not been handed to Spark yet."""
        return sum(map(len, self._rest))

    def leave(self) -> bool:
        """Give the slots back, unless items are requested. Any thread may call this.

        Returns:
            True if no slot is held, or none will be in a moment. False if the consumer is back, if
            the job has ended, or if a partition might have other items the next time.
        """
        if not self._running:
            return True
        if self._may_leave is None:
            self._may_leave = self._repeats()
        return self._may_leave and self._receiver.let_go(self._part)

    def _part(self) -> None:
        # We count before and after the cancel. A wave notes the count when it starts: if that was
        # odd, or is another one when the wave ends, the cancel may be what ended it.
        self._left += 1
        try:
            self._cancel()
        finally:
            self._left += 1

    def run(self) -> _Rows:
        """Run all partitions, and return their rows.

        If a cancel or an error ends the job earlier, the remaining partitions never start.

        Raises:
            BaseException: the error of a wave; all others have ended then.
        """
        rows: _Rows = []
        error: BaseException | None = None
        while self._running or self._has_more(error):
            # We read it before `_is_due`: a `leave` that comes between the two is seen as one that
            # came while the wave ran.
            left = self._left
            if self._has_more(error) and self._is_due():
                self._start(left)
            try:
                wave, left, told = self._ended.get(timeout=self._next_look(error))
            except Empty:
                pass
            else:
                self._running -= 1
                self._waiting = [partition for partition in self._waiting if partition not in wave]
                if not isinstance(told, BaseException):
                    rows += told
                # The wave has not failed: it was cancelled to free its slots.
                elif error is None and self._has_left(left):
                    self._put_back(wave)
                else:
                    error = error or told
            # This is repeated until all waves have ended: Spark cannot cancel a wave whose tasks it
            # has not planned yet.
            if error is not None and self._running:
                self._cancel()
        if error is not None:
            raise error
        return rows

    def _has_more(self, error: BaseException | None) -> bool:
        return bool(self._rest) and error is None and not self._receiver.is_over()

    def _next_look(self, error: BaseException | None) -> float | None:
        if error is not None:
            return _CANCEL_EVERY_S
        return _LOOK_EVERY_S if self._rest else None

    def _start(self, left: int) -> None:
        size, (now, *others) = self._next_size(), self._rest
        self._wave, rest = now[:size], now[size:]
        self._rest = (rest, *others) if rest else tuple(others)
        self._since = time.monotonic()
        self._waiting += self._wave
        self._running += 1
        if len(self._wave) == self._parts.count:  # there is nothing to do beside it
            self._run(self._wave, left)
            return
        threading.Thread(
            target=self._told_and_run,
            args=(self._wave, left),
            name="flow-spark-job",
            daemon=True,
        ).start()

    def _told_and_run(self, wave: range, left: int) -> None:
        try:
            self._tell()
        except BaseException as error:  # an error in a thread has no caller to propagate to
            self._ended.put((wave, left, error))
        else:
            self._run(wave, left)

    def _run(self, wave: range, left: int) -> None:
        try:
            self._ended.put((wave, left, self._parts.run(wave)))
        except BaseException as error:  # an error in a thread has no caller to propagate to
            self._ended.put((wave, left, error))

    def _has_left(self, left: int) -> bool:
        """Return whether `leave` ended a wave that started when `_left` was `left`."""
        return (left != self._left or left % 2 == 1) and not self._receiver.is_over()

    def _put_back(self, wave: range) -> None:
        """Have `wave` start again at the next request, a few partitions at a time.

        It may have to leave again.
        """
        _log.info(
            "%s: %d of its tasks give their slots back to others that wait, since their items are "
            "not requested; they continue when they are",
            self._what,
            len(wave),
        )
        self._rest = (wave, *self._rest)
        self._wave = range(0)
        self._first = min(self._first, self._parts.slots)

    def _is_due(self) -> bool:
        """Return whether the next wave should start."""
        receiver = self._receiver
        seen = receiver.statistics()
        # No demand now: another wave would only take slots from other jobs.
        if receiver.silence_s() >= PATIENCE_S or seen.waiting > _LOW:
            return False
        if not self._running:
            return True
        # Only the first wave begins at partition 0. `first()` and `take(10)` end with it, so we
        # wait a little before we start more.
        if not self._wave.start and seen.asked < 2 and time.monotonic() < self._since + _SOON_S:
            return False
        self._waiting = [partition for partition in self._waiting if not self._began(partition)]
        return len(self._waiting) <= max(self._parts.slots, len(self._wave) // 4)

    def _began(self, partition: int) -> bool:
        """Return whether the task of `partition` has connected."""
        first = partition * self._branches
        return any(map(self._receiver.knows, range(first, first + self._branches)))

    def _next_size(self) -> int:
        slots, last = self._parts.slots, len(self._wave)
        if not last:
            return self._first
        # How many partitions a second have begun. The next wave is what begins in `_AHEAD_S` at
        # that rate, at most four times the last one, as the rate of few partitions says little. If
        # tasks take long it is twice the last one: by now, the consumer has kept up with that one.
        rate = (last - len(self._waiting)) / max(time.monotonic() - self._since, _LOOK_EVERY_S)
        return max(slots, 2 * last, min(4 * last, int(rate * _AHEAD_S)))
