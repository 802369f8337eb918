"""Sources that are iterated over."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Final, Never, TypeVar

from flow_core.errors import NoneItemError
from flow_core.flow import Flow
from flow_core.once import once
from flow_core.sources._items import ConstantSource, ItemsSource, RangeSource
from flow_core.stages._closing import ITERATED

__all__ = [
    "ConstantSource",
    "ItemsSource",
    "RangeSource",
    "empty",
    "from_iterable",
    "just",
    "range",
]

T = TypeVar("T")

_NOTHING: Final[ConstantSource[Never]] = ConstantSource(None)


def range(start: int, stop: int | None = None, step: int = 1) -> Flow[int]:
    """Ints from `start` up to but without `stop`, as the builtin `range` counts.

    >>> list(range(3)), list(range(1, 10, 4))
    ([0, 1, 2], [1, 5, 9])

    Args:
        start: the first int; if it is the only argument, it is the stop of a range that starts at
            0.
        stop: the first int that does not belong to the range.
        step: the difference between neighbours; not 0.

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
        items: any iterable. An iterator (a generator, a file, the result of `map` or `zip`) yields
            its items only once: the first run gets them, and each further run fails with
            `FlowError`. A generator is closed when its run is cancelled.

    Returns:
        A flow with back-pressure: it takes an item only when it can deliver it. Fusion: SYNC, also
        across threads: the iterator then runs in the thread that polls it.
    """
    if type(items) not in ITERATED:
        items = once(items, "from_iterable")
    return Flow(ItemsSource(items))


def just(*items: T) -> Flow[T]:
    """The given items.

    >>> list(just(1)), list(just(1, 2))
    ([1], [1, 2])

    Args:
        items: one item makes a constant, which operators may look at during assembly; or several
            items.

    Raises:
        NoneItemError: if one of them is None.
    """
    if len(items) == 1 and items[0] is not None:  # most often, and for each item of another flow
        return Flow(ConstantSource(items[0]))
    for item in items:
        if item is None:
            raise NoneItemError("just(None): None is not an item; empty() has no item")
    return Flow(ItemsSource(items))


def empty() -> Flow[Never]:
    """No item: the flow completes at once, without demand."""
    return Flow(_NOTHING)
