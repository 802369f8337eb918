"""`serialized`: a processor that several threads feed at once."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import Flow, hooks
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.errors import MissingBackpressureError, none_given
from flow_core.introspection import Statistics
from flow_core.protocols import CoreSubscriber, Processor, Subscriber, Subscription
from flow_core.serial import BUSY, SerialDrain
from flow_multicast.processors._hot import HotProcessor
from flow_multicast.processors.multicast import MulticastProcessor
from flow_multicast.processors.unicast import UnicastProcessor

__all__ = ["SerializedProcessor", "serialized"]

T = TypeVar("T")


def serialized(
    processor: HotProcessor[T] | MulticastProcessor[T] | UnicastProcessor[T],
    *,
    capacity: int = DEFAULT_PREFETCH,
) -> SerializedProcessor[T]:
    """Return a front for `processor` that several threads may signal at the same time.

    >>> from flow_multicast import DirectProcessor
    >>> numbers = serialized(DirectProcessor[int]())
    >>> handle = numbers.flow.subscribe(print)
    >>> numbers.on_next(1)
    1

    A signal that comes while another one is delivered waits, and is delivered by the delivering
    thread; no thread blocks. Items of one thread stay in order, and an end comes after the items
    before it. This is for feeding by hand: an upstream that signals from several threads needs
    `flow_core.operators.serialize`, which respects demand. A `Sink` returns a result instead of
    waiting.

    Demand: that of `processor`. When `capacity` items wait, `on_next` ends the flow with a
    MissingBackpressureError, after these items, and `offer` returns False. Several threads may find
    the same last place free: each of them may then exceed `capacity` by one item.
    Thread: one of those that feed; one at a time. Fusion: none.
    Errors: those that are sent to the front.

    Args:
        processor: gets the signals; no other code may feed it.
        capacity: how many items may wait.

    Returns:
        A processor with the subscribers of `processor`.

    Raises:
        TypeError: if `capacity` is not an int.
        ValueError: if `capacity` is less than 1.
    """
    return SerializedProcessor(processor, capacity)


@final
class SerializedProcessor(SerialDrain, CoreSubscriber[T], Processor[T, T], Generic[T]):
    """See `serialized`, which returns this front."""

    __slots__ = (
        "__weakref__",
        "_ends",
        "_member",
        "_processor",
        "_queue",
        "_told",
        "_upstream",
        "capacity",
    )

    def __init__(
        self,
        processor: HotProcessor[T] | MulticastProcessor[T] | UnicastProcessor[T],
        capacity: int = DEFAULT_PREFETCH,
    ) -> None:
        super().__init__()
        self._processor = processor
        self.capacity: Final = check_prefetch(capacity, "capacity")
        self._queue: deque[T] = deque()
        self._ends: dict[int, list[BaseException | None]] = {}
        """The first end (`setdefault`), after which nothing more is accepted: a list of an error or
        None, empty once that was sent."""
        self._member: dict[int, object] = {}
        """The first upstream (`setdefault`), for good."""
        self._told = False
        """True when the processor has got the end. Used with the permit."""
        self._upstream: Subscription | None = None

    # -- for the subscribers

    @property
    def flow(self) -> Flow[T]:
        """The processor with the operators of a `Flow`."""
        return self._processor.flow

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self._processor.subscribe(subscriber)

    @property
    def waiting(self) -> int:
        """The number of items that wait for the delivering thread."""
        return len(self._queue)

    def statistics(self) -> Statistics:
        """Return the statistics of the processor, with the items that wait here.

        Any thread may call this.
        """
        found = self._processor.statistics()
        return replace(found, operator=repr(self), buffered=found.buffered + len(self._queue))

    # -- for any thread

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        mine = object()
        if self._member.setdefault(0, mine) is mine:
            self._upstream = subscription
            if self._ends:  # read now: a thread that ends it later finds the upstream
                self._upstream = None
        self._processor.on_subscribe(subscription)

    @override
    def on_next(self, item: T, /) -> None:
        """Take an item. Any thread may call this."""
        if item is None:
            raise none_given("on_next")
        if not self._add(item, self.capacity):
            hooks.drop_item(item)
            self._overflow()
        self.signal()

    def offer(self, item: T) -> bool:
        """Take `item`, if there is room for it here and in the processor. Any thread may call this.

        Returns:
            False without room, or after the end: no subscriber gets the item.

        Raises:
            NoneItemError: if `item` is None.
        """
        if item is None:
            raise none_given("offer")
        if not self._queue:  # no earlier item of this thread waits
            taken = self.alone(self._offer, item)
            if taken is not BUSY:
                return taken
        # One item is on its way, and may not be counted yet.
        taken = self._add(item, min(self.capacity, self._processor.room() - 1))
        if taken:
            self.signal()
        return taken

    def _offer(self, item: T) -> bool:
        return not self._ends and self._processor.offer(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Take an error. Any thread may call this."""
        if error is None:
            raise none_given("on_error")
        if self._end(error):
            self.signal()
        else:
            hooks.drop_error(error)

    @override
    def on_complete(self) -> None:
        """Take the end. Any thread may call this."""
        if self._end(None):
            self.signal()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        self.on_error(error)
        return True

    def _add(self, item: T, room: int) -> bool:
        if self._ends or len(self._queue) >= room:
            return False
        self._queue.append(item)
        return True

    def _overflow(self) -> None:
        upstream = self._upstream
        ended = self._end(
            MissingBackpressureError(
                f"{self!r} got more items than it could deliver, and {self.capacity} wait; feed it "
                "more slowly, or by offer(), which says when it is full"
            )
        )
        if ended and upstream is not None:
            hooks.cancel(upstream)

    def _end(self, error: BaseException | None) -> bool:
        end = [error]
        if self._ends.setdefault(0, end) is not end:
            return False
        self._upstream = None
        return True

    @override
    def drain(self) -> None:
        queue, processor = self._queue, self._processor
        while True:
            # Read before the queue: items from before the end are there by then.
            done = bool(self._ends)
            while queue:
                processor.on_next(queue.popleft())
            if done or not self._ends:
                break
        if done and not self._told:
            self._told = True
            error = self._ends[0].pop()
            if error is None:
                processor.on_complete()
            else:
                processor.on_error(error)

    def __repr__(self) -> str:
        return f"serialized({self._processor!r})"
