"""`and_then`: only the items of another flow, when this one has completed."""

from __future__ import annotations

from typing import Any, TypeVar

from flow_core.assembly import labelled
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.sources import from_publisher
from flow_ops.sequence.concat import concatenated

__all__ = ["and_then"]

R = TypeVar("R")


def and_then(other: Publisher[R]) -> Operator[Any, Flow[R]]:  # Any: these items are never sent
    """Only the items of `other`, after this flow has completed; the items of this flow are ignored.

    >>> import flow_core as flow
    >>> list(flow.range(2).do_on_next(print).and_then(flow.just("done")))
    0
    1
    ['done']

    This is what RxJava calls andThen and Reactor thenMany. To keep the items, use `concat`.

    Demand: exact, for the items of `other`. The first request runs this flow to its end, if this
    flow needs a request.
    Thread, fusion: as with `concat`.
    Errors: if this flow fails, `other` is not started.

    Args:
        other: the flow that follows.

    Raises:
        TypeError: if `other` is not a publisher.
    """
    label = labelled("and_then", "")
    following = from_publisher(other)

    def apply(flow: Flow[Any]) -> Flow[R]:  # Any: see above
        return concatenated(label, (flow.ignore_elements(), following), delay_error=False)

    return Operator("and_then", apply)
