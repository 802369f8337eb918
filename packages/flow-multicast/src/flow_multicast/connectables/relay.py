"""A subscriber that passes everything on, and notices when the flow has ended."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import none_given
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import ConditionalSubscriber, CoreSubscriber, Subscription

__all__ = ["ConditionalRelay", "Relay"]

T = TypeVar("T")


class Relay(CoreSubscriber[T], Subscription, Scannable, Generic[T]):
    """Passes signals and requests on between an upstream and one downstream.

    Args:
        downstream: gets the signals.
    """

    __slots__ = ("__weakref__", "_downstream", "_live", "_upstream")

    def __init__(self, downstream: CoreSubscriber[T]) -> None:
        self._downstream: CoreSubscriber[T] | None = downstream
        self._live = [True]
        """Not empty until the end: the thread that pops the entry is the one that ends this."""
        self._upstream: Subscription | None = None

    @override
    def home(self) -> Home | None:
        downstream = self._downstream
        return None if downstream is None else downstream.home()

    @abstractmethod
    def over(self, *, cancelled: bool) -> None:
        """Called once, when the flow has ended or was cancelled, before the downstream ends."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Return the operator, for statistics."""

    @property
    def served_by(self) -> object | None:
        """Return the next link upstream, if that is not the subscription; None otherwise."""
        return None

    @property
    def ended(self) -> bool:
        """Return whether the flow has ended, or was cancelled."""
        return not self._live

    def fail(self, error: BaseException) -> None:
        """Send the downstream an error that is not the upstream's."""
        upstream = self._upstream
        if upstream is not None:
            hooks.cancel(upstream)
        self.on_error(error)

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator=self.label,
            terminated=not self._live,
            upstream=self.served_by or self._upstream,
        )

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: it is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        if self._upstream is not None or not self._live:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        downstream = self._downstream
        if downstream is not None:
            downstream.on_subscribe(self)
        else:  # ended meanwhile
            self._upstream = None
            subscription.cancel()

    @override
    def on_next(self, item: T, /) -> None:
        downstream = self._downstream
        if downstream is None:
            hooks.drop_item(item)
        else:
            downstream.on_next(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        downstream = self._release(cancelled=False)
        if downstream is None:
            hooks.drop_error(error)
        else:
            downstream.on_error(error)

    @override
    def on_complete(self) -> None:
        downstream = self._release(cancelled=False)
        if downstream is not None:
            downstream.on_complete()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        """End the flow with `error`: the upstream has cancelled itself."""
        downstream = self._release(cancelled=True)
        return downstream is not None and downstream.on_next_raised(error)

    @override
    def request(self, n: int, /) -> None:
        upstream = self._upstream
        if upstream is not None:
            upstream.request(n)

    @override
    def cancel(self) -> None:
        upstream = self._upstream
        if upstream is not None:
            hooks.cancel(upstream)
        self._release(cancelled=True)

    def _release(self, *, cancelled: bool) -> CoreSubscriber[T] | None:
        """Drop the subscriber (§3.13), and return it; only the first caller gets it."""
        try:
            del self._live[0]
        except IndexError:
            return None
        downstream, self._downstream = self._downstream, None
        self._upstream = None  # it may keep items
        self.over(cancelled=cancelled)
        return downstream


class ConditionalRelay(Relay[T], ConditionalSubscriber[T]):
    """A `Relay` for a conditional subscriber."""

    __slots__ = ()

    @override
    def try_on_next(self, item: T, /) -> bool:
        downstream = self._downstream
        if isinstance(downstream, ConditionalSubscriber):
            return downstream.try_on_next(item)
        hooks.drop_item(item)
        return True
