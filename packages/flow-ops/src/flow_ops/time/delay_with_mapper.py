"""`delay_with_mapper`: each item waits for another flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flow_core.assembly import labelled
from flow_core.demand import check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.sources import from_publisher
from flow_core.stages import describe
from flow_ops.coordination import Mapper
from flow_ops.transform.flat_map import flat_map

__all__ = ["delay_with_mapper"]

T = TypeVar("T")


def delay_with_mapper(
    mapper: Callable[[T], Flow[object]], *, concurrency: int = 128
) -> Operator[T, Flow[T]]:
    """Send each item when the flow that `mapper` returns for it emits an item or completes.

    >>> import flow_core as flow
    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> clock, seen = VirtualClock(), TestSubscriber[int]()
    >>> flow.just(3, 2).delay_with_mapper(lambda n: flow.timer(n, clock=clock)).subscribe(seen)
    >>> clock.advance_by(10)
    >>> seen.items
    [2, 3]

    This is a `flat_map` whose inner flows only mark a moment, by their first item or completion. It
    has the demand, threads and fusion of `flat_map`. Items need not keep their order.
    Errors: those of the upstream, of `mapper` and of its flows; the first one ends the flow.

    Args:
        mapper: returns a flow for an item.
        concurrency: how many items may wait for their flows.

    Raises:
        TypeError: if `mapper` cannot be called, or `concurrency` is not an int.
        ValueError: if `concurrency` is less than 1.
    """
    if not callable(mapper):
        raise TypeError(
            f"delay_with_mapper() takes a function from an item to a flow, not {mapper!r}"
        )
    check_prefetch(concurrency, "concurrency")
    detail = describe(mapper)
    mapping = Mapper[T, object](mapper, labelled("delay_with_mapper", detail))

    def awaited(item: T) -> Flow[T]:
        try:
            moment = from_publisher(mapping.flow_of(mapper(item)))
        except BaseException as error:
            raise mapping.failed(error)  # noqa: B904 - the same error, with a note
        # Counted, so that there is one item, whether the flow emits one or completes without one.
        return moment.take(1).count().map(lambda _: item)

    def apply(flow: Flow[T]) -> Flow[T]:
        return flow.pipe(flat_map(awaited, concurrency=concurrency, prefetch=1))

    return Operator("delay_with_mapper", apply, detail)
