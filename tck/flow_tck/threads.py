"""The threads of a verification: a pool, an event loop, and consumers that block."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Final

import flow_core as flow
from flow_core import Flow, Subscriber
from flow_tck.java import detach, detaching

__all__ = [
    "PATIENCE_S",
    "close",
    "event_loop",
    "pool",
    "repeat",
    "settle",
    "spawn",
    "spawn_async",
    "subscriber_of",
]

PATIENCE_S: Final = 10.0
"""Seconds to wait for something that happens at once unless it is broken."""

_POOL_SIZE: Final = 4
_consumers: Final[list[threading.Thread]] = []
_captured: Final[list[Subscriber[Any]]] = []
_over: Final = threading.Event()
"""Set when the test has ended."""
_PAUSE_S: Final = 0.001


@functools.cache
def pool() -> ThreadPoolExecutor:
    """Return a pool of threads that live as long as this process."""
    return ThreadPoolExecutor(_POOL_SIZE, thread_name_prefix="pool")


@functools.cache
def event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that runs in its own thread as long as this process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=detaching(loop.run_forever), name="event loop", daemon=True).start()
    return loop


def spawn(work: Callable[[], object]) -> None:
    """Start a thread that ends when its test does, at the latest."""
    thread = threading.Thread(target=detaching(work), name="consumer", daemon=True)
    thread.start()
    _consumers.append(thread)


def repeat(step: Callable[[], bool]) -> None:
    """Repeat `step` in its own thread until it returns True or the test ends."""

    def work() -> None:
        while not step() and not _over.is_set():
            time.sleep(_PAUSE_S)

    spawn(work)


def spawn_async(work: Coroutine[Any, Any, object]) -> None:
    """Start a task in the event loop."""
    asyncio.run_coroutine_threadsafe(work, event_loop())


class _Capture:
    """A publisher that only records its subscriber."""

    def __init__(self) -> None:
        self.subscribers: SimpleQueue[Subscriber[Any]] = SimpleQueue()

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.subscribers.put(subscriber)


class _Ended:
    """The subscription of a flow that has ended."""

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass


def subscriber_of(consume: Callable[[Flow[Any]], object]) -> Subscriber[Any]:
    """Return the subscriber that a foreign publisher sees when a flow over it is consumed.

    Args:
        consume: subscribes to the flow that it receives, here or in another thread.
    """
    capture = _Capture()
    consume(flow.from_publisher(capture))
    subscriber = capture.subscribers.get(timeout=PATIENCE_S)
    _captured.append(subscriber)
    return subscriber


def settle() -> None:
    """Terminate subscribers that a test has left open, and the threads that waited for them."""
    while _captured:
        subscriber = _captured.pop()
        with contextlib.suppress(Exception):
            subscriber.on_subscribe(_Ended())  # others have one, and cancel this (§2.5)
            subscriber.on_complete()
    _over.set()
    try:
        while _consumers:
            consumer = _consumers.pop()
            consumer.join(PATIENCE_S)
            if consumer.is_alive():
                raise RuntimeError(f"{consumer} continues although its flow has completed")
    finally:
        _over.clear()


def close() -> None:
    """End all threads, each of which detaches from the virtual machine."""
    settle()
    if event_loop.cache_info().currsize:
        event_loop().call_soon_threadsafe(event_loop().stop)
    if pool.cache_info().currsize:
        # Each task waits for the others, so that every thread gets one.
        barrier = threading.Barrier(_POOL_SIZE)

        def leave() -> None:
            barrier.wait(PATIENCE_S)
            detach()

        for leaving in [pool().submit(leave) for _ in range(_POOL_SIZE)]:
            leaving.result(PATIENCE_S)
        pool().shutdown()
