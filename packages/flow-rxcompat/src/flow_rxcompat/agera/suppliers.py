"""Suppliers."""

from __future__ import annotations

from typing import TypeVar

from flow_rxcompat.agera._static import StaticProducer
from flow_rxcompat.agera.errors import not_none
from flow_rxcompat.agera.protocols import FunctionLike, Supplier, called

__all__ = ["function_as_supplier", "static_supplier"]

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


def static_supplier(value: T) -> Supplier[T]:
    """Return a supplier that always returns `value`, which is not None."""
    return StaticProducer(value)


class _FunctionAsSupplier(Supplier[R_co]):
    __slots__ = ("_function", "_value")

    def __init__(self, function: FunctionLike[T, R_co], value: T) -> None:
        self._function = called(function, "apply")
        self._value: object = not_none(value, "function_as_supplier()")

    def get(self) -> R_co:
        made: R_co = self._function(self._value)
        return made


def function_as_supplier(function: FunctionLike[T, R], value: T) -> Supplier[R]:
    """Return a supplier that returns the result of `function` for `value`, computed each time."""
    return _FunctionAsSupplier(function, value)
