"""Where a subscription is at home: the event loop that runs it, or else that of the library."""

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
"""How long tasks have to end when the process does."""

_LAST: Final = ("shutdown_asyncgens", "shutdown_default_executor")
"""What a loop still does when its tasks are cancelled."""

_BLOCKED_S: Final = 1.0
"""How much longer the process waits for the loop itself."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if there is one; none does where asyncio is not loaded."""
    return asyncio._get_running_loop() if "asyncio.events" in modules else None


turns: Final[set[asyncio.AbstractEventLoop]] = set()
"""Loops that run a callback which has put them here, and takes them away again."""


@final
class Home:
    """The event loop that a subscription belongs to, whichever thread signals.

    A subscriber has it from where it subscribed, and operators hand it on to what they subscribe
    to, also when they do that later, on another thread. Operators that wait, or run coroutines,
    ask for it.

    Args:
        loop: the loop that ran in the thread that subscribed.
        context: that of who subscribed; None for the current one.
        made: the task that subscribed, if it is known.
        tasks: those that run in the loop for the flow; None for none.
    """

    __slots__ = ("_made", "context", "loop", "tasks")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: Context | None = None,
        made: asyncio.Task[Any] | None = None,
        tasks: set[asyncio.Task[Any]] | None = None,  # Any: nobody looks at the results
    ) -> None:
        self.loop: Final = loop
        self._made: Callable[[], asyncio.Task[Any] | None] = _nobody if made is None else ref(made)
        self.context: Final = copy_context() if context is None else context
        self.tasks: Final = set[asyncio.Task[Any]]() if tasks is None else tasks
        """Those that run in the loop for the flow, added and taken away there."""

    if sys.version_info >= (3, 14):

        def add(self, task: asyncio.Task[Any], /) -> None:
            """Add `task`; what shows tasks then shows that the subscriber waits for it."""
            self.tasks.add(task)
            made = self._made()
            if made is not None and not made.done():
                asyncio.future_add_to_awaited_by(task, made)

        def discard(self, task: asyncio.Task[Any], /) -> None:
            """Take it away, and show no more that the subscriber waits for it."""
            self.tasks.discard(task)
            made = self._made()
            if made is not None:
                asyncio.future_discard_from_awaited_by(task, made)

    else:

        @property
        def add(self) -> Callable[[asyncio.Task[Any]], None]:
            """Adds a task to those."""
            return self.tasks.add

        @property
        def discard(self) -> Callable[[asyncio.Task[Any]], None]:
            """Takes one away."""
            return self.tasks.discard

    def within(self, context: Context) -> Home:
        """The same home for what runs in another context."""
        return Home(self.loop, context, self._made(), self.tasks)

    @property
    def forsaken(self) -> bool:
        """Whether the loop is closed, or cancels all tasks, as ``asyncio.run`` does at its end.

        Then nothing may begin anew. Only if there is reason to ask, all tasks are looked at.
        """
        if self.loop.is_closed():
            return True
        if running_loop() is self.loop:  # or else they may change meanwhile
            some = next((task for task in self.tasks if not task.done()), None) or self._made()
            if some is not None and not (some.done() or some.cancelling()):
                return False  # who runs the flow goes on, or what runs for it
        tasks = asyncio.all_tasks(self.loop)  # none, where callbacks do all the work
        return bool(tasks) and all(
            task.cancelling() or getattr(task.get_coro(), "__name__", "") in _LAST for task in tasks
        )

    async def ended(self) -> None:
        """Wait until all tasks are over, as who runs a flow does when it ends.

        Raises:
            CancelledError: if who waits was cancelled meanwhile; after that.
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
    """No task is known."""


def in_turn(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether `loop` runs a task, or a callback of `turns`, in this thread.

    Only then what is to happen next there needs no `call_soon_threadsafe`, which writes to a pipe:
    elsewhere a finaliser or a signal handler may have come in as the loop was about to sleep.
    """
    return running_loop() is loop and (loop in turns or asyncio.current_task(loop) is not None)


def current_home() -> Home | None:
    """A home in the loop that runs in this thread; None if none does.

    The library's loop is nobody's home, but of a coroutine that runs there and subscribes.
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
    """The loop for coroutines of flows that have no home: one for the process, in a daemon thread.

    It is made when it is first needed, and ended when the process ends: its tasks are cancelled,
    and have 3 seconds to end. A forked child makes one of its own.

    Raises:
        RuntimeError: if the process is about to end.
    """
    found = _library.get(_ONE)
    if found is None:
        made = _Library()
        # No lock: a finaliser or a signal handler may come in here anywhere.
        found = _library.setdefault(_ONE, made)
        if found is made:
            made.start()
        else:
            made.loop.close()
    if found.ends:
        raise RuntimeError("the process ends, and with it the event loop for its coroutines")
    return found.loop


def task_context(home: Home | None) -> Context:
    """The context for tasks of what is subscribed to here.

    It is the current one, but for a thread that subscribes on behalf of a loop: then it is that of
    who runs the flow.

    Args:
        home: where the flow belongs.
    """
    if home is None or home.loop is running_loop():
        return copy_context()
    return home.context


def home_loop(home: Home | None) -> asyncio.AbstractEventLoop:
    """The loop for what a flow runs: that of its home, or else the library's."""
    return library_loop() if home is None else home.loop


@final
class _Library(threading.Thread):
    """The thread of the library's loop."""

    def __init__(self) -> None:
        super().__init__(name="flow-loop", daemon=True)
        self.loop: Final = asyncio.new_event_loop()
        self.ends = False
        """The process ends."""
        self.left = 0
        """Tasks that did not end."""

    @override
    def start(self) -> None:
        try:
            super().start()
        except BaseException:
            _library.pop(_ONE, None)
            self.loop.close()  # who has it already hears of that
            raise

    def run(self) -> None:
        """Run the loop until the process ends, whatever its tasks raise."""
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except BaseException as error:  # SystemExit of a task, say, which ends no other flow
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
                # Said once, by `end`.
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        await self.loop.shutdown_asyncgens()

    def end(self) -> None:
        """Cancel all tasks, and wait until they have ended; for a while."""
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
"""The one of this process, if it was needed. A dict, whose `setdefault` needs no lock."""

_kept: Final[list[_Library]] = []
"""Those of processes that this one was forked from. Closing their loops would take the epoll
object, which parent and child share, out of the parent's hands."""


def _forked() -> None:
    # Its thread is not in the child.
    _kept.extend(_library.values())
    _library.clear()


@atexit.register
def _end() -> None:
    library = _library.get(_ONE)
    if library is not None and library.is_alive():
        library.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
