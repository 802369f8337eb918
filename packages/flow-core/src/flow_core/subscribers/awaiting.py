"""``async for x in flow`` and ``await flow``: consumption in an asyncio loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar, final

from flow_core.demand import UNBOUNDED, replenish_limit
from flow_core.errors import MissingBackpressureError, NoItemError, TooManyItemsError, none_given
from flow_core.introspection import Statistics
from flow_core.protocols import CoreSubscriber, Publisher, Subscription

__all__ = ["LoopSubscriber", "await_single", "iterate_async"]

T = TypeVar("T")


async def iterate_async(source: Publisher[T], prefetch: int) -> AsyncIterator[T]:
    """Items of `source` in the running loop, at most `prefetch` waiting; leaving cancels."""
    subscriber: LoopSubscriber[T] = LoopSubscriber(asyncio.get_running_loop(), prefetch)
    try:
        source.subscribe(subscriber)
        while True:
            item = await subscriber.take()
            if item is None:
                return
            yield item
            del item
    finally:
        subscriber.cancel()


async def await_single(source: Publisher[T]) -> T:
    """The only item of `source`.

    Raises:
        NoItemError: if there is none.
        TooManyItemsError: if there are more.
    """
    subscriber: LoopSubscriber[T] = LoopSubscriber(asyncio.get_running_loop(), 2)
    try:
        source.subscribe(subscriber)
        item = await subscriber.take()
        if item is None:
            raise NoItemError(
                "the flow completed without an item; one was awaited; "
                "first_or_default(item) gives one instead"
            )
        if await subscriber.take() is not None:
            raise TooManyItemsError(
                "the flow has more than the one item that was awaited; "
                "await flow.to_list() for all of them, or flow.first_or_error() for the first"
            )
        return item
    finally:
        subscriber.cancel()


@final
class LoopSubscriber(CoreSubscriber[T], Generic[T]):
    """Takes items from any thread and wakes one coroutine of `loop`.

    No wake-up is lost: the consumer puts a future down and looks at the queue again before it
    awaits, and a producer appends before it looks for the future.
    """

    __slots__ = (
        "_cancelled",
        "_consumed",
        "_done",
        "_error",
        "_limit",
        "_loop",
        "_prefetch",
        "_queue",
        "_subscription",
        "_waiter",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, prefetch: int) -> None:
        self._loop = loop
        self._prefetch = prefetch
        self._limit = replenish_limit(prefetch)
        self._queue: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._subscription: Subscription | None = None
        self._error: BaseException | None = None
        self._done = self._cancelled = False
        self._consumed = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`."""
        if self._subscription is not None or self._cancelled:
            subscription.cancel()
            return
        self._subscription = subscription
        if self._cancelled:  # meanwhile, by a thread that saw no subscription yet
            subscription.cancel()
        else:
            subscription.request(self._prefetch)

    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`."""
        if item is None:
            raise none_given("on_next")
        if self._cancelled:
            return
        if len(self._queue) >= self._prefetch and self._prefetch != UNBOUNDED:
            self._cancelled = True  # what waits still comes before the error
            if self._subscription is not None:
                self._subscription.cancel()
            self.on_error(
                MissingBackpressureError(
                    f"the flow sent more than the {self._prefetch} items that were requested"
                )
            )
            return
        self._queue.append(item)
        self._wake()

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        self._error = error
        self._done = True
        self._wake()

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        self._done = True
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            try:
                self._loop.call_soon_threadsafe(_resolve, waiter)
            except RuntimeError:
                # The loop is closed: nobody waits any more.
                self.cancel()

    async def take(self) -> T | None:
        """The next item, or None at the end. Raises what the flow failed with."""
        queue = self._queue
        while not queue and not self._done:
            waiter = self._waiter = self._loop.create_future()
            if not queue and not self._done:
                await waiter
            self._waiter = None
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
        """Cancel the flow and forget what waits."""
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
            operator="async for",
            requested=requested,
            buffered=waiting,
            capacity=prefetch,
            cancelled=self._cancelled,
            terminated=self._done,
            error=self._error,
            upstream=self._subscription,
        )


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
