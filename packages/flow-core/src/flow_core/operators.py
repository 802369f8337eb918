"""Functions that make operators for `Flow.pipe` and are not methods of `Flow`.

`stage` makes an operator of your own stage, `lift` makes one of a function of subscribers;
`serialize` is an operator of the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from flow_core.boundaries._lifting import lift, serialize
from flow_core.errors import no_such_name
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages._template import Stage

__all__ = ["lift", "serialize", "stage"]

T = TypeVar("T")
R = TypeVar("R")


def stage(made: Stage[T, R]) -> Operator[T, Flow[R]]:
    """Return the stage `made` as an operator; the last line of a factory for your own stage.

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
    return Operator(made.name, lambda flow: flow._then(made.located()), repr(made))


if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then

    def __getattr__(name: str) -> object:
        no_such_name(__name__, name)
