"""`interval` and `interval_range`: sources that count."""

from __future__ import annotations

from typing import Literal, TypeAlias, final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds, check_period
from flow_core.errors import MissingBackpressureError
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Disposable
from flow_ops.coordination import Coordinator, coordinated_source
from flow_ops.time._timed import checked_clock, checked_delay, seconds

__all__ = ["IntervalOverflow", "interval", "interval_range"]

IntervalOverflow: TypeAlias = Literal["error", "drop", "buffer"]
"""The treatment of a number that was not requested when its time comes."""


def interval(
    period: Seconds,
    *,
    initial_delay: Seconds | None = None,
    overflow: IntervalOverflow = "error",
    clock: Clock | None = None,
) -> Flow[int]:
    """Count 0, 1, 2 and so on, one number in each period, without end.

    >>> import flow_core as flow
    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> clock, seen = VirtualClock(), TestSubscriber[int]()
    >>> flow.interval(0.5, clock=clock).take(3).subscribe(seen)
    >>> clock.advance_by(10)
    >>> seen.items
    [0, 1, 2]

    Demand: exact; see `overflow`. Thread: the clock's; a number that waited for demand comes on the
    thread that requests. Fusion: none.
    Errors: MissingBackpressureError, as `overflow` says; RejectedExecutionError if the clock takes
    no task.

    Args:
        period: how long between two numbers, in seconds, above 0. The delays of timers do not add
            up.
        initial_delay: how long before the first number, in seconds; as long as `period` if None.
        overflow: what happens to a number that was not requested when its time comes. ``"error"``
            fails the flow; ``"drop"`` leaves the number out, and the next number is still that of
            its period; ``"buffer"`` sends it later, on demand (numbers that wait take no memory:
            only their count is kept).
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `period` or `initial_delay` is not a time, or `clock` is not a clock.
        ValueError: if the period is not above 0 and finite, the delay is less than 0, or `overflow`
            is unknown.
    """
    period_s = check_period(period)
    initial_s = period_s if initial_delay is None else checked_delay(initial_delay, "the delay")
    if overflow not in ("error", "drop", "buffer"):
        raise ValueError(f'overflow= takes "error", "drop" or "buffer", not {overflow!r}')
    ticking = checked_clock(clock)
    return coordinated_source(
        "interval",
        seconds(period_s),
        lambda downstream, label: Interval(
            downstream,
            label,
            clock=ticking,
            initial_s=initial_s,
            period_s=period_s,
            overflow=overflow,
        ),
    )


def interval_range(
    start: int,
    count: int,
    period: Seconds,
    *,
    initial_delay: Seconds | None = None,
    overflow: IntervalOverflow = "error",
    clock: Clock | None = None,
) -> Flow[int]:
    """Send `count` ints from `start` on, one in each period; complete with the last.

    >>> import flow_core as flow
    >>> list(flow.interval_range(5, 3, 0.001))
    [5, 6, 7]

    This is `interval`, followed by `take` and `map`.

    Args:
        start: the first int.
        count: how many ints, at least 0.
        period: how long between two of the ints, in seconds, above 0.
        initial_delay: how long before the first int, in seconds; as long as `period` if None.
        overflow: see `interval`. With ``"drop"`` there are still `count` ints, with gaps.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: as with `interval`, or if `count` is less than 0.
    """
    if not isinstance(start, int):
        raise TypeError(f"interval_range() starts with an int, not {start!r}")
    ticks = interval(period, initial_delay=initial_delay, overflow=overflow, clock=clock)
    return ticks.take(count).map(lambda n: start + n)


@final
class Interval(Coordinator[int]):
    """Runs `interval`."""

    __slots__ = ("_clock", "_handle", "_initial_s", "_next", "_overflow", "_period_s", "_ticks")

    def __init__(
        self,
        downstream: CoreSubscriber[int],
        label: str,
        *,
        clock: Clock | None,
        initial_s: float,
        period_s: float,
        overflow: IntervalOverflow,
    ) -> None:
        super().__init__(downstream, label)
        self._clock = self.clock_for(clock)
        self._initial_s = initial_s
        self._period_s = period_s
        self._overflow: IntervalOverflow = overflow
        self._handle: Disposable | None = None
        self._ticks = 0
        """The number of periods that have passed. Written by the clock's task, which never overlaps
        itself."""
        self._next = 0

    @override
    def open(self) -> None:
        self.post(self._begin, None)

    @override
    def step(self) -> None:
        while self._next < self._ticks and not self.over:
            if self.demand:
                number = self._next
                self._next += 1
                self.emit(number)
            elif self._overflow == "buffer":
                return
            elif self._overflow == "drop":
                self._next = self._ticks
            else:
                self.fail(
                    MissingBackpressureError(
                        f"{self.label}: {self._next} was not requested when its time came; "
                        'request more, or use overflow="drop" or "buffer"'
                    )
                )

    @override
    def closed(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.dispose()

    def _begin(self, _: object) -> None:
        self._handle = self._clock.schedule_periodically(
            self._initial_s, self._period_s, self._tick
        )

    def _tick(self) -> None:
        self._ticks += 1
        self.signal()
