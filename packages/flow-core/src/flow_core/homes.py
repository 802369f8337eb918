"""The home of a subscription: the event loop in which it runs, or else the library's own loop."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextvars import Context, copy_context
from sys import modules
from typing import TYPE_CHECKING, Any, Final, final
from weakref import ref

from typing_extensions import override

from flow_core.late import later

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = later("asyncio", globals())

__all__ = [
    "Home",
    "current_home",
    "home_loop",
    "in_turn",
    "library_loop",
    "running_loop",
    "task_context",
    "turns",
]

_CLEAN_UP_S: Final = 3.0
"""The time that tasks may take to end when the process ends, in seconds."""

_LAST: Final = ("shutdown_asyncgens", "shutdown_default_executor")
"""The coroutines that a loop still runs after its tasks were cancelled."""

_BLOCKED_S: Final = 1.0
"""The time that the process waits for the loop itself after that, in seconds."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread; None if there is none.

    It is None, too, if asyncio is not loaded.
    """
    return asyncio._get_running_loop() if "asyncio.events" in modules else None


turns: Final[set[asyncio.AbstractEventLoop]] = set()
"""Event loops that are running a callback of this library right now: the callback adds its loop at
its begin and removes it at its end."""


@final
class Home:
    """The event loop that a subscription belongs to, whichever thread signals.

    A subscriber has the home of the code that has subscribed it. Operators pass this home on to
    their sources, even if they subscribe to those later and on another thread. Operators that wait,
    or run coroutines, use it.

    Args:
        loop: the loop that ran in the subscribing thread.
        context: the subscriber's context; None for the current one.
        made: the task that has subscribed, if it is known.
        tasks: the tasks that run in the loop for the flow; None if there are none yet.
    """

    __slots__ = ("_made", "context", "loop", "tasks")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: Context | None = None,
        made: asyncio.Task[Any] | None = None,
        tasks: set[asyncio.Task[Any]] | None = None,  # Any: the results do not matter
    ) -> None:
        self.loop: Final = loop
        self._made: Callable[[], asyncio.Task[Any] | None] = _nobody if made is None else ref(made)
        self.context: Final = copy_context() if context is None else context
        self.tasks: Final = set[asyncio.Task[Any]]() if tasks is None else tasks
        """The tasks that run in the loop for the flow. They are added and removed in the loop's
        thread."""

    if sys.version_info >= (3, 14):

        def add(self, task: asyncio.Task[Any], /) -> None:
            """Add `task`. Tools that show tasks then show that the subscriber waits for it."""
            self.tasks.add(task)
            made = self._made()
            if made is not None and not made.done():
                asyncio.future_add_to_awaited_by(task, made)

        def discard(self, task: asyncio.Task[Any], /) -> None:
            """Remove `task`, so that tools stop showing that the subscriber waits for it."""
            self.tasks.discard(task)
            made = self._made()
            if made is not None:
                asyncio.future_discard_from_awaited_by(task, made)

    else:

        @property
        def add(self) -> Callable[[asyncio.Task[Any]], None]:
            """The function that adds a task."""
            return self.tasks.add

        @property
        def discard(self) -> Callable[[asyncio.Task[Any]], None]:
            """The function that removes a task."""
            return self.tasks.discard

    def within(self, context: Context) -> Home:
        """Return the same home, for code that runs in another context."""
        return Home(self.loop, context, self._made(), self.tasks)

    @property
    def forsaken(self) -> bool:
        """True if the loop is closed, or cancels all its tasks, as ``asyncio.run`` does at its end.

        If so, no operator may subscribe again in this loop. All tasks of the loop are examined only
        if no task of the flow shows that the loop continues.
        """
        if self.loop.is_closed():
            return True
        if running_loop() is self.loop:  # otherwise they may change meanwhile
            some = next((task for task in self.tasks if not task.done()), None) or self._made()
            if some is not None and not (some.done() or some.cancelling()):
                return False  # the code that runs the flow continues, or a task that runs for it
        tasks = asyncio.all_tasks(self.loop)  # none, where callbacks do all the work
        return bool(tasks) and all(
            task.cancelling() or getattr(task.get_coro(), "__name__", "") in _LAST for task in tasks
        )

    async def ended(self) -> None:
        """Wait until all tasks have ended. Code that runs a flow calls this last.

        Raises:
            CancelledError: if the waiting task was cancelled meanwhile; raised after the tasks have
                ended.
        """
        interrupted: asyncio.CancelledError | None = None
        own = asyncio.current_task()
        while running := [task for task in self.tasks if not (task is own or task.done())]:
            try:
                await asyncio.wait(running)
            except asyncio.CancelledError as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted

    def __repr__(self) -> str:
        return f"Home({self.loop!r})"


def _nobody() -> None:
    """Return None: the task that has subscribed is not known."""


def in_turn(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether `loop` runs, in this thread, a task or one of the callbacks of `turns`.

    Only then can the next step in the loop do without `call_soon_threadsafe`, which writes to a
    pipe. Otherwise, this may be a finaliser or a signal handler that runs while the loop is about
    to sleep.
    """
    return running_loop() is loop and (loop in turns or asyncio.current_task(loop) is not None)


def current_home() -> Home | None:
    """Return a home in the loop that runs in this thread; None if no loop runs.

    The library's own loop is a home only for a coroutine that runs in it and subscribes.
    """
    loop = running_loop()
    if loop is None:
        return None
    task = asyncio.current_task(loop)
    library = _library.get(_ONE)
    if library is not None and loop is library.loop and task is None:
        return None
    return Home(loop, None, task)


def library_loop() -> asyncio.AbstractEventLoop:
    """Return the loop for coroutines of flows without a home: one per process, in a daemon thread.

    The loop is made when it is first needed, and ends with the process: its tasks are then
    cancelled, and have 3 seconds to end. A forked child makes its own loop.

    Raises:
        RuntimeError: if the process is about to end.
    """
    found = _library.get(_ONE)
    if found is None:
        made = _Library()
        # Without a lock: a finaliser or a signal handler may call this anywhere.
        found = _library.setdefault(_ONE, made)
        if found is made:
            made.start()
        else:
            made.loop.close()
    if found.ends:
        raise RuntimeError("the process ends, and with it the event loop for its coroutines")
    return found.loop


def task_context(home: Home | None) -> Context:
    """Return the context in which the tasks of a new subscription run.

    The thread that subscribes calls this. The result is a copy of the thread's current context. In
    a thread that subscribes on behalf of a loop, it is the context of the code that runs the flow.

    Args:
        home: the home of the flow.
    """
    if home is None or home.loop is running_loop():
        return copy_context()
    return home.context


def home_loop(home: Home | None) -> asyncio.AbstractEventLoop:
    """Return the loop for a flow's coroutines: that of its home, or else the library's own."""
    return library_loop() if home is None else home.loop


@final
class _Library(threading.Thread):
    """The thread of the library's own loop."""

    def __init__(self) -> None:
        super().__init__(name="flow-loop", daemon=True)
        self.loop: Final = asyncio.new_event_loop()
        self.ends = False
        """True when the process is ending."""
        self.left = 0
        """The number of tasks that have not ended in time."""

    @override
    def start(self) -> None:
        try:
            super().start()
        except BaseException:
            _library.pop(_ONE, None)
            self.loop.close()  # code that has it already gets an error from it
            raise

    def run(self) -> None:
        """Run the loop until the process ends, whatever its tasks raise."""
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except BaseException as error:  # such as SystemExit of a task, which ends no other flow
                threading.excepthook(
                    threading.ExceptHookArgs((type(error), error, error.__traceback__, self))
                )
                continue
            if self.ends:
                break
        try:
            self.loop.run_until_complete(self._cleaned_up())
        finally:
            self.loop.close()

    async def _cleaned_up(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            _, pending = await asyncio.wait(tasks, timeout=_CLEAN_UP_S)
            self.left = len(pending)
            for task in pending:
                # `end` reports them, once
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        await self.loop.shutdown_asyncgens()

    def end(self) -> None:
        """Cancel all tasks, and wait for some time until they have ended."""
        self.ends = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join(_CLEAN_UP_S + _BLOCKED_S)
        if self.is_alive():
            said = "the event loop of flow_core is held by a function, so that its coroutines did"
        elif self.left:
            said = f"{self.left} coroutines of flow_core swallowed their cancellation, and did"
        else:
            return
        warnings.warn(f"{said} not end with the process", RuntimeWarning, stacklevel=1)


_ONE: Final = 0
_library: Final[dict[int, _Library]] = {}
"""The thread of this process, if it was needed. It is in a dict, because `setdefault` needs no
lock."""

_kept: Final[list[_Library]] = []
"""The threads of the processes from which this one was forked. Closing their loops would take the
epoll object, which parent and child share, from the parent."""


def _forked() -> None:
    # The child does not have its thread.
    _kept.extend(_library.values())
    _library.clear()


@atexit.register
def _end() -> None:
    library = _library.get(_ONE)
    if library is not None and library.is_alive():
        library.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
