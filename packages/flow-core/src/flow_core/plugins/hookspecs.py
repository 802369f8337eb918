"""The hooks that a plugin may have. Each yields records; none gets an argument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pluggy

from flow_core.plugins.records import (
    ClockSpec,
    ConverterSpec,
    DisplaySpec,
    EngineSpec,
    ExecutorSpec,
    NamespaceSpec,
    OperatorSpec,
    SinkSpec,
    SourceSpec,
    TranslationSpec,
)

__all__ = [
    "GROUP",
    "flow_clocks",
    "flow_converters",
    "flow_displays",
    "flow_engines",
    "flow_executors",
    "flow_namespaces",
    "flow_operators",
    "flow_sinks",
    "flow_sources",
    "flow_translations",
    "hookimpl",
]

GROUP: Final = "flow"
"""The name of the pluggy project, and of the entry-point group."""

hookspec: Final = pluggy.HookspecMarker(GROUP)
hookimpl: Final = pluggy.HookimplMarker(GROUP)
"""Marks a plugin's function as one of the hooks below."""


@hookspec
def flow_operators() -> Iterable[OperatorSpec]:
    """What `Flow.pipe` can take."""
    raise NotImplementedError


@hookspec
def flow_sources() -> Iterable[SourceSpec]:
    """Where flows can begin."""
    raise NotImplementedError


@hookspec
def flow_sinks() -> Iterable[SinkSpec]:
    """Where flows can end."""
    raise NotImplementedError


@hookspec
def flow_engines() -> Iterable[EngineSpec]:
    """Where flows can run."""
    raise NotImplementedError


@hookspec
def flow_executors() -> Iterable[ExecutorSpec]:
    """Where work is done."""
    raise NotImplementedError


@hookspec
def flow_clocks() -> Iterable[ClockSpec]:
    """What tells the time."""
    raise NotImplementedError


@hookspec
def flow_displays() -> Iterable[DisplaySpec]:
    """What shows flows to people."""
    raise NotImplementedError


@hookspec
def flow_namespaces() -> Iterable[NamespaceSpec]:
    """What methods of packages are found under."""
    raise NotImplementedError


@hookspec
def flow_converters() -> Iterable[ConverterSpec]:
    """What flows can be made of."""
    raise NotImplementedError


@hookspec
def flow_translations() -> Iterable[TranslationSpec]:
    """What stages become on a cluster."""
    raise NotImplementedError
