"""`exhaust_map`: each item becomes a flow, except items that come while one runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flow_core.conversion import Convertible
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages import describe
from flow_ops.demand.on_backpressure_drop import on_backpressure_drop
from flow_ops.transform._flat import FlatMap
from flow_ops.transform._mapping import Limits, mapping_operator

__all__ = ["exhaust_map"]

T = TypeVar("T")
R = TypeVar("R")


def exhaust_map(
    mapper: Callable[[T], Convertible[R]], *, delay_error: bool = False
) -> Operator[T, Flow[R]]:
    """Each item becomes a flow; items that come while such a flow runs are dropped.

    >>> import flow_core as flow
    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> clock, seen = VirtualClock(), TestSubscriber()
    >>> clicks = flow.interval(1, clock=clock).take(6)
    >>> clicks.exhaust_map(lambda n: flow.timer(2.5, clock=clock).map(lambda _: n)).subscribe(seen)
    >>> clock.run()
    >>> seen.items
    [0, 3]

    It suits a click that starts something: while that runs, a second click changes nothing. For two
    clicks, `flat_map` would run both flows at once, `concat_map` one after the other, and
    `switch_map` would cancel the first one for the second.

    Demand: everything is requested of the upstream, and 128 items ahead of an inner flow. An inner
    flow counts as running while its items wait.
    Thread: the mapper runs where the upstream's item comes. Fusion: none.
    Errors: the first one cancels everything else. Items that are dropped go to the dropped-items
    hook.

    Args:
        mapper: called with an item; returns a flow, or anything that `flow_core.from_` converts;
            not None.
        delay_error: whether an error of the upstream or of the inner flow comes only when the other
            one has ended.

    Raises:
        TypeError: if `mapper` cannot be called.
    """
    limits = Limits(1, DEFAULT_PREFETCH, delay_error)
    running = mapping_operator("exhaust_map", mapper, limits, FlatMap)
    dropping: Operator[T, Flow[T]] = on_backpressure_drop()
    return Operator(
        "exhaust_map", lambda flow: running.apply(dropping.apply(flow)), describe(mapper)
    )
