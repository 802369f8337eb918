"""`concat_all`: the flows in a flow follow one another."""

from __future__ import annotations

from typing import TypeVar

from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_ops.coordination import Mapper, itself
from flow_ops.transform.concat_map import concat_mapped

__all__ = ["concat_all"]

T = TypeVar("T")


def concat_all(
    *, prefetch: int = DEFAULT_PREFETCH, delay_error: bool = False
) -> Operator[Flow[T], Flow[T]]:
    """The items of the flows that come as items, one flow after the other.

    >>> import flow_core as flow
    >>> list(flow.just(flow.range(2), flow.just(7)).concat_all())
    [0, 1, 7]

    Demand, thread, iteration, fusion and errors are those of `concat_map`.

    Args:
        prefetch: flows to request ahead of an upstream that pushes, and the most that wait.
        delay_error: whether the other flows still follow when a flow fails; its error comes at the
            end, several errors as an ExceptionGroup.

    Raises:
        TypeError: if `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    check_prefetch(prefetch)
    detail = "" if prefetch == DEFAULT_PREFETCH else f"prefetch={prefetch}"
    if delay_error:
        detail += f"{', ' * bool(detail)}delay_error=True"
    mapping: Mapper[Flow[T], T] = Mapper(itself, labelled("concat_all", detail))
    return concat_mapped("concat_all", detail, mapping, prefetch, delay_error)
