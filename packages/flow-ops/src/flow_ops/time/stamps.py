"""`timestamp` and `time_interval`: items with the time at which they came."""

from __future__ import annotations

from typing import Final, TypeVar

from flow_core.clocks import Clock
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.operators import stage
from flow_core.results import TimeInterval, Timestamped
from flow_core.stages import Stage, Template
from flow_ops.time._timed import time_of

__all__ = ["time_interval", "timestamp"]

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


def timestamp(*, clock: Clock | None = None) -> Operator[T, Flow[Timestamped[T]]]:
    """Each item with the time at which it came.

    >>> import flow_core as flow
    >>> from flow_core.testing import VirtualClock
    >>> flow.just("a").timestamp(clock=VirtualClock(7)).single()
    Timestamped(item='a', time_s=7.0)

    It is `map`, in demand, threads and fusion, too. On a cluster, the time is that of the machine
    which has the item.

    Args:
        clock: tells the time; that of the process if None.

    Raises:
        TypeError: if `clock` is none.
    """
    now = time_of(clock)

    def stamped(item: T) -> Timestamped[T]:
        return Timestamped(item, now())

    def apply(flow: Flow[T]) -> Flow[Timestamped[T]]:
        return flow.map(stamped)

    return Operator("timestamp", apply)


def time_interval(*, clock: Clock | None = None) -> Operator[T, Flow[TimeInterval[T]]]:
    """Each item with the seconds since the one before it, or since the subscription.

    >>> from flow_core.testing import TestSubscriber, VirtualClock
    >>> from flow_ops import TimeInterval, interval
    >>> clock, seen = VirtualClock(), TestSubscriber[TimeInterval[int]]()
    >>> interval(2, clock=clock).time_interval(clock=clock).subscribe(seen)
    >>> clock.advance_by(4)
    >>> [(n, passed_s) for n, passed_s in seen.items]
    [(0, 2.0), (1, 2.0)]

    It is `map` with a memory for each subscriber, in demand, threads and fusion, too.

    Args:
        clock: tells the time; that of the process if None.

    Raises:
        TypeError: if `clock` is none.
    """
    return stage(Stage(_TIME_INTERVAL, time_of(clock)))
