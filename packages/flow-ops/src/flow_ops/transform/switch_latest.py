"""`switch_latest`: each flow that comes replaces the one before."""

from __future__ import annotations

from typing import TypeVar

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_ops.coordination import itself
from flow_ops.transform.switch_map import switching

__all__ = ["switch_latest"]

T = TypeVar("T")


def switch_latest(*, delay_error: bool = False) -> Operator[Flow[T], Flow[T]]:
    """The items of the latest flow that has come: each new flow replaces the one before.

    >>> import flow_core as flow
    >>> list(flow.just(flow.never(), flow.range(3)).switch_latest())
    [0, 1, 2]

    This is `switch_map` for items that are flows, with the same demand, thread, fusion and errors.

    Args:
        delay_error: see `switch_map`.
    """
    return switching("switch_latest", "", itself, delay_error)
