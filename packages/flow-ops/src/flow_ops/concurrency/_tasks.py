"""Coroutines for items, as tasks of an event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from random import Random
from time import monotonic
from typing import Any, Final, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import task_name
from flow_core.clocks import AsyncioClock, Clock, home_clock, system_clock
from flow_core.errors import FlowTimeoutError, cancelled_inside, is_fatal
from flow_core.flow import Flow
from flow_core.held import watched
from flow_core.homes import home_loop, running_loop, task_context, turns
from flow_core.protocols import EMPTY, CoreSubscriber
from flow_core.sources import LoopWatch, closed_loop, in_loop
from flow_core.stages import describe
from flow_ops.concurrency._plan import Plan
from flow_ops.concurrency._slots import (
    Slots,
    cancelled_outside,
    ended_by,
    error_of,
)
from flow_ops.coordination import BufferedInput

__all__ = ["Tasks", "beginner", "cancel_task"]

T = TypeVar("T")
R = TypeVar("R")

Task = asyncio.Task[Any]  # Any: the type of the results of the user's function
Function = Callable[[T], Coroutine[Any, Any, Any]]

_HOLD_S: Final = 0.005
"""The time for which coroutines may start one after the other before other tasks in the loop have
their turn."""


@final
class Tasks(Slots[T, R, Task]):
    """Starts coroutines and sends their results, all in the thread of the loop.

    Any thread may call `step`. In another thread than the loop's, `step` only schedules a step in
    the loop, unless one is scheduled already. A step in the loop clears that flag before it looks
    at the work, so no wake-up is lost.

    Args:
        source: the upstream.
        plan: the options; if its `loop` is None, the loop is that of the home of `downstream`, or
            else the library's.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = (
        "_begin",
        "_coming",
        "_context",
        "_count",
        "_in_context",
        "_left",
        "_loop",
        "_pauses",
        "_uncount",
        "_until",
        "_work",
    )

    def __init__(
        self, source: Flow[T], plan: Plan[T], downstream: CoreSubscriber[R], label: str
    ) -> None:
        super().__init__(source, plan, downstream, label)
        home = self.home
        self._loop: Final = plan.loop or home_loop(home)
        self._context = task_context(home)
        tasks = home if home is not None and home.loop is self._loop else set[Task]()
        self._count: Final = tasks.add
        """Counts the task as one of the home, which the code that runs the flow waits for."""
        self._uncount: Final = tasks.discard
        self._begin: Final = beginner(self._loop, task_name(label))
        self._work: Function[T] = plan.function
        if not plan.is_plain:
            clock = home_clock(plan.clock, home)
            self._work = partial(_tried, plan, plan.random(), clock, self._loop)
        if hooks.debugging:
            self._work = partial(_watched, self._work, label)
        self._in_context = False
        """True while a step runs in the context of the subscriber."""
        self._coming = False
        """True while a step is scheduled in the loop."""
        self._pauses = False
        """True if other tasks of the loop get their turn before the next coroutine starts."""
        self._until = 0.0
        """The time at which other tasks get their turn, in seconds of `monotonic`."""
        self._left: set[Task] = set()
        """Tasks that were given up and cancelled."""

    @override
    def step(self) -> None:
        loop = self._loop
        if loop is not running_loop():
            if not self._coming:
                self._coming = True
                if not in_loop(loop, self._come, self._lost):
                    self.fail(closed_loop(self.label))
            return
        if self._in_context:
            self._step(loop)
        else:  # another item or another request schedules another one
            self._in_context = True
            try:
                self._context.copy().run(self._step, loop)
            finally:
                self._in_context = False

    def _step(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._watch is None and not self.over:
            self._watch = LoopWatch(loop, self._lost)
            self._until = monotonic() + _HOLD_S
        self._look()
        self.give()
        items = self.items
        if not (self.over or items is None):
            self._start(loop, items)
            if not (self.running or self.over):
                self.end_with(items)

    @override
    def error_of(self, work: Task) -> BaseException | None:
        done = work.done() and not work.cancelled()
        return work.exception() if done else None

    @override
    def left(self, running: dict[Task, object]) -> None:
        if not in_loop(self._loop, lambda: self._leave(running)):
            for task in running:
                if task.done():
                    drop_task(task)

    # -- in the loop's thread

    def _lost(self) -> None:
        """End the flow: the loop is closed."""
        self.post(self.fail, closed_loop(self.label))

    def _come(self) -> None:
        self._coming = False
        self._turn()

    def _start(self, loop: asyncio.AbstractEventLoop, items: BufferedInput[T]) -> None:
        """Start coroutines for the items that wait, until `_HOLD_S` have passed."""
        running, work, concurrency = self.running, self._work, self.plan.concurrency
        goes_on = False
        while self.working < concurrency and not (self._pauses or self.over) and self.room():
            item = items.poll()
            if item is EMPTY:
                return
            if not goes_on:
                # An eager task makes a closer look unnecessary.
                last = next(reversed(running), None)
                goes_on = last is not None and not (last.cancelling() or last.done())
                if not goes_on and self.forsaken:
                    hooks.drop_item(item)
                    self.fail(cancelled_outside(self.label))
                    return
                goes_on = True
            try:
                task = self._begin(work(item), context=self._context.copy())
            except BaseException as error:
                if is_fatal(error):  # it propagates to the code that made us start
                    self.fail(ended_by(error, self.label))
                raise
            self.working += 1
            if task.done():
                self.ended(task, error_of(task, self.label))
                self.give()
            else:
                running[task] = None
                self._count(task)
                task.add_done_callback(self._done, context=self._context.copy())
            if monotonic() >= self._until:
                self._pauses = True
                loop.call_soon_threadsafe(self._go_on)

    def _go_on(self) -> None:
        self._until = monotonic() + _HOLD_S
        self._pauses = False
        self._turn()

    def _turn(self, in_context: bool = False) -> None:
        """Step, in a callback of the loop."""
        turns.add(self._loop)
        self._in_context = in_context
        try:
            self.signal()
        finally:
            self._in_context = False
            turns.discard(self._loop)

    def _look(self) -> None:
        """Count the first tasks that have ended, which the loop reports only later in this turn."""
        for task, state in self.running.items():
            if state is None:
                if not task.done():
                    return
                self.ended(task, error_of(task, self.label))

    def _done(self, task: Task) -> None:
        self._uncount(task)
        running = self.running
        if running.get(task, True) is not None:
            if task in self._left:
                self._left.discard(task)
                drop_task(task)
            return  # it was seen before
        self.ended(task, error_of(task, self.label))
        if self.plan.ordered and next(iter(running)) is not task and not self.room():
            return  # the ones before it come first
        self._turn(in_context=True)

    def _leave(self, running: dict[Task, object]) -> None:
        """Give up the tasks in `running`: their results are no longer wanted."""
        for task, state in running.items():
            if state is not None or task.done():
                drop_task(task)
            else:
                self._left.add(task)
                cancel_task(task)


def _watched(function: Function[T], label: str, item: T) -> Coroutine[Any, Any, Any]:
    return watched(function(item), label)


async def _tried(
    plan: Plan[T],
    random: Random | None,
    clock: Clock,
    loop: asyncio.AbstractEventLoop,
    item: T,
) -> Any:  # Any: see `Plan.function`
    """Return the result of the plan's function, after as many tries as it needs, and is allowed."""
    tries = 0
    while True:
        try:
            try:
                if plan.timeout_s is None:
                    result = await plan.function(item)
                else:
                    result = await _in_time(plan, plan.timeout_s, clock, loop, item)
            except asyncio.CancelledError as cancelled:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                raise cancelled_inside(describe(plan.function), cancelled) from cancelled
        except Exception as error:
            if is_fatal(error):
                raise
            delay_s = plan.delay_s(error, tries, random)
            if delay_s is None:
                if plan.fallback is None:
                    raise
                return plan.fallback(item, error)
        else:
            return item if plan.keeps else result
        tries += 1
        if not delay_s or _is_of(clock, loop):
            await asyncio.sleep(delay_s)
        else:
            due = loop.create_future()
            timer = clock.schedule(delay_s, partial(in_loop, loop, partial(_set, due)))
            try:
                await due
            finally:
                timer.dispose()


async def _in_time(
    plan: Plan[T], timeout_s: float, clock: Clock, loop: asyncio.AbstractEventLoop, item: T
) -> Any:  # Any: see `Plan.function`
    by_loop = _is_of(clock, loop)
    limit = asyncio.timeout(timeout_s if by_loop else None)
    try:
        async with limit:
            if by_loop:
                return await plan.function(item)
            timer = clock.schedule(timeout_s, partial(in_loop, loop, partial(_expire, limit)))
            try:
                return await plan.function(item)
            finally:
                timer.dispose()
    except TimeoutError:
        if not limit.expired():
            raise
    raise FlowTimeoutError(f"{describe(plan.function)} took longer than {timeout_s:g} s")


def _is_of(clock: Clock, loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether `loop` has the time of `clock`: then its own timers will do."""
    return clock is system_clock() or (isinstance(clock, AsyncioClock) and clock.loop is loop)


def _set(due: asyncio.Future[None]) -> None:
    if not due.done():
        due.set_result(None)


def _expire(limit: asyncio.Timeout) -> None:
    with suppress(RuntimeError):  # the function has ended meanwhile
        limit.reschedule(0)


def beginner(
    loop: asyncio.AbstractEventLoop, name: str
) -> Callable[..., Task]:  # Any: for coroutines of any type
    """Return a function that creates tasks in `loop`.

    On Python 3.12 and later a task runs eagerly until its first await.
    """
    if loop.get_task_factory() is not None:
        return partial(loop.create_task, name=name)
    if sys.version_info >= (3, 12):
        return partial(asyncio.Task, loop=loop, name=name, eager_start=True)
    return partial(asyncio.Task, loop=loop, name=name)


def cancel_task(task: Task) -> None:
    """Cancel `task`, unless it is cleaning up already, which must not be interrupted."""
    if not (task.done() or task.cancelling()):
        task.cancel()


def drop_task(task: Task) -> None:
    """Give `task` up: its result is no longer wanted."""
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        hooks.drop_error(error)
    elif task.result() is not None:
        hooks.drop_item(task.result())
