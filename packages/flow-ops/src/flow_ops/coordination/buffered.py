"""An input whose items wait until the operator takes them."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar, cast

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import replenish_limit
from flow_core.errors import none_given, throw_if_fatal
from flow_core.protocols import EMPTY, Empty, Fusion, QueueSubscription, Subscription
from flow_ops.coordination.coordinator import Coordinator
from flow_ops.coordination.failures import overflow
from flow_ops.coordination.polled import PolledInput

__all__ = ["BufferedInput"]

T = TypeVar("T")


class BufferedInput(PolledInput[T]):
    """Requests `prefetch` items, and 75 % of that again whenever as many were polled.

    Each signal makes the owner `step`. An upstream with SYNC or ASYNC is polled; the upstream
    learns that it may be polled on another thread.

    Args:
        owner: the coordinator that polls this.
        prefetch: items to request ahead, and the most that wait.
    """

    __slots__ = (
        "_asynchronous",
        "_consumed",
        "_limit",
        "_queue",
        "_synchronous",
        "_waiting",
        "prefetch",
    )

    # Any: the type that it emits.
    def __init__(self, owner: Coordinator[Any], prefetch: int) -> None:
        super().__init__(owner, prefetch)
        self.prefetch = prefetch
        self._waiting: deque[T] = deque()
        self._queue: QueueSubscription[T] | None = None
        """The queue to poll, if the upstream has granted fusion."""
        self._synchronous = False
        self._asynchronous = False
        self._limit = replenish_limit(prefetch)
        self._consumed = 0
        """The number of items polled since the last request. Written with the permit."""

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: it is never forwarded."""
        if subscription is None:
            raise none_given("on_subscribe")
        upstream = subscription  # in the class it was declared with, if it is a queue, too
        if self.upstream is None and not self.done and isinstance(subscription, QueueSubscription):
            # A subscription does not say the type of its items: it is the source's.
            queue = cast("QueueSubscription[T]", subscription)
            granted = queue.request_fusion(Fusion.ANY | Fusion.THREAD_BOUNDARY)
            if granted & Fusion.SYNC:
                self.pending = 0
                self._synchronous = True
                self._queue = queue
            elif granted & Fusion.ASYNC:
                self._asynchronous = True
                self._queue = queue
        super().on_subscribe(upstream)
        if self._synchronous and self.upstream is upstream:
            self.done = True
            self.owner.ending(self)
            self.owner.signal()

    @override
    def on_next(self, item: T, /) -> None:
        """Have the item wait; with fusion, the call is only a wake-up."""
        owner = self.owner
        if self._asynchronous:
            owner.signal()
            return
        if item is None:
            raise none_given("on_next")
        waiting = self._waiting
        if self.upstream is None or self.done or owner.over:
            hooks.drop_item(item)
        elif len(waiting) < self.prefetch:
            waiting.append(item)
            owner.signal()
            if self.gone or owner.over:
                self.drop_waiting()  # `close` may have looked before
        else:
            hooks.drop_item(item)
            upstream = self.upstream  # read once: a cancel clears it
            if upstream is not None:
                hooks.cancel(upstream)
            self.on_error(overflow(owner.label, self.prefetch))

    def poll(self) -> T | Empty:
        """Return the next item, or EMPTY: then check `ended`. The caller must hold the permit."""
        queue = self._queue
        if queue is None:
            waiting = self._waiting
            if not waiting:
                return EMPTY
            try:
                item: T | Empty = waiting.popleft()
            except IndexError:  # the flow has ended, and the item was dropped
                return EMPTY
        else:
            try:
                item = queue.poll()
            except BaseException as error:
                throw_if_fatal(error)
                self._failed(error)
                return EMPTY
            if item is EMPTY or self._synchronous:
                return item
        self._consumed += 1
        if self._consumed == self._limit:
            self.replenish()
        return item

    def replenish(self) -> None:
        """Request as many items as were taken."""
        self._consumed = 0
        self.owner.request_of(self, self._limit)

    def ended(self) -> bool:
        """Return whether no more items come; if so, read `error`.

        The caller must hold the permit.
        """
        if not self.done:  # read before looking: items from before the end wait by then
            return False
        if self._queue is None:
            return not self._waiting
        try:
            return self._queue.is_empty()
        except BaseException as error:
            throw_if_fatal(error)
            self._failed(error)
            return True

    @override
    def close(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            try:
                queue.clear()
            except BaseException as error:  # a `finally` of the user's generator
                throw_if_fatal(error)
                hooks.drop_error(error)
        super().close()

    @override
    def drop_waiting(self) -> None:
        hooks.drop_waiting(self._waiting)

    @property
    def fused(self) -> bool:
        """True if the source is polled."""
        return self._queue is not None

    @property
    def waiting(self) -> int:
        """Return the number of items that wait here."""
        return len(self._waiting)

    def _failed(self, error: BaseException) -> None:
        """Note that the source's queue has raised an error: that ends the source."""
        self.error = error
        self.done = True
        upstream = self.owner.forget(self)
        self._queue = None
        if upstream is not None:
            hooks.cancel(upstream)
