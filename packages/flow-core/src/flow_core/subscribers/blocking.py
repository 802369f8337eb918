"""``for x in flow`` over an asynchronous flow: items wait in a bounded queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from threading import Condition
from typing import Generic, TypeVar, final

from flow_core.demand import UNBOUNDED, replenish_limit
from flow_core.errors import BlockingInEventLoopError, MissingBackpressureError, none_given
from flow_core.introspection import Statistics
from flow_core.protocols import CoreSubscriber, Publisher, Subscription

__all__ = ["check_may_block", "iterate_blocking"]

T = TypeVar("T")


def check_may_block(what: str) -> None:
    """Refuse to block the thread of a running event loop.

    Raises:
        BlockingInEventLoopError: if this thread runs an asyncio loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise BlockingInEventLoopError(
        f"{what} would block the running event loop; use `async for item in flow`, or await the "
        "only item: `await flow.to_list()`"
    )


def iterate_blocking(source: Publisher[T], prefetch: int) -> Iterator[T]:
    """Items of `source`, with at most `prefetch` of them waiting; closing the iterator cancels."""
    subscriber: _QueueSubscriber[T] = _QueueSubscriber(prefetch)
    try:
        source.subscribe(subscriber)
        while True:
            item = subscriber.take()
            if item is None:
                return
            yield item
            del item
    finally:
        subscriber.cancel()


@final
class _QueueSubscriber(CoreSubscriber[T], Generic[T]):
    __slots__ = (
        "_cancelled",
        "_consumed",
        "_done",
        "_error",
        "_limit",
        "_prefetch",
        "_queue",
        "_ready",
        "_subscription",
    )

    def __init__(self, prefetch: int) -> None:
        self._prefetch = prefetch
        self._limit = replenish_limit(prefetch)
        self._queue: deque[T] = deque()
        self._ready = Condition()
        self._subscription: Subscription | None = None
        self._error: BaseException | None = None
        self._done = self._cancelled = False
        self._consumed = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._subscription is not None or self._cancelled:
            subscription.cancel()
            return
        self._subscription = subscription
        if self._cancelled:  # meanwhile, by a thread that saw no subscription yet
            subscription.cancel()
        else:
            subscription.request(self._prefetch)

    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._cancelled:
            return
        if len(self._queue) >= self._prefetch:
            self._cancelled = True  # what waits still comes before the error
            if self._subscription is not None:
                self._subscription.cancel()
            self.on_error(
                MissingBackpressureError(
                    f"the flow sent more than the {self._prefetch} items that were requested"
                )
            )
            return
        with self._ready:
            self._queue.append(item)
            self._ready.notify()

    def on_error(self, error: BaseException, /) -> None:
        with self._ready:
            self._error = error
            self._done = True
            self._ready.notify()

    def on_complete(self) -> None:
        with self._ready:
            self._done = True
            self._ready.notify()

    def take(self) -> T | None:
        """The next item, or None at the end. Blocks. Raises what the flow failed with."""
        queue = self._queue
        if not queue:
            with self._ready:
                while not queue and not self._done:
                    self._ready.wait()
        if not queue:
            error, self._error = self._error, None
            try:
                if error is not None:
                    raise error
            finally:
                del error  # or it would be part of a cycle, with the frame in its traceback
            return None
        item = queue.popleft()
        self._consumed += 1
        if self._consumed == self._limit:
            self._consumed = 0
            if self._subscription is not None and not self._done:
                self._subscription.request(self._limit)
        return item

    def cancel(self) -> None:
        self._cancelled = True
        if self._subscription is not None:
            self._subscription.cancel()
        self._queue.clear()

    def statistics(self) -> Statistics:
        """See `Scannable.statistics`."""
        waiting, prefetch = len(self._queue), self._prefetch
        if self._subscription is None or self._done:
            requested = 0
        elif prefetch == UNBOUNDED:
            requested = UNBOUNDED
        else:
            requested = max(0, prefetch - self._consumed - waiting)
        return Statistics(
            operator="for",
            requested=requested,
            buffered=waiting,
            capacity=prefetch,
            cancelled=self._cancelled,
            terminated=self._done,
            error=self._error,
            upstream=self._subscription,
        )
