"""`filter_when`: items for which another flow emits something true."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.sources import from_callable
from flow_core.structure import call_of
from flow_ops.transform._when import deciding

__all__ = ["filter_when"]

T = TypeVar("T")


def filter_when(
    predicate: Callable[[T], Flow[bool]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[T]]:
    """Items for which the first item of the flow that `predicate` returns is true.

    >>> import flow_core as flow
    >>> list(flow.range(4).filter_when(lambda n: flow.just(n % 2 == 1)))
    [1, 3]

    An item whose flow is empty is dropped. The operator handles one item at a time, in order; a
    flow is cancelled after its first item.

    Demand, thread and fusion are those of `concat_map`.
    Errors: those of the flows, and those that `predicate` raises.

    Args:
        predicate: called with an item; returns a flow, not None.
        prefetch: items to request of an upstream that pushes, and the most that wait.
        delay_error: whether the other items follow when one of these flows has failed; its error
            comes at the end.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if `predicate` returns None.

    Raises:
        TypeError: if `predicate` cannot be called, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    return deciding("filter_when", predicate, _kept, (prefetch, delay_error))


def _kept(made: Flow[bool], item: T) -> Flow[T]:
    called = call_of(made)
    if called is not None:
        return from_callable(lambda: item if called.call() else None)
    return made.take(1).filter(bool).map(lambda _: item)
