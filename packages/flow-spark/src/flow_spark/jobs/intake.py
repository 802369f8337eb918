"""Takes the items of a flow in a thread that another thread may stop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, final

from flow_core.demand import replenish_limit
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, IterableSource, Subscription
from flow_core.stages import close_iterator
from flow_core.structure import DeferredSource, source_of

__all__ = ["Stop", "taken"]

_PREFETCH: Final = 1024


@final
class Stop:
    """A request to stop, which wakes a thread that waits for something else."""

    __slots__ = ("_lock", "_set", "_wake")

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._set = False
        self._wake: Callable[[], object] | None = None

    def __call__(self) -> bool:
        """Return whether the stop was requested."""
        return self._set

    def set(self) -> None:
        """Request the stop. Any thread may call this, and more than once."""
        with self._lock:
            self._set = True
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def wakes(self, wake: Callable[[], object]) -> None:
        """Call `wake` when the stop is requested; at once if it was already."""
        with self._lock:
            if not self._set:
                self._wake = wake
                return
        wake()


def taken(flow: Flow[Any], stop: Stop) -> Iterator[Any]:  # Any: items of any type
    """Yield the items of `flow`, until its end or until `stop` is set.

    A flow that works in this thread is iterated over. A flow with other threads is subscribed to,
    so that `stop` can end the wait for its items.
    """
    if isinstance(source_of(flow), (IterableSource, DeferredSource)):
        return _iterated(flow, stop)
    return _received(flow, stop)


def _iterated(flow: Flow[Any], stop: Stop) -> Iterator[Any]:
    items = iter(flow)
    try:
        for item in items:
            if stop():
                return
            yield item
    finally:
        close_iterator(items)


def _received(flow: Flow[Any], stop: Stop) -> Iterator[Any]:
    inbox = _Inbox()
    stop.wakes(inbox.cancel)
    try:
        flow.subscribe(inbox)
        while (item := inbox.take()) is not None:
            yield item
    finally:
        inbox.cancel()


@final
class _Inbox(CoreSubscriber[Any]):
    """Keeps at most as many items as it has requested, for one thread that waits for them."""

    __slots__ = ("_change", "_consumed", "_done", "_error", "_items", "_subscription")

    def __init__(self) -> None:
        self._change: Final = threading.Condition()
        self._items: Final[deque[Any]] = deque()
        self._subscription: Subscription | None = None
        self._error: BaseException | None = None
        self._done = False
        self._consumed = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        with self._change:
            refused = self._done or self._subscription is not None
            if not refused:
                self._subscription = subscription
        if refused:
            subscription.cancel()  # §2.5, or stopped meanwhile
        else:
            subscription.request(_PREFETCH)

    def on_next(self, item: Any, /) -> None:
        with self._change:
            if not self._done:
                self._items.append(item)
                self._change.notify()

    def on_error(self, error: BaseException, /) -> None:
        with self._change:
            self._error = error
            self._done = True
            self._change.notify()

    def on_complete(self) -> None:
        with self._change:
            self._done = True
            self._change.notify()

    def take(self) -> Any:
        """Wait for the next item and return it, or None at the end; raise the error of the flow."""
        with self._change:
            while not self._items and not self._done:
                self._change.wait()
            if not self._items:
                if self._error is not None:
                    raise self._error
                return None
            item = self._items.popleft()
        self._consumed += 1
        limit = replenish_limit(_PREFETCH)
        subscription = self._subscription
        if self._consumed % limit == 0 and subscription is not None:
            subscription.request(limit)
        return item

    def cancel(self) -> None:
        with self._change:
            self._done = True
            self._items.clear()
            subscription = self._subscription
            self._change.notify()
        if subscription is not None:
            subscription.cancel()
