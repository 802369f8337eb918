"""Functions, and how to compose them from steps.

`function_from` and `function_from_list_of` begin a description; each step returns a new one, so a
description may be continued in several ways. A method whose name begins with ``then_`` ends the
description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any, Final, Generic, TypeVar, final

from flow_rxcompat.agera._static import NULL, TRUE, StaticProducer
from flow_rxcompat.agera.protocols import (
    Function,
    FunctionLike,
    PredicateLike,
    SupplierLike,
    called,
)
from flow_rxcompat.agera.result import Result

__all__ = [
    "FItem",
    "FList",
    "failed_result",
    "function_from",
    "function_from_list_of",
    "identity_function",
    "item_as_list",
    "result_as_list",
    "result_list_as_list",
    "static_function",
    "supplier_as_function",
]

T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P")
F = TypeVar("F")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

_Step = Callable[[Any], Any]  # Any: the types of neighbouring steps need only fit each other


@final
class _Applied(Function[T_contra, R_co]):
    """A plain function of a value."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[T_contra], R_co]) -> None:
        self._function = function

    def apply(self, value: T_contra, /) -> R_co:
        return self._function(value)


def static_function(value: R) -> Function[object, R]:
    """Return a function that always returns `value`, which is not None."""
    return StaticProducer(value)


def supplier_as_function(supplier: SupplierLike[R]) -> Function[object, R]:
    """Return a function that returns the value of `supplier`, whatever its argument."""
    get: Callable[[], R] = called(supplier, "get")
    made: Function[object, R] = _Applied(lambda _: get())
    return made


def identity_function() -> Function[T, T]:
    """Return a function that returns its argument."""
    return NULL


def _failed(failure: BaseException) -> Result[Any]:  # Any: there is no value
    return Result.failure(failure)


def _as_list(result: Result[T]) -> list[T]:
    return result.as_list()


def _item(value: T) -> list[T]:
    return [value]


def _list_as_list(result: Result[list[T]]) -> list[T]:
    return result.get() if result.is_present else []


_FAILED_RESULT: Final = _Applied(_failed)
_RESULT_AS_LIST: Final[Function[Any, Any]] = _Applied(_as_list)  # Any: here and below, each type
_ITEM_AS_LIST: Final[Function[Any, Any]] = _Applied(_item)
_RESULT_LIST_AS_LIST: Final[Function[Any, Any]] = _Applied(_list_as_list)


def failed_result() -> Function[BaseException, Result[Any]]:  # Any: there is no value
    """Return a function that returns a failed result, with its argument as the failure."""
    return _FAILED_RESULT


def result_as_list() -> Function[Result[T], list[T]]:
    """Return a function that turns a result into a list.

    The list has the value as its only item, or no items if the result has no value.
    """
    return _RESULT_AS_LIST


def item_as_list() -> Function[T, list[T]]:
    """Return a function that returns a list with its argument as the only item."""
    return _ITEM_AS_LIST


def result_list_as_list() -> Function[Result[list[T]], list[T]]:
    """Return a function that returns the list in a result, or an empty list if there is none."""
    return _RESULT_LIST_AS_LIST


# -- the steps


def _filter(holds: Callable[[Any], bool]) -> _Step:
    def run(items: Iterable[Any]) -> list[Any]:
        return [item for item in items if holds(item)]

    return run


def _map(function: _Step) -> _Step:
    def run(items: Iterable[Any]) -> list[Any]:
        return [function(item) for item in items]

    return run


def _limit(limit: int) -> _Step:
    def run(items: list[Any]) -> list[Any]:
        return items if len(items) < limit else items[: max(0, limit)]

    return run


def _sort(comparator: Callable[[Any, Any], int]) -> _Step:
    def run(items: list[Any]) -> list[Any]:
        return sorted(items, key=cmp_to_key(comparator))

    return run


class _Steps(Generic[P, F]):
    """The base of `FItem` and `FList`: they hold the steps so far."""

    __slots__ = ("_steps",)

    def __init__(self, steps: tuple[_Step, ...]) -> None:
        self._steps = steps

    def _with(self, step: _Step | None) -> tuple[_Step, ...]:
        return self._steps if step is None else (*self._steps, step)

    def _function(self, step: _Step | None) -> Function[Any, Any]:
        steps = self._with(step)
        if not steps:
            return NULL

        def chain(value: Any) -> Any:
            for each in steps:
                value = each(value)
            return value

        return _Applied(chain)


def _applying(function: object) -> _Step | None:
    return None if function is NULL else called(function, "apply")


def _mapping(function: object) -> _Step | None:
    return None if function is NULL else _map(called(function, "apply"))


def _filtering(predicate: object) -> _Step | None:
    return None if predicate is TRUE else _filter(called(predicate, "apply"))


@final
class FItem(_Steps[P, F]):
    """A function of `F` whose result so far is a `P`."""

    __slots__ = ()

    def apply(self, function: FunctionLike[P, R], /) -> FItem[R, F]:
        """Apply `function` to the item."""
        return FItem(self._with(_applying(function)))

    def then_apply(self, function: FunctionLike[P, R], /) -> Function[F, R]:
        """Apply `function` to the item, and end the description."""
        return self._function(_applying(function))

    def unpack(self, function: FunctionLike[P, list[R]], /) -> FList[R, F]:
        """Turn the item into a list; steps for lists may follow."""
        return FList(self._with(_applying(function)))


@final
class FList(_Steps[P, F]):
    """A function of `F` whose result so far is a list of `P`."""

    __slots__ = ()

    def apply(self, function: FunctionLike[list[P], R], /) -> FItem[R, F]:
        """Apply `function` to the whole list."""
        return FItem(self._with(_applying(function)))

    def then_apply(self, function: FunctionLike[list[P], R], /) -> Function[F, R]:
        """Apply `function` to the whole list, and end the description."""
        return self._function(_applying(function))

    def morph(self, function: FunctionLike[list[P], list[R]], /) -> FList[R, F]:
        """Replace the list by another list."""
        return FList(self._with(_applying(function)))

    def map(self, function: FunctionLike[P, R], /) -> FList[R, F]:
        """Apply `function` to each item."""
        return FList(self._with(_mapping(function)))

    def then_map(self, function: FunctionLike[P, R], /) -> Function[F, list[R]]:
        """Apply `function` to each item, and end the description."""
        return self._function(_mapping(function))

    def filter(self, predicate: PredicateLike[P], /) -> FList[P, F]:
        """Keep the items for which `predicate` holds."""
        return FList(self._with(_filtering(predicate)))

    def then_filter(self, predicate: PredicateLike[P], /) -> Function[F, list[P]]:
        """Keep the items for which `predicate` holds, and end the description."""
        return self._function(_filtering(predicate))

    def limit(self, limit: int, /) -> FList[P, F]:
        """Keep at most the first `limit` items."""
        return FList(self._with(_limit(limit)))

    def then_limit(self, limit: int, /) -> Function[F, list[P]]:
        """Keep at most the first `limit` items, and end the description."""
        return self._function(_limit(limit))

    def sort(self, comparator: Callable[[P, P], int], /) -> FList[P, F]:
        """Sort the items; equal items keep their order.

        Args:
            comparator: called with two items; returns a number below 0 if the first one comes
                first, above 0 if the second one does, and 0 if they are equal.
        """
        return FList(self._with(_sort(comparator)))

    def then_sort(self, comparator: Callable[[P, P], int], /) -> Function[F, list[P]]:
        """Sort the items, and end the description; see `sort`."""
        return self._function(_sort(comparator))


def function_from(kind: type[F] | None = None) -> FItem[F, F]:
    """Describe a function of one item.

    >>> shout = function_from(str).apply(str.upper).then_apply(lambda text: text + "!")
    >>> shout.apply("hello")
    'HELLO!'

    Args:
        kind: the class of the item, for the type checker only.
    """
    return FItem(())


def function_from_list_of(kind: type[F] | None = None) -> FList[F, list[F]]:
    """Describe a function of a list.

    >>> squares = function_from_list_of(int).filter(lambda n: n > 1).then_map(lambda n: n * n)
    >>> squares.apply([1, 2, 3])
    [4, 9]

    Args:
        kind: the class of the items, for the type checker only.
    """
    return FList(())
