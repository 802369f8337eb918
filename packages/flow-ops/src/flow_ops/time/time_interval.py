"""`time_interval`: each item with the time since the one before it."""

from __future__ import annotations

from typing import Final, TypeVar

from flow_core.clocks import Clock
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.operators import stage
from flow_core.results import TimeInterval
from flow_core.stages import Stage, Template
from flow_ops.time._timed import time_of

__all__ = ["time_interval"]

T = TypeVar("T")

_TIME_INTERVAL: Final = Template(
    "time_interval",
    params=("now",),
    state="before_s = now()",
    on_item="""
    time_s = now()
    passed_s = time_s - before_s
    before_s = time_s
    x = TimeInterval(x, passed_s)
    EMIT
    """,
    helpers=(TimeInterval,),
    ordered=True,
)


def time_interval(*, clock: Clock | None = None) -> Operator[T, Flow[TimeInterval[T]]]:
    """Pair each item with the seconds since the previous one, or since the subscription.

    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> from flow_ops import TimeInterval, interval
    >>> clock, seen = VirtualClock(), TestSubscriber[TimeInterval[int]]()
    >>> interval(2, clock=clock).time_interval(clock=clock).subscribe(seen)
    >>> clock.advance_by(4)
    >>> [(n, passed_s) for n, passed_s in seen.items]
    [(0, 2.0), (1, 2.0)]

    This is a `map` with a state for each subscriber; demand, threads and fusion are those of `map`.

    Args:
        clock: the clock of the operator; None for that of the process.

    Raises:
        TypeError: if `clock` is not a clock.
    """
    return stage(Stage(_TIME_INTERVAL, time_of(clock)))
