"""Sources that ask a function when they are subscribed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Never, TypeVar, final

from flow_core.demand import bad_request
from flow_core.errors import throw_if_fatal
from flow_core.flow import DeferredSource, Flow
from flow_core.protocols import CallableSource, CoreSubscriber, Publisher, Subscriber
from flow_core.serial import SerialDrain
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
        except BaseException as raised:
            throw_if_fatal(raised)
            fail(downstream, raised)
            return
        flow.subscribe(downstream)

    def __repr__(self) -> str:
        return f"defer({describe(self._factory)})"


@final
class _Idle(SerialDrain):
    """A subscription that has no items to give. It still checks what is requested (§3.9)."""

    __slots__ = ("_downstream", "_error")

    def __init__(
        self,
        downstream: CoreSubscriber[Any],  # Any: no item is ever sent
        error: BaseException | None = None,
    ) -> None:
        super().__init__()
        self._downstream: CoreSubscriber[Any] | None = downstream
        self._error = error

    def start(self) -> None:
        """Hand this over as the subscription, then signal the error, if there is one (§1.9)."""
        downstream = self._downstream
        # The permit is held, so that nothing is signalled before on_subscribe has returned.
        if downstream is not None and self.try_enter():
            try:
                downstream.on_subscribe(self)
            except BaseException:
                self._downstream = None
                self.leave()
                raise
            self.run_entered()

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        bad = bad_request(n)
        if bad is not None and self._error is None:
            self._error = bad
            self.signal()

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._downstream = None

    def drain(self) -> None:
        """See `SerialDrain.drain`."""
        error = self._error
        if error is not None:
            downstream, self._downstream = self._downstream, None
            if downstream is not None:
                downstream.on_error(error)


def fail(downstream: CoreSubscriber[Any], error: BaseException) -> None:  # Any: see _Idle
    """Give `downstream` a subscription, and `error`."""
    _Idle(downstream, error).start()


@final
class ErrorSource(Generic[T]):
    """Fails at once, without demand."""

    __slots__ = ("_error",)

    def __init__(self, error: BaseException | Callable[[], BaseException]) -> None:
        self._error = error

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        try:
            error = self._make()
        except BaseException as raised:
            error = raised
        throw_if_fatal(error)
        fail(downstream, error)

    def _make(self) -> BaseException:
        error = self._error
        if isinstance(error, BaseException):
            # The frames that it passed for other subscribers are not this one's affair (X14).
            return error.with_traceback(None)
        made = error()
        if not isinstance(made, BaseException):
            raise TypeError(f"{self!r} gave {made!r}, not an exception")
        return made

    def __repr__(self) -> str:
        return f"error({describe(self._error)})"


@final
class NeverSource(Generic[T]):
    """Says nothing after on_subscribe."""

    __slots__ = ()

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        _Idle(downstream).start()

    def __repr__(self) -> str:
        return "never()"


@final
class ForeignSource(Generic[T]):
    """A publisher that need not know the rules: what it sends is looked at before all stages."""

    __slots__ = ("_publisher",)

    none_free: ClassVar[bool] = False
    """See `IterableSource.none_free`."""

    def __init__(self, publisher: Publisher[T]) -> None:
        self._publisher = publisher

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        self._publisher.subscribe(core_subscriber(subscriber))

    def __repr__(self) -> str:
        return f"from_publisher({describe(self._publisher)})"


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

    A publisher that sends None, or signals after a terminal or a cancel, does not get through.
    ``Flow(publisher)`` is for one that is known to keep the rules.

    Args:
        publisher: whatever has ``subscribe(subscriber)``; a Flow is returned as it is.
    """
    return publisher if isinstance(publisher, Flow) else Flow(ForeignSource(publisher))
