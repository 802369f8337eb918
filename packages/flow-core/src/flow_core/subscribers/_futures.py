"""``flow.to_future()``: the only item of a flow as a future."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import NoItemError, TooManyItemsError, none_given
from flow_core.homes import Home, current_home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import CoreSubscriber, Publisher, Subscription

__all__ = ["single_future"]

T = TypeVar("T")


def single_future(source: Publisher[T]) -> Future[T]:
    """Subscribe to `source`, and return a future of its only item."""
    future: Future[T] = Future()
    source.subscribe(_FutureSubscriber(future))
    return future


@final
class _FutureSubscriber(CoreSubscriber[T], Scannable, Generic[T]):
    __slots__ = ("_future", "_home", "_item", "_subscription")

    def __init__(self, future: Future[T]) -> None:
        self._future = future
        self._item: T | None = None
        self._subscription: Subscription | None = None
        self._home = current_home()
        future.add_done_callback(self._resolved)

    @override
    def home(self) -> Home | None:
        """The home of the thread in which this subscriber was made."""
        return self._home

    def _resolved(self, future: Future[T]) -> None:
        subscription, self._subscription = self._subscription, None
        if future.cancelled():
            future.set_running_or_notify_cancel()  # so that wait() for several of them notices it
            if subscription is not None:
                subscription.cancel()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._subscription is not None or self._future.done():
            subscription.cancel()
            return
        self._subscription = subscription
        if self._future.done():  # cancelled meanwhile, by a thread that saw no subscription yet
            self._subscription = None
            subscription.cancel()
        else:
            subscription.request(2)

    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._item is None:
            self._item = item
            return
        if self._subscription is not None:
            hooks.cancel(self._subscription)
        self.on_error(TooManyItemsError("the flow has more than the one item of its future"))

    def on_error(self, error: BaseException, /) -> None:
        try:
            self._future.set_exception(error)
        except InvalidStateError:  # it is done, or was cancelled just now
            hooks.drop_error(error)

    def on_complete(self) -> None:
        if self._item is None:
            self.on_error(NoItemError("the flow completed without an item for its future"))
        else:
            try:
                self._future.set_result(self._item)
            except InvalidStateError:
                hooks.drop_item(self._item)

    @override
    def statistics(self) -> Statistics:
        got = self._item is not None
        return Statistics(
            operator="to_future",
            requested=0 if self._subscription is None else 2 - got,
            buffered=int(got),
            terminated=self._future.done(),
            cancelled=self._future.cancelled(),
            upstream=self._subscription,
        )
