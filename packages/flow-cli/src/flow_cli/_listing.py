"""``flow plugins``: the installed operators, their distributions and capabilities."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

import flow_core
from flow_cli._errors import UsageError
from flow_core import hints
from flow_core.errors import NotInstalledError, PluginError
from flow_core.plugins import (
    ConverterSpec,
    EngineSpec,
    NamespaceSpec,
    OperatorSpec,
    Plugin,
    PluginHost,
    Registered,
    SinkSpec,
    SourceSpec,
    Spec,
    TranslationSpec,
    plugin_host,
)
from flow_core.protocols import Fusion
from flow_core.signatures import signature_of

__all__ = ["draw", "fusion_text", "list_plugins", "show"]

FORMAT: Final = 1
"""The version of the output of ``--json``. New keys do not change it; any other change increments
it."""

_FLOW: Final = flow_core.empty()
"""A flow that has all methods, to look them up."""


def list_plugins(words: Sequence[str] = (), *, as_json: bool, check: bool = False) -> bool:
    """Print the records of all plugins, and then the problems; with `check`, only the problems.

    Args:
        words: texts to look for in the name, the summary or the distribution; without `words`, all
            records are printed.
        as_json: whether to print JSON, for a program that reads the output.
        check: whether to load all objects and print the problems, including objects that cannot be
            loaded.

    Returns:
        False if `check` is set and has found a problem; True otherwise.
    """
    host = plugin_host()
    problems = [*map(str, host.problems), *(_unusable(host) if check else ())]
    if as_json:
        print(json.dumps(_document(host, words), indent=2))  # noqa: T201 - the command's output
    elif check:
        _draw_problems(Console(highlight=False), problems)
    else:
        _draw(host, words, problems)
    return not (check and problems)


def show(name: str) -> None:
    """Print the signature, the description and the distribution of an operator, source or sink.

    Args:
        name: the name under which a plugin registers it, also as Java would write it:
            ``flatMap``; ``acme.smooth`` is the method ``smooth`` of the namespace ``acme``.

    Raises:
        UnknownOperatorError: if no plugin registers `name`; the message names similar names.
    """
    host = plugin_host()
    plain = hints.words_of(name) if name.isidentifier() else ()
    found = [
        records[each]
        for each in dict.fromkeys((name, *plain))
        for records in (host.operators, host.sources, host.sinks, host.executors, host.clocks)
        if each in records
    ]
    texts = [_text(each.spec, each.plugin) for each in found]
    if not texts:
        texts = [_with_signature(f"flow.{name}", host.operator(name))]
    print("\n\n".join(texts))  # noqa: T201 - the command's output


def draw(name: str, file: str) -> None:
    """Write the marble diagram of an operator or a source to a file, and say the same in words.

    Args:
        name: its name in the registry.
        file: the path of the file, an SVG; if empty, it is the name, in this folder.

    Raises:
        NotInstalledError: without flow-testing, which draws it.
        UsageError: if it has none; the message says why.
    """
    try:
        from flow_testing.pictures import NoPictureError, picture
    except ModuleNotFoundError as missing:
        raise NotInstalledError(
            "flow-testing draws the pictures, and is not installed: pip install flow-testing",
            name=missing.name,
        ) from None
    try:
        found = picture(name)
    except NoPictureError as error:
        raise UsageError(str(error)) from None
    path = Path(file or f"{name}.svg")
    path.write_text(found.svg, "utf-8")
    print(f"{found.words}\n\nThe picture is in {path}.")  # noqa: T201 - the command's output


def _text(spec: Spec, plugin: Plugin) -> str:
    method: str | None = getattr(spec, "method", None)
    called, function = spec.target.replace(":", "."), spec.load()
    if spec.category == "source" and spec.name in flow_core.__all__:
        called = f"flow_core.{spec.name}"
    elif method is not None:
        called, function = f"flow.{method}", attrgetter(method)(_FLOW)
    facts = [f"{key}: {text}" for key, text in _said(spec)]
    by = f"{spec.category} of {plugin}: {spec.target}"
    return "\n".join([_with_signature(called, function), "", by, *facts])


def _with_signature(called: str, function: object) -> str:
    signature = str(signature_of(function)) if callable(function) else ""
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
    return f"{called}{signature}\n\n{inspect.getdoc(function) or ''}".rstrip()


def _said(spec: Spec) -> Iterator[tuple[str, str]]:
    """Return the facts in a record, as pairs of texts for a reader."""
    match spec:
        case OperatorSpec():
            yield "kind", spec.kind.value
            yield "back-pressure", spec.backpressure.value
            yield "fusion", f"asks {fusion_text(spec.asks)}, answers {fusion_text(spec.answers)}"
            yield "thread", spec.thread.value
            yield "on a cluster", spec.placement.value
        case SourceSpec():
            yield "back-pressure", spec.backpressure.value
            yield "fusion", f"answers {fusion_text(spec.answers)}"
            yield "thread", spec.thread.value
            yield "items", "on a cluster" if spec.distributed else "in this process"
        case SinkSpec():
            yield "back-pressure", spec.backpressure.value
        case _:
            pass


def _unusable(host: PluginHost) -> Iterator[str]:
    """Yield messages about the objects that cannot be loaded, or do not fit their record."""
    for records in _sections(host).values():
        for found in records.values():
            try:
                loaded = found.spec.load()
            except PluginError as error:
                yield f"{found.plugin.name} ({found.plugin}): {error}"
                continue
            if not callable(loaded):
                yield (
                    f"{found.plugin.name} ({found.plugin}): {found.spec.category} "
                    f"{found.spec.name!r}: {found.spec.target} cannot be called"
                )


def fusion_text(mode: Fusion) -> str:
    """Return fusion modes as a text for a reader: ``SYNC, also across threads``."""
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
        "executors": host.executors,
        "clocks": host.clocks,
        "displays": host.displays,
        "namespaces": host.namespaces,
        "converters": host.converters,
        "translations": host.translations,
    }


def _document(host: PluginHost, words: Sequence[str]) -> dict[str, Any]:  # Any: what JSON can hold
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
            if _has(found, words)
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
                "thread": spec.thread.name.lower(),
                "placement": spec.placement.value,
                "method": spec.method,
            }
        case SourceSpec():
            return {
                "backpressure": spec.backpressure.name.lower(),
                "answers": _modes(spec.answers),
                "thread": spec.thread.name.lower(),
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


def _draw(host: PluginHost, words: Sequence[str], problems: Sequence[str]) -> None:
    console = Console(highlight=False)
    for word in words:
        if said := hints.words(word, near=True):
            console.print(Text(f"{word}: {said}"))
    if not words:
        plugins = Table(title="Plugins", title_justify="left", box=None, pad_edge=False)
        for column in ("distribution", "version", "plugin", "module"):
            plugins.add_column(column, header_style="dim")
        for plugin in host.plugins:
            plugins.add_row(
                plugin.distribution or "-", plugin.version or "-", plugin.name, plugin.module
            )
        console.print(plugins)
    for section, records in _sections(host).items():
        chosen = {name: found for name, found in records.items() if _has(found, words)}
        if not chosen:
            continue
        console.print()
        table = Table(title=section.capitalize(), title_justify="left", box=None, pad_edge=False)
        for column in ("name", "from", "summary"):
            # The summary shrinks when the terminal is narrow; names are never cut.
            table.add_column(column, header_style="dim", no_wrap=column != "summary")
        for name, found in chosen.items():
            by = found.plugin.distribution or found.plugin.module
            table.add_row(Text(name, "bold"), by, Text(_summary(found.spec)))
        console.print(table)
    shown = any(_has(found, words) for each in _sections(host).values() for found in each.values())
    more = "`flow help NAME` tells more of one." if shown else "No record has this in its name."
    console.print(f"\n{more}", markup=False)
    if problems:
        console.print()
        _draw_problems(console, problems)


def _draw_problems(console: Console, problems: Sequence[str]) -> None:
    console.print(Text("Problems", "bold red") if problems else "No problems.")
    for problem in problems:
        console.print(Text(f"  {problem}"), soft_wrap=True)


def _has(found: Registered[Spec], words: Sequence[str]) -> bool:
    text = f"{found.spec.name} {_summary(found.spec)} {found.plugin.distribution}".lower()
    return all(word.lower() in text for word in words)


def _summary(spec: Spec) -> str:
    match spec:
        case ConverterSpec():
            return spec.summary or f"A flow of a {spec.accepts}."
        case TranslationSpec():
            return spec.summary or f"What {spec.template} is on a cluster."
        case NamespaceSpec():
            return f"flow.{spec.name}: {spec.summary}".rstrip(": ")
        case _:
            return spec.summary
