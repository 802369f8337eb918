"""The hooks that a plugin may have. Each yields records; none has an argument."""

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
    """Yield operators for `Flow.pipe`."""
    raise NotImplementedError


@hookspec
def flow_sources() -> Iterable[SourceSpec]:
    """Yield sources."""
    raise NotImplementedError


@hookspec
def flow_sinks() -> Iterable[SinkSpec]:
    """Yield sinks."""
    raise NotImplementedError


@hookspec
def flow_engines() -> Iterable[EngineSpec]:
    """Yield engines."""
    raise NotImplementedError


@hookspec
def flow_executors() -> Iterable[ExecutorSpec]:
    """Yield executors."""
    raise NotImplementedError


@hookspec
def flow_clocks() -> Iterable[ClockSpec]:
    """Yield clocks."""
    raise NotImplementedError


@hookspec
def flow_displays() -> Iterable[DisplaySpec]:
    """Yield displays."""
    raise NotImplementedError


@hookspec
def flow_namespaces() -> Iterable[NamespaceSpec]:
    """Yield namespaces for methods of packages."""
    raise NotImplementedError


@hookspec
def flow_converters() -> Iterable[ConverterSpec]:
    """Yield converters to flows."""
    raise NotImplementedError


@hookspec
def flow_translations() -> Iterable[TranslationSpec]:
    """Yield translations of stages for clusters."""
    raise NotImplementedError
