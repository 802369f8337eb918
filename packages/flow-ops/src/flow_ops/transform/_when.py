"""The base of `map_when`, `filter_when` and `delay_until`: another flow decides about each item."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.stages import describe
from flow_ops.coordination import Mapper
from flow_ops.transform.concat_map import concat_mapped

__all__ = ["deciding"]

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")


def deciding(
    name: str,
    mapper: Callable[[T], Publisher[R]],
    decided: Callable[[Flow[R], T], Flow[S]],
    options: tuple[int, bool],
) -> Operator[T, Flow[S]]:
    """Return a `concat_map` over the flows that `decided` makes.

    Args:
        name: the name of the operator.
        mapper: returns a flow for an item.
        decided: called with the mapper's flow and the item; returns the flow whose items are sent.
        options: ``prefetch`` and ``delay_error``, as in `concat_map`.

    Raises:
        TypeError: if `mapper` cannot be called, or the prefetch is not an int.
        ValueError: if the prefetch is less than 1.
    """
    if not callable(mapper):
        raise TypeError(f"{name}() takes a function, not {mapper!r}")
    prefetch, delay_error = options
    detail = describe(mapper)
    check_prefetch(prefetch)
    if prefetch != DEFAULT_PREFETCH:
        detail += f", prefetch={prefetch}"
    if delay_error:
        detail += ", delay_error=True"
    # `flow_of` converts a publisher that is not a flow.
    mapping = Mapper(cast("Callable[[T], Flow[R]]", mapper), labelled(name, detail))

    def decide(item: T) -> Flow[S]:
        flow = mapping.function(item)
        if not isinstance(flow, Flow):
            flow = mapping.flow_of(flow)
        return decided(flow, item)

    return concat_mapped(name, detail, Mapper(decide, mapping.label), prefetch, delay_error)
