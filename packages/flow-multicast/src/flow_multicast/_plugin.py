"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from flow_core.plugins import OperatorSpec, hookimpl


@hookimpl
def flow_operators() -> Iterable[OperatorSpec]:
    """None: a processor is no operator, it is subscribed to a flow and subscribed to itself."""
    return ()
