"""Predicates, and their combinations.

Constants are recognised, and may decide a combination alone.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Final, TypeVar, final

from flow_rxcompat.agera._static import FALSE, TRUE, combined
from flow_rxcompat.agera.errors import not_none
from flow_rxcompat.agera.protocols import ConditionLike, Predicate, PredicateLike, called

__all__ = [
    "all",
    "any",
    "condition_as_predicate",
    "empty_string",
    "equal_to",
    "false_predicate",
    "instance_of",
    "not_",
    "static_predicate",
    "true_predicate",
]

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


def true_predicate() -> Predicate[object]:
    """Return a predicate that holds for everything."""
    return TRUE


def false_predicate() -> Predicate[object]:
    """Return a predicate that holds for nothing."""
    return FALSE


def static_predicate(value: bool) -> Predicate[object]:
    """Return a predicate that holds for everything or nothing."""
    return TRUE if value else FALSE


@final
class _ApplyingPredicate(Predicate[T_contra]):
    """A plain function as a predicate."""

    __slots__ = ("_apply",)

    def __init__(self, predicate: PredicateLike[T_contra]) -> None:
        self._apply = called(predicate, "apply")

    def apply(self, value: T_contra, /) -> bool:
        return bool(self._apply(value))


@final
class _NegatedPredicate(Predicate[T_contra]):
    __slots__ = ("predicate",)

    def __init__(self, predicate: Predicate[T_contra]) -> None:
        self.predicate = predicate

    def apply(self, value: T_contra, /) -> bool:
        return not self.predicate.apply(value)


@final
class _CompositePredicate(Predicate[T_contra]):
    __slots__ = ("_defining", "_predicates")

    def __init__(self, predicates: Sequence[Predicate[T_contra]], defining: bool) -> None:
        self._predicates = tuple(predicates)
        self._defining = defining

    def apply(self, value: T_contra, /) -> bool:
        for predicate in self._predicates:
            if predicate.apply(value) == self._defining:
                return self._defining
        return not self._defining


@final
class _EqualTo(Predicate[object]):
    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = not_none(value, "equal_to()")

    def apply(self, value: object, /) -> bool:
        return bool(value == self._value)


@final
class _InstanceOf(Predicate[object]):
    __slots__ = ("_type",)

    def __init__(self, type_: type) -> None:
        self._type = not_none(type_, "instance_of()")

    def apply(self, value: object, /) -> bool:
        return isinstance(value, self._type)


@final
class _EmptyString(Predicate[Sized]):
    __slots__ = ()

    def apply(self, value: Sized, /) -> bool:
        return len(value) == 0


@final
class _ConditionAsPredicate(Predicate[object]):
    __slots__ = ("_applies",)

    def __init__(self, condition: ConditionLike) -> None:
        self._applies = called(condition, "applies")

    def apply(self, value: object, /) -> bool:
        return bool(self._applies())


_EMPTY_STRING: Final = _EmptyString()


def _predicate(predicate: PredicateLike[T]) -> Predicate[T]:
    made = called(predicate, "apply")
    owner: object = getattr(made, "__self__", None)
    # An object with the method stays itself, so that constants and negations are recognised.
    return predicate if owner is predicate else _ApplyingPredicate(predicate)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def equal_to(value: object) -> Predicate[object]:
    """Return a predicate that holds for values equal to `value`, which is not None."""
    return _EqualTo(value)


def instance_of(type_: type) -> Predicate[object]:
    """Return a predicate that holds for the instances of a class."""
    return _InstanceOf(type_)


def empty_string() -> Predicate[Sized]:
    """Return a predicate that holds for an empty text or container."""
    return _EMPTY_STRING


def condition_as_predicate(condition: ConditionLike) -> Predicate[object]:
    """Return a predicate that holds when `condition` applies, whatever the value."""
    if condition is TRUE:
        return TRUE
    if condition is FALSE:
        return FALSE
    return _ConditionAsPredicate(condition)


def not_(predicate: PredicateLike[T]) -> Predicate[T]:
    """Return a predicate that holds when `predicate` does not; two negations cancel each other."""
    if isinstance(predicate, _NegatedPredicate):
        return predicate.predicate
    if predicate is TRUE:
        return FALSE
    if predicate is FALSE:
        return TRUE
    return _NegatedPredicate(_predicate(predicate))


def any(*predicates: PredicateLike[T]) -> Predicate[T]:
    """Return a predicate that holds when one of `predicates` does, checked in order.

    Without `predicates`, it never holds.
    """
    return _composite([_predicate(each) for each in predicates], FALSE, TRUE, defines=True)


def all(*predicates: PredicateLike[T]) -> Predicate[T]:
    """Return a predicate that holds when each of `predicates` does, checked in order.

    Without `predicates`, it always holds.
    """
    return _composite([_predicate(each) for each in predicates], TRUE, FALSE, defines=False)


def _composite(
    predicates: list[Predicate[T]],
    default: Predicate[T],
    defining: Predicate[T],
    *,
    defines: bool,
) -> Predicate[T]:
    return combined(predicates, default, defining, lambda left: _CompositePredicate(left, defines))
