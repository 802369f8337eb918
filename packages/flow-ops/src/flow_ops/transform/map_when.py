"""`map_when`: the first item of a flow for each item."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.structure import call_of
from flow_ops.transform._when import deciding

__all__ = ["map_when"]

T = TypeVar("T")
R = TypeVar("R")


def map_when(
    mapper: Callable[[T], Flow[R]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[R]]:
    """The first item of the flow that `mapper` returns for each item: an asynchronous map.

    >>> import flow_core as flow
    >>> list(flow.range(4).map_when(lambda n: flow.range(n, 2 * n).map(lambda m: (n, m))))
    [(1, 1), (2, 2), (3, 3)]

    An item whose flow is empty is dropped. The operator handles one item at a time, in order; a
    flow is cancelled after its first item.

    Demand, thread and fusion are those of `concat_map`.
    Errors: those of the flows, and those that `mapper` raises.

    Args:
        mapper: called with an item; returns a flow, not None.
        prefetch: items to request of an upstream that pushes, and the most that wait.
        delay_error: whether the other items follow when one of these flows has failed; its error
            comes at the end.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if `mapper` returns None.

    Raises:
        TypeError: if `mapper` cannot be called, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    return deciding("map_when", mapper, _first, (prefetch, delay_error))


def _first(made: Flow[R], _: object) -> Flow[R]:
    if call_of(made) is not None:
        return made  # it has at most one item
    return made.take(1)
