"""Hints for a missing name: what it is called here, where it is, and which package to install.

The names that other libraries use are in ``names.toml``, beside this module. The file is only read,
and names are only looked up, when the text of a `NoSuchNameError` is read.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from importlib.util import find_spec
from itertools import chain
from typing import Any, Final

from flow_core.flow import Flow
from flow_core.plugins import plugin_host
from flow_core.surface import functions
from flow_core.surface.spark import SparkWords

__all__ = ["NEAR", "command", "hint", "plugged", "tables", "words", "words_of"]

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD: Final = re.compile(r"(\w+)(?:\([^()]*\))?(?: \(\w+\))?(?:, |$)")
"""One name in a cell of the table: ``amb``, ``Mono.delay``, ``buffer(timespan, count)``."""

_PATH: Final = re.compile(r"`(\w+(?:\.\w+)+)`")

NEAR: Final = 0.75
"""The minimum similarity of two names at which one of them may be a misspelling of the other."""

_SECTIONS: Final = {
    "instead": "instead: ",
    "nothing": "there is nothing like it: ",
    "module": "here it is ",
}

_PACKAGES: Final = {
    "flow_core.cli": "flow_cli",
    "flow_core.pipelines": "flow_cli.pipelines",
    "flow_core.progress": "flow_cli.progress",
    "flow_core.testing": "flow_testing",
}
"""Other packages, under the module of the core in which people may look for their names."""

_AS_METHOD: Final = {"ParallelFlow": "no rail has it: continue with sequential() and"}


def hint(name: str, owner: str) -> str:
    """Return what to say about a missing name: what it is called here, or the closest known name.

    Args:
        name: the name.
        owner: the object without that name: the full name of a module, or anything else for a flow.

    Returns:
        The rest of the sentence that says what is missing; empty if nothing is known about the
        name.
    """
    plain = _plain(name)
    found = (
        _in_package(name, owner)
        or _as_method(plain, owner)
        or words(name)
        or _elsewhere(name, owner)
        or _of_plugins(name)
    )
    if found:
        return f"; {found}"
    known = _public(owner)
    near = difflib.get_close_matches(plain, [*known, *_words()], 1, NEAR)
    if not near:
        return f"; {command('plugins')} shows what there is"
    return f"; did you mean {near[0]!r}?" if near[0] in known else f"; {words(near[0])}"


def words(name: str, *, near: bool = False) -> str:
    """Return what to say about a word of another library; an empty text for an unknown word.

    Args:
        name: the word.
        near: whether it may be misspelt.
    """
    known = _words()
    found = difflib.get_close_matches(_plain(name), known, 1, NEAR if near else 1)
    return known[found[0]] if found else ""


def command(words: str = "") -> str:
    """Return the `flow` command for a message, with how to install the command if it is missing.

    Args:
        words: the arguments of the command.
    """
    return f"`{f'flow {words}'.rstrip()}`{_install('flow-cli')}"


@cache
def plugged(category: str) -> Mapping[str, str]:
    """Return the names that this project's packages register, with the distribution of each.

    Args:
        category: the category of the records, such as ``operator``.
    """
    if category == "source":
        others = {name: _distribution(path) for name, path in tables()["packages"].items()}
        return {**functions.PACKAGES, **others}
    if category not in {"operator", "sink", "engine"}:
        return {}
    return {
        name: vars(cls)["_package"]
        for cls in Flow.__mro__
        if "_package" in vars(cls)
        for name, value in vars(cls).items()
        if name[0] != "_" and isinstance(value, property) == (category == "engine")
    }


@cache
def _words() -> Mapping[str, str]:
    here: dict[str, dict[str, None]] = {}
    for own, cells in tables()["elsewhere"].items():
        for word in chain.from_iterable(map(words_of, cells)):
            if word != own:
                here.setdefault(word, {})[own] = None
    for library in ("itertools", "aiostream", "streamable"):
        for word, own in tables()[library].items():
            here.setdefault(word, {}).update(dict.fromkeys(own.split(", ")))
    said = {word: f"here it is {_either(map(_shown, names))}" for word, names in here.items()}
    for section, begin in _SECTIONS.items():
        for cell, way in tables()[section].items():
            for word in words_of(cell):
                said[word] = begin + way.replace("`", "")
    for path in _PATH.findall(" ".join(tables()["module"].values())):
        said.setdefault(_plain(path.rpartition(".")[2]), f"it is {path}")
    return said


@cache
def tables() -> Mapping[str, Mapping[str, Any]]:  # Any: a text, or three words
    """Return the tables of ``names.toml``."""
    return tomllib.loads(resources.files("flow_core").joinpath("names.toml").read_text("utf-8"))


def _as_method(plain: str, owner: str) -> str:
    """Return which method it is, if `plain` is the name of a method."""
    for name in (plain, f"spark.{plain}"):
        if _method(name) is not None:
            where = "it is a method of Flow:" if owner in sys.modules else "here it is"
            return f"{_AS_METHOD.get(owner, where)} {_shown(name)}"
    return ""


def _in_package(name: str, owner: str) -> str:
    """Return the place of a name that people may look for in the core, but another package has."""
    own = _PACKAGES.get(f"{owner}.{name}")
    if own is not None:
        what = "module" if "." in own else "package"
        return f"it is the {what} {own}{_install(_distribution(own))}"
    module = _PACKAGES.get(owner)
    return f"it is {module}.{name}{_install(_distribution(module))}" if module else ""


def _elsewhere(name: str, owner: str) -> str:
    """Return the place of a name that is in a module of this project."""
    for each in (name, _plain(name)):
        if each in _names() and owner != "flow_core":
            return f"it is {_shown(each) if each.islower() else f'flow_core.{each}'}"
    for package in dict.fromkeys(plugged("operator").values()):
        module = package.replace("-", "_")
        if owner != module and _is_installed(module) and name in import_module(module).__all__:
            return f"it is {module}.{name}"
    path: str | None = tables()["packages"].get(name)
    if path is None or path == owner:
        return ""
    return f"it is {path}.{name}{_install(_distribution(path))}"


def _of_plugins(name: str) -> str:
    """Return the place of a name that a plugin has registered."""
    host = plugin_host()
    namespace = host.namespaces.get(name)
    if namespace is not None:
        module = namespace.spec.target.partition(":")[0]
        return f"{namespace.plugin.distribution}, which is installed, brings it: import {module}"
    found = host.sources.get(name) or host.operators.get(name) or host.sinks.get(name)
    if found is None:
        return ""
    path = found.spec.target.replace(":", ".")
    if found.spec.category == "source":
        return f"it is {path}"
    return f"it is an operator for pipe(): {path}"


def _method(name: str) -> Callable[..., object] | None:
    """Return a method of `Flow`, or one under ``flow.spark``."""
    space, _, word = name.rpartition(".")
    found = getattr(SparkWords if space else Flow, word, None)
    return found if callable(found) and word[0] != "_" else None


def _shown(name: str) -> str:
    """Describe a method or function with the arguments that it needs, and its package."""
    method = _method(name)
    if method is None and name not in _names():
        found = plugin_host().operators.get(name)
        return f"pipe({found.spec.target.replace(':', '.')}(...))" if found else name
    parameters = inspect.signature(
        method or getattr(import_module("flow_core"), name)
    ).parameters.values()
    needed = [
        f"{'*' * (each.kind is each.VAR_POSITIONAL)}{each.name}"
        for each in [*parameters][1 if method else 0 :]
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    called = f"{'' if method else 'flow_core.'}{name}({', '.join(needed)})"
    return f"{called}{_install(_package(name))}"


def _package(name: str) -> str | None:
    for category in ("operator", "engine", "source"):
        package = plugged(category).get(name.partition(".")[0])
        if package is not None:
            return package
    return None


def _install(package: str | None) -> str:
    """Return what to say of a package that is not installed."""
    if package is None or _is_installed(package.replace("-", "_")):
        return ""
    return f" (pip install {package})"


def _is_installed(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None


def _distribution(module: str) -> str:
    return module.partition(".")[0].replace("_", "-")


def _names() -> Sequence[str]:
    """Return the exports of the core."""
    names: Sequence[str] = import_module("flow_core").__all__
    return names


def _public(owner: str) -> list[str]:
    holder: object = sys.modules.get(owner, Flow)
    return [name for name in getattr(holder, "__all__", None) or dir(holder) if name[0] != "_"]


def words_of(cell: str) -> Iterator[str]:
    """Yield the names in a cell of the table, as Python writes them."""
    return map(_plain, _WORD.findall(cell))


def _plain(name: str) -> str:
    """Return a name as Python writes it: ``flat_map`` for ``flatMap``."""
    return _HUMP.sub("_", name).lower()


def _either(names: Iterable[str]) -> str:
    *some, last = names
    return f"{', '.join(some)} or {last}" if some else last
