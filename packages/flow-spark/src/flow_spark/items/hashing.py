"""Hashes of keys that are the same in every process, so that equal keys meet in one partition."""

from __future__ import annotations

import datetime
import enum
import fractions
import functools
import numbers
import zlib
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, Final, cast
from uuid import UUID

__all__ = ["stable_hash"]

_MASK: Final = 2**31 - 1
_NUMBERS: Final = (int, float, complex, Decimal, fractions.Fraction, UUID)
_DAY: Final = datetime.date(1970, 1, 1).toordinal()


def stable_hash(key: Any) -> int:  # Any: a key of whatever type, looked into
    """A hash of `key`, 31 bits; that of text does not depend on the process, as Python's does.

    Keys that are equal have the same hash. Those of classes that are not known here all have the
    same: they are reduced well, but in one place.

    >>> stable_hash("spam") == stable_hash("spam"), stable_hash(1) == stable_hash(1.0)
    (True, True)
    """
    if isinstance(key, str):
        return zlib.crc32(key.encode("utf-8", "surrogatepass")) & _MASK
    if isinstance(key, _NUMBERS) and type(key).__hash__ in _HASHES:
        # By value, whatever the class; but NaN has the hash of its place in memory.
        return hash(key) & _MASK if key == key else 0  # noqa: PLR0124
    if isinstance(key, tuple):
        return _combined(cast("tuple[object, ...]", key))  # whatever is in it
    return _other(key)


def _other(key: Any) -> int:  # Any: as in stable_hash
    if isinstance(key, bytes):
        return zlib.crc32(key) & _MASK
    if isinstance(key, frozenset):
        parts = cast("frozenset[object]", key)  # whatever is in it
        return functools.reduce(int.__xor__, map(stable_hash, parts), 1)
    if isinstance(key, enum.Enum):
        return stable_hash((type(key).__qualname__, key.name))
    if isinstance(key, datetime.datetime):
        if key.utcoffset() is not None:
            key = key.astimezone(datetime.UTC)
        return stable_hash(key.replace(tzinfo=None, fold=0).isoformat())
    if isinstance(key, datetime.date):
        return key.toordinal() - _DAY & _MASK
    if isinstance(key, datetime.timedelta):
        return stable_hash(key // datetime.timedelta.resolution)
    if is_dataclass(key) and not isinstance(key, type) and _compares_fields(type(key)):
        return _combined(getattr(key, field.name) for field in fields(key) if field.compare)
    if _is_number_of_numpy(key):
        return hash(key) & _MASK if key == key else 0  # noqa: PLR0124 - as in stable_hash
    return 0


def _is_number_of_numpy(key: object) -> bool:
    """Whether it has the hash of the number of Python that it equals; asked without NumPy."""
    cls = type(key)
    if cls.__module__ != "numpy":
        return False
    return isinstance(key, numbers.Number) or cls.__name__ in ("bool", "bool_")


def _compares_fields(cls: type[Any]) -> bool:
    """Whether it was ``@dataclass(frozen=True)`` that said what equality is."""
    params: Any = getattr(cls, "__dataclass_params__", None)  # Any: private to dataclasses
    return bool(params and params.eq and params.frozen)


def _combined(parts: Iterable[object]) -> int:
    total = 7
    for part in parts:
        total = (1000003 * total ^ stable_hash(part)) & _MASK
    return total


_HASHES: Final[frozenset[Callable[..., int]]] = frozenset(cls.__hash__ for cls in (*_NUMBERS, bool))
"""Those of the numbers; a subclass with another equality has another hash."""
