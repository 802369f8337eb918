"""The kinds of objects that can stand for a row."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Union
from weakref import WeakKeyDictionary

from typing_extensions import TypeIs

from flow_spark.errors import UnsupportedTypeError

__all__ = [
    "Convert",
    "Fields",
    "TypeHint",
    "all_fields",
    "class_of",
    "has_fields",
    "is_class",
    "is_mapping",
    "is_namedtuple",
    "is_object",
    "is_row_class",
    "is_sequence",
    "know",
    "name_of",
    "or_none",
    "record_fields",
    "shorten",
    "unwrapped",
]

TypeHint = object
"""The type of an annotation; `typing` has no better name for it."""

Fields = list[tuple[str, TypeHint]]

# Any: classes of any kind; values of any type.
_known: Final[WeakKeyDictionary[type[Any], Fields]] = WeakKeyDictionary()
Convert = Callable[[Any], Any]


def record_fields(hint: TypeHint) -> Fields | None:
    """Return the names and types of the fields of a dataclass, NamedTuple or TypedDict.

    The result is None for other types.
    """
    if not is_class(hint):
        return None
    known = _known.get(hint)
    if known is not None:
        return known
    if dataclasses.is_dataclass(hint):
        names = [field.name for field in dataclasses.fields(hint)]
    elif is_namedtuple(hint):
        names = list(hint._fields)
    elif typing.is_typeddict(hint):
        names = None  # they are those of the hints
    else:
        return None
    try:
        hints = typing.get_type_hints(hint, include_extras=False)
    except NameError as error:
        raise UnsupportedTypeError(
            f"{hint.__qualname__}: an annotation needs {error.name!r}, which is not defined there; "
            "import it outside of `if TYPE_CHECKING`, or give a schema"
        ) from error
    names = list(hints) if names is None else names
    missing = [name for name in names if name not in hints]
    if missing:
        raise UnsupportedTypeError(
            f"{hint.__qualname__} does not say the types of {', '.join(missing)}; use "
            "typing.NamedTuple or a dataclass, or give a schema"
        )
    fields = _known[hint] = [(name, hints[name]) for name in names]
    return fields


def all_fields(hint: TypeHint) -> dict[type[Any], Fields]:
    """Return the fields of a class, of the classes in its fields' annotations, and so on."""
    found: dict[type[Any], Fields] = {}
    waiting = [hint]
    while waiting:
        one = waiting.pop()
        fields = record_fields(one)
        if fields is not None and is_class(one) and one not in found:
            found[one] = fields
            waiting += [kind for _, kind in fields]
        else:
            inner, _ = unwrapped(one)
            waiting += typing.get_args(inner) if inner is one else [inner]
    return found


def know(fields: Mapping[type[Any], Fields]) -> None:
    """Take over what `all_fields` found in another process.

    A class that comes by value has no module in this process in which the names of its annotations
    could be looked up.
    """
    _known.update(fields)


def unwrapped(hint: TypeHint) -> tuple[TypeHint, bool]:
    """Return `hint` without Optional, Annotated, NewType and aliases.

    And whether None is allowed.
    """
    optional = False
    while True:
        origin = typing.get_origin(hint)
        if origin is Annotated:
            hint = typing.get_args(hint)[0]
        elif origin in (Union, types.UnionType):
            parts = [part for part in typing.get_args(hint) if part is not types.NoneType]
            if len(parts) != 1:
                return hint, optional
            hint, optional = parts[0], True
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif hasattr(hint, "__value__"):  # type X = ..., since Python 3.12
            hint = getattr(hint, "__value__", None)
        else:
            return hint, optional


def has_fields(cls: type[Any], names: tuple[str, ...]) -> bool:
    """Return whether instances of `cls` have just the fields `names`, in any order."""
    if dataclasses.is_dataclass(cls):
        return {field.name for field in dataclasses.fields(cls)} == set(names)
    return is_namedtuple(cls) and set(cls._fields) == set(names)


def is_object(cls: type[Any], names: tuple[str, ...]) -> bool:
    """Return whether instances of `cls` have a user-defined type, so that each is a bare value."""
    return len(names) == 1 and hasattr(cls, "__UDT__") and not has_fields(cls, names)


def is_class(hint: TypeHint) -> TypeIs[type[Any]]:
    """Return whether `hint` is a class and not another kind of annotation."""
    return isinstance(hint, type)


def is_namedtuple(cls: type[Any]) -> bool:
    """Return whether ``NamedTuple`` or ``namedtuple`` made `cls`."""
    fields: object = getattr(cls, "_fields", None)
    return tuple in cls.__mro__ and isinstance(fields, tuple)


def is_row_class(cls: type[Any]) -> bool:
    """Return whether `cls` is PySpark's ``Row``."""
    return cls.__name__ == "Row" and cls.__module__.startswith("pyspark.sql")


def is_mapping(value: object) -> TypeIs[Mapping[Any, Any]]:
    """Return whether `value` maps names to values."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeIs[tuple[Any, ...] | list[Any]]:
    """Return whether `value` is a row by position."""
    return isinstance(value, (tuple, list))


def class_of(value: object) -> type[Any]:
    """Return the class of `value`."""
    return type(value)


def or_none(convert: Convert | None) -> Convert:
    """Return a function that does as `convert`, except that None stays None."""
    if convert is None:
        return _same
    return lambda value: None if value is None else convert(value)


def shorten(value: object) -> str:
    """Return the repr of `value`, for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def name_of(hint: TypeHint) -> str:
    """Return the name of a type, for a message."""
    return hint.__qualname__ if is_class(hint) else str(hint)


def _same(value: object) -> object:
    return value
