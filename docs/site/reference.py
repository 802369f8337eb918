"""Write the pages of operators, sources and modules, from the registry and from the packages."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple

import flow_core
from flow_core import Flow, Fusion, hints
from flow_core.plugins import (
    Kind,
    OperatorSpec,
    Placement,
    PluginHost,
    Registered,
    SinkSpec,
    SourceSpec,
)
from flow_testing.pictures import picture, scenes, without

PACKAGES: Final = (
    "flow_core",
    "flow_ops",
    "flow_multicast",
    "flow_spark",
    "flow_rxcompat",
    "flow_testing",
    "flow_cli",
)
"""The packages, in the order of the menu."""

FLOW: Final = "flow_core.flow.Flow"

LIBRARIES: Final = ("RxPY", "RxJava 3", "Reactor")
"""The columns of the table of names elsewhere."""

MOST_RELATED: Final = 12

SPARK: Final[Mapping[Placement, str]] = MappingProxyType(
    {
        Placement.CLUSTER: "in each partition; a result of all items is combined in the driver",
        Placement.SHUFFLE: "in each partition; results with the same key meet on the cluster",
        Placement.DRIVER: "in the driver, on the items of all partitions, as they arrive",
        Placement.REFUSED: "refused: it depends on an order, and partitions have none",
    }
)

COMPILED: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.STAGE: "into the loop of its neighbours",
        Kind.BOUNDARY: "no: the loops before and after it are separate",
    }
)

LONGEST_VALUE: Final = 200
"""The number of letters of the longest value that is printed."""

_Spec = OperatorSpec | SourceSpec | SinkSpec


def front(description: str, *, in_menu: bool = False) -> str:
    """Return the beginning of a page: what says something about it.

    Operators and modules are not in the menu: it would be too long, and is written into each page.
    """
    plain = description.replace('"', "'").replace("`", "").replace("\\", "")
    orphan = "" if in_menu else "orphan: true\n"
    return f'---\n{orphan}myst:\n  html_meta:\n    description: "{plain}"\n---\n\n'


class Entry(NamedTuple):
    """A record of the registry, with the text of its object."""

    spec: _Spec
    distribution: str
    text: str


def entries(host: PluginHost) -> dict[str, Entry]:
    """Return the operators, sources and sinks of our packages, by name."""
    ours = {name.replace("_", "-") for name in PACKAGES}
    found: list[tuple[str, Registered[_Spec]]]
    found = [*host.sources.items(), *host.operators.items(), *host.sinks.items()]
    return {
        name: Entry(entry.spec, entry.plugin.distribution, inspect.getdoc(entry.spec.load()) or "")
        for name, entry in found
        if entry.plugin.distribution in ours
    }


def entry_pages(found: Mapping[str, Entry]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of the page for each operator, source and sink."""
    named = {name: _named(entry.text, found) for name, entry in found.items()}
    elsewhere = hints.tables()["elsewhere"]
    others = _others(found)
    for name, entry in found.items():
        near = [*named[name], *(other for other, names in named.items() if name in names)]
        related = [other for other in dict.fromkeys(near) if other != name][:MOST_RELATED]
        parts = [
            front(entry.spec.summary),
            f"# {name}\n",
            *_picture(name),
            *map(_directive, _objects(name, entry.spec)),
            _table([*_facts(entry, elsewhere.get(name)), *_also(name, others[name])]),
        ]
        if related:
            links = [f"* [`{other}`]({other}.md): {found[other].spec.summary}" for other in related]
            parts += ["## Related\n", "\n".join(links)]
        yield f"operators/{name}.md", "\n".join(parts) + "\n"


def _picture(name: str) -> Iterator[str]:
    """Yield the marble diagram, which is part of the page and so has its colours."""
    if name in scenes():
        yield f"```{{raw}} html\n{picture(name).svg}```\n"
    else:
        yield f"There is no marble diagram: {without()[name][0].lower()}{without()[name][1:]}\n"


def _named(text: str, found: Mapping[str, Entry]) -> list[str]:
    codes = re.findall(r"`(?:Flow\.|flow_core\.)?(\w+)`", text)
    return [name for name in dict.fromkeys(codes) if name in found]


def _objects(name: str, spec: _Spec) -> Iterator[str]:
    """Yield the directives that describe an entry: the method and the function, where both are."""
    module, _, attribute = spec.target.partition(":")
    if isinstance(spec, SourceSpec):
        if module.startswith("flow_core.sources") or not hasattr(flow_core, name):
            yield f"autofunction:: {module}.{attribute}"
        else:
            yield f"autofunction:: flow_core.{name}"
        return
    if hasattr(Flow, name):
        yield f"automethod:: {FLOW}.{name}"
    else:
        yield f"autofunction:: {module}.{attribute}"


def _facts(entry: Entry, elsewhere: Iterable[str] | None) -> Iterator[tuple[str, str]]:
    spec = entry.spec
    yield "package", f"[{entry.distribution}](../packages/{entry.distribution}.md)"
    yield "demand", spec.backpressure.value
    if isinstance(spec, OperatorSpec):
        yield "compiled", COMPILED[spec.kind]
    if not isinstance(spec, SinkSpec):
        yield "fusion", spec.answers.name or "none" if spec.answers != Fusion.NONE else "none"
    if isinstance(spec, OperatorSpec):
        yield "on Spark", SPARK[spec.placement]
    for library, name in zip(LIBRARIES, elsewhere or (), strict=False):
        yield library, ", ".join(f"`{one}`" for one in name.split(", ")) if name else "–"


def _others(found: Mapping[str, Entry]) -> Mapping[str, list[str]]:
    """Return the names, by entry, for which people look who know other libraries."""
    names: dict[str, list[str]] = {name: [] for name in found}
    tables = hints.tables()
    for library in ("itertools", "aiostream", "streamable"):
        for word, own in tables[library].items():
            for name in own.split(", "):
                names.get(name, []).append(word)
    for cell, way in tables["instead"].items():
        first = re.match(r"`(\w+)\(", way)
        if first is not None:
            names.get(first[1], []).extend(cell.split(", "))
    return names


def _also(name: str, others: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the row of names that a search has to find: also the name as Java writes it."""
    head, *tail = name.split("_")
    java = head + "".join(part.capitalize() for part in tail)
    if names := [other for other in dict.fromkeys([java, *others]) if other != name]:
        yield "also", ", ".join(f"`{other}`" for other in names)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows), ""])


def _directive(text: str, *options: str) -> str:
    lines = [f".. {text}", *(f"   {option}" for option in options)]
    return "\n".join(["```{eval-rst}", *lines, "```", ""])


def module_pages(found: Mapping[str, Entry]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of a page for each package and each of its public modules."""
    pages = {id(entry.spec.load()): name for name, entry in found.items()}
    for package in PACKAGES:
        homes = _homes(package)
        own = homes.pop(package, [])
        parts = [*_begun(package, in_menu=True)]
        if homes:
            modules = [f"* [{name}]({name}.md): {_summary(name)}" for name in homes]
            parts += ["## Modules\n", "\n".join(modules)]
        yield f"api/{package}.md", "\n".join([*parts, *_members(package, own, pages)])
        for module, names in homes.items():
            parts = [*_begun(module, in_menu=False), *_members(module, names, pages)]
            yield f"api/{module}.md", "\n".join(parts)


def _begun(module: str, *, in_menu: bool) -> Iterator[str]:
    yield front(_summary(module), in_menu=in_menu)
    yield f"# {module}\n"
    yield _directive(f"automodule:: {module}", ":no-members:")


def _members(module: str, names: list[str], pages: Mapping[int, str]) -> Iterator[str]:
    """Yield the text for `names`; operators, sources and sinks are links to their own pages."""
    there = importlib.import_module(module)
    elsewhere = [(name, pages.get(id(getattr(there, name)))) for name in names]
    if module == "flow_core":  # functions that other packages execute
        with_page = set(pages.values())
        elsewhere = [(name, name if name in with_page else page) for name, page in elsewhere]
    if links := [f"[`{name}`](../operators/{page}.md)" for name, page in elsewhere if page]:
        yield f"\nEach of these has a page of its own: {', '.join(links)}.\n"
    for name, page in elsewhere:
        if not page:
            yield _described(module, name)


def _summary(module: str) -> str:
    return (importlib.import_module(module).__doc__ or "").partition("\n")[0]


def _homes(package: str) -> dict[str, list[str]]:
    """Return the public names of a package by the module that defines them for users."""
    homes: dict[str, list[str]] = defaultdict(list)
    seen: set[int] = set()
    for module in _public_modules(package):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if isinstance(thing, ModuleType) or id(thing) in seen:
                continue
            seen.add(id(thing))
            homes[module.__name__].append(name)
    return dict(homes)


def _public_modules(package: str) -> Iterator[ModuleType]:
    """Yield the public modules of a package, and the package itself last."""
    top = importlib.import_module(package)
    for entry in pkgutil.iter_modules(top.__path__):
        if not entry.name.startswith("_"):
            yield importlib.import_module(f"{package}.{entry.name}")
    yield top


def _described(module: str, name: str) -> str:
    thing: Any = getattr(importlib.import_module(module), name)  # Any: whatever is public
    if f"{module}.{name}" == FLOW:
        return _directive(f"autoclass:: {FLOW}", ":exclude-members: " + ",".join(_operators()))
    if inspect.isclass(thing):
        kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
    else:
        kind = "autofunction" if callable(thing) else "autodata"
    # A long value says nothing to a reader, and a set within it has another order in each process.
    long = kind == "autodata" and len(repr(thing)) > LONGEST_VALUE
    return _directive(f"{kind}:: {module}.{name}", *([":no-value:"] if long else []))


def _operators() -> list[str]:
    return sorted(PluginHost({}).operators)
