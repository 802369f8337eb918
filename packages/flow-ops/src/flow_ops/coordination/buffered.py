"""An input whose items wait until the operator takes them."""

from __future__ import annotations

from typing import Any, TypeVar, cast, final

from flow_core import hooks
from flow_core.errors import MissingBackpressureError, none_given, throw_if_fatal
from flow_core.protocols import EMPTY, Empty, Fusion, QueueSubscription, Subscription
from flow_ops.coordination.coordinator import Coordinator, Input
from flow_ops.transform._inner import Polled, Queued

__all__ = ["BufferedInput"]

T = TypeVar("T")


@final
class BufferedInput(Input[T]):
    """Requests `prefetch` items, and 75 % of that again whenever as many were polled.

    Whatever comes makes the owner `step`. An upstream with SYNC or ASYNC is polled; it is told that
    this may be on another thread (F39).

    Args:
        owner: polls.
        prefetch: items to request ahead, and the most that wait.
    """

    __slots__ = ("_asynchronous", "_items", "error", "prefetch")

    def __init__(self, owner: Coordinator[Any], prefetch: int) -> None:  # Any: whatever it emits
        super().__init__(owner, prefetch)
        self.prefetch = prefetch
        self.error: BaseException | None = None
        """What the source has failed with; to be looked at when it has `ended`."""
        self._items: Queued[T] | Polled[T] | None = None
        self._asynchronous = False

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`. The upstream's subscription is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        upstream = subscription  # as it was declared, when it is a queue, too
        items: Queued[T] | Polled[T] | None = None
        if self.upstream is None and isinstance(subscription, QueueSubscription):
            # A subscription says nothing about the type of its items: the source's.
            queue = cast("QueueSubscription[T]", subscription)
            granted = queue.request_fusion(Fusion.ANY | Fusion.THREAD_BOUNDARY)
            if granted & Fusion.SYNC:
                items = Polled(queue)
                self.pending = 0
            elif granted & Fusion.ASYNC:
                self._asynchronous = True
                items = Queued(queue, self.prefetch, queue)
        if items is None:
            items = Queued(upstream, self.prefetch)
        if self.upstream is None:
            self._items = items
            self.done = isinstance(items, Polled)
        super().on_subscribe(upstream)
        if isinstance(items, Polled):
            self.owner.signal()

    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`. The item waits; fused, it is only a wake-up."""
        if self._asynchronous:
            self.owner.signal()
            return
        if item is None:
            raise none_given("on_next")
        items = self._items
        if self.done or self.gone or self.owner.over or not isinstance(items, Queued):
            hooks.drop_item(item)
        elif items.offer(item):
            self.owner.signal()
        else:
            hooks.drop_item(item)
            if self.upstream is not None:
                self.upstream.cancel()
            self.on_error(
                MissingBackpressureError(
                    f"a source of {self.owner.label} sent more than the {self.prefetch} items that "
                    "were requested; put a back-pressure operator after a source that ignores "
                    "demand"
                )
            )

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`. Comes after the items that wait."""
        if error is None:
            raise none_given("on_error")
        if self.done or self.owner.over:
            hooks.drop_error(error)
            return
        self.error = error
        self.done = True
        self.owner.signal()

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        self.done = True
        self.owner.signal()

    def poll(self) -> T | Empty:
        """The next item, or EMPTY: look at `ended` then. With the permit."""
        items = self._items
        if items is None:
            return EMPTY
        try:
            return next(items.items, EMPTY)
        except BaseException as error:
            throw_if_fatal(error)
            self._failed(error)
            return EMPTY

    def ended(self) -> bool:
        """Whether nothing more comes. With the permit; read `error` if so."""
        if not self.done:  # read before looking: what came before the end waits by then
            return False
        try:
            return self._items is None or self._items.ended()
        except BaseException as error:
            throw_if_fatal(error)
            self._failed(error)
            return True

    def close(self) -> None:
        """Drop what waits. With the permit, when the flow is over or this is disconnected."""
        items = self._items
        if items is not None:
            items.close()
            if not isinstance(items, Queued):  # where an item may still arrive, late
                self._items = None
        error, self.error = self.error, None
        if error is not None:
            hooks.drop_error(error)

    @property
    def waiting(self) -> int:
        """How many items wait here."""
        return self._items.waiting or 0 if isinstance(self._items, Queued) else 0

    def _failed(self, error: BaseException) -> None:
        """The source's queue has raised: that is its end."""
        self.error = error
        self.done = True
        self._items = None
        if self.upstream is not None:
            self.upstream.cancel()
