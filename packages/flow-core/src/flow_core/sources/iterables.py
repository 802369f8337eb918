"""Sources whose items an iterator gives."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import ClassVar, Never, TypeVar, final

from flow_core.errors import NoneItemError
from flow_core.flow import Flow
from flow_core.protocols import IterableSource, ScalarSource

__all__ = ["empty", "from_iterable", "just", "range"]

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
        """What it counts through; a cluster makes its own range of it."""
        return self._ints

    def iterate(self) -> Iterator[int]:
        """See `IterableSource.iterate`."""
        return iter(self._ints)

    def __repr__(self) -> str:
        return repr(self._ints)


@final
class ItemsSource(IterableSource[T]):
    """The items of any iterable; one that is an iterator itself serves one subscriber."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items

    @property
    def items(self) -> Iterable[T]:
        """The iterable itself."""
        return self._items

    def iterate(self) -> Iterator[T]:
        """See `IterableSource.iterate`."""
        return iter(self._items)

    def __repr__(self) -> str:
        return f"from_iterable({type(self._items).__name__})"


@final
class ConstantSource(ScalarSource[T]):
    """One constant, or none."""

    __slots__ = ("_item",)

    def __init__(self, item: T | None) -> None:
        self._item = item

    def call(self) -> T | None:
        """See `CallableSource.call`; constant, and never raises."""
        return self._item

    def iterate(self) -> Iterator[T]:
        """See `IterableSource.iterate`."""
        return iter(() if self._item is None else (self._item,))

    def __repr__(self) -> str:
        return "empty()" if self._item is None else f"just({self._item!r})"


def range(start: int, stop: int | None = None, step: int = 1) -> Flow[int]:
    """Ints from `start` up to but without `stop`, as builtin `range` counts.

    >>> list(range(3)), list(range(1, 10, 4))
    ([0, 1, 2], [1, 5, 9])

    Args:
        start: the first int; or, alone, the stop of a range that starts at 0.
        stop: the first int that is not part of it.
        step: the difference of neighbours, not 0.

    Returns:
        A flow with back-pressure. Fusion: SYNC, also across threads. Thread: the requester's.
    """
    ints = builtins.range(start) if stop is None else builtins.range(start, stop, step)
    return Flow(RangeSource(ints))


def from_iterable(items: Iterable[T]) -> Flow[T]:
    """The items of `items`; a new iterator for each subscriber.

    >>> list(from_iterable("abc").map(str.upper))
    ['A', 'B', 'C']

    Args:
        items: any iterable. A one-shot iterator gives its items to whoever subscribes first; a
            generator is closed when its subscriber cancels (X09).

    Returns:
        A flow with back-pressure: an item is taken only when it can be delivered. Fusion: SYNC,
        also across threads: the iterator then runs in the thread that polls it.
    """
    return Flow(ItemsSource(items))


def just(*items: T) -> Flow[T]:
    """The given items.

    >>> list(just(1)), list(just(1, 2))
    ([1], [1, 2])

    Args:
        items: one for a constant, which operators may use while assembling (F03); or several.

    Raises:
        NoneItemError: if one of them is None.
    """
    if any(item is None for item in items):
        raise NoneItemError("just(None): None is not an item (§2.13); empty() has no item")
    if len(items) == 1:
        return Flow(ConstantSource(items[0]))
    return Flow(ItemsSource(items))


def empty() -> Flow[Never]:
    """No item: completes at once, without demand."""
    return Flow(ConstantSource[Never](None))
