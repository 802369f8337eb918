"""Items outside a length of time, at the beginning or before the end."""

from __future__ import annotations

from typing import TypeVar, final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber
from flow_ops.combine.skip_until_other import SkipUntil
from flow_ops.coordination import coordinated
from flow_ops.time._last import Last
from flow_ops.time._timed import SLACK_S, checked_clock, checked_delay, seconds
from flow_ops.time.timer import timer, timer_at

__all__ = [
    "skip_last_with_time",
    "skip_until_with_time",
    "skip_with_time",
]

T = TypeVar("T")


def skip_with_time(duration: Seconds, *, clock: Clock | None = None) -> Operator[T, Flow[T]]:
    """Send the items after the first `duration`; earlier items are dropped.

    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> from flow_ops import interval
    >>> clock, seen = VirtualClock(), TestSubscriber[int]()
    >>> interval(1, clock=clock).skip_with_time(2.5, clock=clock).subscribe(seen)
    >>> clock.advance_by(4)
    >>> seen.items
    [2, 3]

    This is `skip_until_other` with a `timer`.

    Demand: passed on; a dropped item is requested again. Thread: that of the upstream. Fusion:
    none.
    Errors: those of the upstream. RejectedExecutionError if the clock takes no task.

    Args:
        duration: how long, from the subscription on, in seconds, at least 0.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `duration` is not a time, or `clock` is not a clock.
        ValueError: if `duration` is less than 0, or NaN.
    """
    duration_s = checked_delay(duration, "the duration")
    start = timer(duration_s, clock=checked_clock(clock))
    return coordinated(
        "skip_with_time",
        seconds(duration_s),
        lambda flow, downstream, label: SkipUntil(flow, start, downstream, label),
    )


def skip_until_with_time(time: float, *, clock: Clock | None = None) -> Operator[T, Flow[T]]:
    """Send items from when the clock shows a time; drop earlier ones. See `skip_with_time`.

    >>> import flow_core as flow
    >>> list(flow.range(3).skip_until_with_time(flow.system_clock().now() + 60))
    []

    Args:
        time: seconds of the clock, as its `now` returns them. A time in the past means at once.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `time` is not a number, or `clock` is not a clock.
        ValueError: if `time` is less than 0, or NaN.
    """
    start_s = checked_delay(time, "the time")
    start = timer_at(start_s, checked_clock(clock))
    return coordinated(
        "skip_until_with_time",
        seconds(start_s),
        lambda flow, downstream, label: SkipUntil(flow, start, downstream, label),
    )


def skip_last_with_time(duration: Seconds, *, clock: Clock | None = None) -> Operator[T, Flow[T]]:
    """Send all items but those of the last `duration` before the end.

    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> from flow_ops import interval
    >>> clock, seen = VirtualClock(), TestSubscriber[int]()
    >>> interval(1, clock=clock).take(5).skip_last_with_time(1.5, clock=clock).subscribe(seen)
    >>> clock.advance_by(5)
    >>> seen.items
    [0, 1, 2]

    An item is sent as soon as another item, a request or the end comes at least `duration` after
    it.

    Demand: passed on; while there is demand, another item is requested for each item that has to
    wait. So the items of the last `duration` wait. Thread: that of the upstream, or the one that
    requests. Fusion: none.
    Errors: those of the upstream, at once; items that wait are dropped.

    Args:
        duration: how long before the completion of the upstream, in seconds, at least 0.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `duration` is not a time, or `clock` is not a clock.
        ValueError: if `duration` is less than 0, or NaN.
    """
    duration_s = checked_delay(duration, "the duration")
    telling = checked_clock(clock)
    return coordinated(
        "skip_last_with_time",
        seconds(duration_s),
        lambda flow, downstream, label: SkipLast(
            flow, downstream, label, duration_s=duration_s, clock=telling
        ),
    )


@final
class SkipLast(Last[T]):
    """Runs `skip_last_with_time`."""

    __slots__ = ("_youngest_s",)

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        duration_s: float,
        clock: Clock | None,
    ) -> None:
        super().__init__(source, downstream, label, duration_s=duration_s, clock=clock, demand=0)
        self._youngest_s = float("-inf")
        """The time up to which items are old enough to be sent."""

    @override
    def requested(self, n: int) -> None:
        main = self._main
        if main is not None:
            main.request(n)
        self.signal()

    @override
    def step(self) -> None:
        waiting = self._waiting
        if waiting and self.demand and not self._completed:
            self._youngest_s = self._clock.now() - self._duration_s + SLACK_S
        while waiting and self.demand and not self.over and waiting[0][0] <= self._youngest_s:
            self.emit(waiting.popleft()[1])
        if self._completed and not (waiting or self.over):
            self.complete()

    def _on_item(self, item: T) -> bool:
        self._waiting.append((self._clock.now(), item))
        before = self._emitted
        self.step()
        # While there is demand, that many items have to be under way from the source.
        return self._emitted > before or not self.demand

    def _on_completed(self, time_s: float) -> None:
        self._youngest_s = time_s - self._duration_s + SLACK_S
        waiting = self._waiting
        while waiting and waiting[-1][0] > self._youngest_s:
            waiting.pop()
