"""Functions for items, on threads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import operator_of, task_name
from flow_core.errors import LoopEndedError, RejectedExecutionError, is_fatal
from flow_core.executors import Runner, ScheduledTask, as_runner
from flow_core.flow import Flow
from flow_core.held import watched
from flow_core.homes import home_loop, task_context, turns
from flow_core.protocols import EMPTY, CoreSubscriber, Disposable
from flow_core.sources import LoopWatch, closed_loop, in_loop
from flow_ops.concurrency._plan import Plan
from flow_ops.concurrency._slots import Slots, ended_by, error_of
from flow_ops.concurrency._tasks import beginner, cancel_task

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Threads"]

T = TypeVar("T")
R = TypeVar("R")


@final
class Job(Generic[T]):
    """The work on one item, by one thread at a time.

    It has those methods of an `asyncio.Task` that are needed.
    """

    __slots__ = ("_result", "error", "handle", "item", "task", "timer", "tries")

    def __init__(self, item: T) -> None:
        self.item = item
        self.tries = 0
        """The number of retries so far."""
        self.handle: ScheduledTask | None = None
        """The task of the executor."""
        self.timer: Disposable | None = None
        """The timer that the job waits for before the next try."""
        self.task: asyncio.Task[Any] | None = None  # Any: see `Plan.function`
        """The task that awaits the coroutine which the function has returned."""
        self._result: Any = None  # Any: as above
        self.error: BaseException | None = None

    def set(self, result: Any, error: BaseException | None) -> None:  # Any: as above
        """End the work, with its result or error."""
        self._result = result
        self.error = error

    def result(self) -> Any:  # Any: as above
        """Return the result of the work; see `Work.result`."""
        return self._result

    def drop(self) -> None:
        """Give the work up: its result is no longer wanted."""
        if self.error is not None:
            hooks.drop_error(self.error)
        elif self._result is not None:
            hooks.drop_item(self._result)


@final
class Threads(Slots[T, R, Job[T]]):
    """Calls functions on threads; the thread that has the permit sends the results.

    A thread that has done its work adds it to `_over`, and steps. Once the flow has ended, the last
    thread to step finds in `_over` all that is left.

    Args:
        source: the upstream.
        plan: the options; if its `runner` is None, the flow has its own threads.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_clock", "_context", "_over", "_pool", "_random", "_runner")

    def __init__(
        self, source: Flow[T], plan: Plan[T], downstream: CoreSubscriber[R], label: str
    ) -> None:
        super().__init__(source, plan, downstream, label)
        self._context: Final[Context] = task_context(self.home)
        self._clock: Final = None if plan.backoff is None else self.clock_for(plan.clock)
        self._random: Final = plan.random()
        self._runner: Runner | None = plan.runner
        self._pool: ThreadPoolExecutor | None = None
        """The flow's own threads."""
        self._over: deque[Job[T]] = deque()
        """Jobs that have ended, and were not counted yet."""

    @override
    def open(self) -> None:
        if self._runner is None:
            from concurrent.futures import ThreadPoolExecutor

            name = f"flow-{operator_of(self.label).partition('(')[0]}"
            self._pool = ThreadPoolExecutor(self.plan.concurrency, thread_name_prefix=name)
            self._runner = as_runner(self._pool)
        super().open()

    @override
    def step(self) -> None:
        """Send results in the subscriber's context, on whichever thread this is called."""
        self._context.copy().run(self._step)

    def _step(self) -> None:
        over = self._over
        while over:
            job = over.popleft()
            self.ended(job, job.error)
        self.give()
        items = self.items
        if self.over or items is None:
            return
        while not self.over and self.room():
            item = items.poll()
            if item is EMPTY:
                break
            job = Job(item)
            self.running[job] = None
            self.working += 1
            self._submit(job)
        if not (self.running or self.over):
            self.end_with(items)

    @override
    def closed(self) -> None:
        super().closed()
        while self._over:
            self._over.popleft().drop()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)

    @override
    def left(self, running: dict[Job[T], object]) -> None:
        for job, state in running.items():
            if state is not None:
                job.drop()
                continue
            if job.handle is None or job.handle.cancel():
                hooks.drop_item(job.item)
            if job.timer is not None:
                job.timer.dispose()
            _leave(job)

    # -- with the permit

    def _submit(self, job: Job[T]) -> None:
        runner = self._runner
        if runner is not None:
            job.timer = None
            task = partial(self._run, job)
            job.handle = runner.execute(task, self._rejected, self._context.copy())

    def _wait(self, delay_s: float, job: Job[T]) -> None:
        if self._clock is not None:
            job.timer = self.after(self._clock, delay_s, self._submit, job)

    # -- on the threads

    def _rejected(self, error: RejectedExecutionError) -> None:
        self.post(self.fail, error, hooks.drop_error)

    def _run(self, job: Job[T]) -> None:
        """Call the function until it returns something, has to wait, or must stop."""
        plan, context = self.plan, self._context
        while not self.over:
            made, error = _called(partial(_in, context.copy(), plan.function), job.item)
            if error is None:
                if asyncio.iscoroutine(made):
                    self._hand_over(job, made)
                else:
                    self._made(job, made)
                return
            if not self._again(job, error):
                return
        hooks.drop_item(job.item)

    def _again(self, job: Job[T], error: BaseException) -> bool:
        """Handle a failed try.

        The result is whether the next try may begin at once; the caller begins it.
        """
        plan, made, delay_s = self.plan, None, None
        raised: BaseException | None = error
        # Once the flow has ended, no function of the user is called: the error is dropped.
        if isinstance(error, Exception) and not (self.over or is_fatal(error)):
            delay_s, raised = _called(partial(plan.delay_s, error, job.tries), self._random)
            if raised is None and delay_s is None:
                raised = error
                if plan.fallback is not None:
                    made, raised = _called(partial(plan.fallback, job.item), error)
        if delay_s is None:
            self._end(job, made, raised)
            if raised is not None and is_fatal(raised):
                raise raised
            return False
        job.tries += 1
        if delay_s:
            self.post(partial(self._wait, delay_s), job)
        return not delay_s

    def _made(self, job: Job[T], made: Any) -> None:  # Any: see `Plan.function`
        self._end(job, job.item if self.plan.keeps else made, None)

    def _end(self, job: Job[T], made: Any, error: BaseException | None) -> None:  # Any: as above
        job.set(made, error)
        self._over.append(job)
        self.signal()

    # -- for a function that has returned a coroutine

    def _hand_over(self, job: Job[T], coroutine: Coroutine[Any, Any, Any]) -> None:
        """Have `coroutine` awaited in the loop of the flow's home."""
        loop, error = _called(home_loop, self.home)
        if loop is None:  # the process is ending
            coroutine.close()
            self._end(job, None, error)
            return
        if self._watch is None:
            self.post(self._guard, loop)
        if not in_loop(loop, partial(self._begin, job, coroutine, loop)):
            coroutine.close()
            self._rejected_by_loop()

    def _guard(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._watch is None:
            self._watch = LoopWatch(loop, self._rejected_by_loop)

    def _rejected_by_loop(self) -> None:
        self.post(self.fail, closed_loop(self.label, None), hooks.drop_error)

    def _begin(
        self, job: Job[T], coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Start the coroutine, in the loop."""
        if self.over:
            coroutine.close()
            return
        if hooks.debugging:
            coroutine = watched(coroutine, self.label)
        task = beginner(loop, task_name(self.label))(coroutine, context=self._context.copy())
        if self.home is not None:
            self.home.add(task)
        job.task = task
        task.add_done_callback(partial(self._awaited, job), context=self._context.copy())
        if self.over:  # `left` may have been here before
            _leave(job)

    def _awaited(self, job: Job[T], task: asyncio.Task[Any]) -> None:
        if self.home is not None:
            self.home.discard(task)
        job.task = None
        loop = task.get_loop()
        turns.add(loop)
        try:
            error = error_of(task, self.label)
            if isinstance(error, LoopEndedError) and task.cancelled():
                self._end(job, None, None if self.over else error)
            elif error is None:
                self._made(job, task.result())
            elif is_fatal(error):  # it propagates through the loop
                self._end(job, None, ended_by(error, self.label))
            elif self._again(job, error):
                self.post(self._submit, job)
        finally:
            turns.discard(loop)


def _leave(job: Job[T]) -> None:
    """Cancel the task of a job, if it has one."""
    task = job.task
    if task is not None:
        in_loop(task.get_loop(), partial(cancel_task, task))


def _in(context: Context, function: Callable[[T], R], item: T) -> R:
    return context.run(function, item)


def _called(
    function: Callable[[Any], R], argument: Any
) -> tuple[R | None, BaseException | None]:  # Any: only the caller and the function know the type
    """Return the function's result and None, or None and its error. No frame keeps the error."""
    try:
        return function(argument), None
    except BaseException as error:
        return None, error
