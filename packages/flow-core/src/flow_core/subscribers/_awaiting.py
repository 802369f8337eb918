"""``async for x in flow`` and ``await flow``: a flow is consumed in an asyncio loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from itertools import chain, islice
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar, final

from flow_core import hooks
from flow_core.errors import NoItemError, TooManyItemsError
from flow_core.homes import in_turn
from flow_core.late import later
from flow_core.protocols import Publisher
from flow_core.stages._closing import close_iterator
from flow_core.subscribers._queued import QueuedSubscriber

if TYPE_CHECKING:
    import asyncio

    from flow_core.flow import Flow
    from flow_core.sources._loops import LoopWatch
else:
    asyncio = later("asyncio", globals())

__all__ = ["AsyncItems", "LoopSubscriber", "await_single", "iterate_async", "run_to_end"]

T = TypeVar("T")

_HOLD_S: Final = 0.005
"""The time for which a consumer may hold its event loop before other tasks get a turn, in
seconds."""
_MOST: Final = 256
"""The most items to take before the clock is read again."""


@final
class _Hold:
    """Measures for how long a consumer has held its event loop, and lets other tasks run then.

    This costs a fast flow little, and keeps a slow flow from holding up other tasks.
    """

    __slots__ = ("_began", "size")

    def __init__(self) -> None:
        self._began = monotonic()
        self.size = 1
        """The number of items to take before the clock is read again: few, if they take long."""

    def is_over(self) -> bool:
        """Return whether other tasks of the event loop have to get a turn now."""
        held = monotonic() - self._began
        if held >= _HOLD_S:
            self.size = max(1, int(self.size * _HOLD_S / held))
            return True
        if held < _HOLD_S / 8 and self.size < _MOST:
            self.size *= 2
        return False

    async def give_way(self) -> None:
        """Let all other tasks of the loop run once."""
        await asyncio.sleep(0)
        self.begin()

    def begin(self) -> None:
        """Start to measure the time: the other tasks have just had a turn."""
        self._began = monotonic()


async def iterate_async(flow: Flow[T], prefetch: int | None) -> AsyncGenerator[T, None]:
    """Yield the items of `flow` in the running loop; leaving the generator cancels the flow.

    A flow of an iterator is pulled, as by ``for``. Other flows are subscribed to.

    Args:
        flow: the flow to iterate over.
        prefetch: how many items may wait; see `Flow.iterate`.
    """
    try:
        flow, pulled = flow._pulled()
        hold = _Hold()
        if pulled is not None:
            items = chain(pulled)  # it does not ask an iterator again that has ended
            try:
                while True:
                    for item in islice(items, hold.size - 1):
                        yield item
                    if hold.is_over():  # before an item is taken, which a cancelled task would lose
                        await hold.give_way()
                    for item in items:  # noqa: B007 - it is given on below
                        break
                    else:
                        return
                    yield item
            finally:
                close_iterator(pulled)
        from flow_core.sources._loops import LoopWatch  # it imports this module

        loop = asyncio.get_running_loop()
        subscriber: LoopSubscriber[T] = LoopSubscriber(loop, flow._ahead(prefetch))
        watch = LoopWatch(loop, subscriber.lost)
        try:
            flow.subscribe(subscriber)
            queue = subscriber.queue
            while True:
                if not queue and await subscriber.wait():
                    hold.begin()
                first = subscriber.taken()
                if first is None:
                    return
                yield first
                del first
                for item in subscriber.at_hand(hold.size - 1):
                    yield item
                    del item
                if hold.is_over():
                    await hold.give_way()
        finally:
            await subscriber.left(watch)
    except StopAsyncIteration as error:
        # In an async generator, Python turns it into a RuntimeError, too, without its notes.
        stopped = RuntimeError("a function of the flow raised StopAsyncIteration")
        for note in getattr(error, "__notes__", ()):
            stopped.add_note(note)
        raise stopped from error


@final
class AsyncItems(Generic[T]):
    """The items of a flow: an async iterator, and an async context manager that cancels the flow.

    >>> import asyncio
    >>> import flow_core as flow
    >>> async def main() -> None:
    ...     async with flow.range(9).aiterate(prefetch=2) as items:
    ...         async for item in items:
    ...             print(item)
    ...             break
    >>> asyncio.run(main())
    0

    At the end of the block, the flow is cancelled and has cleaned up. If a loop without a block is
    left early, the flow cleans up soon after: Python closes its generator in a separate task.
    """

    __slots__ = ("_items",)

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._items = items

    def __aiter__(self) -> AsyncIterator[T]:
        return self._items

    async def __anext__(self) -> T:
        return await anext(self._items)

    async def aclose(self) -> None:
        """Cancel the flow, unless it has ended. Further calls have no effect."""
        await self._items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


async def run_to_end(items: AsyncGenerator[object, None]) -> None:
    """Take all `items`, so that none is left for Python to close."""
    async with aclosing(items):
        async for _ in items:
            pass


async def await_single(source: Publisher[T]) -> T:
    """Return the only item of `source`.

    Raises:
        NoItemError: if there is no item.
        TooManyItemsError: if there is more than one item.
    """
    from flow_core.sources._loops import LoopWatch  # it imports this module

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
        await subscriber.left(watch)


@final
class LoopSubscriber(QueuedSubscriber[T], Generic[T]):
    """Takes items from any thread and wakes one coroutine of `loop`."""

    operator = "async for"

    __slots__ = ("_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop, prefetch: int | None) -> None:
        super().__init__(prefetch)
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None

    def _wake(self) -> None:
        self._waits_no_more()  # once is enough: the consumer sets it again before it waits again
        waiter, loop = self._waiter, self._loop
        if waiter is None:
            return
        if in_turn(loop):
            _resolve(waiter)
            return
        try:
            loop.call_soon_threadsafe(_resolve, waiter)
        except RuntimeError:
            self.lost()

    async def wait(self) -> bool:
        """Wait until an item is there, or the flow has ended.

        Return True if waiting gave other tasks of the loop a turn.
        """
        queue = self.queue
        waited = False
        if not queue:
            self.ask()
        while not queue and not self._done:
            waiter = self._waiter = self._loop.create_future()
            self._waits = True
            if not queue and not self._done:
                waited = True
                await waiter
            self._waits_no_more()
            self._waiter = None
        return waited

    async def take(self) -> T | None:
        """Return the next item, or None at the end. If the flow has failed, raise its error."""
        await self.wait()
        return self.taken()

    async def left(self, watch: LoopWatch) -> None:
        """Cancel the flow, as the consumer has left, and wait until all its tasks have ended."""
        watch.end()
        self.cancel()
        home = self.home()
        if home is not None and home.tasks:
            await home.ended()

    def lost(self) -> None:
        """Stop, because the loop is closed and no coroutine waits any more."""
        from flow_core.sources._loops import closed_loop

        if not self._cancelled:
            hooks.drop_error(closed_loop("async for"))
        self.cancel()


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
