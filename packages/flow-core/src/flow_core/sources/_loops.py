"""asyncio loops, seen from any thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, final
from weakref import WeakKeyDictionary, ref

from flow_core.clocks import run_reported
from flow_core.errors import LoopEndedError
from flow_core.executors import ToldTask
from flow_core.homes import running_loop
from flow_core.late import later

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = later("asyncio", globals())

__all__ = ["EVER_S", "LoopWatch", "closed_loop", "in_loop"]

EVER_S: Final = 1e9
"""The delay of the timer that watches a loop, in seconds: so long that it never runs."""


def in_loop(
    loop: asyncio.AbstractEventLoop | None,
    action: Callable[[], object],
    lost: Callable[[], object] | None = None,
) -> bool:
    """Run `action` in the thread of `loop`: now, if that is the current thread, or else soon.

    Args:
        loop: the event loop; None if any thread will do.
        action: the function to run.
        lost: called, in another thread, if the loop is closed after it has accepted the action and
            before it has run it.

    Returns:
        False if the loop is closed already: then neither function is called.
    """
    if loop is None or loop is running_loop():
        action()
        return True
    told = None if lost is None else ToldTask(action, lost)
    try:
        loop.call_soon_threadsafe(told or action)
    except RuntimeError:
        if loop.is_closed():
            if told is not None:
                told.forget()  # the caller knows
            return False
        raise
    return True


@final
class LoopWatch:
    """Notices, for any thread, that an event loop is closed while something still waits in it.

    A loop does not report that it is closed, but it drops its timers then. All watches of one loop
    share one timer, which exists as long as one of the watches does.

    Args:
        loop: the loop.
        closed: called when the loop is closed, on a thread of the watches; not called after `end`.
    """

    __slots__ = ("_loop", "_watched", "closed")

    def __init__(self, loop: asyncio.AbstractEventLoop, closed: Callable[[], object]) -> None:
        self.closed: Final = closed
        self._loop = loop
        self._watched = watched = _watched(loop)
        watched.watches[self] = None
        if not watched.armed:
            in_loop(loop, partial(watched.settle, loop), watched.lost)

    def end(self) -> None:
        """Stop watching, because what waited there has ended. Further calls have no effect."""
        watches = self._watched.watches
        if watches.pop(self, self) is None and not watches:
            in_loop(self._loop, partial(self._watched.settle, self._loop))


@final
class _Watched:
    """The watches of one loop, and their timer.

    There is no lock: each side writes first, and then looks at what the other side has written.
    """

    __slots__ = ("__weakref__", "_timer", "armed", "watches")

    def __init__(self) -> None:
        self.watches: dict[LoopWatch, None] = {}
        self.armed = False
        """True if there is a timer. This and the next attribute are written in the loop's
        thread."""
        self._timer: tuple[ref[ToldTask | asyncio.TimerHandle], ...] = ()
        """Objects that only the loop keeps alive: the task of the timer, and later the timer's
        handle."""

    def settle(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make or cancel the timer: there is one as long as there are watches.

        This is called in the loop's thread.
        """
        if self.watches:
            if not self.armed:
                self.armed = True
                told = ToldTask(_nothing, self.lost)
                self._timer = (ref(told), ref(loop.call_later(EVER_S, told)))
            return
        was_armed, self.armed = self.armed, False
        if self.watches:  # added meanwhile, by a thread that saw the timer
            self.armed = was_armed
            self.settle(loop)
            return
        for timer in self._timer:
            held = timer()
            if isinstance(held, ToldTask):
                held.forget()
            elif held is not None:
                held.cancel()
        self._timer = ()

    def lost(self) -> None:
        """Call all watches, because the loop is closed. Called on a separate thread."""
        for watch in [*self.watches]:
            if self.watches.pop(watch, watch) is None:
                run_reported(watch.closed)


_loops: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, ref[_Watched]]] = WeakKeyDictionary()
"""The loops that are watched. This dict keeps neither them nor their watches alive."""


def _watched(loop: asyncio.AbstractEventLoop) -> _Watched:
    # Two threads may each make one: then there are two timers.
    known = _loops.get(loop)
    found = None if known is None else known()
    if found is None:
        found = _Watched()
        _loops[loop] = ref(found)
    return found


def _nothing() -> None: ...


def closed_loop(source: str, argument: str | None = "loop") -> LoopEndedError:
    """Return the error of a flow whose loop is closed.

    Args:
        source: the source or operator that worked in the loop.
        argument: the argument with which the user could have given another loop; None if there is
            none.
    """
    return LoopEndedError(
        f"{source}: its event loop is closed, so that nothing more can come; end the flow before "
        f"its loop{f', or give it another one by {argument}=…' if argument else ''}"
    )
