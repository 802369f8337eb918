"""``async for x in flow`` and ``await flow``: consumption in an asyncio loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, TypeVar, final

from flow_core import hooks
from flow_core.errors import NoItemError, TooManyItemsError
from flow_core.protocols import Publisher
from flow_core.subscribers.queued import QueuedSubscriber

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
        queue = subscriber.queue
        while True:
            if not queue:
                await subscriber.wait()
            item = subscriber.taken()
            if item is None:
                return
            yield item
            for item in subscriber.at_hand():
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
class LoopSubscriber(QueuedSubscriber[T], Generic[T]):
    """Takes items from any thread and wakes one coroutine of `loop`."""

    operator = "async for"

    __slots__ = ("_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop, prefetch: int) -> None:
        super().__init__(prefetch)
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            try:
                self._loop.call_soon_threadsafe(_resolve, waiter)
            except RuntimeError:
                self.lost()

    async def wait(self) -> None:
        """Until an item waits, or the flow has ended."""
        queue = self.queue
        while not queue and not self._done:
            waiter = self._waiter = self._loop.create_future()
            self._waits = True
            if not queue and not self._done:
                await waiter
            self._waits = False
            self._waiter = None

    async def take(self) -> T | None:
        """The next item, or None at the end. Raises what the flow failed with."""
        await self.wait()
        return self.taken()

    def lost(self) -> None:
        """The loop is closed: nobody waits any more."""
        from flow_core.sources.loops import closed_loop

        if not self._cancelled:
            hooks.drop_error(closed_loop("async for"))
        self.cancel()


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
