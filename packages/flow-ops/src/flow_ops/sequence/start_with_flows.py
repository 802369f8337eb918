"""`start_with_flows`: the items of other flows, then those of this flow."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from flow_core.assembly import labelled
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.sources import from_publisher
from flow_ops.sequence.concat import concatenated, told

__all__ = ["start_with_flows"]

T = TypeVar("T")
D = TypeVar("D")


# See `concat_with` for why there are two. Any: they give its type.


@overload
def start_with_flows(*others: Flow[T], delay_error: bool = ...) -> Operator[T, Flow[T]]: ...


@overload
def start_with_flows(
    *others: Publisher[D], delay_error: bool = ...
) -> Operator[T, Flow[T | D]]: ...


def start_with_flows(
    *others: Publisher[Any], delay_error: bool = False
) -> Operator[Any, Flow[Any]]:
    """The items of the other flows, then those of this flow.

    >>> import flow_core as flow
    >>> list(flow.just("b").start_with_flows(flow.range(2), flow.just("a")))
    [0, 1, 'a', 'b']

    Demand, thread, fusion and errors are those of `concat`. (`Flow.start_with` takes items.)

    Args:
        others: the flows that come first.
        delay_error: see `concat`.

    Raises:
        TypeError: if one of `others` is not a publisher.
    """
    detail = told(others, delay_error)
    label = labelled("start_with_flows", detail)
    before = tuple(from_publisher(other) for other in others)

    def apply(flow: Flow[Any]) -> Flow[Any]:
        return concatenated(label, (*before, flow), delay_error)

    return Operator("start_with_flows", apply, detail)
