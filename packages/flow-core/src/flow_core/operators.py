"""The synchronous operators as functions, for `Flow.pipe` and for pipelines that name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages import filtering, transform
from flow_core.stages.template import Stage

__all__ = ["filter", "flat_map_iterable", "map", "stage"]

T = TypeVar("T")
R = TypeVar("R")


def stage(made: Stage[T, R]) -> Operator[T, Flow[R]]:
    """`made` as an operator: the last line of a user-defined stage's factory.

    >>> import flow_core as flow
    >>> EVERY = flow.Template(
    ...     "every",
    ...     params=("n",),
    ...     state="i = 0",
    ...     on_item='''
    ...     i += 1
    ...     if i % n == 0:
    ...         EMIT
    ... ''',
    ... )
    >>> def every(n: int) -> Operator[T, Flow[T]]:
    ...     return stage(flow.Stage(EVERY, n))
    >>> list(flow.range(10).pipe(every(3)))
    [2, 5, 8]
    """
    # It is assembled where pipe() is called, which calls Operator.apply, which calls this.
    return Operator(made.name, lambda flow: flow._then(made.located(4)), repr(made))


def map(mapper: Callable[[T], R]) -> Operator[T, Flow[R]]:
    """`Flow.map` as an operator."""
    return stage(Stage(transform.MAP, mapper))


def filter(predicate: Callable[[T], object]) -> Operator[T, Flow[T]]:
    """`Flow.filter` as an operator."""
    return stage(Stage(filtering.FILTER, predicate))


def flat_map_iterable(mapper: Callable[[T], Iterable[R]]) -> Operator[T, Flow[R]]:
    """`Flow.flat_map_iterable` as an operator."""
    return stage(Stage(transform.FLAT_MAP_ITERABLE, mapper))
