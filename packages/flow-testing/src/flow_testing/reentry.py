"""Calls another function in the middle of a thread's work, as a finaliser or a signal handler does.

The garbage collector and signals run Python code between any two instructions, in the thread that
is at work. If that code takes a lock that the thread already holds, it blocks for ever; and it sees
half-finished changes.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import FrameType, ModuleType
from typing import Any, Final, final

from flow_testing.interleave.names import files_of
from flow_testing.interleave.tracing import GENERATED
from flow_testing.subscriber import TIMEOUT_S

__all__ = ["Reentry", "ReentryFailure", "explore_reentry"]

LIBRARY: Final = ("flow_core", "flow_ops", "flow_multicast")
_HERE: Final = str(Path(__file__).parent)


@final
class Reentry:
    """The work of a thread, the call in the middle of it, and the check afterwards.

    Args:
        work: the work of the thread. It must do the same each time.
        call: called once during the work, like a finaliser or a signal handler.
        check: called at the end; raises an error if something was lost or done twice.
    """

    __slots__ = ("call", "check", "work")

    def __init__(
        self,
        work: Callable[[], object],
        call: Callable[[], object],
        check: Callable[[], object] | None = None,
    ) -> None:
        self.work = work
        self.call = call
        self.check = check


class ReentryFailure(AssertionError):  # noqa: N818 - an assertion that failed, as others do
    """The call has broken the work at some moment; the message says when, and what is broken."""


@dataclass(slots=True)
class _Place:
    """The place of the call."""

    file: str = ""
    line: int = 0
    function: str = ""

    def __str__(self) -> str:
        if not self.file:
            return "before anything else"
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.function}, {Path(self.file).name}:{self.line}, before `{source}`"


class _Walk:
    """A thread that runs the body again and again; each time, the call comes one moment later."""

    def __init__(self, body: Callable[[], Reentry], files: frozenset[str]) -> None:
        self.body = body
        self.files = files
        self.place = _Place()
        self.moments = 0
        """The number of runs that have ended."""
        self.failure: str = ""
        self.error: BaseException | None = None
        self.ended = Event()
        self.thread = Thread(target=self._run_all, daemon=True)

    def _run_all(self) -> None:
        before = sys.gettrace()
        try:
            while not self.failure and self._run():
                self.moments += 1
        except BaseException as error:
            self.failure, self.error = "the body raised", error
        finally:
            sys.settrace(before)
            self.ended.set()

    def _run(self) -> bool:
        """Run the body once. Return False if the body had ended before the call came."""
        scenario = self.body()
        left = self.moments
        called = False

        def moment(frame: FrameType, event: str, _: object) -> Any:  # Any: any trace function
            nonlocal left, called
            if event != "opcode" or called:
                return moment
            if left:
                left -= 1
                return moment
            called = True
            sys.settrace(None)
            code = frame.f_code
            self.place = _Place(code.co_filename, frame.f_lineno, code.co_qualname)
            self._try("the call raised", scenario.call)
            return None

        def enter(frame: FrameType, _: str, __: object) -> Any:  # Any: as above
            name = frame.f_code.co_filename
            if called or not (name in self.files or name.startswith(GENERATED)):
                return None
            frame.f_trace = moment  # Python 3.13 needs this first
            frame.f_trace_opcodes = True
            return moment

        # Python checks this when tracing begins, and not again for the frames that follow.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(enter)
        try:
            self._try("what was at work raised", scenario.work)
        finally:
            sys.settrace(None)
        if called and scenario.check is not None:
            self._try("the check failed", scenario.check)
        return called

    def _try(self, what: str, function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as error:
            if not self.failure:
                self.failure, self.error = what, error

    def stack(self) -> str:
        """Return where the thread is, as a text."""
        frame = sys._current_frames().get(self.thread.ident or 0)
        return "".join(traceback.format_stack(frame))


def explore_reentry(
    body: Callable[[], Reentry],
    *,
    modules: Iterable[str | ModuleType] = LIBRARY,
    timeout_s: float = TIMEOUT_S,
) -> int:
    """Repeat the work of `body`, with the call in the middle at another moment each time.

    The call comes in the same thread, before each instruction of the modules under test, as if the
    cyclic collector had found something, or a signal had come.

    >>> items: list[int] = []
    >>> def body() -> Reentry:
    ...     items.clear()
    ...     return Reentry(
    ...         work=lambda: items.append(1),
    ...         call=lambda: items.append(2),
    ...         check=lambda: None if sorted(items) == [1, 2] else 1 / 0,
    ...     )
    >>> explore_reentry(body, modules=[])
    0

    Args:
        body: called for each moment; it makes fresh state, and returns the `Reentry` that uses this
            state.
        modules: the names of the modules under test; a package stands for all of its modules. Names
            of modules that are not imported are ignored. Generated loops are always included.
        timeout_s: if no run has finished for this number of seconds of real time, the test fails.

    Returns:
        How many moments there were.

    Raises:
        ReentryFailure: at the first moment at which the work or the call raises an error or does
            not return, or the check fails.
    """
    names = (name if isinstance(name, str) else name.__name__ for name in modules)
    files = {file for name in names if name in sys.modules for file in files_of(name)}
    walk = _Walk(body, frozenset(file for file in files if not file.startswith(_HERE)))
    walk.thread.start()
    while not walk.ended.wait(timeout_s):
        moments = walk.moments
        if walk.ended.wait(timeout_s) or walk.moments != moments:
            continue
        raise ReentryFailure(f"called in {walk.place}: it hangs\n{walk.stack()}")
    if walk.failure:
        what = "" if walk.error is None else f": {type(walk.error).__name__}: {walk.error}"
        raise ReentryFailure(f"called in {walk.place}: {walk.failure}{what}") from walk.error
    return walk.moments
