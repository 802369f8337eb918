"""Clocks for tests."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

import pytest

from flow_core.clocks import Clock
from flow_core.errors import RejectedExecutionError
from flow_core.executors import Task
from flow_core.protocols import Disposable
from flow_testing import VirtualClock


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    """A clock on which nothing is left when the test ends."""
    clock = VirtualClock()
    yield clock
    assert clock.pending == 0, "a timer is left"


class _Waiting(Disposable):
    def __init__(self, task: Task, period_s: float | None) -> None:
        self.task: Task | None = task
        self.period_s = period_s

    @property
    def disposed(self) -> bool:
        return self.task is None

    def dispose(self) -> None:
        self.task = None

    def __enter__(self) -> Disposable:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()


class HastyClock(Clock):
    """Virtual time on a separate thread: it jumps to the next task as soon as there is one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._now = 0.0
        self._heap: list[tuple[float, int, _Waiting]] = []
        self._numbers = count()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="hasty", daemon=True)
        self._thread.start()

    def now(self) -> float:
        with self._changed:
            return self._now

    def schedule(self, delay_s: float, task: Task, /) -> Disposable:
        return self._push(delay_s, _Waiting(task, None))

    def schedule_periodically(self, delay_s: float, period_s: float, task: Task, /) -> Disposable:
        return self._push(delay_s, _Waiting(task, period_s))

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(20)

    def _push(self, delay_s: float, waiting: _Waiting) -> Disposable:
        with self._changed:
            if delay_s < math.inf:
                heappush(self._heap, (self._now + delay_s, next(self._numbers), waiting))
                self._changed.notify()
        return waiting

    def _work(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        with self._changed:
            while not self._heap and not self._closed:
                self._changed.wait(20)
            if self._closed:
                return False
            due, _, waiting = heappop(self._heap)
            task = waiting.task
            if task is None:
                return True
            self._now = max(self._now, due)
            if waiting.period_s is None:
                waiting.task = None
        task()
        if waiting.period_s is not None:
            self._push(waiting.period_s, waiting)
        return True


@pytest.fixture
def hasty() -> Iterator[HastyClock]:
    clock = HastyClock()
    yield clock
    clock.close()


class RefusingClock(Clock):
    """Takes no task, or only a number of them."""

    def __init__(self, takes: int = 0) -> None:
        self.time = VirtualClock()
        self._takes = takes

    def now(self) -> float:
        return self.time.now()

    def schedule(self, delay_s: float, task: Task, /) -> Disposable:
        self._take()
        return self.time.schedule(delay_s, task)

    def schedule_periodically(self, delay_s: float, period_s: float, task: Task, /) -> Disposable:
        self._take()
        return self.time.schedule_periodically(delay_s, period_s, task)

    def _take(self) -> None:
        if not self._takes:
            raise RejectedExecutionError("the clock was stopped")
        self._takes -= 1


@pytest.fixture
def refusing() -> type[RefusingClock]:
    return RefusingClock
