"""Finds the plugins, collects their records, and gives access to them by name."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, distributions
from types import GeneratorType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, cast, final

import pluggy

from flow_core import late
from flow_core.clocks import Clock
from flow_core.engine import Engine, EngineOptions
from flow_core.errors import NoConverterError, PluginError, UnknownOperatorError
from flow_core.executors import Executor
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.plugins import hookspecs
from flow_core.plugins.hookspecs import GROUP
from flow_core.plugins.records import (
    ClockSpec,
    ConverterSpec,
    DisplaySpec,
    EngineSpec,
    ExecutorSpec,
    Kind,
    NamespaceSpec,
    OperatorSpec,
    Placement,
    SinkSpec,
    SourceSpec,
    Spec,
    TranslationSpec,
    load_object,
)
from flow_core.protocols import Publisher
from flow_core.stages import Stage, Translation
from flow_core.stages._template import describe

if TYPE_CHECKING:
    from flow_core.counting import Display

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
        "flow_executors": ExecutorSpec,
        "flow_clocks": ClockSpec,
        "flow_displays": DisplaySpec,
        "flow_namespaces": NamespaceSpec,
        "flow_converters": ConverterSpec,
        "flow_translations": TranslationSpec,
    }
)

_WORDS: Final = frozenset[type[Spec]]({OperatorSpec, SourceSpec, SinkSpec})
"""The classes of records that may have other names in other libraries."""

_ELSEWHERE_CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pyspark.sql.dataframe:DataFrame": "flow-spark",
        "pyspark.sql.connect.dataframe:DataFrame": "flow-spark",
        "reactivex.observable.observable:Observable": "flow-rxcompat",
    }
)
"""Classes whose converter comes with another package. A general converter must not take their
values: an Observable, for example, is awaitable, but it is more than its last item."""

_FRAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pandas:DataFrame": 'frame.to_dict("records")',
        "pandas.core.frame:DataFrame": 'frame.to_dict("records")',
        "polars.dataframe.frame:DataFrame": "frame.iter_rows(named=True)",
    }
)
"""Table classes that yield columns, or the columns' names, when iterated over; for each, the method
that yields the rows."""

_TEXT: Final = (str, bytes, bytearray, memoryview)

_PLAIN: Final = frozenset[type]({list, tuple, range, dict, set, frozenset, deque, GeneratorType})
"""Classes whose values are all alike: the converter that was found for one value fits the
others."""


@final
@dataclass(frozen=True)
class Plugin:
    """A module that registers records, and where it came from.

    Args:
        name: the name of the plugin's entry point; if `FLOW_LOAD_PLUGINS` names the module, the
            module's name.
        module: the full name of the module; with ``:attribute`` for an object in it.
        distribution: the distribution that announces the plugin; None if none does.
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
    """Says why an object of a plugin cannot be used. A problem never stops the program.

    Args:
        plugin: the plugin with the problem.
        message: what has happened, and what to do about it.
    """

    plugin: Plugin
    message: str

    def __str__(self) -> str:
        return f"{self.plugin.name} ({self.plugin}): {self.message}"


@final
@dataclass(frozen=True)
class Registered(Generic[S_co]):
    """A record and the plugin that it came from.

    Args:
        spec: the record.
        plugin: the plugin that yielded it.
    """

    spec: S_co
    plugin: Plugin


class OperatorFactory(Protocol):
    """The function that the record of an operator names; it has any arguments."""

    def __call__(self, *args: Any, **kwargs: Any) -> Operator[Any, Any]:
        """Return the operator for these arguments."""
        ...


@final
class PluginHost:
    """All records of all plugins, by class and name.

    A plugin that cannot be imported, or that yields anything but records, is left out and reported
    in `problems`. If two records of one class have the same name, the first one counts: the core's
    come first, then the others, ordered by the names of their distributions and entry points.

    Args:
        environ: the environment variables, two of which are settings:

            * ``FLOW_DISABLE_PLUGINS``: a comma-separated list of the entry points, distributions or
              modules that are not loaded; ``*`` or ``1`` for everything that entry points announce,
              except the core.
            * ``FLOW_LOAD_PLUGINS``: a comma-separated list of modules that are loaded as plugins in
              any case.
    """

    __slots__ = ("_known", "_manager", "_plugins", "_problems", "_records")

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._plugins: list[Plugin] = []
        self._problems: list[Problem] = []
        self._known: dict[type, tuple[int, Registered[ConverterSpec], Callable[..., Any]]] = {}
        """For each class whose values are all alike: its converter, and how many modules were
        imported when it was found. Modules that are imported later may have another converter for
        such values."""
        self._records: dict[type[Spec], dict[str, Registered[Spec]]] = {
            kind: {} for kind in _HOOKS.values()
        }
        disabled = {_plain(name) for name in _names(environ.get("FLOW_DISABLE_PLUGINS", ""))}
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
        """Call one hook of one plugin; report its errors as problems."""
        try:
            for record in _records_of(self._manager, module, hook):
                if type(record) is not kind:
                    self._report(
                        plugin, f"{hook} yielded {record!r}, which is not of type {kind.__name__}"
                    )
                else:
                    self._register(Registered(record, plugin))
        except (Exception, SystemExit) as error:
            self._report(plugin, f"{hook} failed: {_line(error)}")

    def _register(self, new: Registered[Spec]) -> None:
        spec = new.spec
        known = self._records[type(spec)]
        first = known.setdefault(spec.name, new)
        if first is new:
            self._check_class(new)
        else:
            self._report(
                new.plugin,
                f"{spec.category} {spec.name!r} is registered by {first.plugin} "
                f"({first.spec.target}) and by {new.plugin} ({spec.target}); the first one counts. "
                f"FLOW_DISABLE_PLUGINS={first.plugin.name} leaves it to the other",
            )

    def _check_class(self, new: Registered[Spec]) -> None:
        """Report a second converter for a class, even if its record has another name."""
        if not isinstance(new.spec, ConverterSpec):
            return
        for name, first in self.converters.items():
            if first.spec.accepts == new.spec.accepts and name != new.spec.name:
                self._report(
                    new.plugin,
                    f"{new.spec.accepts} is converted by {name!r} of {first.plugin} and by "
                    f"{new.spec.name!r} of {new.plugin}; the first one counts. "
                    f"FLOW_DISABLE_PLUGINS={first.plugin.name} leaves it to the other",
                )

    def _report(self, plugin: Plugin, message: str) -> None:
        self._problems.append(Problem(plugin, message))

    # -- the records

    @property
    def plugins(self) -> Sequence[Plugin]:
        """The plugins that were loaded, in the order in which they were loaded."""
        return tuple(self._plugins)

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of the plugins, in the order in which they were found."""
        return tuple(self._problems)

    @property
    def operators(self) -> Mapping[str, Registered[OperatorSpec]]:
        """The records of the operators for `Flow.pipe`, by name."""
        return self._of(OperatorSpec)

    @property
    def sources(self) -> Mapping[str, Registered[SourceSpec]]:
        """The records of the sources, by name."""
        return self._of(SourceSpec)

    @property
    def sinks(self) -> Mapping[str, Registered[SinkSpec]]:
        """The records of the sinks, by name."""
        return self._of(SinkSpec)

    @property
    def engines(self) -> Mapping[str, Registered[EngineSpec]]:
        """The records of the engines, by name."""
        return self._of(EngineSpec)

    @property
    def executors(self) -> Mapping[str, Registered[ExecutorSpec]]:
        """The records of the executors, by name."""
        return self._of(ExecutorSpec)

    @property
    def clocks(self) -> Mapping[str, Registered[ClockSpec]]:
        """The records of the clocks, by name."""
        return self._of(ClockSpec)

    @property
    def displays(self) -> Mapping[str, Registered[DisplaySpec]]:
        """The records of the displays, by name."""
        return self._of(DisplaySpec)

    @property
    def namespaces(self) -> Mapping[str, Registered[NamespaceSpec]]:
        """The records of the namespaces (methods of a package under its name), by name."""
        return self._of(NamespaceSpec)

    @property
    def converters(self) -> Mapping[str, Registered[ConverterSpec]]:
        """The records of the converters, which make flows of other objects, by name."""
        return self._of(ConverterSpec)

    @property
    def translations(self) -> Mapping[str, Registered[TranslationSpec]]:
        """The records of the translations, by which a cluster runs stages, by name."""
        return self._of(TranslationSpec)

    def _of(self, kind: type[S]) -> Mapping[str, Registered[S]]:
        # `_collect` has let in only records of this class.
        return MappingProxyType(cast("dict[str, Registered[S]]", self._records[kind]))

    # -- by name

    def operator(self, name: str) -> OperatorFactory:
        """Return the function that makes an operator.

        >>> import flow_core as flow
        >>> take = plugin_host().operator("take")
        >>> list(flow.range(10).pipe(take(2)))
        [0, 1]

        Args:
            name: the name under which a plugin registers the operator; ``acme.smooth`` is the
                method ``smooth`` of the namespace ``acme``.

        Raises:
            UnknownOperatorError: if no plugin registers `name`. The message names the package that
                would bring it, or the closest known name, if there is one.
            PluginError: if the package of the operator cannot be imported, or if what the record
                names cannot be called.
        """
        space, _, method = name.rpartition(".")
        if space:
            return self._find(self.namespaces, space, NamespaceSpec).spec.method(method)
        found = _callable(self._find(self.operators, name, OperatorSpec).spec)
        return cast("OperatorFactory", found)  # the target of an operator's record

    def source(self, name: str) -> Callable[..., Flow[Any]]:  # Any: items of any type
        """Return the function that makes a source.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        return _callable(self._find(self.sources, name, SourceSpec).spec)

    def sink(self, name: str) -> OperatorFactory:
        """Return the function that makes a sink: an operator that ends a flow.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        found = _callable(self._find(self.sinks, name, SinkSpec).spec)
        return cast("OperatorFactory", found)  # the target of a sink's record

    def engine(self, name: str) -> Callable[[EngineOptions], AbstractContextManager[Engine]]:
        """Return the function that opens an engine, as a context manager.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        return _callable(self._find(self.engines, name, EngineSpec).spec)

    def executor(self, name: str) -> Callable[..., Executor]:
        """Return the function that makes an executor.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        return _callable(self._find(self.executors, name, ExecutorSpec).spec)

    def clock(self, name: str) -> Callable[..., Clock]:
        """Return the function that returns a clock.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        return _callable(self._find(self.clocks, name, ClockSpec).spec)

    def each_display(self) -> Iterator[Display]:
        """Yield all displays; a display that cannot be loaded is left out.

        The command ``flow plugins --check`` says why it cannot be loaded.
        """
        for name in self.displays:
            with contextlib.suppress(PluginError):
                yield self.display(name)()

    def refuses(self, operator: str) -> bool:
        """Return True if an operator has no meaning behind items that have no order.

        Args:
            operator: the name of the operator's record. For a stage, the template answers this.
        """
        found = self.operators.get(operator)
        return (
            found is not None
            and found.spec.kind is not Kind.STAGE
            and found.spec.placement is Placement.REFUSED
        )

    def display(self, name: str) -> Callable[[], Display]:
        """Return the function that returns a display.

        Raises:
            UnknownOperatorError: as for `operator`.
            PluginError: as for `operator`.
        """
        return _callable(self._find(self.displays, name, DisplaySpec).spec)

    def translate(self, stage: Stage[Any, Any]) -> Translation | None:  # Any: items of any type
        """Return the translation of `stage` for several partitions; None if no plugin has one.

        Raises:
            PluginError: if the translation cannot be imported, or is not a `Translation`.
        """
        for found in self.translations.values():
            if _already(found.spec.template) != stage.template:
                continue
            made: object = _callable(found.spec)(stage)
            if made is not None and not isinstance(made, Translation):
                raise PluginError(
                    f"the translation {found.spec.name!r} of {found.plugin} made no Translation of "
                    f"{stage!r}, but {made!r}"
                )
            return made
        return None

    def convert(self, value: object) -> Flow[object]:
        """Convert an object to a flow, with the converter that fits its class best.

        >>> list(plugin_host().convert([1, 2]))
        [1, 2]

        The converter for the nearest class in the value's own order of inheritance counts first.
        Then come converters for abstract classes that the value only resembles (the most specific
        class first; plugins before the core), and at last the converter for any object with a
        method ``subscribe``. Text does not count as a collection here: a str or bytes is refused
        unless a plugin registers a converter for exactly that class.

        Args:
            value: anything but None.

        Raises:
            NoConverterError: if no converter accepts `value`; the text says what converters accept,
                and which package would bring one.
            PluginError: if the converter cannot be imported, or does not return a flow.
        """
        kind, modules = type(value), len(sys.modules)
        known = self._known.get(kind)
        if known is None or known[0] != modules:
            found = self._converter(value)
            if found is None:
                raise NoConverterError(self._no_converter(value))
            known = modules, found, _callable(found.spec)
            if kind in _PLAIN:
                self._known[kind] = known
        _, found, function = known
        made = function(value)
        if not isinstance(made, Flow):
            raise PluginError(
                f"the converter {found.spec.name!r} of {found.plugin} made no Flow of a "
                f"{_class_name(type(value))}, but {made!r}"
            )
        return cast("Flow[object]", made)  # with items of any type

    def _converter(self, value: object) -> Registered[ConverterSpec] | None:
        records = list(self.converters.values())
        for cls in type(value).__mro__[:-1]:
            own = _class_name(cls, ":")
            for found in records:
                if found.spec.accepts == own or _imported(found.spec.accepts) is cls:
                    return found
            if own in _ELSEWHERE_CLASSES or own in _FRAMES:
                return None
        if isinstance(value, _TEXT):
            return None
        # Abstract classes: those of plugins first, as they are more specific than "iterable".
        records.sort(key=lambda found: found.plugin.module == _BUILTIN)
        alike = [
            (accepted, found)
            for found in records
            if (accepted := _imported(found.spec.accepts)) is not None and _is_like(value, accepted)
        ]
        for accepted, found in alike:
            others = (other for other, _ in alike if other is not accepted)
            if accepted is not Publisher and not any(
                _is_below(other, accepted) for other in others
            ):
                return found
        return next((found for accepted, found in alike if accepted is Publisher), None)

    def _no_converter(self, value: object) -> str:
        """Return the message for a value that no converter accepts."""
        text = f"no converter makes a flow of a {_class_name(type(value))}"
        if value is None:
            return f"{text}: None is not an item, and no source"
        if isinstance(value, _TEXT):
            parts = "characters" if isinstance(value, str) else "bytes"
            return (
                f"{text}: is it one item, or many? flow_core.just(text) is a flow of the text, "
                f"flow_core.from_iterable(text) one of its {parts}, and "
                "flow_core.sources.files.read_lines(path) one of a file's lines"
            )
        if isinstance(value, type):
            return f"{text}: {_class_name(value)} is a class; make an object of it first"
        for cls in type(value).__mro__:
            own = _class_name(cls, ":")
            if own in _FRAMES:
                return (
                    f"{text}: its rows, or its columns? flow_core.from_iterable({_FRAMES[own]}) is "
                    "a flow of its rows, flow_core.from_iterable(frame) one of what `for` gives"
                )
            package = _ELSEWHERE_CLASSES.get(own)
            if package is not None:
                return f"{text}; the package {package} brings one: pip install {package}"
        if callable(value):
            name = describe(value)
            return (
                f"{text}: flow_core.from_callable({name}) is a flow of what it returns, "
                f"flow_core.defer({name}) of what the flow has that it returns"
            )
        if type(value).__module__ == "builtins":
            return f"{text}: flow_core.just({describe(value)}) is a flow of it as one item"
        accepted = ", ".join(sorted(found.spec.accepts for found in self.converters.values()))
        text += f"; the installed ones accept {accepted or 'nothing'}"
        missing = sorted(
            name
            for name in _ELSEWHERE_CLASSES
            if all(found.spec.accepts != name for found in self.converters.values())
        )
        if missing:
            more = ", ".join(f"{name} (pip install {_ELSEWHERE_CLASSES[name]})" for name in missing)
            text += f"; not installed: {more}"
        return f"{text}; flow_core.just(value) is a flow of it as one item"

    def _find(self, known: Mapping[str, Registered[S]], name: str, kind: type[S]) -> Registered[S]:
        found = known.get(name)
        if found is None:
            raise UnknownOperatorError(self.unknown(name, kind))
        return found

    def unknown(self, name: str, kind: type[Spec]) -> str:
        """Return the message for a name that no plugin registers.

        Args:
            name: the name of a record.
            kind: the class of the record.
        """
        hints = late.hints()
        known = self._records[kind]
        text = f"no {kind.category} {name!r} is installed"
        elsewhere = hints.plugged(kind.category)
        package = elsewhere.get(name)
        announced = [plugin for plugin in self._plugins if plugin.distribution is not None]
        versions = {plugin.distribution: plugin.version for plugin in announced}
        missing = [other for other in elsewhere if elsewhere[other] not in versions]
        near = difflib.get_close_matches(name, [*known, *missing], 1, hints.NEAR)
        if package in versions:
            text += f"; the installed {package} {versions[package]} has none"
        elif package is not None:
            text += f"; it comes with the package {package}: pip install {package}"
        elif said := hints.words(name) if kind in _WORDS else "":
            text += f"; {said}"
        elif near:
            whose = "" if near[0] in known else f" of the package {elsewhere[near[0]]}"
            text += f"; did you mean {near[0]!r}{whose}?"
        elif said := hints.words(name, near=True) if kind in _WORDS else "":
            text += f"; {said}"
        else:
            text += f"; there are: {', '.join(sorted(known)) or 'none'}"
        if self._problems:
            text += f"; {hints.command('plugins')} shows problems with installed plugins"
        return text


_making: Final = threading.Lock()
_host: PluginHost | None = None


def plugin_host() -> PluginHost:
    """Return the plugin host of this process; the first call looks for plugins.

    If another call comes while the first one is still looking, it makes another host, and does not
    wait: it may come from a module that is just being imported, for which the first call waits.
    """
    global _host
    if _host is not None:
        return _host
    if not _making.acquire(blocking=False):
        return PluginHost()
    try:
        if _host is None:
            _host = PluginHost()
        return _host
    finally:
        _making.release()


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
    """Return the core's own plugin, then those that installed distributions announce."""
    core = Plugin("core", _BUILTIN, "flow-core", None)
    found: list[Plugin] = []
    seen: set[str] = set()
    for distribution in distributions():
        points = _entry_points(distribution)
        if not points:
            continue
        name, version = _identity(distribution)
        if name in seen:
            continue  # the first one on sys.path hides others of its name
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
    except Exception:  # damaged metadata of any package, which may have nothing to do with flows
        return []


def _identity(distribution: Distribution) -> tuple[str, str]:
    """Return the normalised name and the version of a distribution."""
    try:
        name, version = distribution.metadata["Name"], distribution.metadata["Version"]
    except Exception:  # a half-removed installation
        name = version = ""
    return _plain(name or "unknown"), version or "?"


def _aliases(plugin: Plugin) -> set[str]:
    names = (plugin.name, plugin.module, plugin.distribution or plugin.name)
    return {_plain(name) for name in names}


def _plain(name: str) -> str:
    """Return a name as distributions compare names: ``Flow_Spark`` becomes ``flow-spark``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _line(error: BaseException) -> str:
    """Return the whole text of the error on one line: the reason may be in any line of it."""
    return "; ".join(filter(None, map(str.strip, f"{type(error).__name__}: {error}".splitlines())))


def _callable(spec: Spec) -> Callable[..., Any]:  # Any: the type that the record's class promises
    loaded = spec.load()
    if not callable(loaded):
        raise PluginError(f"{spec.category} {spec.name!r}: {spec.target} cannot be called")
    return loaded


def _imported(name: str) -> type | None:
    """Return the class that is named, if its module is imported already; None otherwise."""
    found = _already(name)
    return found if isinstance(found, type) else None


def _already(name: str) -> object:
    """Return the object that is named, if its module is imported already; None otherwise."""
    module, _, attribute = name.partition(":")
    found: object = sys.modules.get(module)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found


def _class_name(cls: type, between: str = ".") -> str:
    return f"{cls.__module__}{between}{cls.__qualname__}"


def _is_like(value: object, accepted: type) -> bool:
    """Return whether `value` passes as an instance of an abstract class."""
    if accepted is Publisher:
        return not isinstance(value, type) and callable(getattr(value, "subscribe", None))
    try:
        return isinstance(value, accepted)
    except TypeError:  # a Protocol that cannot be used at run time
        return False


def _is_below(cls: type, other: type) -> bool:
    try:
        return issubclass(cls, other)
    except TypeError:  # see _is_like
        return False
