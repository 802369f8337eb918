"""Thread pools, event loops and plain functions, as executors behind one small interface.

An executor is an object with ``submit(task) -> future`` (`concurrent.futures`), or a callable that
runs a task, now or later: ``loop.call_soon_threadsafe``, the ``invoke_later`` of a user interface,
``lambda task: task()``. `as_runner` adapts them; operators use them only as a `Runner`.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from threading import Thread, get_ident
from typing import Any, Final, Protocol, TypeAlias, final, runtime_checkable

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import RejectedExecutionError, tell_left, throw_if_fatal

__all__ = [
    "Executor",
    "OnDropped",
    "Runner",
    "ScheduledTask",
    "SubmitExecutor",
    "Task",
    "TaskFuture",
    "ToldTask",
    "as_runner",
]

Task: TypeAlias = Callable[[], object]
"""A function that is run once, without arguments; its result is not used."""

OnDropped: TypeAlias = Callable[[RejectedExecutionError], object]
"""A function that is called when an executor took a task and then dropped it without running it."""


class TaskFuture(Protocol):
    """The result of `SubmitExecutor.submit`: a `concurrent.futures.Future`, or one like it."""

    def cancel(self) -> bool:
        """Keep the task from running, if it has not started."""
        ...

    def add_done_callback(
        self,
        fn: Callable[[Any], object],  # Any: the future itself, which has the executor's class
        /,
    ) -> object:
        """Call `fn` with this future when the task has ended or will never run."""
        ...


@runtime_checkable
class SubmitExecutor(Protocol):
    """An executor as in `concurrent.futures`."""

    def submit(self, fn: Task, /) -> TaskFuture:
        """Run `fn` later, on some thread. Raises when it takes no more tasks."""
        ...


Executor: TypeAlias = SubmitExecutor | Callable[[Task], object]
"""The executors that users pass: an object with ``submit``, or a callable that runs a task or has
it run."""


class Runner(Protocol):
    """An executor, as operators see it."""

    __slots__ = ()

    @abstractmethod
    def execute(
        self, task: Task, on_dropped: OnDropped | None = None, context: Context | None = None
    ) -> ScheduledTask:
        """Run `task` once: later, or before this returns if the executor runs tasks inline.

        Args:
            task: the function to run; it must not raise. If it does raise, its error goes to the
                dropped-errors hook if the executor would keep the error in a future, and otherwise
                to the caller.
            on_dropped: called if the executor takes the task and drops it later, as
                ``shutdown(cancel_futures=True)`` does. It is called on a separate thread, because
                executors hold their lock while they drop tasks. Without `on_dropped`, the error
                goes to the dropped-errors hook.
            context: the context variables that the task sees, wherever it runs. No other code may
                run in that context while the task runs. None for a copy of the current context.

        Returns:
            A handle that cancels the task.

        Raises:
            RejectedExecutionError: if the executor takes no more tasks. Its cause is the executor's
                own error. The task will not run.
        """
        ...


@final
class ScheduledTask:
    """A task given to an executor: runs at most once, and never after it was cancelled.

    The thread that takes the task out of `_pending` decides what happens to it: the executor's
    thread runs it, another one cancels it, or another one drops it. `list.pop` is atomic, so only
    one of them gets the task.

    Args:
        task: the function to run.
        on_dropped: called if the executor drops the task without running it; not called if the task
            was cancelled.
        context: see `Runner.execute`.
    """

    __slots__ = ("_cancelled", "_executor", "_future", "_pending", "giver")

    def __init__(
        self, task: Task, on_dropped: OnDropped | None = None, context: Context | None = None
    ) -> None:
        self._pending = [(task, on_dropped, copy_context() if context is None else context)]
        self._future: TaskFuture | None = None
        self._executor = ""
        self._cancelled = False
        self.giver = get_ident()
        """The thread that is just submitting this task to an executor; the task may run inline in
        it."""

    def __call__(self) -> None:
        """Run the task, unless it has run or was cancelled."""
        try:
            task, _, context = self._pending.pop()
        except IndexError:
            return
        try:
            context.run(task)
        except BaseException as error:
            tell_left(error, heard=self.giver == get_ident())
            raise

    def cancel(self) -> bool:
        """Keep the task from running, if it has not started. Callable from any thread.

        A task that already runs is not interrupted: Python cannot interrupt a thread.

        Returns:
            True if this call has cancelled the task: it will never run, and this object refers to
            it no longer. False if the task runs now, has run, or had been cancelled.
        """
        try:
            self._pending.pop()
        except IndexError:
            return False
        self._cancelled = True
        future = self._future
        if future is not None:
            future.cancel()
        return True

    def run_reported(self) -> None:
        """Run the task and report its error, which the executor only keeps in an unread future."""
        try:
            self()
        except BaseException as error:
            hooks.drop_error(error)
            raise

    def attach(self, future: TaskFuture, executor: str) -> None:
        """Keep the executor's own future: to cancel it with this task, and to notice its end.

        Args:
            future: what the executor returned for this task.
            executor: the executor's name, for messages.
        """
        self._executor = executor
        self._future = future
        if self._cancelled:
            # `cancel` sets the flag before it reads `_future`: one of the two threads sees the
            # other.
            future.cancel()
        future.add_done_callback(self._ended)

    def _ended(self, future: Any) -> None:  # Any: see TaskFuture
        self._future = None  # the future refers to this by its callback: leave no cycle
        try:
            _, on_dropped, _ = self._pending.pop()
        except IndexError:
            return
        cause = None if future.cancelled() else future.exception()
        why = (
            "as shutdown(cancel_futures=True) does"
            if cause is None
            else f"because of {type(cause).__name__}: {cause}"
        )
        error = _dropped(self._executor, why)
        error.__cause__ = cause
        tell = on_dropped or hooks.drop_error
        Thread(target=tell, args=(error,), name="flow-dropped-task", daemon=True).start()

    def lost(self, loop: str) -> None:
        """Report the task as dropped, because the loop that was to run it was closed."""
        try:
            _, on_dropped, _ = self._pending.pop()
        except IndexError:
            return
        (on_dropped or hooks.drop_error)(_dropped(loop, "as a closed event loop does"))


@final
class ToldTask:
    """A task that reports when it is thrown away without having run, for example by a closed loop.

    Args:
        task: the function to run.
        dropped: called when the task is thrown away; on a separate thread, because the thread that
            drops the task may hold locks.
    """

    __slots__ = ("__weakref__", "_dropped", "_task")

    def __init__(self, task: Task, dropped: Task) -> None:
        self._task: Task | None = task
        self._dropped: Task | None = dropped

    def __call__(self) -> None:
        """Run the task, unless it has run."""
        task = self._task
        self.forget()
        if task is not None:
            task()

    def forget(self) -> None:
        """Give the task up: neither run it nor report that it was dropped."""
        self._task = self._dropped = None

    def __del__(self) -> None:
        dropped = self._dropped
        if dropped is not None and not sys.is_finalizing():
            with suppress(RuntimeError):  # no thread can start any more: the process is ending
                Thread(target=dropped, name="flow-dropped-task", daemon=True).start()


def _dropped(executor: str, why: str) -> RejectedExecutionError:
    return RejectedExecutionError(
        f"{executor} took a task and dropped it without running it, {why}; end the flows "
        "that use an executor before it is shut down, and use one that runs tasks in threads"
    )


def _refusal(executor: str, error: BaseException) -> RejectedExecutionError:
    return RejectedExecutionError(
        f"{executor} took no task ({type(error).__name__}: {error}); end the flows that use an "
        "executor before it is shut down"
    )


@final
class _SubmitRunner(Runner):
    """Gives tasks to ``submit``."""

    __slots__ = ("_name", "_submit")

    def __init__(self, executor: SubmitExecutor) -> None:
        self._submit = executor.submit
        self._name = _name(executor)

    @override
    def execute(
        self, task: Task, on_dropped: OnDropped | None = None, context: Context | None = None
    ) -> ScheduledTask:
        scheduled = ScheduledTask(task, on_dropped, context)
        try:
            future = self._submit(scheduled.run_reported)
        except BaseException as error:
            if not scheduled.cancel():
                raise  # it has run inline: the task itself raised this
            throw_if_fatal(error)
            raise _refusal(self._name, error) from error
        scheduled.giver = 0
        if hasattr(future, "add_done_callback"):  # otherwise nothing reports when it drops a task
            scheduled.attach(future, self._name)
        return scheduled

    def __repr__(self) -> str:
        return self._name


@final
class _CallRunner(Runner):
    """Gives tasks to a callable, and does not use its result.

    An ``asyncio.Handle`` cannot be cancelled from another thread; the `ScheduledTask` that this
    returns can.
    """

    __slots__ = ("_call", "_name", "_of_loop")

    def __init__(self, call: Callable[[Task], object]) -> None:
        self._call: Final = call
        self._name = _name(call)
        owner = getattr(call, "__self__", None)
        self._of_loop: Final = callable(getattr(owner, "call_soon_threadsafe", None))

    @override
    def execute(
        self, task: Task, on_dropped: OnDropped | None = None, context: Context | None = None
    ) -> ScheduledTask:
        """Have the callable run the task. A dropped task is reported only if a loop drops it."""
        scheduled = ScheduledTask(task, on_dropped, context)
        given: Task = scheduled
        if self._of_loop:
            given = ToldTask(scheduled, partial(scheduled.lost, self._name))
        try:
            self._call(given)
        except BaseException as error:
            if not scheduled.cancel():
                raise  # it has run inline: the task itself raised this
            throw_if_fatal(error)
            raise _refusal(self._name, error) from error
        scheduled.giver = 0
        return scheduled

    def __repr__(self) -> str:
        return self._name


def _name(executor: object) -> str:
    name = getattr(executor, "__qualname__", None)
    return name if isinstance(name, str) else type(executor).__name__


def as_runner(executor: Executor) -> Runner:
    """Return a `Runner` for the user's executor.

    >>> runner = as_runner(lambda task: task())
    >>> handle = runner.execute(lambda: print("done"))
    done
    >>> handle.cancel()
    False

    Args:
        executor: an object with ``submit``, or a callable that has a task run.

    Raises:
        TypeError: if `executor` is neither; the text says what to pass instead.
    """
    if isinstance(executor, type):
        raise TypeError(f"an executor is needed, not its class: {executor.__name__}(...)")
    if pickles_tasks(executor):
        raise TypeError(
            "a subscription cannot move to another process or interpreter, as it would have to be "
            "pickled; on_processes(pool) runs the stages that follow there"
        )
    if isinstance(executor, SubmitExecutor):
        return _SubmitRunner(executor)
    if callable(executor):
        return _CallRunner(executor)
    if callable(getattr(executor, "call_soon_threadsafe", None)):
        raise TypeError("pass loop.call_soon_threadsafe as the executor, not the loop itself")
    raise TypeError(
        "an executor has submit(task), like a ThreadPoolExecutor, or is a callable that runs a "
        f"task, like loop.call_soon_threadsafe; {executor!r} is neither"
    )


def pickles_tasks(executor: object) -> bool:
    """Return whether `executor` pickles its tasks: a pool of processes or interpreters."""
    # Such a pool can only exist if its module was imported, and importing it is slow.
    processes = sys.modules.get("concurrent.futures.process")
    if processes is not None and isinstance(executor, processes.ProcessPoolExecutor):
        return True
    return runs_interpreters(executor)


def runs_interpreters(executor: object) -> bool:
    """Return whether `executor` is an InterpreterPoolExecutor, which Python 3.14 added."""
    interpreters = sys.modules.get("concurrent.futures.interpreter")
    return interpreters is not None and isinstance(executor, interpreters.InterpreterPoolExecutor)
