"""`delay_until`: each item when another flow has completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.sources import from_callable
from flow_core.structure import call_of
from flow_ops.transform._when import deciding

__all__ = ["delay_until"]

T = TypeVar("T")


def delay_until(
    mapper: Callable[[T], Publisher[object]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[T]]:
    """Each item, once the flow that `mapper` returns for it has completed.

    >>> import flow_core as flow
    >>> list(flow.just("a", "b").delay_until(lambda _: flow.range(3)))
    ['a', 'b']

    The items of these flows are dropped. The operator handles one item at a time, in order.

    Demand, thread and fusion are those of `concat_map`; a flow is asked for all of its items.
    Errors: those of the flows, and those that `mapper` raises. The item of a flow that fails is
    dropped.

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
    return deciding("delay_until", mapper, _then, (prefetch, delay_error))


def _then(made: Flow[Any], item: T) -> Flow[T]:  # Any: the items are dropped
    called = call_of(made)
    if called is not None:
        return from_callable(lambda: (called.call(), item)[1])
    return made.ignore_elements().end_with(item)
