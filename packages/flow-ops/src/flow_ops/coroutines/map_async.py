"""`map_async`: each item replaced by what a coroutine makes of it."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from inspect import iscoroutinefunction
from time import monotonic
from typing import Any, Final, Generic, TypeVar, final

from flow_core import hooks
from flow_core.assembly import operator_of
from flow_core.demand import check_prefetch
from flow_core.errors import FlowError, LoopEndedError, is_fatal
from flow_core.flow import Flow
from flow_core.homes import home_loop, running_loop, task_context, turns
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber
from flow_core.sources.loops import LoopWatch, closed_loop, in_loop
from flow_core.stages.template import describe
from flow_ops.coordination import BufferedInput, Coordinator, coordinated

__all__ = ["map_async"]

T = TypeVar("T")
R = TypeVar("R")

_HOLD_S: Final = 0.005
"""How long coroutines may begin one after the other before others in the loop have their turn."""


def map_async(
    function: Callable[[T], Awaitable[R]],
    *,
    concurrency: int = 1,
    ordered: bool = True,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Operator[T, Flow[R]]:
    """Each item replaced by the result of a coroutine, several of which may run at a time.

    >>> import asyncio
    >>> import flow_core as flow
    >>> async def doubled(n: int) -> int:
    ...     await asyncio.sleep(0)
    ...     return 2 * n
    >>> async def main() -> list[int]:
    ...     return [n async for n in flow.range(3).map_async(doubled, concurrency=2)]
    >>> asyncio.run(main())
    [0, 2, 4]

    The coroutines run as tasks of the given loop; or else of the loop in which the flow was
    subscribed to, whatever thread brings the items; or else, where none ran, of one loop for the
    process, in a daemon thread. Each task has a copy of the context of who subscribes.

    From Python 3.12 on a coroutine runs as soon as its item is there, up to where it first waits,
    as with `asyncio.eager_task_factory`; so one that needs not wait costs no turn of the loop.
    After 5 ms of that, others in the loop have their turn. A task factory of the loop is respected.

    Demand: exact; `concurrency` items are requested of the upstream, and 75 % of that again
    whenever as many were taken. A coroutine runs when its item is there, and counts until its
    result was given on.
    Thread: all signals of a running flow come from the loop's thread, whatever the upstream's is;
    what an upstream does when it is requested or polled happens there, too.
    Fusion: polls an upstream that grants SYNC or ASYNC across threads.
    Errors: the first one cancels the upstream and the other tasks. With `ordered` it comes after
    the results of the items before, and otherwise overtakes nothing that was ready. When the flow
    is cancelled, all tasks are; what they raise then goes to the dropped-errors hook.
    Source: checklist O26, X06, X12.

    Args:
        function: makes an awaitable of an item; mostly an ``async def``. Its result is not None.
        concurrency: how many coroutines run, or have results that wait, at a time.
        ordered: whether results come in the order of the items; otherwise as they are ready.
        loop: where the coroutines have to run.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with FlowError if one of its tasks is cancelled
        from outside, or if its loop was closed.

    Raises:
        TypeError: if `function` cannot be called, or `concurrency` is no int.
        ValueError: if `concurrency` is less than 1.
    """
    if not callable(function):
        raise TypeError(f"map_async() takes a coroutine function, not {function!r}")
    check_prefetch(concurrency, "concurrency")
    detail = describe(function)
    if concurrency != 1:
        detail += f", concurrency={concurrency}"
    if not ordered:
        detail += ", ordered=False"

    work: Any = function if iscoroutinefunction(function) else partial(_awaited, function)

    def made(flow: Flow[T], downstream: CoreSubscriber[R], label: str) -> MapAsync[T, R]:
        return MapAsync(flow, work, loop, concurrency, ordered, downstream, label)

    return coordinated("map_async", detail, made, concurrency)


@final
class MapAsync(Coordinator[R], Generic[T, R]):
    """Starts the coroutines and gives their results. All of it happens in the thread of the loop.

    No wake-up is lost between threads: who has published something steps; a step elsewhere than in
    the loop's thread only has the loop step, unless that is on its way; and a step that begins in
    the loop takes the mark of that away first.

    Args:
        source: the upstream.
        work: makes coroutines.
        loop: where; None for the home of `downstream`, or else the library's loop.
        concurrency: how many at a time.
        ordered: whether results keep the order.
        downstream: gets the signals.
        label: the operator and its place, for messages.
    """

    __slots__ = (
        "_begin",
        "_coming",
        "_concurrency",
        "_context",
        "_counted",
        "_input",
        "_loop",
        "_ordered",
        "_pauses",
        "_ready",
        "_running",
        "_source",
        "_until",
        "_work",
    )

    def __init__(  # noqa: PLR0917 - made by `map_async` alone
        self,
        source: Flow[T],
        work: Callable[[T], Coroutine[Any, Any, R]],
        loop: asyncio.AbstractEventLoop | None,
        concurrency: int,
        ordered: bool,
        downstream: CoreSubscriber[R],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source: Flow[T] | None = source
        self._work = work
        self._loop: Final = loop or home_loop(self.home)
        self._concurrency = concurrency
        self._ordered = ordered
        self._context = task_context(self.home)
        home = self.home
        self._counted: set[asyncio.Task[Any]] = (
            home.tasks if home is not None and home.loop is self._loop else set()
        )
        """Those of the home, which who runs the flow waits for."""
        self._begin: Final = _beginner(self._loop, operator_of(label))
        self._input: BufferedInput[T] | None = BufferedInput(self, concurrency)
        self._coming = False
        """The loop is about to step."""
        self._pauses = False
        """Others in the loop come first, before the next coroutine begins."""
        self._until = 0.0
        """When that has to be, in seconds of `monotonic`."""
        self._running: dict[asyncio.Task[R], bool] = {}
        """Tasks whose results were not looked at, in the order of the items; whether they ended."""
        self._ready: deque[asyncio.Task[R]] = deque()
        """Those that have ended, in that order, unless that of the items counts."""

    def open(self) -> None:
        """See `Coordinator.open`."""
        source, self._source = self._source, None
        items = self._input
        if source is not None and items is not None:
            self.connect(source, items)

    def step(self) -> None:
        """See `Coordinator.step`."""
        loop = self._loop
        if loop is not running_loop():
            if not self._coming:
                self._coming = True
                if not in_loop(loop, self._come, self._lost):
                    self.fail(closed_loop(self.label))
            return
        if self._watch is None and not self.over:
            self._watch = LoopWatch(loop, self._lost)
            self._until = monotonic() + _HOLD_S
        self._give()
        items = self._input
        if self.over or items is None:
            return
        self._start(loop, items)
        if not (self._running or self.over) and items.ended():
            error, items.error = items.error, None
            self.end(error)

    def closed(self) -> None:
        """See `Coordinator.closed`."""
        loop, items = self._loop, self._input
        self._source = None
        if items is not None:
            self._input = None
            items.close()
        running, self._running = self._running, {}
        self._ready.clear()
        if running and not in_loop(loop, lambda: _leave(running)):
            _leave({task: True for task in running if task.done()})

    @property
    def buffered(self) -> int:
        """See `Coordinator.buffered`."""
        items = self._input  # read once: the end takes it away
        return len(self._ready) + (0 if items is None else items.waiting)

    # -- in the loop's thread

    def _lost(self) -> None:
        """The loop is closed."""
        self.post(self.fail, closed_loop(self.label))

    def _come(self) -> None:
        self._coming = False
        self._turn()

    def _give(self) -> None:
        """Emit results that are ready, as far as there is demand."""
        running, ready, ordered = self._running, self._ready, self._ordered
        while not self.over:
            if ordered:
                task = next(iter(running), None)
                if task is None or not running[task]:
                    return
            elif ready:
                task = ready[0]
            else:
                return
            error = _cancelled_outside(self.label) if task.cancelled() else task.exception()
            if error is None and not self.demand:
                return
            del running[task]
            if not ordered:
                ready.popleft()
            if error is None:
                self.emit(task.result())
            elif is_fatal(error):  # it goes on through the loop
                self.fail(_ended_by(error, self.label))
            else:
                self.fail(self.blame(error))

    def _start(self, loop: asyncio.AbstractEventLoop, items: BufferedInput[T]) -> None:
        """Begin with what waits, until `_HOLD_S` are over."""
        running, work = self._running, self._work
        goes_on = False
        while len(running) < self._concurrency and not (self._pauses or self.over):
            item = items.poll()
            if item is EMPTY:
                return
            if not goes_on:
                # A task that does spares a closer look.
                last = next(reversed(running), None)
                goes_on = last is not None and not (last.cancelling() or last.done())
                if not goes_on and self.forsaken:
                    hooks.drop_item(item)
                    self.fail(_cancelled_outside(self.label))
                    return
                goes_on = True
            try:
                task = self._begin(work(item), context=self._context.copy())
            except BaseException as error:
                if is_fatal(error):  # it goes on to whoever has us begin
                    self.fail(_ended_by(error, self.label))
                raise
            if task.done():
                running[task] = True
                if not self._ordered:
                    self._ready.append(task)
                self._give()
            else:
                running[task] = False
                self._counted.add(task)
                task.add_done_callback(self._done)
            if monotonic() >= self._until:
                self._pauses = True
                loop.call_soon_threadsafe(self._go_on)

    def _go_on(self) -> None:
        self._until = monotonic() + _HOLD_S
        self._pauses = False
        self._turn()

    def _turn(self) -> None:
        """Step, in a callback of the loop."""
        turns.add(self._loop)
        try:
            self.signal()
        finally:
            turns.discard(self._loop)

    def _done(self, task: asyncio.Task[R]) -> None:
        self._counted.discard(task)
        if task not in self._running:
            _dropped(task)
            return
        running = self._running
        running[task] = True
        if not self._ordered:
            self._ready.append(task)
        elif next(iter(running)) is not task:
            return  # those before it come first
        self._turn()


def _beginner(
    loop: asyncio.AbstractEventLoop, name: str
) -> Callable[..., asyncio.Task[Any]]:  # Any: for coroutines of any type
    """What makes tasks, which run to where they first wait, if this Python can do that."""
    if sys.version_info >= (3, 12) and loop.get_task_factory() is None:
        return partial(asyncio.Task, loop=loop, name=name, eager_start=True)
    return partial(loop.create_task, name=name)


async def _awaited(function: Callable[[T], Awaitable[R]], item: T) -> R:
    awaitable: object = function(item)
    del item
    if not isinstance(awaitable, Awaitable):
        raise TypeError(
            f"{describe(function)} gave {awaitable!r}, which cannot be awaited; map() is for "
            "functions that give the result itself"
        )
    result: R = await awaitable
    return result


def _ended_by(error: BaseException, label: str) -> FlowError:
    told = FlowError(f"{label} was ended by {type(error).__name__}")
    told.__cause__ = error
    return told


def _cancelled_outside(label: str) -> LoopEndedError:
    return LoopEndedError(
        f"{label}: its task was cancelled from outside, as a loop does that ends; end the flow "
        "before its loop"
    )


def _leave(tasks: dict[asyncio.Task[Any], bool]) -> None:
    for task, ended in tasks.items():
        if ended:
            _dropped(task)
        elif not task.cancelling():  # it cleans up already, which is not to be interrupted
            task.cancel()


def _dropped(task: asyncio.Task[Any]) -> None:
    """Nobody wants the result of `task` any more."""
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        hooks.drop_error(error)
    elif task.result() is not None:
        hooks.drop_item(task.result())
