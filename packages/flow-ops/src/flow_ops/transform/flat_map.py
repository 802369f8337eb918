"""`flat_map`: each item becomes a flow, and these run at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flow_core.conversion import Convertible
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_ops.transform._flat import FlatMap, IterableFlatMap
from flow_ops.transform._mapping import DEFAULT_CONCURRENCY, Limits, mapping_operator

__all__ = ["flat_map"]

T = TypeVar("T")
R = TypeVar("R")


def flat_map(
    mapper: Callable[[T], Convertible[R]],
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[R]]:
    """Each item becomes a flow; the items of all these flows come as they arrive.

    >>> import flow_core as flow
    >>> list(flow.range(3).flat_map(lambda n: flow.range(n).map(lambda m: (n, m))))
    [(1, 0), (2, 0), (2, 1)]

    Demand: exact. `concurrency` items are requested of the upstream, and one more for each inner
    flow that has ended; for those that ended as soon as they were subscribed to, the requests are
    made together, at 75 % of `concurrency`. `prefetch` items are requested of each inner flow, and
    75 % of that again whenever as many were taken. Items that wait for demand come in the order in
    which they arrived. Iteration over synchronous flows takes items one by one.
    Thread: the mapper runs where the upstream's item comes; no other thread waits for the mapper.
    Items come on the threads of the inner flows, one at a time; an item that waited for demand, or
    while another thread's item was sent, comes on whichever thread is at work.
    Fusion: none: an inner flow whose iterator blocks would stop the others. An inner flow that is a
    constant or a function is called where the mapper runs, and not subscribed to. If the upstream
    is a constant or a function, there is no operator at all: the subscription goes to the mapped
    flow.
    Errors: the first one cancels everything else, and overtakes the items that wait.

    Args:
        mapper: called with an item; returns a flow, not None.
        concurrency: how many inner flows run at a time.
        prefetch: items to request of each inner flow ahead, and the most of each that wait.
        delay_error: whether errors (also those of the upstream and of the mapper) come when all
            inner flows have ended; several are raised as an ExceptionGroup. An upstream whose item
            cannot be mapped is cancelled.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if the mapper returns None,
        and with MissingBackpressureError if the upstream or an inner flow sends more than was
        requested.

    Raises:
        TypeError: if `mapper` cannot be called, or a number is not an int.
        ValueError: if `concurrency` or `prefetch` is less than 1.
    """
    iterated = None if delay_error else IterableFlatMap[R]
    limits = Limits(concurrency, prefetch, delay_error)
    return mapping_operator("flat_map", mapper, limits, FlatMap, iterated)
