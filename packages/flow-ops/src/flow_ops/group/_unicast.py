"""A queue with one producer and one subscriber: the base of windows and groups."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, Generic, Protocol, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import operator_of
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import ProtocolViolationError, is_fatal, late_fusion, leave, throw_if_fatal
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Empty,
    Fusion,
    Publisher,
    QueueSubscription,
    Subscriber,
)
from flow_core.serial import SerialDrain
from flow_core.sources import fail
from flow_core.subscribers import core_subscriber

__all__ = ["Part", "Unicast"]

T = TypeVar("T")

_WAKE_UP: Final[Any] = EMPTY  # Any: on_next takes it in the place of an item of any type (F26)


class Hub(Protocol):
    """Provides the items of several `Unicast`. Any thread may call these methods."""

    __slots__ = ()

    # Any, below: items of any type.
    @abstractmethod
    def part_arrived(self, part: Unicast[Any], /) -> None:
        """Note that `part` has a subscriber."""

    @abstractmethod
    def part_unheld(self, part: Unicast[Any], /) -> None:
        """Note that `part` has no reference any more, and has never had a subscriber."""

    @abstractmethod
    def part_unread(self, part: Unicast[Any], /) -> None:
        """Note that `part`, which has ended, will never have a subscriber.

        Its items are dropped.
        """

    @abstractmethod
    def statistics(self) -> Statistics:
        """Return the statistics of the hub; see `Scannable.statistics`."""


class Unicast(SerialDrain, QueueSubscription[T], Publisher[T], Scannable, Generic[T]):
    """Keeps items for its one subscriber, which may come late.

    This object is that subscriber's subscription, too.

    The owner calls `offer` and `finish`, one at a time. The owner also has to bound the number of
    items that wait: `taken` reports each item that has left, whether it was consumed or dropped.

    Fusion: ASYNC, on other threads, too: `poll` runs no user code.

    Args:
        label: the name of this, for messages.
        hub: provides the items; None if the hub is set later, before anything is signalled.
        overtakes: whether an error comes before the items that wait, which are dropped then.
    """

    __slots__ = (
        "__weakref__",
        "_bad",
        "_conditional",
        "_done",
        "_downstream",
        "_emitted",
        "_error",
        "_fused",
        "_halt",
        "_lock",
        "_negotiable",
        "_overtakes",
        "_queue",
        "_receive",
        "_requested",
        "_subscribed",
        "abandoned",
        "gone",
        "hub",
        "label",
    )

    def __init__(self, label: str, hub: Hub | None, overtakes: bool = False) -> None:
        super().__init__()
        self.label: Final = label
        self.hub = hub
        self.gone = False
        """True when items are not taken any more: those that are offered are dropped."""
        self.abandoned = False
        """True when this cannot be subscribed to any more. Without a subscriber, items are
        dropped."""
        self._overtakes = overtakes
        self._lock = Lock()
        """Guards sums, and attributes that are set once. Never held while calling out."""
        self._queue: deque[T] = deque()
        # Written before `_done`, and read only when `_done` is seen.
        self._error: BaseException | None = None
        self._done = False
        self._bad: ValueError | None = None
        self._halt = False
        """True if the next item must not be delivered: the drain has to find out why."""
        self._subscribed = False
        self._downstream: CoreSubscriber[T] | None = None
        """The subscriber to signal, from when its on_subscribe has returned until the end (§1.9,
        §3.13)."""
        self._receive: Callable[[T], object] = hooks.drop_item
        self._conditional = False
        self._fused = False
        self._negotiable = False
        """True while the subscriber may ask for fusion: in its on_subscribe, once (F24)."""
        self._requested = 0
        self._emitted = 0

    # -- methods that subclasses define

    @abstractmethod
    def taken(self, item: T) -> None:
        """Note that an item has left the queue for good.

        Called in the thread that took the item.
        """

    @abstractmethod
    def left(self) -> None:
        """Note that items are not taken any more.

        Called in any thread, perhaps more than once.
        """

    def drop(self, item: T) -> None:
        """Drop an item that no subscriber gets."""
        hooks.drop_item(item)

    # -- methods that the owner uses

    def offer(self, item: T) -> None:
        """Send `item` at once if possible, or have it wait for its turn."""
        permit = self._permit
        try:
            del permit[0]
        except KeyError:
            pass  # another caller has the permit
        else:
            try:
                downstream, receive = self._downstream, self._receive  # read before `_halt`
                if (
                    downstream is None
                    or self._fused  # first: a subscriber that polls may empty the queue at any time
                    or self._queue
                    or self._halt
                    or self._emitted >= self._requested
                ):
                    self._queue.append(item)
                    self._missed = True
                else:
                    self._give(item, receive, downstream)
            finally:
                permit[0] = True
                if self._missed:
                    self.signal()
            return
        self._queue.append(item)
        self.signal()

    def finish(self, error: BaseException | None) -> None:
        """End this: no more items will be offered."""
        if self._done or self.gone:
            if error is not None and is_fatal(error):
                self.signal()  # its permit may have kept the end from being drained
            return
        self._error = error
        self._done = True
        if error is not None and self._overtakes:
            self._halt = True
        self.signal()

    def close_unread(self) -> None:
        """Cancel this if it has no subscriber: after that, it cannot be subscribed to."""
        with self._lock:
            served, self._subscribed = self._subscribed, True
        if not served:
            self.cancel()

    @property
    def waiting(self) -> int:
        """Return the number of items that wait."""
        return len(self._queue)

    @property
    def starves(self) -> bool:
        """Return whether the subscriber has requested an item, and none is there."""
        if self._done or self._queue or self._downstream is None:
            return False
        return self._fused or self._emitted < self._requested

    def hurry(self) -> None:
        """Have an error overtake the items that wait, from now on."""
        self._overtakes = True

    # -- towards the subscriber

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Serve the first subscriber only (F32)."""
        downstream = core_subscriber(subscriber)
        with self._lock:
            served, self._subscribed = self._subscribed, True
        if served:
            error = ProtocolViolationError(
                f"{self.label} serves one subscriber, and had one, or its flow was cancelled "
                "before one came; subscribe to it at once, and share it if many are interested"
            )
            fail(downstream, error)
            return
        if self.hub is not None:
            self.hub.part_arrived(self)
        self.serve(downstream)

    def serve(self, downstream: CoreSubscriber[T]) -> None:
        """Hand this to its subscriber as the subscription, and begin."""
        self._negotiable = True
        try:
            downstream.on_subscribe(self)
        except BaseException:
            self.cancel()
            raise
        finally:
            self._negotiable = False
        if isinstance(downstream, ConditionalSubscriber):
            self._conditional = True
            self._receive = downstream.try_on_next
        else:
            self._receive = downstream.receiver()
        # No signal was sent before (§1.9). The drain below finds what came meanwhile, and also a
        # cancel, which sets its flag before it clears the subscriber.
        self._downstream = downstream
        if self.gone:
            self._forget()
        self.signal()

    @override
    def request(self, n: int, /) -> None:
        bad = bad_request(n)
        if self.gone or self._bad is not None:
            return
        if bad is not None:
            self._bad = bad
            self._halt = True
            self.left()
        elif self._requested != UNBOUNDED:
            with self._lock:
                self._requested = add_demand(self._requested, n)
            if self._fused:
                return  # a subscriber that polls counts its demand itself
        self.signal()

    @override
    def cancel(self) -> None:
        """Drop the items that wait."""
        self.gone = self._halt = True
        self._forget()
        self.left()
        self.signal()

    def _forget(self) -> None:
        self._downstream = None
        self._receive = hooks.drop_item

    # -- with the permit

    @override
    def drain(self) -> None:
        downstream = self._downstream
        if self.gone:
            self._error = None
            self.clear()
        elif downstream is not None:
            if self._fused:
                self._wake(downstream)
            else:
                self._deliver(downstream)
        elif self.abandoned and not self._subscribed:
            self.clear()
            if self._done and self.hub is not None:
                self.hub.part_unread(self)

    def _wake(self, downstream: CoreSubscriber[T]) -> None:
        """Tell the subscriber that there is something to poll, or that the end has come.

        The end comes even if items wait: they can be polled after it (F33).
        """
        done = self._done  # read before: what came before the end can be polled by then
        if not self._halt:
            try:
                downstream.on_next(_WAKE_UP)
            except BaseException as error:
                self._raised(downstream, error)
                return
        if self._halt:
            self._stop(downstream)
        elif done:
            self._end(downstream)

    def _deliver(self, downstream: CoreSubscriber[T]) -> None:
        queue, receive = self._queue, self._receive
        while not self._halt:
            done = self._done  # read before the queue: what came before the end waits by then
            if not queue or self._emitted >= self._requested:
                if done and not queue:
                    self._end(downstream)
                return
            self._give(queue.popleft(), receive, downstream)
        self._stop(downstream)

    def _give(self, item: T, receive: Callable[[T], object], downstream: CoreSubscriber[T]) -> None:
        try:
            if receive(item) is not False or not self._conditional:
                self._emitted += self._requested != UNBOUNDED
        except BaseException as error:
            self.taken(item)
            self._raised(downstream, error)
        else:
            self.taken(item)

    def _stop(self, downstream: CoreSubscriber[T]) -> None:
        """Stop the delivery: after a cancel, a bad request, or an error that overtakes items."""
        was_gone, self.gone = self.gone, True
        # First: a subscriber that polls takes what it finds, then looks at the end (F33).
        self.clear()
        if not was_gone:
            self._end(downstream)

    def _end(self, downstream: CoreSubscriber[T]) -> None:
        """Send the terminal, the last signal."""
        error, self._error = self._bad or self._error, None
        self._forget()
        try:
            if error is None:
                downstream.on_complete()
            else:
                downstream.on_error(error)
        except BaseException as raised:
            # So that it is found if the stack has no room for this call.
            self._downstream = downstream
            if is_fatal(raised):
                leave(raised, downstream, self)
            self._forget()
            raise

    def forsake(self, error: BaseException) -> None:
        """Note that a fatal `error` stops the producer.

        The subscriber still has to get its terminal.
        """
        downstream = self._downstream
        if downstream is not None:
            leave(error, downstream, self)
            self._forget()

    def _raised(self, downstream: CoreSubscriber[T], error: BaseException) -> None:
        """End this: the subscriber has raised `error` in its on_next (§2.13)."""
        was_gone = self.gone
        if is_fatal(error):
            leave(error, downstream, self)
        self.cancel()
        throw_if_fatal(error)
        if was_gone or not downstream.on_next_raised(error):
            hooks.drop_error(error)

    # -- for a subscriber that polls

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant ASYNC."""
        if not self._negotiable or self._requested or self._bad is not None:
            raise late_fusion()
        self._negotiable = False
        granted = mode & Fusion.ASYNC
        self._fused = bool(granted)
        return granted

    @override
    def poll(self) -> T | Empty:
        if self.gone:
            return EMPTY
        try:
            item = self._queue.popleft()
        except IndexError:
            return EMPTY
        self.taken(item)
        return item

    @override
    def is_empty(self) -> bool:
        return self.gone or not self._queue

    @override
    def clear(self) -> None:
        """Drop the items."""
        queue = self._queue
        while True:
            try:
                item = queue.popleft()
            except IndexError:  # a subscriber that polls may be taking them, too
                return
            self.drop(item)
            self.taken(item)

    @override
    def statistics(self) -> Statistics:
        unbounded = self._requested == UNBOUNDED
        requested = UNBOUNDED if unbounded else self._requested - self._emitted
        return Statistics(
            operator=operator_of(self.label),
            requested=None if self._fused else requested,
            buffered=len(self._queue),
            cancelled=self.gone,
            terminated=self._subscribed and self._downstream is None,
            error=self._bad or self._error,
            fusion=Fusion.ASYNC if self._fused else Fusion.NONE,
            upstream=None if self.hub is None else self.hub.statistics().upstream,
        )


@final
class Part(Publisher[T], Generic[T]):
    """A `Unicast` as users see it. When nothing refers to it any more, its items are dropped.

    Args:
        queue: the `Unicast`.
    """

    __slots__ = ("queue",)

    def __init__(self, queue: Unicast[T]) -> None:
        self.queue: Final = queue

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self.queue.subscribe(subscriber)

    def __del__(self) -> None:
        queue = self.queue
        queue.abandoned = True
        if not queue._subscribed and queue.hub is not None:
            queue.hub.part_unheld(queue)

    def __repr__(self) -> str:
        return self.queue.label
