"""``flow.to_future()``: the only item of a flow as a future."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Generic, TypeVar, final

from flow_core.errors import NoItemError, TooManyItemsError
from flow_core.protocols import CoreSubscriber, Publisher, Subscription

__all__ = ["single_future"]

T = TypeVar("T")


def single_future(source: Publisher[T]) -> Future[T]:
    """Subscribe, and return the future of the only item."""
    future: Future[T] = Future()
    source.subscribe(_FutureSubscriber(future))
    return future


@final
class _FutureSubscriber(CoreSubscriber[T], Generic[T]):
    __slots__ = ("_future", "_item", "_subscription")

    def __init__(self, future: Future[T]) -> None:
        self._future = future
        self._item: T | None = None
        self._subscription: Subscription | None = None
        future.add_done_callback(self._resolved)

    def _resolved(self, future: Future[T]) -> None:
        if future.cancelled() and self._subscription is not None:
            self._subscription.cancel()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._subscription is not None or self._future.cancelled():
            subscription.cancel()
            return
        self._subscription = subscription
        subscription.request(2)

    def on_next(self, item: T, /) -> None:
        if self._item is None:
            self._item = item
            return
        if self._subscription is not None:
            self._subscription.cancel()
        self.on_error(TooManyItemsError("the flow has more than the one item of its future"))

    def on_error(self, error: BaseException, /) -> None:
        if self._future.set_running_or_notify_cancel():
            self._future.set_exception(error)

    def on_complete(self) -> None:
        if self._item is None:
            self.on_error(NoItemError("the flow completed without an item for its future"))
        elif self._future.set_running_or_notify_cancel():
            self._future.set_result(self._item)
