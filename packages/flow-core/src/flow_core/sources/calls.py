"""Sources that ask a function when they are subscribed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Never, TypeVar, final

from flow_core.demand import bad_request
from flow_core.flow import DeferredSource, Flow
from flow_core.protocols import CallableSource, CoreSubscriber, Publisher, Subscriber
from flow_core.stages.template import describe
from flow_core.subscribers.strict import core_subscriber

__all__ = ["defer", "error", "from_callable", "from_publisher", "never"]

T = TypeVar("T")


@final
class CallSource(CallableSource[T]):
    """What a function returns, asked once per subscriber."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[], T | None]) -> None:
        self._function = function

    def call(self) -> T | None:
        """See `CallableSource.call`."""
        return self._function()

    def __repr__(self) -> str:
        return f"from_callable({describe(self._function)})"


@final
class FactorySource(DeferredSource[T]):
    """A flow that is made when it is subscribed."""

    __slots__ = ("_factory",)

    def __init__(self, factory: Callable[[], Flow[T]]) -> None:
        self._factory = factory

    def resolve(self) -> Flow[T]:
        """The flow for one subscriber."""
        made = self._factory()
        if not isinstance(made, Flow):
            raise TypeError(f"{self!r} gave {made!r}, not a Flow")
        return made

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        try:
            flow = self.resolve()
        except Exception as raised:
            ErrorSource[T](raised).subscribe(downstream)
            return
        flow.subscribe(downstream)

    def __repr__(self) -> str:
        return f"defer({describe(self._factory)})"


@final
class _Idle:
    """A subscription that has no items to give. It still checks what is requested (§3.9)."""

    __slots__ = ("_downstream",)

    def __init__(self, downstream: CoreSubscriber[Any]) -> None:  # Any: no item is ever sent
        self._downstream: CoreSubscriber[Any] | None = downstream

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        bad = bad_request(n)
        downstream = self.release()
        if bad is None:
            self._downstream = downstream
        elif downstream is not None:
            downstream.on_error(bad)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._downstream = None

    def release(self) -> CoreSubscriber[Any] | None:
        """Take the subscriber out, to send it a terminal; None if it has cancelled."""
        downstream, self._downstream = self._downstream, None
        return downstream


@final
class ErrorSource(Generic[T]):
    """Fails at once, without demand."""

    __slots__ = ("_error",)

    def __init__(self, error: BaseException | Callable[[], BaseException]) -> None:
        self._error = error

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        idle = _Idle(downstream)
        downstream.on_subscribe(idle)
        if idle.release() is None:
            return
        if isinstance(self._error, BaseException):
            downstream.on_error(self._error)
            return
        try:
            made = self._error()
        except Exception as raised:
            made = raised
        downstream.on_error(made)

    def __repr__(self) -> str:
        return f"error({describe(self._error)})"


@final
class NeverSource(Generic[T]):
    """Says nothing after on_subscribe."""

    __slots__ = ()

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        downstream.on_subscribe(_Idle(downstream))

    def __repr__(self) -> str:
        return "never()"


def from_callable(function: Callable[[], T | None]) -> Flow[T]:
    """What `function` returns, or nothing if that is None; called once for each subscriber (F02).

    >>> list(from_callable(lambda: 42))
    [42]

    Args:
        function: called when the flow is subscribed, never while it is assembled. What it raises
            is the flow's error.
    """
    return Flow(CallSource(function))


def defer(factory: Callable[[], Flow[T]]) -> Flow[T]:
    """The flow that `factory` makes for each subscriber.

    Args:
        factory: called once per subscriber, when it subscribes; what it raises is the flow's error.
    """
    return Flow(FactorySource(factory))


def error(error: BaseException | Callable[[], BaseException]) -> Flow[Never]:
    """Fail at once, without demand.

    Args:
        error: signalled as the identical object; or a function that makes one per subscriber.
    """
    return Flow(ErrorSource[Never](error))


def never() -> Flow[Never]:
    """No signal after on_subscribe: neither items nor an end."""
    return Flow(NeverSource[Never]())


def from_publisher(publisher: Publisher[T] | Flow[T]) -> Flow[T]:
    """Any Reactive Streams publisher, with the operators of a `Flow`.

    Args:
        publisher: whatever has ``subscribe(subscriber)``; a Flow is returned as it is.
    """
    return publisher if isinstance(publisher, Flow) else Flow(publisher)
