"""The records of operators that this package registers; see `flow_core.plugins`."""

from __future__ import annotations

from collections.abc import Iterator

import flow_multicast
from flow_core.plugins import Backpressure, OperatorSpec, hookimpl

__all__ = ["flow_operators"]


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """Yield the operators of this package.

    Those that return a `Connectable` end a chain of flows.
    """
    yield _operator("cache", Backpressure.UNBOUNDED_IN)
    yield _operator("multicast", Backpressure.FULL)
    yield _operator("publish", Backpressure.FULL)
    yield _operator("publish_value", Backpressure.UNBOUNDED_IN)
    yield _operator("replay", Backpressure.UNBOUNDED_IN)
    yield _operator("share", Backpressure.FULL)


def _operator(name: str, backpressure: Backpressure) -> OperatorSpec:
    """Return the record of a function of this package; the method of `Flow` has its name."""
    function = getattr(flow_multicast, name)
    return OperatorSpec.of(function, backpressure=backpressure, method=name)
