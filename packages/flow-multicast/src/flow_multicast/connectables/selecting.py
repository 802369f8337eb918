"""``publish(selector)`` and ``replay(selector)``: one source, used several times in a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

from typing_extensions import override

from flow_core import Flow, hooks
from flow_core.assembly import operator_of
from flow_core.connectable import Connectable
from flow_core.errors import is_fatal, none_given, throw_if_fatal
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Processor,
    Publisher,
    Subscriber,
    Subscription,
)
from flow_core.sources import fail
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.connection import DisconnectedError
from flow_multicast.connectables.relay import ConditionalRelay, Relay

__all__ = ["Selected"]

T = TypeVar("T")
R = TypeVar("R")


@final
class Selected(Publisher[R], Generic[T, R]):
    """Calls `selector` with a flow that it may use several times, over one run of the source.

    Args:
        source: the flow that is run, once for each subscriber.
        factory: makes the processor between the source and the flows of `selector`.
        selector: called with the shared flow; returns the flow that is subscribed to.
        label: the operator, for messages.
    """

    __slots__ = ("_factory", "_label", "_selector", "_source")

    def __init__(
        self,
        source: Publisher[T],
        factory: Callable[[], Processor[T, T]],
        selector: Callable[[Flow[T]], Publisher[R]],
        label: str,
    ) -> None:
        self._source = source
        self._factory = factory
        self._selector = selector
        self._label = label

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        downstream = core_subscriber(subscriber)
        processor = self._factory()
        try:
            chosen = self._selector(Flow(processor))
            if isinstance(chosen, Connectable):
                raise TypeError(
                    f"{self._label}: its selector gave {chosen!r}, which never connects; give its "
                    ".ref_count() or .auto_connect(), or connect it there and give its .flow"
                )
            if not hasattr(chosen, "subscribe"):
                raise TypeError(f"{self._label}: its selector gave {chosen!r}, not a Flow")
        except BaseException as error:
            throw_if_fatal(error)
            error.add_note(f"in {self._label}")
            fail(downstream, error)
            return
        feed: _Feed[T] = _Feed(processor, self._label, downstream.home())
        outer = (
            _ConditionalOuter(downstream, feed)
            if isinstance(downstream, ConditionalSubscriber)
            else _Outer(downstream, feed)
        )
        chosen.subscribe(outer)
        if feed.over:
            return  # it ended without the source, or was cancelled
        try:
            self._source.subscribe(feed)
        except BaseException as error:
            if is_fatal(error):
                feed.cancel()
                raise
            feed.on_error(error)

    def __repr__(self) -> str:
        return self._label


@final
class _Feed(CoreSubscriber[T], Subscription, Scannable, Generic[T]):
    """Stands between the source and the processor: the end of the selected flow stops this."""

    __slots__ = ("__weakref__", "_home", "_label", "_live", "_processor", "_upstream")

    def __init__(self, processor: Processor[T, T], label: str, home: Home | None) -> None:
        self._label = label
        self._home = home
        self._processor: Processor[T, T] | None = processor
        self._live = [True]
        """Not empty until the end: the thread that pops the entry is the one that ends this."""
        self._upstream: Subscription | None = None

    @property
    def over(self) -> bool:
        """Return whether the source has ended, or no more of its items are needed."""
        return not self._live

    @override
    def home(self) -> Home | None:
        """Return the home of the subscriber of the selected flow."""
        return self._home

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the source's subscription: it is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        if self._upstream is not None or self.over:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        processor = self._processor
        if processor is not None:
            processor.on_subscribe(self)
        else:  # ended meanwhile
            self._upstream = None
            subscription.cancel()

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        processor = self._processor
        if processor is None:
            hooks.drop_item(item)
        else:
            processor.on_next(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        processor = self._close()
        self._upstream = None  # it is not called any more (§2.3)
        if processor is None:
            hooks.drop_error(error)
        else:
            processor.on_error(error)

    @override
    def on_complete(self) -> None:
        processor = self._close()
        self._upstream = None  # as above
        if processor is not None:
            processor.on_complete()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        self.on_error(error)
        return True

    def _close(self) -> Processor[T, T] | None:
        """Return the processor; only the first caller gets it."""
        try:
            del self._live[0]
        except IndexError:
            return None
        processor, self._processor = self._processor, None
        return processor

    @override
    def request(self, n: int, /) -> None:
        """Request `n` items of the source for the processor."""
        upstream = self._upstream
        if upstream is not None:
            upstream.request(n)

    @override
    def cancel(self) -> None:
        """Cancel: the processor needs no more items."""
        self._close()
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            hooks.cancel(upstream)

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator=operator_of(self._label),
            terminated=self.over,
            upstream=self._upstream,
        )

    def stop(self) -> None:
        """Cancel the source, and send an error to the subscribers that are left.

        Any thread may call this. Calling it twice is harmless.
        """
        processor = self._close()
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            hooks.cancel(upstream)
        if processor is not None:
            processor.on_error(DisconnectedError(f"{self._label}: its selected flow has ended"))


class _Outer(Relay[R]):
    """Passes the selected flow on; when that flow has ended, the source is stopped."""

    __slots__ = ("_feed",)

    def __init__(self, downstream: CoreSubscriber[R], feed: _Feed[Any]) -> None:
        super().__init__(downstream)
        self._feed: _Feed[Any] | None = feed  # Any: the source's items, which do not pass here

    @property
    @override
    def label(self) -> str:
        return "selected"

    @override
    def over(self, *, cancelled: bool) -> None:
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.stop()


@final
class _ConditionalOuter(_Outer[R], ConditionalRelay[R]):
    """An `_Outer` for a conditional subscriber."""

    __slots__ = ()
