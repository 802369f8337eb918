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

__all__ = ["partition_values", "stable_hash"]

_MASK: Final = 2**31 - 1
_NUMBERS: Final = (int, float, complex, Decimal, fractions.Fraction, UUID)
_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_SEED: Final = 42
"""The seed of the hash by which Spark divides rows."""


def stable_hash(key: Any) -> int:  # Any: a key of any type, looked into
    """Return a hash of `key`, 31 bits.

    Unlike Python's own hash of text, it does not depend on the process.

    Equal keys have the same hash. Keys of classes that are not known here all have the same hash:
    they are handled correctly, but in one place.

    >>> stable_hash("spam") == stable_hash("spam"), stable_hash(1) == stable_hash(1.0)
    (True, True)
    """
    if isinstance(key, str):
        return zlib.crc32(key.encode("utf-8", "surrogatepass")) & _MASK
    if isinstance(key, _NUMBERS) and type(key).__hash__ in _HASHES:
        # By value, whatever the class; but NaN would have the hash of its place in memory.
        return hash(key) & _MASK if key == key else 0  # noqa: PLR0124
    if isinstance(key, tuple):
        return _combined(cast("tuple[object, ...]", key))  # with any contents
    return _other(key)


@functools.lru_cache(maxsize=16)
def partition_values(partitions: int) -> tuple[int, ...]:
    """Return, for each of `partitions`, an integer that Spark's ``repartition`` puts into it.

    Spark hashes the values of the column. If the values were the numbers of the partitions
    themselves, many would end up in the same partition.

    Args:
        partitions: the number of partitions, at least 1.

    >>> partition_values(2)
    (2, 0)
    """
    found: dict[int, int] = {}
    value = 0
    while len(found) < partitions:
        found.setdefault(_hash_of_spark(value) % partitions, value)
        value += 1
    return tuple(found[partition] for partition in range(partitions))


def _hash_of_spark(value: int) -> int:
    """Return the signed 32-bit hash that Spark gives the `value` of an int column: MurmurHash3."""
    mixed = value * 0xCC9E2D51 & 0xFFFFFFFF
    mixed = (mixed << 15 | mixed >> 17) * 0x1B873593 & 0xFFFFFFFF
    total = _SEED ^ mixed
    total = (total << 13 | total >> 19) * 5 + 0xE6546B64 & 0xFFFFFFFF
    total ^= 4  # the bytes of an int
    total = (total ^ total >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    total = (total ^ total >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    total ^= total >> 16
    return total - 2**32 if total >= 2**31 else total


def _other(key: Any) -> int:  # Any: as in stable_hash
    if isinstance(key, bytes):
        return zlib.crc32(key) & _MASK
    if isinstance(key, frozenset):
        parts = cast("frozenset[object]", key)  # with any contents
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
    """Return whether `key` is a number of NumPy, with the hash of the Python number it equals.

    This does not import NumPy.
    """
    cls = type(key)
    if cls.__module__ != "numpy":
        return False
    return isinstance(key, numbers.Number) or cls.__name__ in ("bool", "bool_")


def _compares_fields(cls: type[Any]) -> bool:
    """Return whether ``@dataclass(frozen=True)`` defined its equality."""
    params: Any = getattr(cls, "__dataclass_params__", None)  # Any: private to dataclasses
    return bool(params and params.eq and params.frozen)


def _combined(parts: Iterable[object]) -> int:
    total = 7
    for part in parts:
        total = (1000003 * total ^ stable_hash(part)) & _MASK
    return total


_HASHES: Final[frozenset[Callable[..., int]]] = frozenset(cls.__hash__ for cls in (*_NUMBERS, bool))
"""The hash functions of the numbers; a subclass with another equality has another hash function."""
