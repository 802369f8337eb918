"""The sources that a loop takes items from: iterators, and queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any, ClassVar, Final, Generic, TypeVar, cast, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import replenish_limit
from flow_core.errors import NoneItemError, throw_if_fatal
from flow_core.flow import Flow
from flow_core.protocols import (
    EMPTY,
    CallableSource,
    Empty,
    IterableSource,
    QueueSubscription,
    Subscription,
)
from flow_core.sources import ItemsSource, RangeSource
from flow_core.stages import Failing, Gate, close_iterator, exhausted
from flow_core.structure import AbsorbingSource, source_of, stages_of

__all__ = [
    "Polled",
    "Pulled",
    "Queued",
    "inline_source",
    "known_inners",
    "none_item",
    "pulled",
    "pushed",
]

T = TypeVar("T")

_PLAIN: Final = frozenset[type]({ItemsSource, RangeSource})
"""Sources that are iterated over and nothing else; nearly every inner flow has one of them."""


def none_item(label: str) -> NoneItemError:
    """Return the error for a source, of an inner flow or before the mapper, that has sent None."""
    return NoneItemError(
        f"{label}: its source gave None, which is not an item; leave such items out, or "
        "use another object in their place"
    )


def inline_source(flow: Flow[Any]) -> IterableSource[Any] | None:  # Any: the type of the first item
    """Return the source of `flow`, if its items come from an iterator and from nothing else."""
    source: Any = source_of(flow)  # Any: a source that can be iterated over
    found: IterableSource[Any] = source
    if type(source) not in _PLAIN and (
        not isinstance(source, IterableSource)
        or hasattr(cast("object", source), "subscribe")
        or isinstance(source, AbsorbingSource)
    ):
        return None
    return found


def known_inners(upstream: Flow[Any]) -> tuple[object, ...]:  # Any: flows of any type
    """Return the items of `upstream`, if they are a list of known flows; for `flow explain`."""
    inners: tuple[object, ...] = getattr(source_of(upstream), "inners", ())
    return () if stages_of(upstream) else inners


def pulled(flow: Flow[T], gate: Gate, *, checked: bool = False) -> Pulled[T] | None:
    """Return `flow` as an iterator in this thread, or None if it has to be subscribed to.

    Args:
        flow: the flow to iterate over.
        gate: ends the loop soon when it is cancelled, even one that drops all items.
        checked: whether the iterator checks for None; otherwise it may leave that to the reader of
            the items.

    Raises:
        BaseException: an error that the source raises when it is called or iterated, unless a stage
            of the flow handles errors.
    """
    source = inline_source(flow)
    if source is None:
        return None
    node = flow._placed()
    shape = flow._staged().shape if node.deep else node.shape or node.shaped()
    if not (shape.templates and (checked or flow._args is not None)):
        raw = _iterated(source)
        return Pulled(raw, raw)
    if shape.closes:
        # A stage has to see the end of this flow alone, but the gate belongs to all inner flows.
        return None
    # flat_map_iterable has items left of the last one; first_or_error fails without an item.
    knows_end = not (shape.accounts or shape.ends)
    try:
        raw = _iterated(source)
    except BaseException as error:
        throw_if_fatal(error)
        if not (shape.handles or shape.starts):
            raise
        raw = Failing(error)  # the stages handle the error, or have items before it
        knows_end = False
    return Pulled(flow._polled(raw, gate), raw, knows_end=knows_end)


def pushed(
    flow: Flow[T], on_next: Callable[[T], object], gate: Gate
) -> GeneratorType[int, int, None] | None:
    """Return a loop that sends all items of `flow`, if it is a plain iterable.

    See `Chain._pushed`.

    One ``next`` runs the loop to its end, or until its gate is cancelled: then it yields a number
    and has to be closed.

    Args:
        flow: the flow to iterate over.
        on_next: gets each item; its result does not matter.
        gate: ends the loop soon when it is cancelled.
    """
    source: Any = source_of(flow)  # Any: a source that can be iterated over
    if type(source) not in _PLAIN and (
        inline_source(flow) is None or isinstance(source, CallableSource)
    ):
        return None
    return flow._pushed(source, on_next, gate)


def _iterated(source: IterableSource[Any]) -> Iterator[Any]:  # Any: the type of the first item
    if isinstance(source, CallableSource):
        item: object = source.call()
        return iter(() if item is None else (item,))
    return source.iterate()


@final
class Pulled(IterableSource[T]):
    """Items of an iterator, which was made from `raw`.

    As a source, it yields the items that are left.

    Args:
        items: the items; may be `raw` itself.
        raw: the source's iterator.
        knows_end: whether `items` has none left when `raw` has none left.
    """

    __slots__ = ("_knows_end", "_raw", "items")

    none_free: ClassVar[bool] = True

    def __init__(self, items: Iterator[T], raw: Iterator[Any], *, knows_end: bool = True) -> None:
        self.items = items
        self._raw = raw
        self._knows_end = knows_end

    @override
    def iterate(self) -> Iterator[T]:
        return self.items

    def ended(self) -> bool:
        """Return whether it is certain, without asking for an item, that none is left."""
        return self._knows_end and exhausted(self._raw)

    def close(self) -> None:
        """Close generators. The thread that drains calls this, never while they run (X09)."""
        try:
            close_iterator(self.items)
            if self._raw is not self.items:
                close_iterator(self._raw)
        except BaseException as error:  # a `finally` of the user's generator
            throw_if_fatal(error)
            hooks.drop_error(error)


@final
class Polled(Generic[T]):
    """The items of an upstream that has granted SYNC."""

    __slots__ = ("_queue", "items")

    def __init__(self, queue: QueueSubscription[T]) -> None:
        self._queue = queue
        self.items = _poll_all(queue.poll)

    def ended(self) -> bool:
        """Return whether it is certain that no item is left; see `Pulled.ended`."""
        return self._queue.is_empty()

    def close(self) -> None:
        """Drop the items that could still be polled."""
        try:
            self._queue.clear()
        except BaseException as error:  # a `finally` of the user's generator
            throw_if_fatal(error)
            hooks.drop_error(error)


@final
class Queued(Generic[T]):
    """Items that wait, in our own queue or in that of an upstream which has granted ASYNC.

    This object is its own iterator, which may end, and continue when there are items again.
    Whenever 75 % of the prefetch were taken, as many items are requested again.

    Args:
        upstream: the subscription to request items of.
        prefetch: how many items were requested at first, and may wait.
        shared: the upstream's queue, if items are polled from it.
    """

    __slots__ = ("_consumed", "_limit", "_poll", "_shared", "_upstream", "_waiting", "prefetch")

    def __init__(
        self, upstream: Subscription, prefetch: int, shared: QueueSubscription[T] | None = None
    ) -> None:
        self.prefetch = prefetch
        self._upstream = upstream
        self._shared = shared
        self._waiting: deque[T] = deque()
        self._poll: Callable[[], T | Empty] = self._pop if shared is None else shared.poll
        self._limit = replenish_limit(prefetch)
        self._consumed = 0

    @property
    def items(self) -> Iterator[T]:
        """Return this object."""
        return self

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        item = self._poll()
        if item is EMPTY:
            raise StopIteration
        self._consumed += 1
        if self._consumed == self._limit:
            self._consumed = 0
            self._upstream.request(self._limit)
        return item

    @property
    def waiting(self) -> int | None:
        """Return the number of items that wait here.

        The result is None if they wait in an upstream that is polled.
        """
        return len(self._waiting) if self._shared is None else None

    def offer(self, item: T) -> bool:
        """Have `item` wait; return False if there is no room."""
        if len(self._waiting) >= self.prefetch:
            return False
        self._waiting.append(item)
        return True

    def ended(self) -> bool:
        """Return whether no item waits."""
        return not self._waiting if self._shared is None else self._shared.is_empty()

    def close(self) -> None:
        """Drop the items that wait."""
        if self._shared is not None:
            self._shared.clear()
        self._poll = _nothing  # its own method would be a reference cycle
        while (item := self._pop()) is not EMPTY:
            hooks.drop_item(item)

    def _pop(self) -> T | Empty:
        try:
            return self._waiting.popleft()
        except IndexError:
            return EMPTY


def _poll_all(poll: Callable[[], T | Empty]) -> Iterator[T]:
    # Not iter(poll, EMPTY): that compares by ==, which calls code of the items (X13).
    while (item := poll()) is not EMPTY:
        yield item


def _nothing() -> Empty:
    return EMPTY
