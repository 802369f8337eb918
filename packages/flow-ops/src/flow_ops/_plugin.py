"""What this package registers; see `flow_core.plugins`."""

from __future__ import annotations

from collections.abc import Iterator

from flow_core.plugins import Backpressure, Kind, OperatorSpec, SourceSpec, hookimpl
from flow_core.protocols import Fusion

__all__ = ["flow_operators", "flow_sources"]


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """The operators of this package."""
    yield OperatorSpec(
        "concat_map",
        "flow_ops.transform.concat_map:concat_map",
        summary="Each item becomes a flow; they follow one another.",
        kind=Kind.BOUNDARY,
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
    )
    yield OperatorSpec(
        "observe_on",
        "flow_ops.threads.observe_on:observe_on",
        summary="Everything downstream runs on an executor, with a bounded queue in between.",
        kind=Kind.BOUNDARY,
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
    )
    yield OperatorSpec(
        "skip_until",
        "flow_ops.combine.until:skip_until",
        summary="Items from when another flow gives its first one.",
        kind=Kind.BOUNDARY,
        backpressure=Backpressure.PASS,
    )
    yield OperatorSpec(
        "take_until",
        "flow_ops.combine.until:take_until",
        summary="Items until another flow gives one, or completes.",
        kind=Kind.BOUNDARY,
        backpressure=Backpressure.PASS,
    )


@hookimpl
def flow_sources() -> Iterator[SourceSpec]:
    """The sources of this package."""
    yield SourceSpec(
        "merge",
        "flow_ops.combine.merge:merge",
        summary="The items of several flows, as they come.",
        backpressure=Backpressure.FULL,
    )
