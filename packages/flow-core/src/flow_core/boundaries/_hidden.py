"""``hide()``: plain Reactive Streams on both sides, without any fusion.

Signals that pass such a link can be observed: ``do_on_request`` is a ``hide()`` that also reports
requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import none_given, throw_if_fatal
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber, Subscription
from flow_core.stages._template import describe
from flow_core.subscribers._strict import core_subscriber

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["HIDE", "HiddenSource", "observing_requests"]

T = TypeVar("T")


@final
class HiddenSource(Publisher[T], Generic[T]):
    """A publisher that shows neither its source nor its subscription."""

    __slots__ = ("_on_request", "_upstream")

    def __init__(
        self, upstream: Publisher[T], on_request: Callable[[int], object] | None = None
    ) -> None:
        self._upstream = upstream
        self._on_request = on_request

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self._upstream.subscribe(_hidden(core_subscriber(subscriber), self._on_request))

    def __repr__(self) -> str:
        return f"{self._upstream!r}"


@final
class _Hidden(CoreSubscriber[Any], Subscription, Scannable):  # Any: items of any type
    """A link that is not conditional for the upstream, and not a queue for the downstream."""

    __slots__ = ("_downstream", "_on_request", "_upstream")

    def __init__(
        self, downstream: CoreSubscriber[Any], on_request: Callable[[int], object] | None
    ) -> None:
        self._on_request = on_request
        self._downstream: CoreSubscriber[Any] | None = downstream
        self._upstream: Subscription | None = None

    @override
    def home(self) -> Home | None:
        downstream = self._downstream
        return None if downstream is None else downstream.home()

    @override
    def receiver(self) -> Callable[[Any], object]:
        """Return the downstream's own function: no frame then lies between it and the loop."""
        downstream = self._downstream
        return self.on_next if downstream is None else downstream.receiver()

    @override
    def on_next(self, item: Any, /) -> None:
        if item is None:
            raise none_given("on_next")
        downstream = self._downstream
        if downstream is None:
            hooks.drop_item(item)
        else:
            downstream.on_next(item)

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        downstream = self._downstream
        if self._upstream is not None or downstream is None:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        downstream.on_subscribe(self)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        downstream = self._release()
        if downstream is not None:
            downstream.on_error(error)
        else:
            hooks.drop_error(error)

    @override
    def on_complete(self) -> None:
        downstream = self._release()
        if downstream is not None:
            downstream.on_complete()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        downstream = self._release()
        return downstream is not None and downstream.on_next_raised(error)

    @override
    def request(self, n: int, /) -> None:
        if self._on_request is not None and self._downstream is not None:
            try:
                self._on_request(n)
            except BaseException as error:
                throw_if_fatal(error)
                hooks.drop_error(error)
        if self._upstream is not None:
            self._upstream.request(n)

    @override
    def cancel(self) -> None:
        self._release()
        if self._upstream is not None:
            hooks.cancel(self._upstream)

    def _release(self) -> CoreSubscriber[Any] | None:
        """Drop the reference to the subscriber (§3.13), and return it."""
        downstream, self._downstream = self._downstream, None
        return downstream

    @override
    def statistics(self) -> Statistics:
        action = self._on_request
        return Statistics(
            operator="hide()" if action is None else f"do_on_request({describe(action)})",
            terminated=self._downstream is None,
            upstream=self._upstream,
        )


def _hidden(
    downstream: CoreSubscriber[T], on_request: Callable[[int], object] | None
) -> CoreSubscriber[T]:
    return _Hidden(downstream, on_request)


def _hide(
    flow: Flow[Any], on_request: Callable[[int], object] | None = None
) -> Flow[Any]:  # Any: items of any type
    return flow._of(HiddenSource(flow, on_request))


HIDE: Final[Operator[Any, Any]] = Operator("hide", _hide)  # Any: see _hide


def observing_requests(action: Callable[[int], object]) -> Operator[Any, Any]:  # Any: see _hide
    """Return an operator that does what `Flow.do_on_request` does."""
    return Operator("do_on_request", lambda flow: _hide(flow, action), describe(action))
