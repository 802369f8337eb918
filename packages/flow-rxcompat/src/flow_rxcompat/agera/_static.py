"""The constants of several factories, recognised by identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar, final

from flow_rxcompat.agera.errors import not_none

__all__ = ["FALSE", "NULL", "TRUE", "StaticProducer", "combined"]

P = TypeVar("P")
T = TypeVar("T")


@final
class _NullOperator:
    """Returns its argument, or does nothing."""

    __slots__ = ()

    def apply(self, value: Any, /) -> Any:  # Any: here and below, any type that is asked for
        """Return the argument."""
        return value

    def accept(self, value: Any, /) -> None:
        """Do nothing."""

    def bind(self, first: Any, second: Any, /) -> None:
        """Do nothing."""


@final
class _StaticCondicate:
    """A condition, and a predicate, that is always or never true."""

    __slots__ = ("_value",)

    def __init__(self, value: bool) -> None:
        self._value = value

    def apply(self, value: object, /) -> bool:
        """Return whether this is always true, whatever the value."""
        return self._value

    def applies(self) -> bool:
        """Return whether this is always true."""
        return self._value


@final
class StaticProducer(Generic[T]):
    """A supplier, a function and a merger that always return one value."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = not_none(value, "a static value")

    def get(self) -> T:
        """Return the value."""
        return self._value

    def apply(self, value: object, /) -> T:
        """Return the value, whatever the argument."""
        return self._value

    def merge(self, first: object, second: object, /) -> T:
        """Return the value, whatever the arguments."""
        return self._value


NULL: Final = _NullOperator()
TRUE: Final = _StaticCondicate(True)
FALSE: Final = _StaticCondicate(False)


def combined(parts: Iterable[P], default: P, defining: P, compose: Callable[[list[P]], P]) -> P:
    """Combine `parts`; a constant among them is left out, or decides alone.

    Args:
        parts: conditions, or predicates; one that is `defining` decides the result.
        default: the constant that decides nothing.
        defining: the constant that decides.
        compose: combines the parts that are left, at least two.
    """
    left: list[P] = []
    for part in parts:
        if part is defining:
            return defining
        if part is not default:
            left.append(part)
    if not left:
        return default
    return left[0] if len(left) == 1 else compose(left)
