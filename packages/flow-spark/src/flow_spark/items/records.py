"""Records made from columns by C functions, where their class has no code that these would skip."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from types import FunctionType, MemberDescriptorType
from typing import Any, Final, NamedTuple, cast

from flow_spark.items.columns import PORTION
from flow_spark.items.shapes import is_namedtuple

__all__ = ["maker_in_c", "runs_no_code"]


class _One(NamedTuple):
    x: int


_NAMED: Final = cast("type[object]", type(vars(_One)["x"]))
"""The type of the fields of named tuples."""

# Any: the values of a column, whose types a class says.
_Columns = Sequence[Sequence[Any]]
_SetAll = Callable[[Iterable[object], Iterable[Any]], Iterable[None]]

_GENERATED: Final = "__create_fn__.<locals>.__init__"
"""The qualified name of the code of an ``__init__`` that `dataclasses` has generated."""


def maker_in_c(
    cls: type[Any], names: tuple[str, ...]
) -> Callable[[_Columns], Iterable[object]] | None:
    """Return a function that makes instances of `cls` from columns as the class itself does.

    A generated ``__new__`` or ``__init__`` costs a Python frame for each record, and that of a
    frozen dataclass a call for each field as well.

    Args:
        cls: a class of records.
        names: the names of the columns.

    Returns:
        None if it cannot be known that code of the class does no more than keep the values.
    """
    if is_namedtuple(cls):
        plain = _is_generated_namedtuple(cls) and cls._fields == names
        return partial(_named_tuples, cls) if plain else None
    if _is_plain_frozen(cls, names):
        return partial(_frozen, cls, [_setter(cls, name) for name in names])
    return None


def runs_no_code(cls: type[Any]) -> bool:
    """Return whether no code of a user runs when a record is made, read from, and dropped."""
    if hasattr(cls, "__del__") or hasattr(cls, "__getattr__"):
        return False
    if is_namedtuple(cls):
        fields = [cls.__dict__.get(name) for name in cls._fields]
        plain = not {"__getattribute__", "__getitem__"} & cls.__dict__.keys()
        return (
            plain
            and _is_generated_namedtuple(cls)
            and all(type(field) is _NAMED for field in fields)
        )
    names = [field.name for field in dataclasses.fields(cls)] if _is_generated(cls) else []
    own = {name for base in cls.__mro__[:-1] for name in base.__dict__}
    return (
        bool(names)
        and "__getattribute__" not in own
        and not any(_is_descriptor(getattr(cls, name, None)) for name in names)
    )


def _is_descriptor(found: object) -> bool:
    return hasattr(type(found), "__get__") and not isinstance(found, MemberDescriptorType)


def _is_generated_namedtuple(cls: type[Any]) -> bool:
    new: object = cls.__new__
    return (
        cls.__mro__[1:] == (tuple, object)
        and type(cls).__call__ is type.__call__
        and isinstance(new, FunctionType)
        and new.__globals__.get("__name__") == f"namedtuple_{cls.__name__}"
    )


def _is_plain_frozen(cls: type[Any], names: tuple[str, ...]) -> bool:
    # Python makes others as fast by their own __init__.
    return (
        _is_generated(cls)
        and _is_frozen(cls)
        and {field.name for field in dataclasses.fields(cls)} == set(names)
    )


def _is_frozen(cls: Any) -> bool:  # Any: a dataclass
    frozen: bool = cls.__dataclass_params__.frozen
    return frozen


def _is_generated(cls: type[Any]) -> bool:
    """Return whether a dataclass is made by generated code alone, with a value for each field."""
    init: object = cls.__dict__.get("__init__")
    if not (dataclasses.is_dataclass(cls) and isinstance(init, FunctionType)):
        return False
    code = init.__code__
    _, *parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return (
        code.co_qualname == _GENERATED
        and type(cls).__call__ is type.__call__
        and cls.__new__ is object.__new__
        and not hasattr(cls, "__post_init__")
        and (_is_frozen(cls) or cls.__setattr__ is object.__setattr__)
        and {field.name for field in dataclasses.fields(cls)} == set(parameters)
    )


def _named_tuples(cls: type[Any], columns: _Columns) -> Iterable[object]:
    return map(tuple.__new__, repeat(cls), zip(*columns, strict=True))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # of whatever values


def _frozen(cls: type[Any], setters: list[_SetAll], columns: _Columns) -> Iterator[object]:
    # A portion at a time: more objects that nothing has used up yet would start the collector.
    for first in range(0, len(columns[0]), PORTION):
        last = min(first + PORTION, len(columns[0]))
        made = list(map(object.__new__, repeat(cls, last - first)))
        for set_all, column in zip(setters, columns, strict=True):
            deque(set_all(made, column[first:last]), 0)
        yield from made


def _setter(cls: type[Any], name: str) -> _SetAll:
    """Return a function that sets a field of many instances, as it is iterated over."""
    slot: object = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        return partial(map, slot.__set__)
    return lambda made, values: map(object.__setattr__, made, repeat(name), values)
