"""Code that the operators with a clock share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.clocks import Clock, Seconds, current_time, in_seconds
from flow_core.demand import UNBOUNDED
from flow_core.errors import none_given
from flow_core.protocols import EMPTY, CoreSubscriber, Disposable, Empty
from flow_ops.coordination import Coordinator, PolledInput

__all__ = [
    "SLACK_S",
    "Newest",
    "NewestInput",
    "Timed",
    "checked_clock",
    "checked_delay",
    "nothing",
    "seconds",
    "time_of",
]

T = TypeVar("T")
R = TypeVar("R")
V = TypeVar("V")

SLACK_S: Final = 1e-9
"""The tolerance of due times, in seconds: sums of seconds are not exact."""


def checked_clock(clock: Clock | None) -> Clock | None:
    """Check `clock` and return it; None means that each subscription uses `home_clock`.

    Raises:
        TypeError: if `clock` is not a clock.
    """
    is_one = hasattr(clock, "schedule") and hasattr(clock, "now") and not isinstance(clock, type)
    if clock is not None and not is_one:
        raise TypeError(f"clock= takes a Clock, not {clock!r}")
    return clock


def time_of(clock: Clock | None) -> Callable[[], float]:
    """Return the function that returns the time in a compiled stage, which has no `Home`.

    Raises:
        TypeError: if `clock` is not a clock.
    """
    checked = checked_clock(clock)
    return current_time if checked is None else checked.now


def checked_delay(delay: Seconds, name: str) -> float:
    """Return `delay` in seconds, if it is at least 0.

    Raises:
        TypeError: if it is neither a number of seconds nor a timedelta.
        ValueError: if `delay` is NaN or less than 0.
    """
    delay_s = in_seconds(delay, name)
    if not delay_s >= 0:
        raise ValueError(f"{name} must be a number of seconds, at least 0, not {delay_s:g}")
    return delay_s


def seconds(value: float) -> str:
    """Return a time in seconds as messages show it."""
    return f"{value:g} s"


def nothing(_: object) -> None:
    """Do nothing: the function of a `NewestInput` that does not map its items."""


class Timed(Coordinator[R]):
    """A coordinator that calls `wake` at a given time, and `step` after it.

    There is at most one timer. Postponing the time needs no new timer: the running one looks at the
    time again when it is due.

    Args:
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
        clock: the clock; see `home_clock`.
    """

    __slots__ = ("_due", "_number", "_timer", "_timer_due", "clock")

    def __init__(self, downstream: CoreSubscriber[R], label: str, clock: Clock | None) -> None:
        super().__init__(downstream, label)
        self.clock: Final = self.clock_for(clock)
        self._due = math.inf
        """The time to call `wake` at. It is written with the permit, like all attributes here."""
        self._timer: Disposable | None = None
        self._timer_due = math.inf
        self._number = 0
        """The number of the timer, to recognise an earlier one that was disposed of after it had
        run."""

    def wake(self) -> None:
        """Do what is due: the time of `wake_at` has come. The caller must hold the permit."""

    def wake_at(self, time_s: float) -> None:
        """Call `wake` at this time of the clock, and not before.

        The caller must hold the permit.
        """
        self._due = time_s
        if time_s < self._timer_due:
            self._start_timer()

    def wake_in(self, delay_s: float) -> None:
        """Call `wake` after `delay_s` seconds, and not before. The caller must hold the permit."""
        self.wake_at(self.clock.now() + delay_s)

    def stop_timer(self) -> None:
        """Stop the timer: `wake` is not called. The caller must hold the permit."""
        self._due = self._timer_due = math.inf
        self._number += 1
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.dispose()

    @override
    def closed(self) -> None:
        self.stop_timer()

    def _start_timer(self) -> None:
        due = self._due
        self.stop_timer()
        delay_s = max(0.0, due - self.clock.now())
        self._timer = self.after(self.clock, delay_s, self._rang, self._number)
        self._due = self._timer_due = due

    def _rang(self, number: int) -> None:
        if number != self._number:
            return
        self._timer = None
        self._timer_due = math.inf
        if self._due == math.inf:
            return
        if self._due - self.clock.now() > SLACK_S:  # postponed meanwhile
            self._start_timer()
            return
        self._due = math.inf
        self.wake()


@final
class NewestInput(PolledInput[T], Generic[T, V]):
    """Requests everything, and keeps only the newest item until the owner polls it.

    So nothing piles up while the owner is at work. Each signal makes the owner `step`.

    Args:
        owner: the operator that polls.
        make: called with each item, without the permit, in the source's thread; its result is
            polled with the item. An error that it raises is handled like an error of the source.
    """

    __slots__ = ("_make", "_newest")

    # Any: the type that it emits
    def __init__(self, owner: Coordinator[Any], make: Callable[[T], V]) -> None:
        super().__init__(owner, UNBOUNDED)
        self._make = make
        self._newest: deque[tuple[T, V]] = deque(maxlen=1)

    @override
    def on_next(self, item: T, /) -> None:
        """Keep the item; it replaces one that was not polled."""
        if item is None:
            raise none_given("on_next")
        owner = self.owner
        if self.upstream is None or self.done or owner.over:
            hooks.drop_item(item)
            return
        try:
            made = self._make(item)
        except BaseException as error:
            blamed = owner.blame(error)
            upstream = self.upstream
            if upstream is not None:
                hooks.cancel(upstream)
            self.on_error(blamed)
            return
        self._newest.append((item, made))
        owner.signal()
        if self.gone or owner.over:
            self.drop_waiting()  # `close` may have looked before

    def poll(self) -> tuple[T, V] | Empty:
        """Return the newest item and the result for it.

        To learn whether the source has ended, read `done` first.
        """
        try:
            return self._newest.popleft()
        except IndexError:
            return EMPTY

    @override
    def drop_waiting(self) -> None:
        polled = self.poll()
        if polled is not EMPTY:
            hooks.drop_item(polled[0])


class Newest(Timed[T], Generic[T, V]):
    """The base of operators that send some of the items, at times of their choice.

    They request everything. An item that is due when there is no demand waits for a request; if
    another item is due before the request, it replaces the waiting one, which goes to the
    dropped-items hook. So at most one item waits.

    Args:
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
        clock: see `Timed`.
        make: see `NewestInput`.
    """

    __slots__ = ("_ending", "_main", "_ready")

    def __init__(
        self,
        downstream: CoreSubscriber[T],
        label: str,
        clock: Clock | None,
        make: Callable[[T], V],
    ) -> None:
        super().__init__(downstream, label, clock)
        self._main: NewestInput[T, V] | None = NewestInput(self, make)
        self._ready: T | Empty = EMPTY
        """The item that waits for demand."""
        self._ending = False
        """True if the flow completes once `_ready` was sent."""

    @abstractmethod
    def arrived(self, item: T, made: V) -> None:
        """Take an item. The caller must hold the permit."""

    def last(self) -> None:
        """Send the items that are left: the source has completed.

        The caller must hold the permit.
        """

    def give(self, item: T) -> None:
        """Send `item`, which is due, or have it wait. The caller must hold the permit."""
        if self._ready is EMPTY and self.demand:
            self.emit(item)
            return
        replaced, self._ready = self._ready, item
        if replaced is not EMPTY:
            hooks.drop_item(replaced)

    def finish(self) -> None:
        """Complete when everything was sent: no more items come.

        The caller must hold the permit.
        """
        if self._ending or self.over:
            return
        self._ending = True
        self.stop_timer()
        main = self._main
        if main is not None:
            self.disconnect(main)
        self.last()

    @override
    def step(self) -> None:
        ready = self._ready
        if ready is not EMPTY and self.demand:
            self._ready = EMPTY
            self.emit(ready)
        main = self._main
        if main is not None and not self._ending and not self.over:
            done = main.done  # read before looking: items from before the end are there by then
            polled = main.poll()
            if polled is not EMPTY:
                self.arrived(*polled)
            if done and not (self._ending or self.over):
                self.release(main)
                error, main.error = main.error, None
                if error is None:
                    self.finish()
                else:
                    self.fail(error)
        if self._ending and self._ready is EMPTY and not self.over:
            self.complete()

    @override
    def closed(self) -> None:
        super().closed()
        main, self._main = self._main, None
        if main is not None:
            main.close()
        ready, self._ready = self._ready, EMPTY
        if ready is not EMPTY:
            hooks.drop_item(ready)

    @property
    @override
    def buffered(self) -> int:
        return int(self._ready is not EMPTY)
