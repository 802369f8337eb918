"""``for x in flow`` over an asynchronous flow: items wait in a bounded queue."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from threading import get_ident, main_thread
from time import monotonic
from typing import Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core.clocks import on_clock_thread
from flow_core.errors import BlockingInEventLoopError, FlowError
from flow_core.homes import running_loop
from flow_core.protocols import Publisher
from flow_core.subscribers._queued import QueuedSubscriber

__all__ = [
    "BlockingSubscriber",
    "check_may_block",
    "iterate_blocking",
    "wait_for",
]

T = TypeVar("T")

_LOOK_EVERY_S: Final = 0.2
"""The time for which the main thread waits before it checks for signals, in seconds."""

_WAY: Final = "use `async for item in flow`, or await the only item: `await flow.to_list()`"


def check_may_block(what: str, way: str = _WAY) -> None:
    """Refuse to block the thread of a running event loop, or that of a clock.

    Args:
        what: names the call that would block, for the message.
        way: what to do in an event loop instead, for the message.

    Raises:
        BlockingInEventLoopError: if this thread runs an asyncio loop, or a clock's timers.
    """
    refused = _refusal(what, way)
    if refused is not None:
        raise refused


def _refusal(what: str, way: str) -> BlockingInEventLoopError | None:
    """Return the error that `check_may_block` would raise in this thread; None if it would not."""
    if running_loop() is not None:
        return BlockingInEventLoopError(f"{what} would block the running event loop; {way}")
    if on_clock_thread():
        return BlockingInEventLoopError(
            f"{what} would block the thread that runs all timers, and hang if it waits for one of "
            "them; use flat_map() or another operator instead of blocking, or run this function "
            "elsewhere, by observe_on(executor) before it"
        )
    return None


def wait_for(queue: SimpleQueue[T], timeout_s: float | None = None) -> T:
    """Take an object that another thread puts into `queue`; signal handlers can run meanwhile.

    A signal ends a wait of the main thread only if that thread receives it. Linux may give the
    signal to another thread, if that thread is just starting a new one. Also, if the wait begins
    just after the signal, nothing ends it. So the main thread checks for signals from time to time.

    Args:
        queue: the queue from which the object is taken.
        timeout_s: the longest time to wait, in seconds; None for no limit.

    Raises:
        Empty: if no object came within `timeout_s`.
        FlowError: if the interpreter is shutting down: by then, no other thread runs that could put
            an object into `queue`.
    """
    if sys.is_finalizing():  # in a finaliser
        raise FlowError(
            "the interpreter is ending, and no other thread runs that could continue this flow; "
            "end what uses it before, by a context manager or atexit.register()"
        )
    if get_ident() != main_thread().ident:
        return queue.get(timeout=timeout_s)
    end = None if timeout_s is None else monotonic() + timeout_s
    while True:
        left = _LOOK_EVERY_S if end is None else end - monotonic()
        try:
            return queue.get(timeout=max(0, min(left, _LOOK_EVERY_S)))
        except Empty:
            if left <= 0:
                raise


def iterate_blocking(source: Publisher[T], prefetch: int | None) -> Iterator[T]:
    """Yield the items of `source`. Closing this generator cancels the flow.

    In a thread that must not wait, this yields the items that are available at once, and raises the
    error as soon as it would have to wait for an item.

    Args:
        source: the publisher.
        prefetch: how many items may wait; see `QueuedSubscriber`.

    Raises:
        BlockingInEventLoopError: if this would have to wait in a thread that must not wait.
    """
    refused = _refusal("iterating over this flow", _WAY)
    subscriber: BlockingSubscriber[T] | HastySubscriber[T]
    subscriber = (
        BlockingSubscriber(prefetch) if refused is None else HastySubscriber(prefetch, refused)
    )
    try:
        source.subscribe(subscriber)
        queue = subscriber.queue
        while True:
            if not queue:
                subscriber.wait()
            item = subscriber.taken()
            if item is None:
                return
            yield item
            del item
            yield from subscriber.at_hand()
    finally:
        subscriber.cancel()


@final
class BlockingSubscriber(QueuedSubscriber[T], Generic[T]):
    """Takes items from any thread, and wakes the consumer, which blocks.

    The bell wakes the consumer. It may ring before the consumer waits for it, even in a finaliser
    or a signal handler of the thread that is about to wait. `SimpleQueue.put` may be called there
    at any point, and takes no lock.
    """

    operator = "for"

    __slots__ = ("_bell",)

    def __init__(self, prefetch: int | None) -> None:
        super().__init__(prefetch)
        self._bell: SimpleQueue[None] = SimpleQueue()

    def _wake(self) -> None:
        self._bell.put(None)

    def _drop(self, error: BaseException) -> None:
        """Ignore the error: leaving a loop early hides later errors, as with any iterator."""

    def wait(self) -> None:
        """Block until an item waits, or the flow has ended."""
        queue, bell = self.queue, self._bell
        self.ask()
        while not bell.empty():
            bell.get()  # it rang for items that were taken meanwhile
        self._waits = True
        while not queue and not self._done:
            wait_for(bell)
        self._waits_no_more()


@final
class HastySubscriber(QueuedSubscriber[T], Generic[T]):
    """Takes items where blocking is not allowed: in the thread of an event loop, or of a clock.

    As soon as another thread signals, the flow is refused, even if an item is available: otherwise,
    the timing of the threads would decide whether it is refused.

    Args:
        prefetch: see `QueuedSubscriber`.
        refused: the error that `wait` raises.
    """

    operator = "for"

    __slots__ = ("_others", "_refused", "_thread")

    def __init__(self, prefetch: int | None, refused: BlockingInEventLoopError) -> None:
        super().__init__(prefetch)
        self._refused = refused
        self._thread = get_ident()
        self._others = False
        """True when another thread has signalled."""

    @override
    def on_next(self, item: T, /) -> None:
        self._look()
        super().on_next(item)

    @override
    def receiver(self) -> Callable[[T], object]:
        return self.on_next

    @override
    def on_error(self, error: BaseException, /) -> None:
        self._look()
        super().on_error(error)

    @override
    def on_complete(self) -> None:
        self._look()
        super().on_complete()

    def wait(self) -> None:
        """Raise the error `refused`, if no item waits and the flow has not ended."""
        self.ask()
        if self._others or not (self.queue or self._done):
            raise self._refused

    def _look(self) -> None:
        if get_ident() != self._thread:
            self._others = True

    def _wake(self) -> None:
        """Do nothing: no thread waits."""

    @override
    def _drop(self, error: BaseException) -> None:
        pass
