"""Runs the partitions of a job a few at a time, so that few wait for a slot when nobody reads."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, final

from flow_spark.channel.receiver import BatchReceiver
from flow_spark.channel.relief import PATIENCE_S

__all__ = ["Parts", "Waves"]

_Rows = list[tuple[Any, ...]]

_LOOK_EVERY_S: Final = 0.02
"""How often somebody looks whether the next wave is to start."""

_SOON_S: Final = 0.2
"""How long it may take to the first items before others start as well."""

_AHEAD_S: Final = 1.0
"""For how long a wave is to keep the cluster busy, or for longer if the job runs long already."""

_AHEAD_OF_ALL: Final = 1 / 32
"""The same, as a part of the time that the job has run; so a long job has not too many waves."""

_LOW: Final = 1024 * 1024
"""Bytes that may wait here when the next wave starts."""


class Parts(Protocol):
    """The partitions of a job of Spark, all of one plan."""

    count: int
    """How many there are."""

    slots: int
    """How many tasks run at once, about."""

    @abstractmethod
    def run(self, partitions: range) -> _Rows:
        """Run some, and wait for their end; in any thread.

        Returns:
            The rows that they give.
        """


@final
class Waves:
    """Starts the partitions of a job wave by wave, while somebody asks for their items.

    The second wave starts when more is asked for than the first items. From then on, the next one
    starts when few tasks wait for a slot, so that no slot is ever free; and when the consumer is
    there. So if that goes away, it is a few tasks that come before those of others.

    Args:
        parts: the partitions.
        receiver: reads what tasks send.
        first: how many partitions start at once; None for two for each slot.
        branches: how many numbers of partitions there are at `receiver` for each.
        tell: tells Spark, in the thread of a wave, whose jobs these are.
        cancel: ends on the cluster what runs of the job.
    """

    __slots__ = (
        "_begin",
        "_branches",
        "_cancel",
        "_ended",
        "_first",
        "_parts",
        "_receiver",
        "_rest",
        "_running",
        "_since",
        "_tell",
        "_waiting",
        "_wave",
    )

    def __init__(
        self,
        parts: Parts,
        receiver: BatchReceiver,
        *,
        first: int | None,
        branches: int,
        tell: Callable[[], None],
        cancel: Callable[[], None],
    ) -> None:
        self._parts: Final = parts
        self._receiver: Final = receiver
        self._first: Final = first or 2 * parts.slots
        self._branches: Final = branches
        self._tell: Final = tell
        self._cancel: Final = cancel
        self._rest = range(parts.count)
        self._wave = range(0)
        self._waiting: list[int] = []
        self._running = 0
        self._begin = self._since = time.monotonic()
        self._ended: Final[SimpleQueue[tuple[range, _Rows | BaseException]]] = SimpleQueue()

    @property
    def later(self) -> int:
        """How many partitions have not been handed to Spark yet."""
        return len(self._rest)

    def run(self) -> _Rows:
        """Run all; give their rows.

        If the job is over before, by a cancel or an error, what has not started never does.

        Raises:
            BaseException: what a wave has raised; all others have ended then.
        """
        rows: _Rows = []
        error: BaseException | None = None
        while self._running or self._has_more(error):
            if self._has_more(error) and self._is_due():
                self._start()
            try:
                wave, told = self._ended.get(timeout=_LOOK_EVERY_S if self._rest or error else None)
            except Empty:
                pass
            else:
                self._running -= 1
                self._waiting = [partition for partition in self._waiting if partition not in wave]
                if isinstance(told, BaseException):
                    error = error or told
                else:
                    rows += told
            if error is not None and self._running:
                self._cancel()
        if error is not None:
            raise error
        return rows

    def _has_more(self, error: BaseException | None) -> bool:
        return bool(self._rest) and error is None and not self._receiver.is_over()

    def _start(self) -> None:
        size = self._next_size()
        self._wave, self._rest = self._rest[:size], self._rest[size:]
        self._since = time.monotonic()
        self._waiting += self._wave
        self._running += 1
        threading.Thread(
            target=self._run, args=(self._wave,), name="flow-spark-job", daemon=True
        ).start()

    def _run(self, wave: range) -> None:
        try:
            self._tell()
            self._ended.put((wave, self._parts.run(wave)))
        except BaseException as error:  # a thread has nobody to propagate to
            self._ended.put((wave, error))

    def _is_due(self) -> bool:
        """Whether the next wave is to start."""
        receiver = self._receiver
        seen = receiver.statistics()
        if receiver.silence_s() >= PATIENCE_S or seen.waiting > _LOW:
            return False
        if not self._running:
            return True
        if not self._wave.start and seen.asked < 2 and time.monotonic() < self._since + _SOON_S:
            return False
        self._waiting = [partition for partition in self._waiting if not self._began(partition)]
        return len(self._waiting) <= max(self._parts.slots, len(self._wave) // 4)

    def _began(self, partition: int) -> bool:
        """Whether its task has come."""
        first = partition * self._branches
        return any(map(self._receiver.knows, range(first, first + self._branches)))

    def _next_size(self) -> int:
        slots, last, now = self._parts.slots, len(self._wave), time.monotonic()
        if not last:
            self._begin = now
            return self._first
        rate = (last - len(self._waiting)) / max(now - self._since, _LOOK_EVERY_S)
        ahead_s = max(_AHEAD_S, (now - self._begin) * _AHEAD_OF_ALL)
        return max(slots, min(4 * last, int(rate * ahead_s)))
