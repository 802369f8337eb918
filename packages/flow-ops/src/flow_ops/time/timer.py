"""`timer`: one item, after a while."""

from __future__ import annotations

from typing import final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber
from flow_ops.coordination import coordinated_source
from flow_ops.time._timed import Timed, checked_clock, checked_delay, seconds

__all__ = ["timer", "timer_at"]


def timer(delay: Seconds, *, clock: Clock | None = None) -> Flow[int]:
    """Send the item 0 after a while.

    >>> import flow_core as flow
    >>> list(flow.timer(0.001))
    [0]

    Demand: exact; the item waits for a request. Time runs from the subscription. Thread: the
    clock's, or that of a request that comes later. Fusion: none.
    Errors: RejectedExecutionError if the clock takes no task.

    Args:
        delay: how long to wait, in seconds, at least 0; if it is infinite, the item never comes.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `delay` is not a time, or `clock` is not a clock.
        ValueError: if `delay` is less than 0, or NaN.
    """
    delay_s = checked_delay(delay, "the delay")
    waiting = checked_clock(clock)
    return coordinated_source(
        "timer",
        seconds(delay_s),
        lambda downstream, label: Timer(downstream, label, waiting, delay_s),
    )


def timer_at(time_s: float, clock: Clock | None) -> Flow[int]:
    """Return a flow of the item 0, which comes when `clock` shows that time.

    Args:
        time_s: seconds of the clock, as its `now` returns them.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.
    """
    return coordinated_source(
        "timer",
        f"at {seconds(time_s)}",
        lambda downstream, label: Timer(downstream, label, clock, time_s, absolute=True),
    )


@final
class Timer(Timed[int]):
    """Runs `timer` and `timer_at`: with `absolute`, the item waits until the clock shows a time."""

    __slots__ = ("_absolute", "_passed", "_time_s")

    def __init__(
        self,
        downstream: CoreSubscriber[int],
        label: str,
        clock: Clock | None,
        time_s: float,
        *,
        absolute: bool = False,
    ) -> None:
        super().__init__(downstream, label, clock)
        self._time_s = time_s
        self._absolute = absolute
        self._passed = False

    @override
    def open(self) -> None:
        self.post(self.wake_at if self._absolute else self.wake_in, self._time_s)

    @override
    def wake(self) -> None:
        self._passed = True

    @override
    def step(self) -> None:
        if self._passed and self.demand:
            self.emit(0)
            if not self.over:
                self.complete()
