"""Checks the arguments of a step against the signature of the registered object."""

from __future__ import annotations

import collections.abc
import datetime
import difflib
import enum
import inspect
import os
import types
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor as Pool
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NewType,
    TypeVar,
    Union,
    cast,
    final,
    get_args,
    get_origin,
)

import typing_extensions

from flow_cli.pipelines._document import MISSING, Place, Step, as_list, as_table, near
from flow_cli.pipelines._functions import FORMS, function_of
from flow_core.clocks import Clock
from flow_core.executors import SubmitExecutor
from flow_core.flow import Flow
from flow_core.plugins import OBJECT, load_object
from flow_core.signatures import resolved, signature_of
from flow_core.stages import describe

__all__ = ["Bound", "Context", "Given", "Misfit", "Nested", "bind", "fitted"]

_NAMED: Final = 'written as { object = "package.module:name" }'
_FUNCTION: Final = f"a function, {_NAMED}"
_LISTS: Final[Mapping[object, Callable[[list[object]], object]]] = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}
_SIMPLE: Final[Mapping[object, str]] = {
    bool: "true or false",
    int: "an int",
    float: "a number",
    str: "a text",
    datetime.datetime: "a date with a time",
    datetime.date: "a date",
    datetime.time: "a time of day",
}
_TABLES: Final = frozenset[object]([dict, collections.abc.Mapping, collections.abc.MutableMapping])
_PATHS: Final = frozenset[object]([os.PathLike, Path])
_UNIONS: Final = frozenset[object]([Union, types.UnionType])
_FLOWS: Final = frozenset[object]([collections.abc.Iterable, *Flow.__mro__[:-1]])
_ANYTHING: Final = (object, Any, inspect.Parameter.empty)
_FUNCTION_TYPE: Final = get_origin(Callable[[], object])
_NONE: Final = type(None)
_NAMED_KINDS: Final[Mapping[object, str]] = {
    SubmitExecutor: "executor",
    Pool: "executor",
    Clock: "clock",
}
_NOTHING: Final = object()


@final
class Misfit(Exception):  # noqa: N818 - it is caught where the place is known
    """A parameter does not take a value.

    Args:
        value: the value from the file.
        wants: says which values are valid; empty if `more` says enough.
        more: further explanation.
    """

    def __init__(self, value: object, wants: str, more: str = "") -> None:
        super().__init__(f"{describe(value)}, where it takes {wants}{more}" if wants else more)
        self.wants = wants


@final
@dataclass(frozen=True)
class Given:
    """The value of a pipeline's parameter, with the folder for paths.

    Args:
        value: the value.
        folder: the folder in which the value begins, if it is a relative path.
    """

    value: object
    folder: Path


@final
@dataclass(frozen=True)
class Nested:
    """A flow, an executor or a clock among the arguments, which is made when the step is made."""

    make: Callable[[], object]


@final
@dataclass(frozen=True)
class Context:
    """The parts of a pipeline's file to which its values may refer.

    Args:
        folder: the folder of the pipeline's file, in which a relative path from the file begins.
        parameters: the pipeline's parameters, by name.
        nested: checks a table of a source and operators, for a flow among the arguments.
        named: checks a table that names an executor or a clock, depending on the category.
    """

    folder: Path
    parameters: Mapping[str, Given]
    nested: Callable[[Place, Mapping[str, object]], Nested]
    named: Callable[[Place, Mapping[str, object], str], Nested]

    def substituted(self, value: object) -> tuple[object, Path]:
        """Return the value; for ``{ parameter = "name" }``, the value of that parameter.

        The second result is the folder of the value.
        """
        name = _only(value, "parameter")
        if name is None:
            return value, self.folder
        found = self.parameters.get(name) if isinstance(name, str) else None
        if found is None:
            hint = near(str(name), self.parameters)
            raise Misfit(value, "", f"there is no parameter {name!r}{hint}")
        return found.value, found.folder


@final
@dataclass(frozen=True)
class Bound:
    """A step whose arguments were checked, so that it can be called.

    Args:
        step: the step from the file.
        factory: the registered object.
        args: the arguments by position.
        kwargs: the arguments by name.
    """

    step: Step
    factory: Callable[..., object]
    args: Sequence[object]
    kwargs: Mapping[str, object]

    def __call__(self) -> object:
        """Make the source, the operator or the sink."""
        args = [_made(value) for value in self.args]
        kwargs = {name: _made(value) for name, value in self.kwargs.items()}
        return self.factory(*args, **kwargs)


def bind(
    factory: Callable[..., object], step: Step, context: Context, problems: list[str]
) -> Bound:
    """Check a step's arguments. This calls nothing.

    Args:
        factory: the function to call.
        step: the step, with the arguments from the file.
        context: what the arguments may refer to.
        problems: gets the errors, each with the file, the table and the key.
    """

    def fit(key: str, value: object, parameter: inspect.Parameter | None) -> object:
        kind = object if parameter is None else resolved(parameter.annotation, factory)
        try:
            return fitted(value, kind, context, step.place.inside(key))
        except Misfit as misfit:
            problems.append(f"{step.place} {key}: {misfit}")
            return None

    try:
        signature = signature_of(factory)
    except (TypeError, ValueError):  # written in C, without a signature: nothing to check against
        args = [fit(f"args[{i}]", value, None) for i, value in enumerate(step.args)]
        kwargs = {key: fit(key, value, None) for key, value in step.arguments.items()}
        return Bound(step, factory, args, kwargs)
    bound = inspect.BoundArguments(signature, OrderedDict())
    by_kind = _by_kind(signature)
    for index, value in enumerate(step.args):
        key = f"args[{index}]"
        if index < len(by_kind.positional):
            parameter = by_kind.positional[index]
            bound.arguments[parameter.name] = fit(key, value, parameter)
        elif by_kind.rest is not None:
            rest = bound.arguments.get(by_kind.rest.name, ())
            bound.arguments[by_kind.rest.name] = (*rest, fit(key, value, by_kind.rest))
        else:
            most = len(by_kind.positional)
            problems.append(
                f"{step.place} args: {len(step.args)} arguments where {step.name} takes "
                f"{f'at most {most}' if most else 'none'} by position"
            )
            break
    for key, value in step.arguments.items():
        named = by_kind.named.get(key)
        if named is None and by_kind.others is None:
            takes = near(key, by_kind.named) or "; it takes none"
            problems.append(f"{step.place} {key}: {step.name} has no such parameter{takes}")
        elif key in bound.arguments:
            problems.append(f"{step.place} {key}: it is among args already")
        elif named is None and by_kind.others is not None:
            others = bound.arguments.setdefault(by_kind.others.name, {})
            others[key] = fit(key, value, by_kind.others)
        else:
            bound.arguments[key] = fit(key, value, named)
    for key, parameter in by_kind.named.items():
        if parameter.default is parameter.empty and key not in bound.arguments:
            problems.append(
                f"{step.place} {key}: {step.name} needs it"
                f"{_wanted(resolved(parameter.annotation, factory))}"
            )
    return Bound(step, factory, bound.args, bound.kwargs)


@final
@dataclass(frozen=True)
class _Parameters:
    """The parameters in a signature, by kind."""

    positional: Sequence[inspect.Parameter]
    rest: inspect.Parameter | None
    named: Mapping[str, inspect.Parameter]
    others: inspect.Parameter | None


def _by_kind(signature: inspect.Signature) -> _Parameters:
    found = list(signature.parameters.values())
    return _Parameters(
        [one for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)],
        next((one for one in found if one.kind is one.VAR_POSITIONAL), None),
        {one.name: one for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)},
        next((one for one in found if one.kind is one.VAR_KEYWORD), None),
    )


def _wanted(kind: object) -> str:
    try:
        fitted(_NOTHING, kind, Context(Path(), {}, _no_flow, _no_flow), Place("", ""))
    except Misfit as misfit:
        return f": {misfit.wants}" if misfit.wants else ""
    return ""


def fitted(value: object, kind: object, context: Context, place: Place) -> object:
    """Return a value from the file in the form in which a parameter takes it.

    Args:
        value: a TOML value, or the value of a pipeline's parameter.
        kind: the parameter's annotation.
        context: what the value may refer to.
        place: the place of the value in the file.

    Raises:
        Misfit: if the parameter does not take the value.
    """
    value, folder = context.substituted(value)
    if value is MISSING:  # a parameter without a value, which is reported elsewhere
        return None
    target = _only(value, "object")
    if target is not None:
        return _named_object(target, kind)
    return _Fit(folder, context, place).fit(value, kind)


@final
@dataclass(frozen=True)
class _Fit:
    """Fits values from one place in the file to parameters."""

    folder: Path
    context: Context
    place: Place

    def fit(self, value: object, kind: object) -> object:
        kind = _bare(kind)
        origin = _origin(kind)
        if _is_anything(kind):
            return self._plain(value)
        named = as_table(value)
        category = None if named is None or "use" not in named else _category(kind)
        if named is not None and category is not None:
            return self.context.named(self.place, named, category)
        if origin in _UNIONS:
            return self._any_of(value, [each for each in get_args(kind) if each is not _NONE])
        if origin is Literal:
            choices = get_args(kind)
            if any(value == each and type(value) is type(each) for each in choices):
                return value
            raise Misfit(value, " or ".join(map(repr, choices)))
        if origin in _PATHS:
            return self._path(value)
        if origin is type:
            raise Misfit(value, f"a class, {_NAMED}")
        if _is_function(origin):
            return self._function(value)
        table = as_table(value)
        if table is not None and "source" in table and origin in _FLOWS:
            return self.context.nested(self.place, table)
        if origin in _LISTS:
            return self._list(value, kind, _LISTS[origin])
        if origin in _TABLES or typing_extensions.is_typeddict(origin):
            return self._table(value, kind)
        if kind in _SIMPLE:
            return _simple(value, kind)
        if isinstance(kind, enum.EnumMeta):
            return _member(value, kind)
        if not isinstance(origin, type):
            return self._plain(value)
        if _is_protocol(origin) or not isinstance(value, origin):
            raise Misfit(value, f"a {origin.__name__}, {_NAMED}")
        return value

    def _inner(self, value: object, kind: object) -> object:
        return fitted(value, kind, self.context, self.place)

    def _plain(self, value: object) -> object:
        """Return the value as it is, with its references resolved."""
        values, table = as_list(value), as_table(value)
        if values is not None:
            return [self._inner(each, object) for each in values]
        if table is not None:
            return {key: self._inner(each, object) for key, each in table.items()}
        return value

    def _any_of(self, value: object, kinds: Sequence[object]) -> object:
        if any(_origin(kind) in _PATHS for kind in kinds):
            # Text that may be a path is one: it begins in the folder of the file.
            kinds = [kind for kind in kinds if kind is not str]
        misfits: list[Misfit] = []
        for kind in kinds:
            try:
                return self.fit(value, kind)
            except Misfit as misfit:
                misfits.append(misfit)
        if len(misfits) == 1:
            raise misfits[0]
        raise Misfit(value, " or ".join(dict.fromkeys(misfit.wants for misfit in misfits)))

    def _path(self, value: object) -> str:
        if not isinstance(value, str):
            raise Misfit(value, "a path, as text")
        return value if value == "-" else str(self.folder / value)

    def _function(self, value: object) -> object:
        table = as_table(value)
        if table is None:
            raise Misfit(value, _FUNCTION)
        unknown = [key for key in table if key not in FORMS]
        if unknown:
            raise Misfit(value, _FUNCTION, near(unknown[0], ["object", *FORMS]))
        try:
            return function_of({key: self._inner(each, object) for key, each in table.items()})
        except ValueError as error:
            raise Misfit(value, _FUNCTION, f"; {error}") from error

    def _list(self, value: object, kind: object, make: Callable[[list[object]], object]) -> object:
        values = as_list(value)
        if values is None:
            raise Misfit(value, "a list")
        inner = get_args(kind)
        if len(inner) == 1 or (len(inner) == 2 and inner[1] is Ellipsis):
            kinds: list[object] = [inner[0]] * len(values)
        elif inner and make is tuple:
            kinds = list(inner)
            if len(kinds) != len(values):
                raise Misfit(value, f"a list of {len(kinds)}")
        else:
            kinds = [object] * len(values)
        return make([self._inner(one, each) for one, each in zip(values, kinds, strict=True)])

    def _table(self, value: object, kind: object) -> object:
        table = as_table(value)
        if table is None:
            raise Misfit(value, "a table")
        inner = get_args(kind)
        each = inner[1] if len(inner) == 2 else object
        return {key: self._inner(one, each) for key, one in table.items()}


def _simple(value: object, kind: object) -> object:
    wants = _SIMPLE[kind]
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:  # no bool for an int, and no time of day with a date for a date
        raise Misfit(value, wants)
    return value


def _member(value: object, kind: enum.EnumMeta) -> object:
    members = cast("Mapping[str, enum.Enum]", kind.__members__)
    for name, member in members.items():
        if isinstance(value, str) and value.lower() in (name.lower(), str(member.value).lower()):
            return member
    raise Misfit(value, " or ".join(repr(name.lower()) for name in members))


def _named_object(target: object, kind: object) -> object:
    if not isinstance(target, str) or not OBJECT.fullmatch(target):
        raise Misfit(target, "the name of an object: package.module:name")
    try:
        found = load_object(target)
    except AttributeError as error:
        known = dir(error.obj) if error.obj is not None else ()
        public = [name for name in known if not name.startswith("_")]
        hint = difflib.get_close_matches(error.name or "", public, 1)
        more = f"; did you mean {hint[0]!r}?" if hint else ""
        raise Misfit(target, "", f"{target} is not there: {error}{more}") from error
    except (Exception, SystemExit) as error:
        raise Misfit(
            target, "", f"{target} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not _passes(found, kind):
        shown = describe(found)
        wants = "a function" if _is_function(_origin(_bare(kind))) else str(kind)
        raise Misfit(target, "", f"{target} is {shown}; it takes {wants}")
    return found


def _passes(found: object, kind: object) -> bool:
    """Return False if an object of the program certainly does not fit a parameter."""
    kind = _bare(kind)
    origin = _origin(kind)
    if origin in _UNIONS:
        return any(_passes(found, each) for each in get_args(kind))
    if _is_anything(kind) or origin is Literal:
        return True
    if _is_function(origin):
        return callable(found)
    if kind is float:
        return isinstance(found, (int, float))
    if not isinstance(origin, type) or _is_protocol(origin):
        return True
    return typing_extensions.is_typeddict(origin) or isinstance(found, origin)


def _category(kind: object) -> str | None:
    """Return the category of records whose objects a parameter takes; None for other parameters."""
    kind = _bare(kind)
    origin = _origin(kind)
    if origin in _UNIONS:
        found = filter(None, map(_category, get_args(kind)))
        return next(found, None)
    return _NAMED_KINDS.get(origin) if isinstance(origin, Hashable) else None


def _bare(kind: object) -> object:
    """Return a type without annotations that say more than the class of the values."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif isinstance(kind, NewType):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":  # ``type X = ...`` of Python 3.12
            kind = cast("object", getattr(kind, "__value__"))  # noqa: B009 - not on 3.11
        else:
            return kind


def _origin(kind: object) -> object:
    """Return ``list`` for ``list[int]``; for a type without arguments, the type itself."""
    origin = cast("object", get_origin(kind))
    return kind if origin is None else origin


def _is_anything(kind: object) -> bool:
    if isinstance(kind, (str, TypeVar)):  # a name that only type checkers know
        return True
    return any(kind is each for each in _ANYTHING) or not isinstance(kind, Hashable)


def _is_function(origin: object) -> bool:
    if origin is _FUNCTION_TYPE:
        return True
    return isinstance(origin, type) and _is_protocol(origin) and "__call__" in vars(origin)


def _is_protocol(origin: type) -> bool:
    return bool(getattr(origin, "_is_protocol", False))


def _only(value: object, key: str) -> object | None:
    """Return the value in a table that has only the key `key`; None for any other table."""
    table = as_table(value)
    return table[key] if table is not None and list(table) == [key] else None


def _made(value: object) -> object:
    """Return an argument; flows in it are assembled."""
    if isinstance(value, Nested):
        return value.make()
    values = as_list(value)
    if values is not None:
        return [_made(each) for each in values]
    if isinstance(value, tuple):
        return tuple(_made(each) for each in cast("tuple[object, ...]", value))
    return value


def _no_flow(place: Place, table: Mapping[str, object], category: str = "") -> Nested:
    raise Misfit(table, "")
