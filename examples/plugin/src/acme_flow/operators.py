"""A stage, two operators and a source."""

import itertools
from statistics import fmean
from typing import TypeVar

import flow_core
from flow_core import Flow, Operator, Stage, Template

T = TypeVar("T")

EVERY = Template(
    "every",
    params=("n",),
    state="i = 0",
    on_item="""
    i += 1
    if i % n == 0:
        EMIT
    """,
    ordered=True,
)


def every(n: int) -> Operator[T, Flow[T]]:
    """Emit each n-th item."""
    return flow_core.operators.stage(Stage(EVERY, n))


def append(other: Flow[T]) -> Operator[T, Flow[T]]:
    """Emit the flow's items, then those of `other`; it iterates over both, in one thread."""
    return Operator(
        "append", lambda flow: flow_core.from_iterable(itertools.chain(flow, other)), repr(other)
    )


def smoothed(flow: Flow[float], count: int = 3) -> Flow[float]:
    """Emit the mean of each `count` consecutive items; a plain function, to use with `pipe`."""
    return flow.buffer_with_count(count, 1).filter(lambda w: len(w) == count).map(fmean)


def countdown(start: int) -> Flow[int]:
    """Return a flow of the numbers from `start` down to 1."""
    return flow_core.range(start, 0, -1)
