"""The sources of known items. They know nothing of flows, which import them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import ClassVar, Never, TypeVar, final

from typing_extensions import override

from flow_core.errors import ProtocolViolationError
from flow_core.once import Once
from flow_core.protocols import IterableSource, ScalarSource

__all__ = ["ConstantSource", "FailedSource", "ItemsSource", "RangeSource"]

T = TypeVar("T")


@final
class RangeSource(IterableSource[int]):
    """Consecutive ints."""

    __slots__ = ("_ints",)

    none_free: ClassVar[bool] = True

    def __init__(self, ints: builtins.range) -> None:
        self._ints = ints

    @property
    def ints(self) -> builtins.range:
        """Return the `range` of the ints; a cluster makes its own range of it."""
        return self._ints

    @override
    def iterate(self) -> Iterator[int]:
        return iter(self._ints)

    def __repr__(self) -> str:
        return repr(self._ints)


@final
class ItemsSource(IterableSource[T]):
    """The items of any iterable; an iterator serves one run, see `once`."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items

    @property
    def items(self) -> Iterable[T]:
        """Return the iterable itself."""
        items = self._items
        return items.iterator if isinstance(items, Once) else items

    @override
    def iterate(self) -> Iterator[T]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"from_iterable({type(self.items).__name__})"


@final
class ConstantSource(ScalarSource[T]):
    """One constant item, or no item."""

    __slots__ = ("_item",)

    def __init__(self, item: T | None) -> None:
        self._item = item

    @override
    def call(self) -> T | None:
        """Return the constant; never raises."""
        return self._item

    @override
    def iterate(self) -> Iterator[T]:
        return iter(() if self._item is None else (self._item,))

    def __repr__(self) -> str:
        return "empty()" if self._item is None else f"just({self._item!r})"


@final
class FailedSource(IterableSource[Never]):
    """The source for one subscriber for which a deferred source could not make a flow.

    Args:
        error: the error that `iterate` raises.
    """

    __slots__ = ("_error",)

    none_free: ClassVar[bool] = True

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    @override
    def iterate(self) -> Iterator[Never]:
        error, self._error = self._error, None
        try:
            raise ProtocolViolationError("iterated twice") if error is None else error
        finally:
            del error  # otherwise it would be part of a cycle, with the frame in its traceback
