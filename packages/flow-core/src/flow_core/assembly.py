"""The assembly of a flow: the hooks that are called, and the trace for debugging."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flow_core import hooks
from flow_core.protocols import CoreSubscriber
from flow_core.stages._template import line_of, outside

if TYPE_CHECKING:
    from flow_core.flow import Flow
    from flow_core.stages._chain import StageChain

__all__ = ["assembled", "assembly_trace", "labelled", "operator_of", "subscribed", "task_name"]

T = TypeVar("T")

_within: Final[ContextVar[bool]] = ContextVar("flow_core.assembly", default=False)
"""True while a hook is assembling a flow: the flows that it makes are not shown to it again."""


def assembled(flow: Flow[T]) -> Flow[T]:
    """Return the result of the assembly hooks for `flow`.

    Raises:
        TypeError: if the result is not a flow.
    """
    call = hooks.on_assembly.call
    if call is None or _within.get():
        return flow
    token = _within.set(True)
    try:
        made = call(flow)
    finally:
        _within.reset(token)
    if not isinstance(made, type(flow)):
        raise TypeError(f"an on_assembly hook must return a Flow, not {made!r}")
    return made


def subscribed(subscriber: CoreSubscriber[T]) -> CoreSubscriber[T]:
    """Return the result of the subscription hooks for `subscriber`.

    Raises:
        TypeError: if the result is not a subscriber.
    """
    call = hooks.on_subscribe.call
    if call is None:
        return subscriber
    made = call(subscriber)
    if not isinstance(made, CoreSubscriber):
        raise TypeError(f"an on_subscribe hook must return a CoreSubscriber, not {made!r}")
    return made


def labelled(name: str, detail: str) -> str:
    """Return the operator ``name(detail)`` and the line of the user that makes it, for messages."""
    frame = outside(sys._getframe(1))
    return f"{name}({detail}), assembled at {frame.f_code.co_filename}:{frame.f_lineno}"


def operator_of(label: str) -> str:
    """Return the operator in a label, without the place."""
    return label.partition(", assembled at ")[0]


def task_name(label: str) -> str:
    """Return the name for a task: the operator in a label, and the line that made it."""
    operator, _, place = label.partition(", assembled at ")
    return f"{operator} {Path(place).name}".rstrip()


def assembly_trace(flow: StageChain[Any]) -> str:  # Any: items of any type
    """Return the sources, operators and stages of a flow, each with the line that added it."""
    steps: list[tuple[str, str | None]] = []
    at: StageChain[Any] | None = flow
    while at is not None:
        stage, boundary = at._stage, at._boundary
        if stage is not None:
            steps.append((repr(stage), stage.assembled_at))
        if boundary is not None:
            before, operator, site = boundary
            steps.append((repr(operator), line_of(site)))
            at = before
        elif stage is not None:
            at = at._parent
        else:
            steps.append((repr(at._source), line_of(at._site)))
            break
    lines = [f"  {what}" + (f", at {where}" if where else "") for what, where in reversed(steps)]
    return "\n".join(["the flow was assembled from:", *lines])
