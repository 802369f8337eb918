"""Conditions, and their combinations.

Constants are recognised, and may decide a combination alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, final

from flow_rxcompat.agera._static import FALSE, TRUE, combined
from flow_rxcompat.agera.protocols import (
    Condition,
    ConditionLike,
    PredicateLike,
    SupplierLike,
    called,
)

__all__ = [
    "all",
    "any",
    "false_condition",
    "not_",
    "predicate_as_condition",
    "static_condition",
    "true_condition",
]

T = TypeVar("T")


def true_condition() -> Condition:
    """Return a condition that always applies."""
    return TRUE


def false_condition() -> Condition:
    """Return a condition that never applies."""
    return FALSE


def static_condition(value: bool) -> Condition:
    """Return a condition that always or never applies."""
    return TRUE if value else FALSE


@final
class _Applying(Condition):
    """A plain function as a condition."""

    __slots__ = ("applies_now",)

    def __init__(self, condition: ConditionLike) -> None:
        self.applies_now = called(condition, "applies")

    def applies(self) -> bool:
        return bool(self.applies_now())


@final
class _Negated(Condition):
    __slots__ = ("_applies", "condition")

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self._applies = condition.applies

    def applies(self) -> bool:
        return not self._applies()


@final
class _Composite(Condition):
    __slots__ = ("_conditions", "_defining")

    def __init__(self, conditions: Sequence[Condition], defining: bool) -> None:
        self._conditions = tuple(conditions)
        self._defining = defining

    def applies(self) -> bool:
        for condition in self._conditions:
            if condition.applies() == self._defining:
                return self._defining
        return not self._defining


@final
class _PredicateCondition(Condition):
    __slots__ = ("_apply", "_get")

    def __init__(self, predicate: PredicateLike[T], supplier: SupplierLike[T]) -> None:
        self._apply = called(predicate, "apply")
        self._get = called(supplier, "get")

    def applies(self) -> bool:
        return bool(self._apply(self._get()))


def _condition(condition: ConditionLike) -> Condition:
    made = called(condition, "applies")
    owner: object = getattr(made, "__self__", None)
    # An object with the method stays itself, so that constants and negations are recognised.
    return condition if owner is condition else _Applying(condition)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def not_(condition: ConditionLike) -> Condition:
    """Return a condition that applies when `condition` does not.

    Two negations cancel each other.
    """
    if isinstance(condition, _Negated):
        return condition.condition
    if condition is TRUE:
        return FALSE
    if condition is FALSE:
        return TRUE
    return _Negated(_condition(condition))


def any(*conditions: ConditionLike) -> Condition:
    """Return a condition that applies when one of `conditions` does, checked in order.

    Without `conditions`, it never applies.
    """
    return _composite(conditions, FALSE, TRUE)


def all(*conditions: ConditionLike) -> Condition:
    """Return a condition that applies when each of `conditions` does, checked in order.

    Without `conditions`, it always applies.
    """
    return _composite(conditions, TRUE, FALSE)


def _composite(
    conditions: tuple[ConditionLike, ...], default: Condition, defining: Condition
) -> Condition:
    return combined(
        [_condition(condition) for condition in conditions],
        default,
        defining,
        lambda left: _Composite(left, defining.applies()),
    )


def predicate_as_condition(predicate: PredicateLike[T], supplier: SupplierLike[T]) -> Condition:
    """Return a condition that applies when `predicate` holds for the value of `supplier`.

    With a constant predicate, `supplier` is not called.
    """
    if predicate is TRUE:
        return TRUE
    if predicate is FALSE:
        return FALSE
    return _PredicateCondition(predicate, supplier)
