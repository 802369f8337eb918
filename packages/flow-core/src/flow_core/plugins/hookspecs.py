"""The hooks that a plugin may have. Each hook yields records; no hook has an argument."""

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
"""The name of the pluggy project and of the entry-point group."""

hookspec: Final = pluggy.HookspecMarker(GROUP)
hookimpl: Final = pluggy.HookimplMarker(GROUP)
"""Marks a function of a plugin as one of the hooks below."""


@hookspec
def flow_operators() -> Iterable[OperatorSpec]:
    """Yield records of operators for `Flow.pipe`."""
    raise NotImplementedError


@hookspec
def flow_sources() -> Iterable[SourceSpec]:
    """Yield records of sources."""
    raise NotImplementedError


@hookspec
def flow_sinks() -> Iterable[SinkSpec]:
    """Yield records of sinks."""
    raise NotImplementedError


@hookspec
def flow_engines() -> Iterable[EngineSpec]:
    """Yield records of engines."""
    raise NotImplementedError


@hookspec
def flow_executors() -> Iterable[ExecutorSpec]:
    """Yield records of executors."""
    raise NotImplementedError


@hookspec
def flow_clocks() -> Iterable[ClockSpec]:
    """Yield records of clocks."""
    raise NotImplementedError


@hookspec
def flow_displays() -> Iterable[DisplaySpec]:
    """Yield records of displays."""
    raise NotImplementedError


@hookspec
def flow_namespaces() -> Iterable[NamespaceSpec]:
    """Yield records of namespaces: the methods of a package under its name."""
    raise NotImplementedError


@hookspec
def flow_converters() -> Iterable[ConverterSpec]:
    """Yield records of converters, which make flows of other objects."""
    raise NotImplementedError


@hookspec
def flow_translations() -> Iterable[TranslationSpec]:
    """Yield records of translations, by which a cluster runs stages."""
    raise NotImplementedError
