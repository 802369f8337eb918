"""What this package registers; see `flow_core.plugins`."""

from __future__ import annotations

from collections.abc import Iterator

from flow_core.plugins import Backpressure, Kind, OperatorSpec, hookimpl

__all__ = ["flow_operators"]

_WHERE = "flow_multicast.connectables.publishing"


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """The operators of this package. Those that give a `Connectable` end a chain of flows."""
    for name, summary, backpressure in (
        (
            "cache",
            "One run, begun by the first subscriber; all get what it gave, however late.",
            Backpressure.UNBOUNDED_IN,
        ),
        ("multicast", "One run for many subscribers, through a processor.", Backpressure.FULL),
        ("publish", "One run for many subscribers, in lock-step.", Backpressure.FULL),
        (
            "publish_value",
            "One run for many subscribers, who get the newest value first.",
            Backpressure.UNBOUNDED_IN,
        ),
        (
            "replay",
            "One run for many subscribers; those who come later get what was before.",
            Backpressure.UNBOUNDED_IN,
        ),
        ("share", "One run, as long as there are subscribers.", Backpressure.FULL),
    ):
        yield OperatorSpec(
            name,
            f"{_WHERE}:{name}",
            summary=summary,
            kind=Kind.BOUNDARY,
            backpressure=backpressure,
        )
