"""A clock that stands still until a test advances it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, TypeVar, final, overload

from typing_extensions import override

from flow_core.clocks import Clock, check_delay, check_period, clocks_in_force
from flow_core.errors import FlowError
from flow_core.executors import Task
from flow_core.flow import Flow
from flow_core.homes import turns
from flow_core.protocols import Disposable
from flow_core.sources import EVER_S
from flow_testing import subscriber

__all__ = ["HastyClock", "VirtualClock"]

T = TypeVar("T")

_NANOS: Final = 1_000_000_000

_LOOK_S: Final = 0.001
"""The time to wait before checking again whether other threads have sent something, in seconds of
real time."""


@final
class _Timer(Disposable):
    __slots__ = ("__weakref__", "delay_s", "period_s", "runs", "start", "task")

    def __init__(self, start: int, delay_s: float, period_s: float, task: Task) -> None:
        self.start = start
        self.delay_s = delay_s
        self.period_s = period_s
        self.task: Task | None = partial(copy_context().run, task)
        self.runs = 0

    @property
    def due(self) -> float:
        """The due time in whole nanoseconds; infinity for never."""
        after = self.delay_s + self.runs * self.period_s
        return after if after == math.inf else self.start + round(after * _NANOS)

    @property
    @override
    def disposed(self) -> bool:
        """True also when the task has run for the last time, or has begun its last run."""
        return self.task is None

    @override
    def dispose(self) -> None:
        self.task = None

    def __enter__(self) -> _Timer:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()


@final
class HastyClock(Clock):
    """A clock that runs very fast: time has passed at every look, and no wait takes time.

    >>> clock = HastyClock()
    >>> _ = clock.schedule(3600, lambda: print("an hour later"))
    an hour later
    """

    def __init__(self) -> None:
        self._passed_s = 0.0

    @override
    def now(self) -> float:
        """Return a time that is 2 seconds later each time."""
        self._passed_s += 2
        return self._passed_s

    @override
    def schedule(self, delay_s: float, task: Callable[[], object], /) -> Disposable:
        """Run the task at once, whatever the delay is."""
        self._passed_s += delay_s
        task()
        return VirtualClock().schedule(0, _nothing)

    def schedule_periodically(self, *_: object) -> Disposable:
        """See `Clock.schedule_periodically`.

        Raises:
            NotImplementedError: always, because the runs would never end.
        """
        raise NotImplementedError("a HastyClock runs no periodic task")


def _nothing() -> None:
    """The disposable of a task that has run already."""


@final
class VirtualClock(Clock):
    """A `Clock` whose time passes only when a test says so; also an executor, ``clock(task)``.

    >>> clock = VirtualClock()
    >>> handle = clock.schedule(3600, lambda: print("an hour later"))
    >>> clock.advance_by(3599.999)
    >>> clock.advance_by(0.001)
    an hour later
    >>> clock.now(), clock.pending
    (3600.0, 0)

    Within ``with VirtualClock() as clock:``, this clock is in force: all operators that wait use it
    for subscriptions made in that block, in any thread of the process, unless they were given
    another clock.

    Everything happens in the thread that advances the clock, in the order of the times; tasks with
    the same time run in the order in which they were scheduled. Tasks may schedule further tasks:
    those that are due within the same advance still run in it. Times are kept in whole nanoseconds,
    so that ten steps of 0.1 s are exactly a second. If a task raises an error, the advance raises
    it, and time stays at that of the task; later tasks stay pending.

    Args:
        start_s: what `now` returns at first.
    """

    __slots__ = ("__weakref__", "_advancing", "_heap", "_now", "_numbers")

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = round(start_s * _NANOS)
        self._heap: list[tuple[float, int, _Timer]] = []
        self._numbers = count()
        self._advancing = False

    @override
    def now(self) -> float:
        return self._now / _NANOS

    @override
    def schedule(self, delay_s: float, task: Task, /) -> Disposable:
        """Schedule a task. It does not run before the clock advances, if only by 0."""
        return self._push(_Timer(self._now, check_delay(delay_s), 0.0, task))

    @override
    def schedule_periodically(self, delay_s: float, period_s: float, task: Task, /) -> Disposable:
        return self._push(_Timer(self._now, check_delay(delay_s), check_period(period_s), task))

    def __call__(self, task: Task, /) -> None:
        """Run `task` at the current time, after the tasks that are due: the clock as an executor.

        Args:
            task: runs when the clock advances next, or within the advance that is running.
        """
        self.schedule(0, task)

    def __enter__(self) -> VirtualClock:
        """Put this clock in force until the ``with`` block ends."""
        clocks_in_force.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        clocks_in_force.remove(self)

    @property
    def _due(self) -> float:
        """Return when the next task is due, in nanoseconds; infinity for never."""
        heap = self._heap
        while heap and heap[0][2].disposed:
            heappop(heap)
        return heap[0][0] if heap else math.inf

    @property
    def pending(self) -> int:
        """Return how many tasks wait; a periodic task counts once."""
        return sum(not timer.disposed for _, _, timer in self._heap)

    def advance_by(self, seconds: float) -> None:
        """Advance the time, and run the tasks that become due.

        ``advance_by(0)`` runs the tasks that are due now.

        Args:
            seconds: by how much to advance the time; at least 0.

        Raises:
            ValueError: if `seconds` is less than 0.
            FlowError: if a task calls this: time passes for all tasks, and only from outside.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time goes forward, by a finite amount, not by {seconds} s")
        self._advance(self._now + round(seconds * _NANOS))

    def advance_to(self, time_s: float) -> None:
        """Advance the time to `time_s`, and run the tasks that become due.

        Args:
            time_s: the new time, which is not in the past.

        Raises:
            ValueError: if `time_s` is in the past.
            FlowError: if a task calls this.
        """
        target = round(time_s * _NANOS)
        if target < self._now:
            raise ValueError(f"time goes forward, not from {self.now()} s to {time_s} s")
        self._advance(target)

    def run(self, max_tasks: int = 100_000) -> None:
        """Advance the time until no task waits; the time is then that of the last task.

        Args:
            max_tasks: how many tasks to run before giving up.

        Raises:
            AssertionError: if this gives up, mostly because of a periodic task that is never
                disposed of.
            FlowError: if a task calls this.
        """
        self._advance(None, max_tasks)

    # Two overloads that overlap: a flow is awaitable, too, for its only item.
    @overload
    async def run_async(self, running: Flow[T], max_jumps: int = 100_000) -> list[T]: ...

    @overload
    async def run_async(self, running: Awaitable[T], max_jumps: int = 100_000) -> T: ...

    async def run_async(
        self, running: Flow[Any] | Awaitable[Any], max_jumps: int = 100_000
    ) -> Any:  # Any: see the overloads
        """Run a flow, or await something else, in the running event loop, on virtual time.

        >>> import asyncio
        >>> import flow_core as flow
        >>> async def hourly():
        ...     for n in range(3):
        ...         await asyncio.sleep(3600)
        ...         yield f"answer {n}"
        >>> async def main() -> None:
        ...     clock = VirtualClock()
        ...     print(await clock.run_async(flow.from_async_iterable(hourly())), clock.now())
        >>> asyncio.run(main())
        ['answer 0', 'answer 1', 'answer 2'] 10800.0

        Whenever the loop is idle, time jumps to the next task of this clock, or to the next timer
        of the loop, such as that of `asyncio.sleep`. Meanwhile, this clock is in force, and the
        loop's time is that of this clock. Afterwards, the loop's time continues from there.

        The work of other threads, and input from a socket, takes no time of the clock: this waits
        for them only when no task or timer is due. So give functions that block an executor which
        runs them at once, ``executor=lambda task: task()``.

        Args:
            running: a flow, whose list of items is the result; or an awaitable.
            max_jumps: how many jumps to make before giving up.

        Raises:
            AssertionError: if this gives up, mostly because of a flow that never ends; or if
                nothing is due and nothing happens for `TIMEOUT_S`.
            FlowError: if the running loop is not one of asyncio's own.
        """
        loop = asyncio.get_running_loop()
        flight = _Flight(self, loop)
        work: Coroutine[Any, Any, Any] = (
            _items(running) if isinstance(running, Flow) else _result(running)
        )
        with self:
            task = loop.create_task(work)
            flight.take_off()
            try:
                await flight.until_done(task, running, max_jumps)
            finally:
                flight.land()
                if not task.done():
                    task.cancel()
                    await asyncio.wait([task])
        return task.result()

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
        """Run the next task that is due at or before `target`. Return False if there was none."""
        first = self._due
        if first == math.inf or (target is not None and first > target):
            return False
        due, _, timer = heappop(self._heap)
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


@final
class _Flight:
    """An asyncio loop while its time is that of a clock.

    Args:
        clock: the clock whose time the loop has.
        loop: the running loop.

    Raises:
        FlowError: if the loop does not show which of its callbacks are ready.
    """

    def __init__(self, clock: VirtualClock, loop: asyncio.AbstractEventLoop) -> None:
        # No public function tells whether a loop is idle, or when its next timer is due.
        if not (hasattr(loop, "_ready") and hasattr(loop, "_scheduled")):
            raise FlowError(
                f"virtual time works in asyncio's own event loops only, and this is {loop!r}; use "
                "asyncio.run() for this test, or a plugin of pytest that runs asyncio's own loop"
            )
        self._clock = clock
        self._loop: Any = loop  # Any: for these two, and since a method is replaced
        self._real = loop.time
        self._least_s = loop.time()
        """The highest time that the loop has had so far: sums of floats may fall short of a timer's
        time."""
        self._ahead_s = self._least_s - clock.now()
        self._slow_s = self._loop.slow_callback_duration

    def take_off(self) -> None:
        """Make the loop's time that of the clock from now on."""
        self._loop.time = self._time
        self._loop.slow_callback_duration = math.inf  # a jump is not a slow callback

    def _time(self) -> float:
        return max(self._clock.now() + self._ahead_s, self._least_s)

    def land(self) -> None:
        """Let the loop's time pass by itself from now on; it continues from where it is."""
        real, ahead_s = self._real, self._time() - self._real()
        self._loop.time = lambda: real() + ahead_s
        self._loop.slow_callback_duration = self._slow_s

    async def until_done(
        self,
        task: asyncio.Task[Any],  # Any: its result is not used
        running: object,
        max_jumps: int,
    ) -> None:
        """Jump whenever the loop is idle, until `task`, which runs `running`, has ended."""
        jumps = 0
        idle_since_s: float | None = None
        while not task.done():
            await asyncio.sleep(0)
            timers: list[asyncio.TimerHandle] = self._loop._scheduled
            if self._loop._ready or task.done() or (timers and timers[0].cancelled()):
                idle_since_s = None
                continue
            timer_s = timers[0].when() if timers else math.inf
            left_s = timer_s - self._ahead_s
            # The library has a timer that only tells whether the loop is closed.
            timer_due = left_s * _NANOS if left_s < self._clock.now() + EVER_S / 2 else math.inf
            due = min(self._clock._due, timer_due)
            if due == math.inf:
                now_s = time.monotonic()
                idle_since_s = idle_since_s or now_s
                if now_s - idle_since_s > subscriber.TIMEOUT_S:
                    raise AssertionError(
                        f"nothing is due, and nothing has happened for {subscriber.TIMEOUT_S} s: "
                        f"{running!r} has not ended at {self._clock.now()} s"
                    )
                time.sleep(_LOOK_S)
                continue
            idle_since_s = None
            if jumps == max_jumps:
                raise AssertionError(
                    f"time has jumped {jumps} times, and {running!r} has not ended at "
                    f"{self._clock.now()} s; bound a flow that never ends, by take() for "
                    "example"
                )
            jumps += 1
            await self._jump(max(round(due), self._clock._now))
            if timer_due == due:
                self._least_s = max(self._least_s, timer_s)

    async def _jump(self, due: int) -> None:
        """Make the clock run its tasks up to the time `due`, in a callback of the loop."""
        done: asyncio.Future[None] = self._loop.create_future()

        def run() -> None:
            turns.add(self._loop)
            try:
                self._clock._advance(due)
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)
            finally:
                turns.discard(self._loop)

        self._loop.call_soon(run)
        await done


async def _items(flow: Flow[T]) -> list[T]:
    return [item async for item in flow]


async def _result(awaitable: Awaitable[T]) -> T:
    return await awaitable
