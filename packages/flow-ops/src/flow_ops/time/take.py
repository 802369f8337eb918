"""Items within a length of time, at the beginning or before the end."""

from __future__ import annotations

from typing import TypeVar, final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds
from flow_core.demand import UNBOUNDED, check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber
from flow_ops.combine.take_until_other import TakeUntil
from flow_ops.coordination import coordinated
from flow_ops.time._last import Last
from flow_ops.time._timed import SLACK_S, checked_clock, checked_delay, seconds
from flow_ops.time.timer import timer, timer_at

__all__ = [
    "take_last_with_time",
    "take_until_with_time",
    "take_with_time",
]

T = TypeVar("T")


def take_with_time(duration: Seconds, *, clock: Clock | None = None) -> Operator[T, Flow[T]]:
    """Send the items of the first `duration`, then complete.

    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> from flow_ops import interval
    >>> clock, seen = VirtualClock(), TestSubscriber[int]()
    >>> interval(1, clock=clock).take_with_time(2.5, clock=clock).subscribe(seen)
    >>> clock.advance_by(10)
    >>> seen.items, seen.completed
    ([0, 1], True)

    This is `take_until_other` with a `timer`.

    Demand: passed on. Thread: items keep that of the upstream; the end may come on the clock's
    thread.
    Fusion: none.
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
    end = timer(duration_s, clock=checked_clock(clock))
    return coordinated(
        "take_with_time",
        seconds(duration_s),
        lambda flow, downstream, label: TakeUntil(flow, end, downstream, label),
    )


def take_until_with_time(time: float, *, clock: Clock | None = None) -> Operator[T, Flow[T]]:
    """Send items until the clock shows a time, then complete. See `take_with_time`.

    >>> import flow_core as flow
    >>> list(flow.range(3).take_until_with_time(flow.system_clock().now() + 60))
    [0, 1, 2]

    Args:
        time: seconds of the clock, as its `now` returns them. If it has passed, the flow completes
            at once.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `time` is not a number, or `clock` is not a clock.
        ValueError: if `time` is less than 0, or NaN.
    """
    end_s = checked_delay(time, "the time")
    end = timer_at(end_s, checked_clock(clock))
    return coordinated(
        "take_until_with_time",
        seconds(end_s),
        lambda flow, downstream, label: TakeUntil(flow, end, downstream, label),
    )


def take_last_with_time(
    duration: Seconds, *, max_items: int | None = None, clock: Clock | None = None
) -> Operator[T, Flow[T]]:
    """Send the items of the last `duration` before the end.

    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> from flow_ops import interval
    >>> clock, seen = VirtualClock(), TestSubscriber[int]()
    >>> interval(1, clock=clock).take(5).take_last_with_time(1.5, clock=clock).subscribe(seen)
    >>> clock.advance_by(5)
    >>> seen.items
    [3, 4]

    Demand: everything is requested of the upstream; its last items wait for demand. Thread: that of
    the upstream, or the one that requests. Fusion: none.
    Errors: those of the upstream; the items that wait are dropped then.

    Args:
        duration: how long before the completion of the upstream, in seconds, at least 0.
        max_items: the most items that are kept; older ones are left out. If None, all items of that
            time are kept.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if an argument is of a wrong type.
        ValueError: if `duration` is less than 0, or NaN, or `max_items` less than 1.
    """
    duration_s = checked_delay(duration, "the duration")
    telling = checked_clock(clock)
    if max_items is not None:
        check_prefetch(max_items, "max_items")
    return coordinated(
        "take_last_with_time",
        seconds(duration_s) + ("" if max_items is None else f", max_items={max_items}"),
        lambda flow, downstream, label: TakeLast(
            flow, downstream, label, duration_s=duration_s, max_items=max_items, clock=telling
        ),
    )


@final
class TakeLast(Last[T]):
    """Runs `take_last_with_time`."""

    __slots__ = ("_max_items",)

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        duration_s: float,
        max_items: int | None,
        clock: Clock | None,
    ) -> None:
        super().__init__(
            source, downstream, label, duration_s=duration_s, clock=clock, demand=UNBOUNDED
        )
        self._max_items = max_items

    @override
    def step(self) -> None:
        if not self._completed:
            return
        waiting = self._waiting
        while waiting and self.demand and not self.over:
            self.emit(waiting.popleft()[1])
        if not (waiting or self.over):
            self.complete()

    def _on_item(self, item: T) -> bool:
        now_s = self._clock.now()
        waiting = self._waiting
        waiting.append((now_s, item))
        if self._max_items is not None and len(waiting) > self._max_items:
            waiting.popleft()
        self._on_completed(now_s)
        return True

    def _on_completed(self, time_s: float) -> None:
        waiting = self._waiting
        oldest_s = time_s - self._duration_s - SLACK_S
        while waiting and waiting[0][0] < oldest_s:
            waiting.popleft()
