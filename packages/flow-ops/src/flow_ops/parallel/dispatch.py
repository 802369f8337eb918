"""The source of the rails, which deals items out to the rails, as each of them requests."""

from __future__ import annotations

from threading import Lock
from typing import Generic, TypeVar, cast, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import ProtocolViolationError, is_fatal, none_given, throw_if_fatal
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Fusion,
    Publisher,
    QueueSubscription,
    Subscriber,
    Subscription,
)
from flow_core.sources import fail
from flow_core.subscribers import core_subscriber
from flow_ops.coordination import overflow
from flow_ops.transform._ending import EndsInDrain
from flow_ops.transform._inner import Polled, Queued

__all__ = ["Dispatcher", "Rail", "RailSource"]

T = TypeVar("T")


@final
class RailSource(Publisher[T]):
    """One rail of a run, as a publisher; only one subscriber is accepted.

    Args:
        dispatcher: deals items out to the rail.
    """

    __slots__ = ("_dispatcher", "_subscribed")

    def __init__(self, dispatcher: Dispatcher[T]) -> None:
        self._dispatcher = dispatcher
        self._subscribed = False

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Serve the first subscriber only (F32)."""
        downstream = core_subscriber(subscriber)
        # Without a lock: an operator of the rail subscribes again only when it has got the end.
        served, self._subscribed = self._subscribed, True
        if not served:
            self._dispatcher.join(downstream)
            return
        error = ProtocolViolationError(
            f"a rail of {self._dispatcher.label} serves one subscriber, and had one; put what "
            "subscribes again, like retry and repeat, before parallel() or behind sequential()"
        )
        fail(downstream, error)

    def __repr__(self) -> str:
        return "rail"


@final
class Dispatcher(EndsInDrain[T], Generic[T]):
    """Subscribes to the upstream as soon as all rails are subscribed, and deals its items out.

    An item goes to the next rail in turn that has demand. A rail without demand is passed over;
    items wait only when no rail has demand. A rail that was cancelled is left out; when all rails
    were cancelled, so is the upstream.

    Args:
        source: the flow that the items come from.
        rails: the number of rails.
        prefetch: items to request ahead, and the most that wait.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = (
        "_asynchronous",
        "_count",
        "_home",
        "_index",
        "_items",
        "_joined",
        "_left",
        "_lock",
        "_over",
        "_prefetch",
        "_rails",
        "_source",
        "_told",
        "_untold",
        "label",
        "upstream",
    )

    def __init__(self, source: Publisher[T], rails: int, prefetch: int, label: str) -> None:
        super().__init__()
        self.label = label
        self.upstream: Subscription | None = None
        self._source: Publisher[T] | None = source
        self._count = rails
        self._home: Home | None = None
        """The home of the first rail."""
        self._prefetch = prefetch
        self._lock = Lock()
        """Guards `_joined`, `_rails`, `upstream`, and the demand and errors of rails. Never held
        while calling out."""
        self._joined = 0
        self._rails: list[Rail[T]] = []
        """Rails that have not ended, in turn."""
        self._left = False
        """True if a rail has ended, and is still in `_rails`."""
        self._index = 0
        self._items: Queued[T] | Polled[T] | None = None
        self._asynchronous = False
        self._told: BaseException | None = None
        """The error that the rails fail with, until all have got it."""
        self._untold = rails
        self._over = False
        """True if no rail is left, or all have got the end."""

    @override
    def home(self) -> Home | None:
        return self._home

    def join(self, downstream: CoreSubscriber[T]) -> None:
        """Take the subscriber of one more rail; the last one starts the upstream."""
        rail = Rail(self, downstream)
        self._home = self._home or downstream.home()
        with self._lock:
            self._rails.append(rail)
        try:
            downstream.on_subscribe(rail)
        except BaseException:
            hooks.cancel(rail)
            raise
        rail.opened()
        with self._lock:
            self._joined += 1
            source = None
            if self._joined == self._count:
                source, self._source = self._source, None
        self.signal()
        if source is not None and not self._over:
            try:
                source.subscribe(self)
            except BaseException as error:
                if is_fatal(error):
                    self._over = True
                    self.signal()
                    raise
                self.on_error(error)

    # -- signals from the upstream

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: it is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        upstream = subscription  # in the class it was declared with, if it is a queue, too
        with self._lock:
            refused = self.upstream is not None or self._over
            if not refused:
                self.upstream = upstream
        if refused:
            hooks.cancel(upstream)  # §2.5, or no rail is left
            return
        if isinstance(subscription, QueueSubscription):
            # A subscription does not say the type of its items: it is the source's.
            queue = cast("QueueSubscription[T]", subscription)
            granted = queue.request_fusion(Fusion.ANY | Fusion.THREAD_BOUNDARY)
            if granted & Fusion.SYNC:
                self._items = Polled(queue)
                self._done = True  # EMPTY is the end, and no item is requested (F25)
            elif granted & Fusion.ASYNC:
                self._asynchronous = True
                self._items = Queued(queue, self._prefetch, queue)
        if self._items is None:
            self._items = Queued(upstream, self._prefetch)
        self.signal()
        if not (self._done or self._over):
            upstream.request(self._prefetch)

    @override
    def on_next(self, item: T, /) -> None:
        """Have the item wait for a rail; with fusion, the call is only a wake-up."""
        if self._asynchronous:
            self.signal()
            return
        if item is None:
            raise none_given("on_next")
        items, upstream = self._items, self.upstream
        if self._done or upstream is None or not isinstance(items, Queued):
            hooks.drop_item(item)
        elif items.offer(item):
            self.signal()
        else:
            hooks.drop_item(item)
            hooks.cancel(upstream)
            self.on_error(overflow(self.label, self._prefetch))

    @property
    @override
    def _is_deaf(self) -> bool:
        return self._over

    # -- with the permit

    @override
    def drain(self) -> None:
        if self._over:
            self._close()
            return
        rails, items = self._rails, self._items
        count = len(rails)
        passed_over = 0
        while True:
            done = self._done  # read before looking: items from before the end wait by then
            if self._left:
                self._leave_out()
                count = len(rails)
            if items is None or passed_over >= count:
                # In this order: all are in it by then.
                if self._joined == self._count and not rails:
                    self._over = True
                    self._close()
                elif done and (items is None or self._is_empty(items)):
                    self._finish()
                return
            index = self._index
            if index >= count:
                index = 0
            self._index = index + 1
            rail = rails[index]
            if rail.requested == rail.emitted:
                passed_over += 1
                continue
            passed_over = 0
            try:
                item = next(items.items, EMPTY)
            except BaseException as error:
                self._failed(error)
                return
            if item is not EMPTY:
                rail.give(item)
                del item
            elif done:
                self._finish()
                return
            else:
                self._index = index  # it is still this rail's turn
                return

    def left(self) -> None:
        """Note that a rail has ended by itself."""
        self._left = True
        self.signal()

    def _leave_out(self) -> None:
        """Remove the rails that have ended."""
        self._left = False
        rails = self._rails
        for rail in [rail for rail in rails if rail.ended]:
            place = rails.index(rail)
            with self._lock:
                del rails[place]
            if place < self._index:
                self._index -= 1
            rail.tell()

    def _is_empty(self, items: Queued[T] | Polled[T]) -> bool:
        try:
            return items.ended()
        except BaseException as error:
            throw_if_fatal(error)
            self._error = error
            self._cancel_upstream()
            return True

    def _failed(self, error: BaseException) -> None:
        """Note that the upstream's queue has raised an error: that ends the upstream."""
        self._cancel_upstream()
        if is_fatal(error):
            self._over = True
            self._close()
            raise error
        self._error = error
        self._finish()

    def _cancel_upstream(self) -> None:
        upstream = self.upstream  # read once: a cancel clears it
        if upstream is not None:
            hooks.cancel(upstream)

    def _finish(self) -> None:
        """Send the end to all rails."""
        rails, error = tuple(self._rails), self._error
        self._told = error
        self._over = True
        self._error = None
        self.upstream = None
        self._close()
        for rail in rails:
            rail.finish(error)

    def _close(self) -> None:
        """Drop everything. May be called more than once: late items are dropped, too."""
        with self._lock:
            self._rails = []
            self._source = None
            upstream, self.upstream = self.upstream, None
        if upstream is not None:
            hooks.cancel(upstream)
        items = self._items
        if items is not None:
            items.close()
            if not isinstance(items, Queued):  # where an item may still arrive late
                self._items = None
        error, self._error = self._error, None
        if error is not None:
            hooks.drop_error(error)

    # -- methods that rails use

    def add(self, rail: Rail[T], n: int) -> None:
        """Add to the demand of `rail`."""
        with self._lock:
            rail.requested = add_demand(rail.requested, n)
        self.signal()

    def was_told(self, error: BaseException) -> bool:
        """Return whether `error` is the upstream's, and another rail has failed with it already."""
        with self._lock:
            if error is not self._told:
                return False
            before = self._untold < self._count
            self._untold -= 1
            if not self._untold:
                self._told = None
            return before

    @property
    def buffered(self) -> int:
        """The number of items that wait for a rail."""
        return self._items.waiting or 0 if isinstance(self._items, Queued) else 0

    @property
    def capacity(self) -> int:
        """The number of items that may wait."""
        return self._prefetch


@final
class Rail(Subscription, Scannable, Generic[T]):
    """The subscription of the subscriber of one rail.

    Args:
        dispatcher: deals the items out.
        downstream: gets the signals.
    """

    __slots__ = (
        "_bad",
        "_dispatcher",
        "_downstream",
        "_open",
        "emitted",
        "ended",
        "requested",
    )

    def __init__(self, dispatcher: Dispatcher[T], downstream: CoreSubscriber[T]) -> None:
        self._dispatcher = dispatcher
        self._downstream: CoreSubscriber[T] | None = downstream
        self._bad: ValueError | None = None
        self.emitted = 0
        """The number of all items that were sent; written with the dispatcher's permit. Always less
        than UNBOUNDED."""
        self._open = False
        """True when on_subscribe has returned (§1.9)."""
        self.requested = 0
        """The number of all items that were requested; written by `Dispatcher.add`."""
        self.ended = False
        """True if this rail has to be removed: cancelled, or ended by a bad request or by its
        subscriber."""

    # -- signals from the downstream

    @override
    def request(self, n: int, /) -> None:
        bad = bad_request(n)
        if self._downstream is None or self.ended:
            return
        if bad is None:
            self._dispatcher.add(self, n)
            return
        self._bad = bad
        if self._open:
            self.ended = True
            self._dispatcher.left()

    @override
    def cancel(self) -> None:
        """Cancel this rail; the others continue."""
        if self._downstream is not None:
            self._downstream = None
            self.ended = True
            self._dispatcher.left()

    def opened(self) -> None:
        """Note that on_subscribe has returned."""
        self._open = True
        if self._bad is not None:
            self.ended = True
            self._dispatcher.left()

    # -- with the dispatcher's permit

    def give(self, item: T) -> None:
        """Send an item to this rail."""
        downstream = self._downstream
        if downstream is None:
            hooks.drop_item(item)
            return
        try:
            if not isinstance(downstream, ConditionalSubscriber):
                downstream.on_next(item)
                self.emitted += 1
            elif downstream.try_on_next(item):
                self.emitted += 1
        except BaseException as error:
            was_over = self._downstream is None
            self._downstream = None
            self.ended = True
            self._dispatcher.left()
            throw_if_fatal(error)
            if was_over or not downstream.on_next_raised(error):
                hooks.drop_error(error)

    def tell(self) -> None:
        """Report a bad request (§3.9), now that this rail was removed."""
        downstream, self._downstream = self._downstream, None
        if downstream is not None and self._bad is not None:
            downstream.on_error(self._bad)

    def finish(self, error: BaseException | None) -> None:
        """Send the end to this rail."""
        downstream, self._downstream = self._downstream, None
        self.ended = True
        if downstream is None:
            return
        if error is None:
            downstream.on_complete()
        else:
            downstream.on_error(error)

    @override
    def statistics(self) -> Statistics:
        dispatcher, requested = self._dispatcher, self.requested
        return Statistics(
            operator="rail",
            requested=requested if requested == UNBOUNDED else requested - self.emitted,
            buffered=dispatcher.buffered,
            capacity=dispatcher.capacity,
            cancelled=self.ended and self._bad is None,
            terminated=self._downstream is None,
            error=self._bad,
            upstream=dispatcher.upstream,
        )
