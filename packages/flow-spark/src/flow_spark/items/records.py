"""Records made from columns in C, if their class has no code that could notice."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from types import FunctionType, MemberDescriptorType
from typing import Any, Final

from flow_spark.items.columns import PORTION
from flow_spark.items.shapes import is_namedtuple

__all__ = ["maker_in_c"]

# Any: the values of a column, whose types a class says.
_Columns = Sequence[Sequence[Any]]
_SetAll = Callable[[Iterable[object], Iterable[Any]], Iterable[None]]

_USED_BY_FROZEN: Final = "__dataclass_builtins_object__"
"""The name by which the ``__init__`` of a frozen dataclass, as Python generates it, calls
``object.__setattr__``."""


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
        return partial(_named_tuples, cls) if _is_plain_namedtuple(cls, names) else None
    if _is_plain_frozen(cls, names):
        return partial(_frozen, cls, [_setter(cls, name) for name in names])
    return None


def _is_plain_namedtuple(cls: type[Any], names: tuple[str, ...]) -> bool:
    new: object = cls.__new__
    return (
        cls.__mro__[1:] == (tuple, object)
        and type(cls).__call__ is type.__call__
        and isinstance(new, FunctionType)
        and new.__globals__.get("__name__") == f"namedtuple_{cls.__name__}"
        and cls._fields == names
    )


def _is_plain_frozen(cls: type[Any], names: tuple[str, ...]) -> bool:
    init: object = cls.__dict__.get("__init__")
    if not (dataclasses.is_dataclass(cls) and isinstance(init, FunctionType)):
        return False
    code = init.__code__
    _, *parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return (
        _USED_BY_FROZEN in (*code.co_freevars, *code.co_names)
        and type(cls).__call__ is type.__call__
        and cls.__new__ is object.__new__
        and not hasattr(cls, "__post_init__")
        and {field.name for field in dataclasses.fields(cls)} == set(parameters) == set(names)
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
