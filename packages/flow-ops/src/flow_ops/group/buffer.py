"""`buffer_*`: neighbouring items as lists, split by a clock or another flow.

(`Flow.buffer_with_count`, `buffer_until` and others, which need neither, are stages of the core.)

All of them have this in common. Demand is exact. At most `max_size` items are kept, in the buffer
that is open and in the buffers that wait for demand: that many are requested of the upstream, and
for each item that has been sent, another one is requested. So the upstream pauses when a buffer has
`max_size` items, until that buffer is closed and sent. Time and other flows do not wait for demand;
buffers do, up to `max_waiting` of them, and one more fails the flow with
`MissingBackpressureError`. Flows that begin or end buffers are asked for one item at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flow_core.clocks import Clock, Seconds, check_period
from flow_core.demand import check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.stages import describe
from flow_ops.coordination import coordinated
from flow_ops.group._segments import ByBoundary, ByTime, ByTimeOrCount, ByToggle, When, buffers
from flow_ops.group.window import MAX_WAITING, check_function, check_publisher
from flow_ops.time._timed import checked_clock, seconds

__all__ = [
    "buffer_boundary",
    "buffer_toggle",
    "buffer_when",
    "buffer_with_time",
    "buffer_with_time_or_count",
]

T = TypeVar("T")
W = TypeVar("W")

MAX_SIZE = 65_536
"""The number of items that are kept, unless the user sets it."""


def buffer_with_time(
    period: Seconds,
    shift: Seconds | None = None,
    *,
    empty: bool = False,
    clock: Clock | None = None,
    max_size: int = MAX_SIZE,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[list[T]]]:
    """Lists of the items that come within a length of time.

    >>> import flow_core as flow
    >>> list(flow.range(3).buffer_with_time(60))
    [[0, 1, 2]]

    The last list is sent when the upstream completes, if it has items. A period without items adds
    no list, unless `empty` is true.

    Demand: see `flow_ops.group.buffer`.
    Thread: the clock's; the last lists come on that of the upstream.
    Fusion: grants ASYNC, for the buffers that wait; the upstream is not asked for fusion.
    Errors: those of the upstream come at once; buffers that are open or wait for demand are
    dropped.

    Args:
        period: how long from the beginning of a buffer to its end, in seconds.
        shift: how long from the beginning of one buffer to that of the next, in seconds: less than
            `period` makes buffers overlap, more leaves items out; `period` by default.
        empty: whether there are lists without items, too.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.
        max_size: items to request ahead, and the most that are kept.
        max_waiting: how many buffers may wait for demand.

    Raises:
        TypeError: if a number is of the wrong type, or `clock` is not a clock.
        ValueError: if a time is not above 0 and finite, or another number is less than 1.
    """
    period_s = check_period(period)
    distance = period_s if shift is None else check_period(shift)
    time = checked_clock(clock)
    check_prefetch(max_size, "max_size")
    check_prefetch(max_waiting, "max_waiting")
    detail = seconds(period_s) if shift is None else f"{seconds(period_s)}, {seconds(distance)}"
    return coordinated(
        "buffer_with_time",
        detail,
        lambda flow, downstream, label: ByTime(
            flow,
            downstream,
            label,
            buffers(empty=empty),
            period_s=period_s,
            shift_s=distance,
            clock=time,
            prefetch=max_size,
            max_waiting=max_waiting,
        ),
        max_size,
    )


def buffer_with_time_or_count(
    period: Seconds,
    count: int,
    *,
    empty: bool = False,
    clock: Clock | None = None,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[list[T]]]:
    """Lists of `count` items, or of the items that have come when a length of time has passed.

    >>> import flow_core as flow
    >>> list(flow.range(5).buffer_with_time_or_count(60, 2))
    [[0, 1], [2, 3], [4]]

    A new period begins with each buffer. The last list is sent when the upstream completes, if it
    has items. A period without items adds no list, unless `empty` is true. (`batch` suits most uses
    better: there, the time runs from the first item of a list.)

    Demand: see `flow_ops.group.buffer`; `max_size` is `count`, so that the upstream pauses when a
    full buffer waits.
    Thread: that of the upstream for full lists, the clock's for others.
    Fusion: grants ASYNC, for the buffers that wait; the upstream is not asked for fusion.
    Errors: as with `buffer_with_time`.

    Args:
        period: how long from the beginning of a buffer to its end, in seconds.
        count: items in a buffer, at most.
        empty: whether there are lists without items, too.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.
        max_waiting: how many buffers may wait for demand.

    Raises:
        TypeError: if a number is of the wrong type, or `clock` is not a clock.
        ValueError: if the time is not above 0 and finite, or another number is less than 1.
    """
    period_s = check_period(period)
    check_prefetch(count, "count")
    time = checked_clock(clock)
    check_prefetch(max_waiting, "max_waiting")
    return coordinated(
        "buffer_with_time_or_count",
        f"{seconds(period_s)}, {count}",
        lambda flow, downstream, label: ByTimeOrCount(
            flow,
            downstream,
            label,
            buffers(empty=empty),
            period_s=period_s,
            count=count,
            clock=time,
            prefetch=count,
            max_waiting=max_waiting,
        ),
        count,
    )


def buffer_boundary(
    boundary: Publisher[object],
    *,
    max_size: int = MAX_SIZE,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[list[T]]]:
    """Lists of the items that come between the items of another flow; they may be empty.

    >>> import flow_core as flow
    >>> list(flow.range(3).buffer_boundary(flow.never()))
    [[0, 1, 2]]

    When the upstream or `boundary` completes, the last list is sent, if it has items; then the flow
    completes.

    Demand: see `flow_ops.group.buffer`. `boundary` is subscribed before the upstream.
    Thread: that of `boundary`; the last list comes on that of the flow that completes.
    Fusion: grants ASYNC, for the buffers that wait; no flow is asked for fusion.
    Errors: those of both flows come at once; buffers that are open or wait for demand are dropped.

    Args:
        boundary: each of its items ends a buffer and begins the next one.
        max_size: items to request ahead, and the most that are kept.
        max_waiting: how many buffers may wait for demand.

    Raises:
        TypeError: if `boundary` is not a publisher, or a number is not an int.
        ValueError: if a number is less than 1.
    """
    check_publisher("buffer_boundary", boundary)
    check_prefetch(max_size, "max_size")
    check_prefetch(max_waiting, "max_waiting")
    return coordinated(
        "buffer_boundary",
        describe(boundary),
        lambda flow, downstream, label: ByBoundary(
            flow,
            downstream,
            label,
            buffers(),
            boundary=boundary,
            prefetch=max_size,
            max_waiting=max_waiting,
        ),
        max_size,
    )


def buffer_toggle(
    openings: Publisher[W],
    closing_mapper: Callable[[W], Publisher[object]],
    *,
    max_size: int = MAX_SIZE,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[list[T]]]:
    """Lists that begin with items of another flow, each with a flow that ends it.

    >>> import flow_core as flow
    >>> list(flow.range(3).buffer_toggle(flow.just(1, 2), lambda _: flow.never()))
    [[0, 1, 2], [0, 1, 2]]

    Buffers may overlap; items that come when no buffer is open are left out. Open buffers are sent
    when the upstream completes, if they have items. When `openings` has completed and no buffer is
    open, the flow completes.

    Demand: see `flow_ops.group.buffer`. `openings` is subscribed before the upstream.
    Thread: those of the flows that end buffers; `closing_mapper` is called where openings come, one
    call at a time. The last lists come on that of the upstream.
    Fusion: grants ASYNC, for the buffers that wait; no flow is asked for fusion.
    Errors: those of all flows and of `closing_mapper` come at once; buffers that are open or wait
    for demand are dropped.

    Args:
        openings: each of its items begins a buffer.
        closing_mapper: called with that item; returns the flow whose first item or completion ends
            the buffer.
        max_size: items to request ahead, and the most that are kept.
        max_waiting: how many buffers may wait for demand.

    Raises:
        TypeError: if `openings` is not a publisher, `closing_mapper` cannot be called, or a number
            is not an int.
        ValueError: if a number is less than 1.
    """
    check_publisher("buffer_toggle", openings)
    check_function("buffer_toggle", closing_mapper)
    check_prefetch(max_size, "max_size")
    check_prefetch(max_waiting, "max_waiting")
    return coordinated(
        "buffer_toggle",
        f"{describe(openings)}, {describe(closing_mapper)}",
        lambda flow, downstream, label: ByToggle(
            flow,
            downstream,
            label,
            buffers(),
            openings=openings,
            closing=closing_mapper,
            prefetch=max_size,
            max_waiting=max_waiting,
        ),
        max_size,
    )


def buffer_when(
    closing_supplier: Callable[[], Publisher[object]],
    *,
    max_size: int = MAX_SIZE,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[list[T]]]:
    """Lists that each end with the first item, or the completion, of another flow.

    >>> import flow_core as flow
    >>> list(flow.range(3).buffer_when(flow.never))
    [[0, 1, 2]]

    The first list begins at once, and each further list when the one before it ends. Lists may be
    empty; the last one is sent when the upstream completes, if it has items.

    Demand: see `flow_ops.group.buffer`.
    Thread: those of the flows that end buffers, where `closing_supplier` is called, too; the last
    list comes on that of the upstream.
    Fusion: grants ASYNC, for the buffers that wait; no flow is asked for fusion.
    Errors: as with `buffer_toggle`.

    Args:
        closing_supplier: returns the flow that ends a buffer; called when the buffer begins.
        max_size: items to request ahead, and the most that are kept.
        max_waiting: how many buffers may wait for demand.

    Raises:
        TypeError: if `closing_supplier` cannot be called, or a number is not an int.
        ValueError: if a number is less than 1.
    """
    check_function("buffer_when", closing_supplier)
    check_prefetch(max_size, "max_size")
    check_prefetch(max_waiting, "max_waiting")
    return coordinated(
        "buffer_when",
        describe(closing_supplier),
        lambda flow, downstream, label: When(
            flow,
            downstream,
            label,
            buffers(),
            closing=closing_supplier,
            prefetch=max_size,
            max_waiting=max_waiting,
        ),
        max_size,
    )
