"""`window_*`: neighbouring items as flows.

All of them have this in common. A window is a flow for one subscriber, which may come late; a
second one gets `ProtocolViolationError`. When a window is cancelled, its further items are dropped.
When the flow of windows is cancelled, windows that have a subscriber continue to their end, and the
upstream is cancelled when no window with a subscriber is open; items that wait in windows without a
subscriber are dropped.

Demand is exact, for windows and for the items of each. `prefetch` items are requested; for each
item that the subscribers of all its windows have consumed (or dropped, by a cancel), another one is
requested. So at most `prefetch` items wait. Flows that begin or end windows are asked for one item
at a time.

When there is no reference to a window any more, the window stays open, and its items are dropped.
`Standstill` says when a flow fails because its windows are kept and not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flow_core.clocks import Clock, Seconds, check_period
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.stages import describe
from flow_ops.coordination import coordinated
from flow_ops.group._segments import (
    ByBoundary,
    ByCount,
    ByTime,
    ByTimeOrCount,
    ByToggle,
    When,
    windows,
)
from flow_ops.time._timed import checked_clock, seconds

__all__ = [
    "window_boundary",
    "window_toggle",
    "window_when",
    "window_with_count",
    "window_with_time",
    "window_with_time_or_count",
]

T = TypeVar("T")
W = TypeVar("W")

MAX_WAITING = 128
"""The number of windows or buffers that may wait for demand, unless the user sets it."""


def window_with_count(
    count: int, skip: int | None = None, *, prefetch: int = DEFAULT_PREFETCH
) -> Operator[T, Flow[Flow[T]]]:
    """Windows of `count` items each; the last one may have fewer.

    >>> import flow_core as flow
    >>> list(flow.range(5).window_with_count(2).concat_map(lambda w: w.to_list()))
    [[0, 1], [2, 3], [4]]

    A window begins with its first item, and ends with its last one.

    When there is no reference to a window any more, its items are dropped. When there are
    references to windows that are not read, these windows hold all of the prefetch, and nothing has
    moved for a second, the flow fails with `MissingBackpressureError`.

    Demand: see `flow_ops.group.window`. Windows wait for demand, and their items with them.
    Thread: that of the upstream; an item that waited comes on the thread that requests it.
    Fusion: the flow of windows and each window grant ASYNC; the upstream is not asked for fusion.
    Errors: those of the upstream end the open windows, after the items that wait, and the flow of
    windows at once: windows that wait for demand are dropped.

    Args:
        count: items in a window.
        skip: the number of items from the first item of a window to the first item of the next
            window: fewer than `count` make windows overlap, more leave items out; `count` by
            default.
        prefetch: items to request ahead, and the most that wait in all windows together.

    Raises:
        TypeError: if a number is not an int.
        ValueError: if a number is less than 1.
    """
    check_prefetch(count, "count")
    distance = count if skip is None else check_prefetch(skip, "skip")
    check_prefetch(prefetch)
    detail = str(count) if skip is None else f"{count}, {skip}"
    return coordinated(
        "window_with_count",
        detail,
        lambda flow, downstream, label: ByCount(
            flow, downstream, label, windows(), count=count, skip=distance, prefetch=prefetch
        ),
        prefetch,
    )


def window_with_time(
    period: Seconds,
    shift: Seconds | None = None,
    *,
    clock: Clock | None = None,
    prefetch: int = DEFAULT_PREFETCH,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[Flow[T]]]:
    """Windows of a length of time. The first one begins at once.

    >>> import flow_core as flow
    >>> list(flow.range(3).window_with_time(60).concat_map(lambda w: w.to_list()))
    [[0, 1, 2]]

    When there is no reference to a window any more, its items are dropped. When there are
    references to windows that are not read, these windows hold all of the prefetch, and nothing has
    moved for a second, the flow fails with `MissingBackpressureError`.

    Demand: see `flow_ops.group.window`. Time does not wait for demand; up to `max_waiting` windows
    do.
    Thread: that of the upstream for items; windows begin and end on the clock's.
    Fusion: the flow of windows and each window grant ASYNC; the upstream is not asked for fusion.
    Errors: those of the upstream end the open windows, after the items that wait, and the flow of
    windows at once: windows that wait for demand are dropped. `MissingBackpressureError` if a
    window begins while `max_waiting` windows wait for demand.

    Args:
        period: how long from the beginning of a window to its end, in seconds.
        shift: how long from the beginning of one window to that of the next, in seconds: less than
            `period` makes windows overlap, more leaves items out; `period` by default.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.
        prefetch: items to request ahead, and the most that wait in all windows together.
        max_waiting: how many windows may wait for demand.

    Raises:
        TypeError: if a number is of the wrong type, or `clock` is not a clock.
        ValueError: if a time is not above 0 and finite, or another number is less than 1.
    """
    period_s = check_period(period)
    distance = period_s if shift is None else check_period(shift)
    time = checked_clock(clock)
    check_prefetch(prefetch)
    check_prefetch(max_waiting, "max_waiting")
    detail = seconds(period_s) if shift is None else f"{seconds(period_s)}, {seconds(distance)}"
    return coordinated(
        "window_with_time",
        detail,
        lambda flow, downstream, label: ByTime(
            flow,
            downstream,
            label,
            windows(),
            period_s=period_s,
            shift_s=distance,
            clock=time,
            prefetch=prefetch,
            max_waiting=max_waiting,
        ),
        prefetch,
    )


def window_with_time_or_count(
    period: Seconds,
    count: int,
    *,
    clock: Clock | None = None,
    prefetch: int = DEFAULT_PREFETCH,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[Flow[T]]]:
    """Windows that end when they have `count` items, or after a time. The first begins at once.

    >>> import flow_core as flow
    >>> pairs = flow.range(3).window_with_time_or_count(60, 2)
    >>> list(pairs.concat_map(lambda window: window.to_list()))
    [[0, 1], [2]]

    The next window begins when one ends, and a new period begins with it. A window that was
    cancelled gets no items, and ends when its time has passed.

    When there is no reference to a window any more, its items are dropped. When there are
    references to windows that are not read, these windows hold all of the prefetch, and nothing has
    moved for a second, the flow fails with `MissingBackpressureError`.

    Demand: see `flow_ops.group.window`. Full windows wait for demand, with their items. Time does
    not wait: when a window's time has passed, at most `max_waiting` windows may wait.
    Thread: that of the upstream for items; windows begin and end on that thread and on the clock's.
    Fusion: the flow of windows and each window grant ASYNC; the upstream is not asked for fusion.
    Errors: as with `window_with_time`.

    Args:
        period: how long from the beginning of a window to its end, in seconds.
        count: items in a window, at most.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.
        prefetch: items to request ahead, and the most that wait in all windows together.
        max_waiting: how many windows may wait for demand.

    Raises:
        TypeError: if a number is of the wrong type, or `clock` is not a clock.
        ValueError: if the time is not above 0 and finite, or another number is less than 1.
    """
    period_s = check_period(period)
    check_prefetch(count, "count")
    time = checked_clock(clock)
    check_prefetch(prefetch)
    check_prefetch(max_waiting, "max_waiting")
    return coordinated(
        "window_with_time_or_count",
        f"{seconds(period_s)}, {count}",
        lambda flow, downstream, label: ByTimeOrCount(
            flow,
            downstream,
            label,
            windows(),
            period_s=period_s,
            count=count,
            clock=time,
            prefetch=prefetch,
            max_waiting=max_waiting,
        ),
        prefetch,
    )


def window_boundary(
    boundary: Publisher[object],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[Flow[T]]]:
    """Windows between the items of another flow. The first one begins at once.

    >>> import flow_core as flow
    >>> whole = flow.range(3).window_boundary(flow.never())
    >>> list(whole.concat_map(lambda window: window.to_list()))
    [[0, 1, 2]]

    When `boundary` completes, the last window and the flow of windows complete, too.

    When there is no reference to a window any more, its items are dropped. When there are
    references to windows that are not read, these windows hold all of the prefetch, and nothing has
    moved for a second, the flow fails with `MissingBackpressureError`.

    Demand: see `flow_ops.group.window`. A boundary does not wait for demand; up to `max_waiting`
    windows do. `boundary` is subscribed before the upstream.
    Thread: that of the upstream for items; windows begin and end on that of `boundary`.
    Fusion: the flow of windows and each window grant ASYNC; no flow is asked for fusion.
    Errors: those of both flows end the open window, after the items that wait, and the flow of
    windows at once: windows that wait for demand are dropped. `MissingBackpressureError` if a
    window begins while `max_waiting` windows wait for demand.

    Args:
        boundary: each of its items ends a window and begins the next one.
        prefetch: items to request ahead, and the most that wait in all windows together.
        max_waiting: how many windows may wait for demand.

    Raises:
        TypeError: if `boundary` is not a publisher, or a number is not an int.
        ValueError: if a number is less than 1.
    """
    check_publisher("window_boundary", boundary)
    check_prefetch(prefetch)
    check_prefetch(max_waiting, "max_waiting")
    return coordinated(
        "window_boundary",
        describe(boundary),
        lambda flow, downstream, label: ByBoundary(
            flow,
            downstream,
            label,
            windows(),
            boundary=boundary,
            prefetch=prefetch,
            max_waiting=max_waiting,
        ),
        prefetch,
    )


def window_toggle(
    openings: Publisher[W],
    closing_mapper: Callable[[W], Publisher[object]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[Flow[T]]]:
    """Windows that begin with items of another flow, each with a flow that ends it.

    >>> import flow_core as flow
    >>> two = flow.range(3).window_toggle(flow.just(1, 2), lambda _: flow.never())
    >>> seen = [list(window) for window in two.to_list().single()]
    >>> seen
    [[0, 1, 2], [0, 1, 2]]

    Windows may overlap; items that come when no window is open are left out. When `openings` has
    completed and no window is open, the flow of windows completes.

    When there is no reference to a window any more, its items are dropped. When there are
    references to windows that are not read, these windows hold all of the prefetch, and nothing has
    moved for a second, the flow fails with `MissingBackpressureError`.

    Demand: see `flow_ops.group.window`. Openings do not wait for demand; up to `max_waiting`
    windows do. `openings` is subscribed before the upstream.
    Thread: that of the upstream for items; windows begin and end on those of the other flows, where
    `closing_mapper` is called, too: one call at a time.
    Fusion: the flow of windows and each window grant ASYNC; no flow is asked for fusion.
    Errors: those of all flows and of `closing_mapper` end the open windows, after the items that
    wait, and the flow of windows at once: windows that wait for demand are dropped.
    `MissingBackpressureError` if a window begins while `max_waiting` windows wait for demand.

    Args:
        openings: each of its items begins a window.
        closing_mapper: called with that item; returns the flow whose first item or completion ends
            the window.
        prefetch: items to request ahead, and the most that wait in all windows together.
        max_waiting: how many windows may wait for demand.

    Raises:
        TypeError: if `openings` is not a publisher, `closing_mapper` cannot be called, or a number
            is not an int.
        ValueError: if a number is less than 1.
    """
    check_publisher("window_toggle", openings)
    check_function("window_toggle", closing_mapper)
    check_prefetch(prefetch)
    check_prefetch(max_waiting, "max_waiting")
    return coordinated(
        "window_toggle",
        f"{describe(openings)}, {describe(closing_mapper)}",
        lambda flow, downstream, label: ByToggle(
            flow,
            downstream,
            label,
            windows(),
            openings=openings,
            closing=closing_mapper,
            prefetch=prefetch,
            max_waiting=max_waiting,
        ),
        prefetch,
    )


def window_when(
    closing_supplier: Callable[[], Publisher[object]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    max_waiting: int = MAX_WAITING,
) -> Operator[T, Flow[Flow[T]]]:
    """Windows that each end with the first item, or the completion, of another flow.

    >>> import flow_core as flow
    >>> whole = flow.range(3).window_when(flow.never)
    >>> list(whole.concat_map(lambda window: window.to_list()))
    [[0, 1, 2]]

    The first window begins at once, and each further window when the one before it ends.

    When there is no reference to a window any more, its items are dropped. When there are
    references to windows that are not read, these windows hold all of the prefetch, and nothing has
    moved for a second, the flow fails with `MissingBackpressureError`.

    Demand: see `flow_ops.group.window`. The flows that end windows do not wait for demand; up to
    `max_waiting` windows do.
    Thread: that of the upstream for items; windows begin and end on those of the flows that end
    them, where `closing_supplier` is called, too.
    Fusion: the flow of windows and each window grant ASYNC; no flow is asked for fusion.
    Errors: as with `window_toggle`.

    Args:
        closing_supplier: returns the flow that ends a window; called when the window begins.
        prefetch: items to request ahead, and the most that wait in all windows together.
        max_waiting: how many windows may wait for demand.

    Raises:
        TypeError: if `closing_supplier` cannot be called, or a number is not an int.
        ValueError: if a number is less than 1.
    """
    check_function("window_when", closing_supplier)
    check_prefetch(prefetch)
    check_prefetch(max_waiting, "max_waiting")
    return coordinated(
        "window_when",
        describe(closing_supplier),
        lambda flow, downstream, label: When(
            flow,
            downstream,
            label,
            windows(),
            closing=closing_supplier,
            prefetch=prefetch,
            max_waiting=max_waiting,
        ),
        prefetch,
    )


def check_publisher(name: str, publisher: object) -> None:
    """Raise TypeError unless `publisher` is a publisher."""
    if not hasattr(publisher, "subscribe"):
        raise TypeError(f"{name}() takes a Flow, not {publisher!r}")


def check_function(name: str, function: Callable[..., Any]) -> None:  # Any: not called here
    """Raise TypeError unless `function` can be called."""
    if not callable(function):
        raise TypeError(f"{name}() takes a function that makes a Flow, not {function!r}")
