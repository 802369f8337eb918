"""`session_window`, `session_buffer`: items without a long pause between them."""

from __future__ import annotations

import math
from typing import TypeVar

from flow_core.clocks import Clock, Seconds, check_period
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_ops.coordination import coordinated
from flow_ops.group._segments import ByFirst, buffers, windows
from flow_ops.group.buffer import MAX_SIZE
from flow_ops.group.window import MAX_WAITING
from flow_ops.time._timed import checked_clock, seconds

__all__ = ["session_buffer", "session_window"]

T = TypeVar("T")


def session_window(
    gap: Seconds, *, limit: Seconds | None = None, clock: Clock | None = None
) -> Operator[T, Flow[Flow[T]]]:
    """Windows that begin with an item, and end when no item has come for `gap` seconds.

    >>> import flow_core as flow
    >>> from flow_testing import VirtualClock
    >>> clock, seen = VirtualClock(), []
    >>> times = flow.just(1, 2, 3, 10, 11)
    >>> clicks = times.flat_map(lambda n: flow.timer(n, clock=clock).map(lambda _: n))
    >>> sessions = clicks.session_window(5, clock=clock).flat_map(lambda window: window.count())
    >>> handle = sessions.subscribe(seen.append)
    >>> clock.run()
    >>> seen
    [3, 2]

    No window is empty. With a `limit`, a window ends that long after its first item at the latest;
    the next item begins another window. When the subscriber of a window cancels, the other items of
    the session are dropped.

    When there is no reference to a window any more, its items are dropped. When there are
    references to windows that are not read, these windows hold all of the prefetch, and nothing has
    moved for a second, the flow fails with `MissingBackpressureError`.

    Demand: see `flow_ops.group.window`: 128 items are requested ahead, and 128 windows may wait for
    demand.
    Thread: that of the upstream for items; windows begin on that thread, and end on the clock's.
    Fusion: the flow of windows and each window grant ASYNC; the upstream is not asked for fusion.
    Errors: as with `window_with_time`.

    Args:
        gap: the length of the pause without items, in seconds, that ends a window.
        limit: how long a window lasts at most, in seconds; None for any length of time.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if a time is of the wrong type, or `clock` is not a clock.
        ValueError: if a time is not above 0 and finite.
    """
    gap_s, limit_s, detail = _times(gap, limit)
    time = checked_clock(clock)
    return coordinated(
        "session_window",
        detail,
        lambda flow, downstream, label: ByFirst(
            flow,
            downstream,
            label,
            windows(),
            count=None,
            gap_s=gap_s,
            limit_s=limit_s,
            clock=time,
            prefetch=DEFAULT_PREFETCH,
            max_waiting=MAX_WAITING,
        ),
        DEFAULT_PREFETCH,
    )


def session_buffer(
    gap: Seconds, *, limit: Seconds | None = None, clock: Clock | None = None
) -> Operator[T, Flow[list[T]]]:
    """Lists of items that come with less than `gap` seconds between two neighbours.

    >>> import flow_core as flow
    >>> list(flow.range(3).session_buffer(60))
    [[0, 1, 2]]

    No list is empty. With a `limit`, a list is sent that long after its first item at the latest,
    and a list of 65,536 items is sent at once.

    Demand: exact; 65,536 items are requested of the upstream ahead, and 128 lists may wait for
    demand: one more fails the flow with `MissingBackpressureError`.
    Thread: the clock's; the last list comes on that of the upstream.
    Fusion: grants ASYNC, for the lists that wait; the upstream is not asked for fusion.
    Errors: those of the upstream come at once; items that were not sent are dropped.

    Args:
        gap: the length of the pause without items, in seconds, after which a list is sent.
        limit: how long a list is filled at most, in seconds; None for any length of time.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if a time is of the wrong type, or `clock` is not a clock.
        ValueError: if a time is not above 0 and finite.
    """
    gap_s, limit_s, detail = _times(gap, limit)
    time = checked_clock(clock)
    return coordinated(
        "session_buffer",
        detail,
        lambda flow, downstream, label: ByFirst(
            flow,
            downstream,
            label,
            buffers(),
            count=MAX_SIZE,
            gap_s=gap_s,
            limit_s=limit_s,
            clock=time,
            prefetch=MAX_SIZE,
            max_waiting=MAX_WAITING,
        ),
        MAX_SIZE,
    )


def _times(gap: Seconds, limit: Seconds | None) -> tuple[float, float, str]:
    gap_s = check_period(gap)
    if limit is None:
        return gap_s, math.inf, seconds(gap_s)
    limit_s = check_period(limit)
    return gap_s, limit_s, f"{seconds(gap_s)}, limit={seconds(limit_s)}"
