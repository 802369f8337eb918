"""`timestamp`: each item with the time at which it came."""

from __future__ import annotations

from typing import TypeVar

from flow_core.clocks import Clock
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.results import Timestamped
from flow_ops.time._timed import time_of

__all__ = ["timestamp"]

T = TypeVar("T")


def timestamp(*, clock: Clock | None = None) -> Operator[T, Flow[Timestamped[T]]]:
    """Pair each item with the time at which it came.

    >>> import flow_core as flow
    >>> from flow_testing import VirtualClock
    >>> flow.just("a").timestamp(clock=VirtualClock(7)).single()
    Timestamped(item='a', time_s=7.0)

    This is a `map`, with the demand, threads and fusion of `map`. On a cluster, the time is that of
    the machine that handles the item.

    Args:
        clock: the clock of the operator; None for that of the process.

    Raises:
        TypeError: if `clock` is not a clock.
    """
    now = time_of(clock)

    def stamped(item: T) -> Timestamped[T]:
        return Timestamped(item, now())

    def apply(flow: Flow[T]) -> Flow[Timestamped[T]]:
        return flow.map(stamped)

    return Operator("timestamp", apply)
