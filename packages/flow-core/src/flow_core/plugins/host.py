"""Find the plugins, collect their records, and hand them out by name."""

from __future__ import annotations

import difflib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, distributions
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar, cast, final

import pluggy

from flow_core.engine import Engine, EngineOptions
from flow_core.errors import PluginError, UnknownOperatorError
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.plugins import hookspecs
from flow_core.plugins.hookspecs import GROUP
from flow_core.plugins.records import (
    ConverterSpec,
    EngineSpec,
    OperatorSpec,
    SinkSpec,
    SourceSpec,
    Spec,
    load_object,
)

__all__ = ["OperatorFactory", "Plugin", "PluginHost", "Problem", "Registered", "plugin_host"]

S_co = TypeVar("S_co", bound=Spec, covariant=True)
S = TypeVar("S", bound=Spec)

_BUILTIN: Final = "flow_core.plugins._builtin"
_HOOKS: Final[Mapping[str, type[Spec]]] = MappingProxyType(
    {
        "flow_operators": OperatorSpec,
        "flow_sources": SourceSpec,
        "flow_sinks": SinkSpec,
        "flow_engines": EngineSpec,
        "flow_converters": ConverterSpec,
    }
)

_ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "engine": {"spark": "flow-spark"},
        "source": {"from_dataframe": "flow-spark"},
        "sink": {"to_dataframe": "flow-spark"},
        "operator": {
            "on_spark": "flow-spark",
            "to_dataframe": "flow-spark",
            "multicast": "flow-multicast",
            "publish": "flow-multicast",
            "replay": "flow-multicast",
            "share": "flow-multicast",
            "observe_on": "flow-ops",
            "subscribe_on": "flow-ops",
            "flat_map": "flow-ops",
            "concat_map": "flow-ops",
            "switch_map": "flow-ops",
            "merge": "flow-ops",
            "zip": "flow-ops",
            "retry": "flow-ops",
            "group_by": "flow-ops",
        },
    }
)
"""Names that a user may have read about, and the package that registers them; only for hints."""


@final
@dataclass(frozen=True)
class Plugin:
    """A module that registers records, and who brought it.

    Args:
        name: the name of its entry point, or of the module for one that `FLOW_LOAD_PLUGINS` names.
        module: the module's full name; with ``:attribute`` for an object in it.
        distribution: the distribution that announces it, if one does.
        version: the version of that distribution.
    """

    name: str
    module: str
    distribution: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        if self.distribution is None:
            return self.module
        return f"{self.distribution} {self.version}"


@final
@dataclass(frozen=True)
class Problem:
    """Why something of a plugin cannot be used. Never fatal.

    Args:
        plugin: whose fault it is.
        message: what happened and what to do about it.
    """

    plugin: Plugin
    message: str

    def __str__(self) -> str:
        return f"{self.plugin.name} ({self.plugin}): {self.message}"


@final
@dataclass(frozen=True)
class Registered(Generic[S_co]):
    """A record and the plugin that it came from."""

    spec: S_co
    plugin: Plugin


class OperatorFactory(Protocol):
    """What a record of an operator names. The arguments are its own affair."""

    def __call__(self, *args: Any, **kwargs: Any) -> Operator[Any, Any]:
        """Make the operator."""
        ...


@final
class PluginHost:
    """All records of the plugins, by class and name.

    A plugin that cannot be imported, or that yields what is no record, is left out and reported in
    `problems`. Where two records of one class have the same name, the first one counts: those of
    the core, then by the names of distributions and entry points.

    Args:
        environ: where to read the settings from:

            * ``FLOW_DISABLE_PLUGINS``: a comma list of entry points, distributions or modules that
              are not loaded; ``*`` or ``1`` for all that entry points announce but the core's.
            * ``FLOW_LOAD_PLUGINS``: a comma list of modules to load as plugins in any case.
    """

    __slots__ = ("_manager", "_plugins", "_problems", "_records")

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._plugins: list[Plugin] = []
        self._problems: list[Problem] = []
        self._records: dict[type[Spec], dict[str, Registered[Spec]]] = {
            kind: {} for kind in _HOOKS.values()
        }
        disabled = set(_names(environ.get("FLOW_DISABLE_PLUGINS", "")))
        everything = bool(disabled & {"*", "1"})
        for plugin in _announced():
            core = plugin.module == _BUILTIN
            if (everything and not core) or disabled & _aliases(plugin):
                continue
            self._load(plugin)
        for module in _names(environ.get("FLOW_LOAD_PLUGINS", "")):
            if not self._manager.has_plugin(module):
                self._load(Plugin(module, module))

    # -- collecting

    def _load(self, plugin: Plugin) -> None:
        try:
            module = load_object(plugin.module)
            self._manager.register(module, name=plugin.module)
        except (Exception, SystemExit) as error:
            self._report(plugin, f"it cannot be loaded: {_line(error)}")
            return
        self._plugins.append(plugin)
        for caller in self._manager.get_hookcallers(module) or ():
            if caller.name not in _HOOKS:
                near = difflib.get_close_matches(caller.name, _HOOKS, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                self._report(plugin, f"it has a hook {caller.name!r}, which does not exist{hint}")
        if not self._manager.get_hookcallers(module):
            self._report(
                plugin, "it registers nothing; mark its hooks with @flow_core.plugins.hookimpl"
            )
        for hook, kind in _HOOKS.items():
            self._collect(plugin, module, hook, kind)

    def _collect(self, plugin: Plugin, module: object, hook: str, kind: type[Spec]) -> None:
        """Ask one plugin one hook, so that what it raises is its own affair."""
        try:
            for record in _records_of(self._manager, module, hook):
                if type(record) is not kind:
                    self._report(plugin, f"{hook} yielded {record!r}, which is no {kind.__name__}")
                else:
                    self._register(Registered(record, plugin))
        except (Exception, SystemExit) as error:
            self._report(plugin, f"{hook} failed: {_line(error)}")

    def _register(self, new: Registered[Spec]) -> None:
        spec = new.spec
        known = self._records[type(spec)]
        first = known.setdefault(spec.name, new)
        if first is not new:
            self._report(
                new.plugin,
                f"{spec.category} {spec.name!r} is registered by {first.plugin} "
                f"({first.spec.target}) and by {new.plugin} ({spec.target}); the first one counts. "
                f"FLOW_DISABLE_PLUGINS={first.plugin.name} leaves it to the other",
            )

    def _report(self, plugin: Plugin, message: str) -> None:
        self._problems.append(Problem(plugin, message))

    # -- what there is

    @property
    def plugins(self) -> Sequence[Plugin]:
        """The plugins that were loaded, in the order of loading."""
        return tuple(self._plugins)

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with plugins, in the order of finding."""
        return tuple(self._problems)

    @property
    def operators(self) -> Mapping[str, Registered[OperatorSpec]]:
        """What `Flow.pipe` can take."""
        return self._of(OperatorSpec)

    @property
    def sources(self) -> Mapping[str, Registered[SourceSpec]]:
        """Where flows can begin."""
        return self._of(SourceSpec)

    @property
    def sinks(self) -> Mapping[str, Registered[SinkSpec]]:
        """Where flows can end."""
        return self._of(SinkSpec)

    @property
    def engines(self) -> Mapping[str, Registered[EngineSpec]]:
        """Where flows can run."""
        return self._of(EngineSpec)

    @property
    def converters(self) -> Mapping[str, Registered[ConverterSpec]]:
        """What flows can be made of."""
        return self._of(ConverterSpec)

    def _of(self, kind: type[S]) -> Mapping[str, Registered[S]]:
        # `_collect` has let only records of this class in.
        return MappingProxyType(cast("dict[str, Registered[S]]", self._records[kind]))

    # -- by name

    def operator(self, name: str) -> OperatorFactory:
        """The factory of an operator.

        >>> import flow_core as flow
        >>> take = plugin_host().operator("take")
        >>> list(flow.range(10).pipe(take(2)))
        [0, 1]

        Raises:
            UnknownOperatorError: if no plugin registers `name`; says what comes near, and which
                package would bring it.
            PluginError: if its package cannot be imported.
        """
        spec = self._find(self.operators, name, OperatorSpec).spec
        loaded = _callable(spec)
        if not _is_method(spec):
            return cast("OperatorFactory", loaded)  # what a record of an operator names

        def factory(*args: Any, **kwargs: Any) -> Operator[Any, Any]:
            return Operator(name, lambda flow: loaded(flow, *args, **kwargs))

        return factory

    def source(self, name: str) -> Callable[..., Flow[Any]]:  # Any: whatever its items are
        """The factory of a source.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        return _callable(self._find(self.sources, name, SourceSpec).spec)

    def sink(self, name: str) -> OperatorFactory:
        """The factory of an operator that ends a flow.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        found = _callable(self._find(self.sinks, name, SinkSpec).spec)
        return cast("OperatorFactory", found)  # what a record of a sink names

    def engine(self, name: str) -> Callable[[EngineOptions], AbstractContextManager[Engine]]:
        """What opens an engine.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        return _callable(self._find(self.engines, name, EngineSpec).spec)

    def convert(self, value: object) -> Flow[Any]:  # Any: whatever its items are
        """A flow of a foreign object, by the first converter that accepts its class.

        The nearest class in the value's own order of inheritance counts first, then abstract
        classes that the value merely looks like.

        Raises:
            UnknownOperatorError: if there is no converter for it.
            PluginError: if the converter cannot be imported.
        """
        specs = [found.spec for found in self.converters.values()]
        for cls in type(value).__mro__:
            own = f"{cls.__module__}:{cls.__qualname__}"
            for spec in specs:
                if spec.accepts == own or _imported(spec.accepts) is cls:
                    return cast("Flow[Any]", _callable(spec)(value))  # by the record's contract
        for spec in specs:
            accepted = _imported(spec.accepts)
            if accepted is not None and isinstance(value, accepted):
                return cast("Flow[Any]", _callable(spec)(value))  # by the record's contract
        accepted_names = ", ".join(sorted(spec.accepts for spec in specs)) or "nothing"
        raise UnknownOperatorError(
            f"no converter makes a flow of {type(value).__module__}.{type(value).__qualname__}; "
            f"the installed ones accept {accepted_names}"
        )

    def _find(self, known: Mapping[str, Registered[S]], name: str, kind: type[S]) -> Registered[S]:
        found = known.get(name)
        if found is None:
            raise UnknownOperatorError(self.unknown(name, kind))
        return found

    @staticmethod
    def package_of(name: str, kind: type[Spec]) -> str | None:
        """The package of this project that brings a name, installed or not; for hints."""
        return _ELSEWHERE.get(kind.category, {}).get(name)

    def unknown(self, name: str, kind: type[Spec]) -> str:
        """What to tell a user who asked for a name that no plugin registers."""
        known = self._records[kind]
        text = f"no {kind.category} {name!r} is installed"
        elsewhere = _ELSEWHERE.get(kind.category, {})
        near = difflib.get_close_matches(name, [*known, *elsewhere], 1)
        if name in elsewhere:
            text += f"; it comes with the package {elsewhere[name]}: pip install {elsewhere[name]}"
        elif near:
            whose = "" if near[0] in known else f" of the package {elsewhere[near[0]]}"
            text += f"; did you mean {near[0]!r}{whose}?"
        else:
            text += f"; there are: {', '.join(sorted(known)) or 'none'}"
        if self._problems:
            text += " (`flow plugins` shows problems with installed plugins)"
        return text


_lock: Final = threading.RLock()
_host: PluginHost | None = None


def plugin_host() -> PluginHost:
    """The host of this process; the first call looks for plugins, the others return the same."""
    global _host
    with _lock:
        if _host is None:
            _host = PluginHost()
        return _host


def _records_of(manager: pluggy.PluginManager, module: object, hook: str) -> Iterator[object]:
    caller = getattr(manager.hook, hook)
    for implementation in cast("Iterable[pluggy.HookImpl]", caller.get_hookimpls()):
        if implementation.plugin is module:
            result: object = implementation.function()
            if result is None:
                continue
            if not isinstance(result, Iterable):
                raise PluginError(f"it returned {result!r}; it must yield records")
            yield from cast("Iterable[object]", result)


def _announced() -> list[Plugin]:
    """The core's own plugin, then what the entry points of installed distributions name."""
    core = Plugin("core", _BUILTIN, "flow-core", None)
    found: list[Plugin] = []
    seen: set[str] = set()
    for distribution in distributions():
        points = _entry_points(distribution)
        if not points:
            continue
        name, version = _identity(distribution)
        if name in seen:
            continue  # the second of a name is hidden by the first one on sys.path
        seen.add(name)
        for point in points:
            if point.value == _BUILTIN:
                core = Plugin("core", _BUILTIN, name, version)
            else:
                found.append(Plugin(point.name, point.value, name, version))
    found.sort(key=lambda plugin: (plugin.distribution or "", plugin.name))
    return [core, *found]


def _entry_points(distribution: Distribution) -> list[EntryPoint]:
    try:
        return [point for point in distribution.entry_points if point.group == GROUP]
    except Exception:  # damaged metadata of whatever package: nothing to do with flows
        return []


def _identity(distribution: Distribution) -> tuple[str, str]:
    """The normalised name and the version."""
    try:
        name, version = distribution.metadata["Name"], distribution.metadata["Version"]
    except Exception:  # a half-removed installation
        name = version = ""
    return re.sub(r"[-_.]+", "-", name or "unknown").lower(), version or "?"


def _aliases(plugin: Plugin) -> set[str]:
    return {plugin.name, plugin.module, plugin.distribution or plugin.name}


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _is_method(spec: OperatorSpec) -> bool:
    return spec.target.partition(":")[2].startswith("Flow.")


def _callable(spec: Spec) -> Callable[..., Any]:  # Any: what the record's class promises
    loaded = spec.load()
    if not callable(loaded):
        raise PluginError(f"{spec.category} {spec.name!r}: {spec.target} cannot be called")
    return loaded


def _imported(name: str) -> type | None:
    """The class of this name, if its module is imported already."""
    module, _, attribute = name.partition(":")
    found: object = sys.modules.get(module)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None
