"""A clock that stands still until a test moves it."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final, final

from flow_core.clocks import Clock, check_delay, check_period, clocks_in_force
from flow_core.errors import FlowError
from flow_core.executors import Task
from flow_core.protocols import Disposable

__all__ = ["HastyClock", "VirtualClock"]

_NANOS: Final = 1_000_000_000


@final
class _Timer(Disposable):
    __slots__ = ("__weakref__", "delay_s", "period_s", "runs", "start", "task")

    def __init__(self, start: int, delay_s: float, period_s: float, task: Task) -> None:
        self.start = start
        self.delay_s = delay_s
        self.period_s = period_s
        self.task: Task | None = task
        self.runs = 0

    @property
    def due(self) -> float:
        """In nanoseconds, whole ones but for infinity."""
        after = self.delay_s + self.runs * self.period_s
        return after if after == math.inf else self.start + round(after * _NANOS)

    @property
    def disposed(self) -> bool:
        """See `Disposable.disposed`; also True when it has run for the last time, or begun to."""
        return self.task is None

    def dispose(self) -> None:
        """See `Disposable.dispose`."""
        self.task = None

    def __enter__(self) -> _Timer:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()


@final
class HastyClock(Clock):
    """A clock whose time has passed whenever somebody looks, and whenever somebody waits.

    >>> clock = HastyClock()
    >>> _ = clock.schedule(3600, lambda: print("an hour later"))
    an hour later
    """

    def __init__(self) -> None:
        self._passed_s = 0.0

    def now(self) -> float:
        """See `Clock.now`. 2 seconds more each time."""
        self._passed_s += 2
        return self._passed_s

    def schedule(self, delay_s: float, task: Callable[[], object], /) -> Disposable:
        """See `Clock.schedule`. The task runs at once."""
        self._passed_s += delay_s
        task()
        return VirtualClock().schedule(0, _nothing)

    def schedule_periodically(self, *_: object) -> Disposable:
        """See `Clock.schedule_periodically`.

        Raises:
            NotImplementedError: always, since nothing would ever end.
        """
        raise NotImplementedError("nothing periodic runs in haste")


def _nothing() -> None:
    """What has run already."""


@final
class VirtualClock(Clock):
    """A `Clock` whose time passes when the test says so; also an executor, ``clock(task)``.

    >>> clock = VirtualClock()
    >>> handle = clock.schedule(3600, lambda: print("an hour later"))
    >>> clock.advance_by(3599.999)
    >>> clock.advance_by(0.001)
    an hour later
    >>> clock.now(), clock.pending
    (3600.0, 0)

    Within ``with VirtualClock() as clock:`` it is in force: all operators that wait use it for what
    is subscribed to in that block, in any thread of the process, unless they are given another
    clock.

    Everything happens in the thread that advances it, in the order of the times; at the same time,
    first come, first served. Tasks may schedule tasks: those that are due within the same advance
    run in it. Times are kept in whole nanoseconds, so that ten steps of 0.1 s are a second. What a
    task raises comes out of the advance, at the time of the task; what is due later stays pending.

    Args:
        start_s: what `now` says at first.
    """

    __slots__ = ("__weakref__", "_advancing", "_heap", "_now", "_numbers")

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = round(start_s * _NANOS)
        self._heap: list[tuple[float, int, _Timer]] = []
        self._numbers = count()
        self._advancing = False

    def now(self) -> float:
        """See `Clock.now`."""
        return self._now / _NANOS

    def schedule(self, delay_s: float, task: Task, /) -> Disposable:
        """See `Clock.schedule`. Nothing runs before the time is advanced, by 0 at least."""
        return self._push(_Timer(self._now, check_delay(delay_s), 0.0, task))

    def schedule_periodically(self, delay_s: float, period_s: float, task: Task, /) -> Disposable:
        """See `Clock.schedule_periodically`."""
        return self._push(_Timer(self._now, check_delay(delay_s), check_period(period_s), task))

    def __call__(self, task: Task, /) -> None:
        """Run `task` at the current time, after what is due already: the clock as an executor.

        Args:
            task: runs with the next advance, or within the one that is running.
        """
        self.schedule(0, task)

    def __enter__(self) -> VirtualClock:
        """Put this clock in force until the block ends."""
        clocks_in_force.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        clocks_in_force.remove(self)

    @property
    def pending(self) -> int:
        """How many tasks wait; a periodic one counts once."""
        return sum(not timer.disposed for _, _, timer in self._heap)

    def advance_by(self, seconds: float) -> None:
        """Let time pass, and run what is due meanwhile. ``advance_by(0)`` runs what is due now.

        Args:
            seconds: at least 0.

        Raises:
            ValueError: if that is less than 0.
            FlowError: if a task calls it: time passes for all tasks, and only from outside.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time goes forward, by a finite amount, not by {seconds} s")
        self._advance(self._now + round(seconds * _NANOS))

    def advance_to(self, time_s: float) -> None:
        """Let time pass until `now` is `time_s`, and run what is due meanwhile.

        Args:
            time_s: not in the past.

        Raises:
            ValueError: if it is in the past.
            FlowError: if a task calls it.
        """
        target = round(time_s * _NANOS)
        if target < self._now:
            raise ValueError(f"time goes forward, not from {self.now()} s to {time_s} s")
        self._advance(target)

    def run(self, max_tasks: int = 100_000) -> None:
        """Let time pass until nothing waits any more; it then is the time of the last task.

        Args:
            max_tasks: after how many to give up.

        Raises:
            AssertionError: if it has to give up, mostly because of a periodic task that nobody
                disposes of.
            FlowError: if a task calls it.
        """
        self._advance(None, max_tasks)

    def __repr__(self) -> str:
        return f"VirtualClock(now={self.now()} s, pending={self.pending})"

    def _push(self, timer: _Timer) -> _Timer:
        heappush(self._heap, (timer.due, next(self._numbers), timer))
        return timer

    def _advance(self, target: int | None, max_tasks: int | None = None) -> None:
        if self._advancing:
            raise FlowError(
                "a task may not advance the clock that runs it; schedule another task instead"
            )
        self._advancing = True
        try:
            runs = 0
            while self._run_first(target):
                runs += 1
                if runs == max_tasks and self.pending:
                    raise AssertionError(
                        f"{runs} tasks have run, and {self.pending} wait at {self.now()} s; a "
                        "periodic task never ends by itself: use advance_by, or dispose of it"
                    )
            if target is not None:
                self._now = target
        finally:
            self._advancing = False

    def _run_first(self, target: int | None) -> bool:
        """Run the next task that is due up to `target`; whether there was one."""
        heap = self._heap
        while heap and heap[0][2].disposed:
            heappop(heap)
        if not heap or heap[0][0] == math.inf or (target is not None and heap[0][0] > target):
            return False
        due, _, timer = heappop(heap)
        task = timer.task
        self._now = max(self._now, int(due))
        if task is None:
            return True
        if not timer.period_s:
            timer.task = None
            task()
            return True
        try:
            task()
        except BaseException:
            timer.task = None
            raise
        timer.runs += 1
        if not timer.disposed:
            self._push(timer)
        return True
