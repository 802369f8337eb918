"""``hide()``: plain Reactive Streams on both sides, whatever the neighbours could agree on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

from flow_core import hooks
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber, Subscription
from flow_core.subscribers.strict import core_subscriber

__all__ = ["HiddenSource"]

T = TypeVar("T")


@final
class HiddenSource(Generic[T]):
    """A publisher that shows neither its source nor its subscription."""

    __slots__ = ("_upstream",)

    def __init__(self, upstream: Publisher[T]) -> None:
        self._upstream = upstream

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        self._upstream.subscribe(_hidden(core_subscriber(subscriber)))

    def __repr__(self) -> str:
        return f"{self._upstream!r}"


@final
class _Hidden(CoreSubscriber[Any]):  # Any: whatever the items are
    """Not conditional towards the upstream, and no queue towards the downstream."""

    __slots__ = ("_downstream", "_upstream", "on_next")

    # A slot, so that no frame of ours is between the upstream and the subscriber's method.
    on_next: Callable[[Any], object]  # pyright: ignore[reportIncompatibleMethodOverride] - see above

    def __init__(self, downstream: CoreSubscriber[Any]) -> None:
        self._downstream: CoreSubscriber[Any] | None = downstream
        self._upstream: Subscription | None = None
        self.on_next = downstream.on_next

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`."""
        if self._upstream is not None or self._downstream is None:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        self._downstream.on_subscribe(self)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        downstream = self._release()
        if downstream is not None:
            downstream.on_error(error)
        else:
            hooks.drop_error(error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        downstream = self._release()
        if downstream is not None:
            downstream.on_complete()

    def on_next_raised(self, error: BaseException, /) -> bool:
        """See `CoreSubscriber.on_next_raised`."""
        downstream = self._release()
        return downstream is not None and downstream.on_next_raised(error)

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        if self._upstream is not None:
            self._upstream.request(n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._release()
        if self._upstream is not None:
            self._upstream.cancel()

    def _release(self) -> CoreSubscriber[Any] | None:
        """Let go of the subscriber (§3.13), and return it."""
        downstream, self._downstream = self._downstream, None
        self.on_next = hooks.drop_item
        return downstream


def _hidden(downstream: CoreSubscriber[T]) -> CoreSubscriber[T]:
    return _Hidden(downstream)
