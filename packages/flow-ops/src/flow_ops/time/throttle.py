"""`throttle_first`, `throttle_last` and `throttle_latest`: at most one item in a period."""

from __future__ import annotations

from typing import Final, TypeVar, final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds, check_period
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.operators import stage
from flow_core.protocols import EMPTY, CoreSubscriber, Empty, Publisher
from flow_core.stages import Stage, Template
from flow_ops.coordination import coordinated
from flow_ops.time._timed import SLACK_S, Newest, checked_clock, nothing, seconds, time_of
from flow_ops.time.sample import sample

__all__ = ["throttle_first", "throttle_last", "throttle_latest"]

T = TypeVar("T")


def throttle_first(period: Seconds, *, clock: Clock | None = None) -> Operator[T, Flow[T]]:
    """Send an item, then none for a period; items that come meanwhile are left out.

    >>> import flow_core as flow
    >>> list(flow.range(100).throttle_first(60))
    [0]

    This is a `filter` that looks at the clock.

    Demand: passed on; an item that is left out is requested again. Thread: that of the upstream; no
    timer runs. Fusion: that of `filter`.
    Errors: those of the upstream.

    Args:
        period: how long from an item that is sent to the next one, in seconds, above 0.
        clock: the clock of the operator; None for that of the process.

    Raises:
        TypeError: if `period` is not a time, or `clock` is not a clock.
        ValueError: if `period` is not above 0 and finite.
    """
    return stage(Stage(_THROTTLE_FIRST, check_period(period), time_of(clock)))


_THROTTLE_FIRST: Final = Template(
    "throttle_first",
    params=("period_s", "now"),
    state="opens_s = float('-inf')",
    on_item=f"""
    time_s = now()
    if opens_s - time_s <= {SLACK_S}:
        opens_s = time_s + period_s
        EMIT
    """,
    ordered=True,
)


def throttle_last(
    sampler: Seconds | Publisher[object],
    *,
    emit_last: bool = False,
    clock: Clock | None = None,
) -> Operator[T, Flow[T]]:
    """Send the newest item of each period, if there is a new one: another name of `sample`.

    >>> import flow_core as flow
    >>> list(flow.range(100).throttle_last(60, emit_last=True))
    [99]

    Demand, thread, fusion and errors are those of `sample`.

    Args:
        sampler: how long a period is, in seconds, above 0; or a flow: each of its items ends a
            period.
        emit_last: whether the end of the flow ends a period, too.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `sampler` is neither a time nor a flow, or `clock` is not a clock.
        ValueError: if the period is not above 0 and finite.
    """
    return sample(sampler, emit_last=emit_last, clock=clock)


def throttle_latest(
    period: Seconds, *, emit_last: bool = False, clock: Clock | None = None
) -> Operator[T, Flow[T]]:
    """Send an item at once, then the newest one of each period, if there is a new one.

    >>> import flow_core as flow
    >>> list(flow.range(100).throttle_latest(60, emit_last=True))
    [0, 99]

    A period begins with each item that is sent. If no item comes in a period, the next item is sent
    at once.

    Demand: everything is requested of the upstream. An item that is due when there is no demand
    waits for a request; if another item is due before the request, it replaces the waiting one,
    which goes to the dropped-items hook. The flow completes once the item that waits was sent.
    Thread: that of the upstream or the clock's; an item that waited comes on the thread that
    requests. Fusion: none.
    Errors: those of the upstream, at once: they overtake an item that waits.

    Args:
        period: how long between two items, in seconds, above 0.
        emit_last: whether the newest item of the last period is sent when the flow ends within that
            period.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `period` is not a time, or `clock` is not a clock.
        ValueError: if `period` is not above 0 and finite.
    """
    period_s = check_period(period)
    telling = checked_clock(clock)
    return coordinated(
        "throttle_latest",
        seconds(period_s),
        lambda flow, downstream, label: ThrottleLatest(
            flow, downstream, label, period_s=period_s, clock=telling, emit_last=emit_last
        ),
    )


@final
class ThrottleLatest(Newest[T, None]):
    """Runs `throttle_latest`."""

    __slots__ = ("_emit_last", "_in_period", "_newest", "_period_s", "_source")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        period_s: float,
        clock: Clock | None,
        emit_last: bool,
    ) -> None:
        super().__init__(downstream, label, clock, nothing)
        self._source = source
        self._period_s = period_s
        self._emit_last = emit_last
        self._newest: T | Empty = EMPTY
        self._in_period = False

    @override
    def open(self) -> None:
        main = self._main
        if main is not None:
            self.connect(self._source, main)

    @override
    def arrived(self, item: T, made: None) -> None:
        if self._in_period:
            self._newest = item
        else:
            self._begin(item)

    @override
    def wake(self) -> None:
        newest, self._newest = self._newest, EMPTY
        if newest is EMPTY:
            self._in_period = False
        else:
            self._begin(newest)

    @override
    def last(self) -> None:
        newest, self._newest = self._newest, EMPTY
        if self._emit_last and newest is not EMPTY:
            self.give(newest)

    @override
    def closed(self) -> None:
        super().closed()
        self._newest = EMPTY

    def _begin(self, item: T) -> None:
        self._in_period = True
        self.wake_in(self._period_s)
        self.give(item)
