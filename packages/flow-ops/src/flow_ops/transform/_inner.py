"""What items are taken from in a loop: iterators, and queues."""

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
"""Sources that are iterated over and nothing else; there is one for nearly every inner flow."""


def none_item(label: str) -> NoneItemError:
    """The error for a source that gave None, before the mapper or as an inner flow."""
    return NoneItemError(
        f"{label}: its source gave None, which is not an item; leave such items out, or "
        "stand for them with an object of your own"
    )


def inline_source(flow: Flow[Any]) -> IterableSource[Any] | None:  # Any: of the first item
    """The source of `flow`, if its items come from an iterator and from nothing else."""
    source: Any = source_of(flow)  # Any: one that can be iterated over
    found: IterableSource[Any] = source
    if type(source) not in _PLAIN and (
        not isinstance(source, IterableSource)
        or hasattr(cast("object", source), "subscribe")
        or isinstance(source, AbsorbingSource)
    ):
        return None
    return found


def known_inners(upstream: Flow[Any]) -> tuple[object, ...]:  # Any: of whatever flows
    """The items of `upstream`, if it is a list of flows; for `flow explain`."""
    inners: tuple[object, ...] = getattr(source_of(upstream), "inners", ())
    return () if stages_of(upstream) else inners


def pulled(flow: Flow[T], gate: Gate, *, checked: bool = False) -> Pulled[T] | None:
    """`flow` as an iterator in this thread, or None if it has to be subscribed to.

    Args:
        flow: what gives the items.
        gate: ends the loop soon when it is cancelled, even one that drops all items.
        checked: whether it looks for None; otherwise it may leave that to who takes the items.

    Raises:
        BaseException: what the source raises when it is called or iterated, unless a stage of the
            flow deals with errors.
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
        return None  # it has to hear how it ended: by its subscription, as the gate is that of all
    # flat_map_iterable has items left of the last one; first_or_error fails where there is none.
    knows_end = not (shape.accounts or shape.ends)
    try:
        raw = _iterated(source)
    except BaseException as error:
        throw_if_fatal(error)
        if not (shape.handles or shape.starts):
            raise
        raw = Failing(error)  # the stages want to hear of it, or have items before it
        knows_end = False
    return Pulled(flow._polled(raw, gate), raw, knows_end=knows_end)


def pushed(
    flow: Flow[T], on_next: Callable[[T], object], gate: Gate
) -> GeneratorType[int, int, None] | None:
    """Return a loop that sends all items of `flow`, if it is a plain iterable.

    See `Chain._pushed`.

    Begun by ``next``, it runs to its end, or to where its gate is cancelled: then it gives a number
    and is to be closed.

    Args:
        flow: what gives the items.
        on_next: gets each item; what it returns does not matter.
        gate: ends the loop soon when it is cancelled.
    """
    source: Any = source_of(flow)  # Any: one that can be iterated over
    if type(source) not in _PLAIN and (
        inline_source(flow) is None or isinstance(source, CallableSource)
    ):
        return None
    return flow._pushed(source, on_next, gate)


def _iterated(source: IterableSource[Any]) -> Iterator[Any]:  # Any: of the first item
    if isinstance(source, CallableSource):
        item: object = source.call()
        return iter(() if item is None else (item,))
    return source.iterate()


@final
class Pulled(IterableSource[T]):
    """Items from an iterator, which was made of `raw`. As a source, it gives those that are left.

    Args:
        items: the items; may be `raw` itself.
        raw: the source's iterator.
        knows_end: whether there are no items when `raw` has none.
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
        """Whether it is certain, without asking for an item, that there is none."""
        return self._knows_end and exhausted(self._raw)

    def close(self) -> None:
        """Close generators; in the thread that drains, and never while they run (X09)."""
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
        """See `Pulled.ended`."""
        return self._queue.is_empty()

    def close(self) -> None:
        """Drop what could still be polled."""
        try:
            self._queue.clear()
        except BaseException as error:  # a `finally` of the user's generator
            throw_if_fatal(error)
            hooks.drop_error(error)


@final
class Queued(Generic[T]):
    """Items that wait, in a queue of our own or in that of an upstream which has granted ASYNC.

    It is its own iterator, which may end and go on when there are items again. Taking items
    requests 75 % of the prefetch again and again.

    Args:
        upstream: what is requested.
        prefetch: how many items were requested at first, and may wait.
        shared: the upstream's queue, if it is polled.
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
        """This object."""
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
        """How many items wait here; None if they wait with an upstream that is polled."""
        return len(self._waiting) if self._shared is None else None

    def offer(self, item: T) -> bool:
        """Have `item` wait; False if there is no room."""
        if len(self._waiting) >= self.prefetch:
            return False
        self._waiting.append(item)
        return True

    def ended(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting if self._shared is None else self._shared.is_empty()

    def close(self) -> None:
        """Drop what waits."""
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
    # Not iter(poll, EMPTY), which compares by ==, and calls what the items say to that (X13).
    while (item := poll()) is not EMPTY:
        yield item


def _nothing() -> Empty:
    return EMPTY
