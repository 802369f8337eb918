"""Serialisation: only one thread drains at a time, and no wake-up is lost.

Every operator that is signalled from several threads works in the same way: a thread publishes its
work (it appends to a queue, raises the demand, or sets a flag), then it calls `SerialDrain.signal`.
One thread gets in and does all the work that it sees; the others return at once, knowing that their
work will be seen.
"""

from __future__ import annotations

import enum
import sys
from abc import abstractmethod
from collections.abc import Callable
from typing import Final, TypeVar

from typing_extensions import override

__all__ = ["BUSY", "HAS_GIL", "Busy", "Exclusive", "SerialDrain"]

A = TypeVar("A")
R = TypeVar("R")

HAS_GIL: Final[bool] = getattr(sys, "_is_gil_enabled", lambda: True)()
"""True if what one thread has stored is seen by all other threads at once, in the same order."""


@enum.unique
class Busy(enum.Enum):
    """The type of `BUSY`."""

    BUSY = "busy"


BUSY: Final = Busy.BUSY
"""The result of `Exclusive.alone` when another caller has the permit."""


class Exclusive:
    """The base of objects that let one thread work at a time, and turn the others away.

    The permit is an entry of a dict: ``del`` takes it, and item assignment gives it back. Each of
    these is atomic under the dict's own lock, with a GIL or without. Ctrl-C loses no permit,
    whenever it comes: Python checks for signals when a call begins or returns and when a loop jumps
    back, and none of these stands between taking the permit and the ``try`` that gives it back.
    """

    __slots__ = ("_permit",)

    def __init__(self) -> None:
        self._permit = {0: True}

    def alone(self, work: Callable[[A], R], argument: A) -> R | Busy:
        """Return `work(argument)`, called with the permit.

        Return `BUSY` if another caller has the permit.
        """
        permit = self._permit
        try:
            del permit[0]
        except KeyError:
            return BUSY
        try:
            return work(argument)
        finally:
            permit[0] = True

    @property
    def _busy(self) -> bool:
        """Return whether a caller has the permit."""
        return 0 not in self._permit


class SerialDrain(Exclusive):
    """The base of objects that drain published work, one thread at a time.

    No wake-up is lost:

    * A signaller publishes its work, sets `_missed`, and only then tries to take the permit.
    * If it cannot take the permit, the holder gives the permit back later, and reads `_missed`
      again after that. It then either sees the flag, or had cleared it after the work was published
      and before draining.

    Only a drain that starts clears `_missed`. So a signaller that reads True after it has published
    its work need not do more: a drain that starts later sees the work. (`leave` keeps the flag.)

    `alone` calls a function under the permit but without a drain: this work does not pass the
    queue. If calling it would cost too much, a subclass does the same by hand.

    If `drain` raises, the permit is given back, so that the object stays usable.
    """

    __slots__ = ("_missed",)

    def __init__(self) -> None:
        self._missed = False
        self._permit = {0: True}  # `Exclusive.__init__`, written out: a call would cost

    @abstractmethod
    def drain(self) -> None:
        """Do all the work that is visible now.

        Only one call runs at a time, and none is re-entered.
        """

    def signal(self) -> None:
        """Ensure that work published before is drained, by this thread or by the holder."""
        self._missed = True
        permit = self._permit
        if HAS_GIL and 0 not in permit:  # `del` without its KeyError
            return
        try:
            del permit[0]
        except KeyError:
            return
        # `run_entered`, written out: Python checks for signals when a call begins, too.
        held = True
        try:
            # On CPython 3.11, a jump to the first instruction of a `try` lies outside of it.
            self._missed = False
            while True:
                self.drain()
                permit[0] = True
                held = False
                if not self._missed:
                    return
                try:
                    del permit[0]
                except KeyError:
                    return
                held = True
                self._missed = False
        except BaseException:
            if held:
                permit[0] = True
            raise

    @override
    def alone(self, work: Callable[[A], R], argument: A) -> R | Busy:
        """Call `work` as `Exclusive` does, then drain what was published meanwhile."""
        permit = self._permit
        try:
            del permit[0]
        except KeyError:
            return BUSY
        try:
            return work(argument)
        finally:
            permit[0] = True
            if self._missed:
                self.signal()

    def try_enter(self) -> bool:
        """Take the permit without draining, to pass the drain to an executor.

        If the result is True, the caller has to run `run_entered`, or to call `leave`.
        """
        self._missed = True
        try:
            del self._permit[0]
        except KeyError:
            return False
        return True

    def leave(self) -> None:
        """Give the permit back without draining.

        Work that is published waits for the next signal.
        """
        self._permit[0] = True

    def run_entered(self) -> None:
        """Drain with the permit that `try_enter` has taken, until no signal was missed.

        Then give the permit back.
        """
        permit = self._permit
        held = True
        try:
            self._missed = False
            while True:
                self.drain()
                permit[0] = True
                held = False
                if not self._missed:
                    return
                try:
                    del permit[0]
                except KeyError:
                    return
                held = True
                self._missed = False
        except BaseException:
            if held:
                permit[0] = True
            raise
