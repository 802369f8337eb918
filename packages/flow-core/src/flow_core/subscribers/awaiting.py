"""``async for x in flow`` and ``await flow``: consumption in an asyncio loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar, final

from flow_core import hooks
from flow_core.demand import UNBOUNDED, replenish_limit
from flow_core.errors import MissingBackpressureError, NoItemError, TooManyItemsError, none_given
from flow_core.introspection import Statistics
from flow_core.protocols import CoreSubscriber, Publisher, Subscription

__all__ = ["LoopSubscriber", "await_single", "iterate_async"]

T = TypeVar("T")


async def iterate_async(source: Publisher[T], prefetch: int) -> AsyncIterator[T]:
    """Items of `source` in the running loop, at most `prefetch` waiting; leaving cancels."""
    from flow_core.sources.loops import LoopWatch  # which needs this module

    loop = asyncio.get_running_loop()
    subscriber: LoopSubscriber[T] = LoopSubscriber(loop, prefetch)
    watch = LoopWatch(loop, subscriber.lost)
    try:
        source.subscribe(subscriber)
        while True:
            item = await subscriber.take()
            if item is None:
                return
            yield item
            del item
    finally:
        watch.end()
        subscriber.cancel()


async def await_single(source: Publisher[T]) -> T:
    """The only item of `source`.

    Raises:
        NoItemError: if there is none.
        TooManyItemsError: if there are more.
    """
    from flow_core.sources.loops import LoopWatch  # which needs this module

    loop = asyncio.get_running_loop()
    subscriber: LoopSubscriber[T] = LoopSubscriber(loop, 2)
    watch = LoopWatch(loop, subscriber.lost)
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
        watch.end()
        subscriber.cancel()


@final
class LoopSubscriber(CoreSubscriber[T], Generic[T]):
    """Takes items from any thread and wakes one coroutine of `loop`.

    No wake-up is lost: the consumer puts a future down and looks at the queue again before it
    awaits, and a producer appends before it looks for the future. Nothing is lost in silence,
    either: who cancels sets the flag before it empties the queue, and a producer appends before it
    looks at the flag.
    """

    __slots__ = (
        "_cancelled",
        "_consumed",
        "_done",
        "_errors",
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
        self._errors: list[BaseException] = []
        """What the flow has failed with: of whoever takes it out."""
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
        if self._cancelled or self._done:
            hooks.drop_item(item)
            return
        if len(self._queue) >= self._prefetch and self._prefetch != UNBOUNDED:
            hooks.drop_item(item)
            if self._subscription is not None:
                self._subscription.cancel()
            self.on_error(  # what waits still comes before it
                MissingBackpressureError(
                    f"the flow sent more than the {self._prefetch} items that were requested"
                )
            )
            return
        self._queue.append(item)
        if self._cancelled:
            hooks.drop_waiting(self._queue)
        else:
            self._wake()

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        if error is None:
            raise none_given("on_error")
        if self._cancelled or self._done:
            hooks.drop_error(error)
            return
        self._errors.append(error)
        self._done = True
        if self._cancelled:
            self._drop_errors()
        else:
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
                self.lost()

    async def take(self) -> T | None:
        """The next item, or None at the end. Raises what the flow failed with."""
        queue = self._queue
        while not queue and not self._done:
            waiter = self._waiter = self._loop.create_future()
            if not queue and not self._done:
                await waiter
            self._waiter = None
        if not queue:
            if self._errors:
                raise self._errors.pop()
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
        hooks.drop_waiting(self._queue)
        self._drop_errors()

    def lost(self) -> None:
        """The loop is closed: nobody waits any more."""
        from flow_core.sources.loops import closed_loop

        if not self._cancelled:
            hooks.drop_error(closed_loop("async for"))
        self.cancel()

    def _drop_errors(self) -> None:
        while self._errors:
            try:
                error = self._errors.pop()
            except IndexError:  # another thread was faster
                return
            hooks.drop_error(error)

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
            error=next(iter(self._errors), None),
            upstream=self._subscription,
        )


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
