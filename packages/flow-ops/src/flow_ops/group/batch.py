"""`batch`: lists of a number of items, or of the items that come within some time."""

from __future__ import annotations

import math
from typing import TypeVar

from flow_core.clocks import Clock, Seconds, check_period
from flow_core.demand import check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_ops.coordination import coordinated
from flow_ops.group._segments import ByFirst, buffers
from flow_ops.group.buffer import MAX_SIZE
from flow_ops.group.window import MAX_WAITING
from flow_ops.time._timed import checked_clock, seconds

__all__ = ["batch"]

T = TypeVar("T")


def batch(
    size: int | None = None, *, within: Seconds | None = None, clock: Clock | None = None
) -> Operator[T, Flow[list[T]]]:
    """Lists of `size` items, or of the items within some seconds of the first one.

    >>> import flow_core as flow
    >>> list(flow.range(5).batch(2))
    [[0, 1], [2, 3], [4]]
    >>> list(flow.range(5).batch(3, within=60))
    [[0, 1, 2], [3, 4]]

    No list is empty: the time starts with an item. The last list is sent when the upstream
    completes.

    Demand: exact. With a time, `size` items are requested of the upstream ahead, or 65,536 without
    a size; the upstream pauses when a full list waits for demand. 128 lists that are not full may
    wait; one more fails the flow with `MissingBackpressureError`.
    Thread: that of the upstream for full lists, the clock's for others.
    Fusion: with a time, ASYNC is granted for the lists that wait, and the upstream is not asked for
    fusion; without a time, the fusion of `buffer_with_count`, which does the work.
    Errors: those of the upstream come at once; items that were not sent are dropped.

    Args:
        size: items in a list, at most; None for any number.
        within: how long after its first item a list is sent, at the latest, in seconds; None for no
            limit.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if neither `size` nor `within` is given, or one of them is of the wrong type; if
            `clock` is not a clock.
        ValueError: if `size` is less than 1, or `within` not above 0 and finite.
    """
    if size is not None:
        check_prefetch(size, "size")
    if within is None:
        if size is None:
            raise TypeError("batch() takes size, within= or both")
        return Operator("batch", lambda flow: flow.buffer_with_count(size), str(size))
    within_s = check_period(within)
    time = checked_clock(clock)
    ahead = MAX_SIZE if size is None else size
    detail = f"within={seconds(within_s)}"
    return coordinated(
        "batch",
        detail if size is None else f"{size}, {detail}",
        lambda flow, downstream, label: ByFirst(
            flow,
            downstream,
            label,
            buffers(),
            count=ahead,
            gap_s=math.inf,
            limit_s=within_s,
            clock=time,
            prefetch=ahead,
            max_waiting=MAX_WAITING,
        ),
        ahead,
    )
