"""`map_when`, `filter_when` and `delay_until`: another flow decides about each item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.sources import from_callable
from flow_core.stages.template import describe
from flow_ops.coordination import Mapper
from flow_ops.transform.concat_map import concat_mapped

__all__ = ["delay_until", "filter_when", "map_when"]

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")


def map_when(
    mapper: Callable[[T], Flow[R]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[R]]:
    """The first item of the flow that `mapper` makes of each item: a map that takes its time.

    >>> import flow_core as flow
    >>> list(flow.range(4).map_when(lambda n: flow.range(n, 2 * n).map(lambda m: (n, m))))
    [(1, 1), (2, 2), (3, 3)]

    An item whose flow is empty is dropped. One item at a time, in order; a flow is cancelled after
    its first item.

    Demand, thread and fusion are those of `concat_map`.
    Errors: those of the flow, and of what `mapper` raises.

    Args:
        mapper: makes a flow of an item; not None.
        prefetch: items to request of an upstream that pushes, and the most that wait.
        delay_error: whether the other items follow when one of these flows has failed; its error
            comes at the end.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if `mapper` gives None.

    Raises:
        TypeError: if `mapper` cannot be called, or `prefetch` is no int.
        ValueError: if `prefetch` is less than 1.
    """
    _check("map_when", mapper)
    return _deciding("map_when", describe(mapper), mapper, _first, (prefetch, delay_error))


def filter_when(
    predicate: Callable[[T], Flow[bool]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[T]]:
    """Items for which the first item of the flow that `predicate` makes is true.

    >>> import flow_core as flow
    >>> list(flow.range(4).filter_when(lambda n: flow.just(n % 2 == 1)))
    [1, 3]

    An item whose flow is empty is dropped. One item at a time, in order; a flow is cancelled after
    its first item.

    Demand, thread and fusion are those of `concat_map`.
    Errors: those of the flow, and of what `predicate` raises.

    Args:
        predicate: makes a flow of an item; not None.
        prefetch: items to request of an upstream that pushes, and the most that wait.
        delay_error: whether the other items follow when one of these flows has failed; its error
            comes at the end.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if `predicate` gives None.

    Raises:
        TypeError: if `predicate` cannot be called, or `prefetch` is no int.
        ValueError: if `prefetch` is less than 1.
    """
    _check("filter_when", predicate)
    detail = describe(predicate)
    return _deciding("filter_when", detail, predicate, _kept, (prefetch, delay_error))


def delay_until(
    mapper: Callable[[T], Publisher[object]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[T]]:
    """Each item when the flow that `mapper` makes of it has completed.

    >>> import flow_core as flow
    >>> list(flow.just("a", "b").delay_until(lambda _: flow.range(3)))
    ['a', 'b']

    The items of these flows are dropped. One item at a time, in order.

    Demand, thread and fusion are those of `concat_map`; a flow is asked for all of its items.
    Errors: those of the flow, and of what `mapper` raises. The item of a flow that fails is
    dropped.

    Args:
        mapper: makes a flow of an item; not None.
        prefetch: items to request of an upstream that pushes, and the most that wait.
        delay_error: whether the other items follow when one of these flows has failed; its error
            comes at the end.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if `mapper` gives None.

    Raises:
        TypeError: if `mapper` cannot be called, or `prefetch` is no int.
        ValueError: if `prefetch` is less than 1.
    """
    _check("delay_until", mapper)
    detail = describe(mapper)
    return _deciding("delay_until", detail, mapper, _then, (prefetch, delay_error))


def _check(name: str, function: object) -> None:
    if not callable(function):
        raise TypeError(f"{name}() takes a function, not {function!r}")


def _deciding(
    name: str,
    detail: str,
    mapper: Callable[[T], Publisher[R]],
    decided: Callable[[Flow[R], T], Flow[S]],
    options: tuple[int, bool],
) -> Operator[T, Flow[S]]:
    """`concat_map` with what `decided` makes of the mapper's flow and the item."""
    prefetch, delay_error = options
    check_prefetch(prefetch)
    if prefetch != DEFAULT_PREFETCH:
        detail += f", prefetch={prefetch}"
    if delay_error:
        detail += ", delay_error=True"
    # What is a publisher and no flow, `flow_of` sees to.
    mapping = Mapper(cast("Callable[[T], Flow[R]]", mapper), labelled(name, detail))

    def decide(item: T) -> Flow[S]:
        flow = mapping.function(item)
        if not isinstance(flow, Flow):
            flow = mapping.flow_of(flow)
        return decided(flow, item)

    return concat_mapped(name, detail, Mapper(decide, mapping.label), prefetch, delay_error)


def _first(made: Flow[R], _: object) -> Flow[R]:
    if made.called() is not None:
        return made  # has no more than one
    return made.take(1)


def _kept(made: Flow[bool], item: T) -> Flow[T]:
    called = made.called()
    if called is not None:
        return from_callable(lambda: item if called.call() else None)
    return made.take(1).filter(bool).map(lambda _: item)


def _then(made: Flow[Any], item: T) -> Flow[T]:  # Any: they are dropped
    called = made.called()
    if called is not None:
        return from_callable(lambda: (called.call(), item)[1])
    return made.ignore_elements().end_with(item)
