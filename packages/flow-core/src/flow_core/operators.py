"""The synchronous operators as functions, for `Flow.pipe` and for pipelines that name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from flow_core.flow import Flow
from flow_core.operator import Operator
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
    located: Stage[Any, R] = made.located(2)  # Any: T, which Operator's slot takes
    return Operator(made.name, lambda flow: flow._then(located), repr(made))


def map(mapper: Callable[[T], R]) -> Operator[T, Flow[R]]:
    """`Flow.map` as an operator."""
    return Operator("map", lambda flow: flow.map(mapper))


def filter(predicate: Callable[[T], object]) -> Operator[T, Flow[T]]:
    """`Flow.filter` as an operator."""
    return Operator("filter", lambda flow: flow.filter(predicate))


def flat_map_iterable(mapper: Callable[[T], Iterable[R]]) -> Operator[T, Flow[R]]:
    """`Flow.flat_map_iterable` as an operator."""
    return Operator("flat_map_iterable", lambda flow: flow.flat_map_iterable(mapper))
