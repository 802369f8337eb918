"""Mergers."""

from __future__ import annotations

from typing import Final, TypeVar, final

from flow_rxcompat.agera._static import StaticProducer
from flow_rxcompat.agera.protocols import Merger

__all__ = ["objects_unequal", "static_merger"]

T = TypeVar("T")


def static_merger(value: T) -> Merger[object, object, T]:
    """Return a merger that always returns `value`, which is not None."""
    return StaticProducer(value)


@final
class _ObjectsUnequal(Merger[object, object, bool]):
    __slots__ = ()

    def merge(self, first: object, second: object, /) -> bool:
        return not first == second  # noqa: SIM201 - equality is asked, as Agera does


_OBJECTS_UNEQUAL: Final = _ObjectsUnequal()


def objects_unequal() -> Merger[object, object, bool]:
    """Return a merger that returns whether its two values are not equal."""
    return _OBJECTS_UNEQUAL
