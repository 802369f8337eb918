"""The records of this package; see `flow_core.plugins`."""

from __future__ import annotations

from collections.abc import Iterator

from flow_cli import progress
from flow_core.plugins import Backpressure, DisplaySpec, OperatorSpec, hookimpl
from flow_core.protocols import Fusion

__all__ = ["flow_displays", "flow_operators"]


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """Yield the record of the operator `progress`."""
    yield OperatorSpec.of(
        progress.progress,
        backpressure=Backpressure.PASS,
        asks=Fusion.SYNC,
        answers=Fusion.SYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
    )


@hookimpl
def flow_displays() -> Iterator[DisplaySpec]:
    """Yield the record of the display for a terminal or a notebook."""
    yield DisplaySpec(
        "rich",
        "flow_cli.progress:display",
        summary="Bars and drawings, on a terminal or below a notebook's cell.",
    )
