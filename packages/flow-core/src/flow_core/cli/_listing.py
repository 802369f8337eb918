"""``flow plugins``: what is installed, by whom, and what it can."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flow_core.plugins import (
    ConverterSpec,
    EngineSpec,
    NamespaceSpec,
    OperatorSpec,
    PluginHost,
    Registered,
    SinkSpec,
    SourceSpec,
    Spec,
    TranslationSpec,
    plugin_host,
)
from flow_core.protocols import Fusion

__all__ = ["fusion_text", "list_plugins"]

FORMAT: Final = 1
"""The shape of what ``--json`` prints. Keys may be added to it; any other change counts it up."""

_WIDTH: Final = 1000


def list_plugins(*, as_json: bool) -> None:
    """Print every record of every plugin, and the problems at the end."""
    host = plugin_host()
    if as_json:
        print(json.dumps(_document(host), indent=2))  # noqa: T201 - the command's output
    else:
        _draw(host)


def fusion_text(mode: Fusion) -> str:
    """Fusion modes for a reader: ``SYNC, also across threads``."""
    modes = [part.name or "" for part in (Fusion.SYNC, Fusion.ASYNC) if part in mode]
    if not modes:
        return "-"
    return "+".join(modes) + (" across threads" if Fusion.THREAD_BOUNDARY in mode else "")


def _sections(host: PluginHost) -> Mapping[str, Mapping[str, Registered[Spec]]]:
    return {
        "operators": host.operators,
        "sources": host.sources,
        "sinks": host.sinks,
        "engines": host.engines,
        "namespaces": host.namespaces,
        "converters": host.converters,
        "translations": host.translations,
    }


def _document(host: PluginHost) -> dict[str, Any]:  # Any: what JSON can hold
    document: dict[str, Any] = {
        "format": FORMAT,
        "plugins": [
            {
                "name": plugin.name,
                "module": plugin.module,
                "distribution": plugin.distribution,
                "version": plugin.version,
            }
            for plugin in host.plugins
        ],
    }
    for section, records in _sections(host).items():
        document[section] = [
            {
                "name": name,
                "target": found.spec.target,
                "summary": found.spec.summary,
                "distribution": found.plugin.distribution,
                "version": found.plugin.version,
                "plugin": found.plugin.name,
                **_facts(found.spec),
            }
            for name, found in records.items()
        ]
    document["problems"] = [
        {
            "plugin": problem.plugin.name,
            "distribution": problem.plugin.distribution,
            "version": problem.plugin.version,
            "message": problem.message,
        }
        for problem in host.problems
    ]
    return document


def _facts(spec: Spec) -> dict[str, Any]:  # Any: what JSON can hold
    match spec:
        case OperatorSpec():
            return {
                "kind": spec.kind.value,
                "backpressure": spec.backpressure.name.lower(),
                "asks": _modes(spec.asks),
                "answers": _modes(spec.answers),
                "conditional": spec.conditional,
                "placement": spec.placement.value,
                "method": spec.method,
            }
        case SourceSpec():
            return {
                "backpressure": spec.backpressure.name.lower(),
                "answers": _modes(spec.answers),
                "distributed": spec.distributed,
                "method": spec.method,
            }
        case SinkSpec():
            return {"backpressure": spec.backpressure.name.lower(), "method": spec.method}
        case EngineSpec():
            return {"options": list(spec.options)}
        case ConverterSpec():
            return {"accepts": spec.accepts}
        case TranslationSpec():
            return {"template": spec.template}
        case _:
            return {}


def _modes(mode: Fusion) -> list[str]:
    parts = (Fusion.SYNC, Fusion.ASYNC, Fusion.THREAD_BOUNDARY)
    return [part.name or "" for part in parts if part in mode]


def _draw(host: PluginHost) -> None:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    plugins = Table(title="Plugins", title_justify="left", box=None, pad_edge=False)
    for column in ("distribution", "version", "plugin", "module"):
        plugins.add_column(column, header_style="dim")
    for plugin in host.plugins:
        plugins.add_row(
            plugin.distribution or "-", plugin.version or "-", plugin.name, plugin.module
        )
    console.print(plugins)
    for section, records in _sections(host).items():
        if not records:
            continue
        console.print()
        table = Table(title=section.capitalize(), title_justify="left", box=None, pad_edge=False)
        first = next(iter(records.values())).spec
        for column in ("name", *_columns(first), "from", "summary"):
            # A summary gives way first when the terminal is narrow; names are never cut.
            table.add_column(column, header_style="dim", no_wrap=column in ("name", "from"))
        for name, found in records.items():
            by = found.plugin.distribution or found.plugin.module
            table.add_row(Text(name, "bold"), *_cells(found.spec), by, Text(found.spec.summary))
        console.print(table)
    if host.problems:
        console.print()
        console.print(Text("Problems", "bold red"))
        for problem in host.problems:
            console.print(Text(f"  {problem}"), soft_wrap=True)


def _columns(spec: Spec) -> tuple[str, ...]:
    match spec:
        case OperatorSpec():
            return ("kind", "back-pressure", "fusion: asks", "answers", "conditional")
        case SourceSpec():
            return ("back-pressure", "fusion: answers", "where")
        case SinkSpec():
            return ("back-pressure",)
        case EngineSpec():
            return ("options",)
        case TranslationSpec():
            return ("template",)
        case NamespaceSpec():
            return ("methods",)
        case _:
            return ("accepts",)


def _cells(spec: Spec) -> tuple[str, ...]:
    match spec:
        case OperatorSpec():
            return (
                spec.kind.value,
                spec.backpressure.value,
                fusion_text(spec.asks),
                fusion_text(spec.answers),
                "yes" if spec.conditional else "-",
            )
        case SourceSpec():
            where = "cluster" if spec.distributed else "here"
            return (spec.backpressure.value, fusion_text(spec.answers), where)
        case SinkSpec():
            return (spec.backpressure.value,)
        case EngineSpec():
            return (", ".join(f"--{option}" for option in spec.options) or "-",)
        case ConverterSpec():
            return (spec.accepts,)
        case TranslationSpec():
            return (spec.template,)
        case NamespaceSpec():
            return (f"flow.{spec.name}.…",)
        case _:
            return ("",)
