"""What this package registers; see `flow_core.plugins`."""

from __future__ import annotations

from collections.abc import Iterator

from flow_core.plugins import Backpressure, OperatorSpec, hookimpl

__all__ = ["flow_operators"]


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """The operators of this package. Those that give a `Connectable` end a chain of flows."""
    yield OperatorSpec(
        "cache",
        "flow_multicast.connectables.publishing:cache",
        summary="One run, begun by the first subscriber; all get what it gave, however late.",
        backpressure=Backpressure.UNBOUNDED_IN,
        method="cache",
    )
    yield OperatorSpec(
        "multicast",
        "flow_multicast.connectables.publishing:multicast",
        summary="One run for many subscribers, through a processor.",
        backpressure=Backpressure.FULL,
        method="multicast",
    )
    yield OperatorSpec(
        "publish",
        "flow_multicast.connectables.publishing:publish",
        summary="One run for many subscribers, in lock-step.",
        backpressure=Backpressure.FULL,
        method="publish",
    )
    yield OperatorSpec(
        "publish_value",
        "flow_multicast.connectables.publishing:publish_value",
        summary="One run for many subscribers, who get the newest value first.",
        backpressure=Backpressure.UNBOUNDED_IN,
        method="publish_value",
    )
    yield OperatorSpec(
        "replay",
        "flow_multicast.connectables.publishing:replay",
        summary="One run for many subscribers; those who come later get what was before.",
        backpressure=Backpressure.UNBOUNDED_IN,
        method="replay",
    )
    yield OperatorSpec(
        "share",
        "flow_multicast.connectables.publishing:share",
        summary="One run, as long as there are subscribers.",
        backpressure=Backpressure.FULL,
        method="share",
    )
