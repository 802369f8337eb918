"""Ctrl-C and SIGTERM: unwind at once, and end by force what does not unwind."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from types import FrameType
from typing import Final, final

from flow_core.shutdown import Ending

__all__ = ["Stop", "Stopped", "stoppable"]

_GRACE_S: Final = 1.7
_ENGINE_S: Final = 10.0
_EXIT_S: Final = 0.5
_POLL_S: Final = 0.02
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """A signal stops the process. Fatal to flows: it unwinds them (X10)."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.exit_code: Final = 128 + signum


@final
class Stop(Ending):
    """Stops the process on a signal.

    The first signal raises `Stopped` in the main thread, which closes iterators, disposes flows and
    closes the engine on its way out. A second signal ends the process at once. A watching thread
    does the same if other threads are still busy after a period of grace.

    Python ignores an exception that is raised in a finaliser or in the callback of a weak
    reference, and a signal may come just there. The watching thread then sends the signal once
    more.

    Args:
        forced: whether the process may be ended by force, because it has no other purpose.
    """

    __slots__ = ("_forced", "_hook", "_ignored", "_in_engine", "_sent_again", "_signum")

    def __init__(self, *, forced: bool) -> None:
        self._forced = forced
        self._signum = 0
        self._in_engine = False
        self._ignored = False
        self._sent_again = False
        self._hook = sys.unraisablehook

    def enter_engine(self) -> None:
        """Note that the engine's session opens or closes: no flow runs, and this may take long."""
        self._in_engine = True

    def leave_engine(self) -> None:
        """Note that the session is open, or closed."""
        self._in_engine = False

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """Handle a signal; Python calls this in the main thread."""
        if self._sent_again:
            self._sent_again = False
            raise Stopped(signum)
        if self._signum and self._forced:
            os._exit(128 + signum)
        self._signum = signum
        if self._forced:
            threading.Thread(target=self._watch, name="flow-stop", daemon=True).start()
        raise Stopped(signum)

    def ignore(self, ignored: sys.UnraisableHookArgs, /) -> None:
        """Note a `Stopped` that Python ignores, so that it is sent again; report anything else."""
        if isinstance(ignored.exc_value, Stopped):
            self._ignored = True
        else:
            self._hook(ignored)

    def _send_again(self) -> None:
        self._ignored = False
        self._sent_again = True
        if sys.platform == "win32":
            _thread.interrupt_main(self._signum)
        else:
            signal.pthread_kill(threading.main_thread().ident or 0, self._signum)

    def _watch(self) -> None:
        latest = time.monotonic() + _GRACE_S
        while time.monotonic() < latest:
            time.sleep(_POLL_S)
            if self._ignored:
                self._send_again()
        if self._in_engine:
            latest = time.monotonic() + _ENGINE_S
            while self._in_engine and time.monotonic() < latest:
                time.sleep(_POLL_S)
            time.sleep(_EXIT_S)
        busy = [
            thread.name
            for thread in threading.enumerate()
            if not thread.daemon and thread is not threading.main_thread()
        ]
        who = f"threads did not stop: {', '.join(busy)}" if busy else "the program did not stop"
        with contextlib.suppress(OSError):
            os.write(2, f"flow: {who}; ended by force\n".encode())
        os._exit(128 + self._signum)


@contextlib.contextmanager
def stoppable(*, forced: bool) -> Generator[Stop, None, None]:
    """Handle the signals within a ``with`` block, if it is in the main thread.

    Args:
        forced: see `Stop`. If it is set, signals are handled until the process has ended.
    """
    stop = Stop(forced=forced)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    if forced:
        sys.unraisablehook = stop.ignore
    before = {signum: signal.signal(signum, stop.handle) for signum in _SIGNALS}
    try:
        yield stop
    finally:
        if not forced:
            for signum, handler in before.items():
                signal.signal(signum, handler or signal.SIG_DFL)
