"""Sources that call a function when they are subscribed to."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Generic, Literal, Never, TypeVar, final

from typing_extensions import override

from flow_core.conversion import Convertible, as_flow
from flow_core.errors import throw_if_fatal
from flow_core.flow import Flow
from flow_core.protocols import CallableSource, Publisher, Subscriber
from flow_core.sources._idle import IdleSubscription, fail
from flow_core.stages._template import describe, refuse_coroutine_function
from flow_core.structure import DeferredSource
from flow_core.subscribers._strict import core_subscriber

__all__ = [
    "defer",
    "error",
    "fail",
    "from_callable",
    "from_publisher",
    "never",
    "subscribe_resolved",
]

T = TypeVar("T")


@final
class CallSource(CallableSource[T]):
    """The result of a function, which is called once per subscriber."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[], T | None]) -> None:
        self._function = function

    @override
    def call(self) -> T | None:
        return self._function()

    def __repr__(self) -> str:
        return f"from_callable({describe(self._function)})"


@final
class FactorySource(DeferredSource[T]):
    """A flow that is made when it is subscribed to."""

    __slots__ = ("_factory",)

    def __init__(self, factory: Callable[[], Convertible[T]]) -> None:
        self._factory = factory

    def resolve(self) -> Flow[T]:
        """Return the flow for one subscriber."""
        return as_flow(self._factory(), repr(self))

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        subscribe_resolved(self, subscriber)

    def __repr__(self) -> str:
        return f"defer({describe(self._factory)})"


def subscribe_resolved(source: DeferredSource[T], subscriber: Subscriber[T]) -> None:
    """Subscribe to the flow that `source` makes; if making it fails, signal the error."""
    downstream = core_subscriber(subscriber)
    try:
        flow = source.resolve()
    except BaseException as raised:
        throw_if_fatal(raised)
        fail(downstream, raised)
        return
    flow.subscribe(downstream)


@final
class ErrorSource(Publisher[T], Generic[T]):
    """Fails: at once and without demand, or when something is requested.

    Args:
        error: the error; or a function that returns one for each subscriber.
        on_request: whether to wait for the first request.
    """

    __slots__ = ("_error", "_on_request")

    def __init__(
        self, error: BaseException | Callable[[], BaseException], *, on_request: bool = False
    ) -> None:
        self._error = error
        self._on_request = on_request

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        try:
            error = self._make()
        except BaseException as raised:
            error = raised
        throw_if_fatal(error)
        IdleSubscription(downstream, error, on_request=self._on_request).start()

    def _make(self) -> BaseException:
        error = self._error
        if isinstance(error, BaseException):
            # Without the frames that it passed for other subscribers (X14).
            return error.with_traceback(None)
        made = error()
        if not isinstance(made, BaseException):
            raise TypeError(f"{self!r} gave {made!r}, not an exception")
        return made

    def __repr__(self) -> str:
        when = ', when="request"' if self._on_request else ""
        return f"error({describe(self._error)}{when})"


@final
class NeverSource(Publisher[T], Generic[T]):
    """Sends nothing after on_subscribe."""

    __slots__ = ()

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        IdleSubscription(core_subscriber(subscriber)).start()

    def __repr__(self) -> str:
        return "never()"


@final
class ForeignSource(Publisher[T], Generic[T]):
    """A publisher that may break rules: its signals are checked before they reach any stage."""

    __slots__ = ("_publisher",)

    none_free: ClassVar[bool] = False
    """See `IterableSource.none_free`."""

    def __init__(self, publisher: Publisher[T]) -> None:
        self._publisher = publisher

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self._publisher.subscribe(core_subscriber(subscriber))

    def __repr__(self) -> str:
        return f"from_publisher({describe(self._publisher)})"


def from_callable(function: Callable[[], T | None]) -> Flow[T]:
    """The result of `function`, or no item if the result is None; called once per subscriber.

    >>> list(from_callable(lambda: 42))
    [42]

    Args:
        function: called when the flow is subscribed to, never while it is assembled. Its error is
            the flow's error.

    Raises:
        TypeError: if `function` cannot be called.
    """
    if not callable(function):
        raise TypeError(f"from_callable() takes a function, not {function!r}; just() takes an item")
    refuse_coroutine_function(
        "from_callable", function, "defer(function) is a flow of what it returns"
    )
    return Flow(CallSource(function))


def defer(factory: Callable[[], Convertible[T]]) -> Flow[T]:
    """A flow that `factory` makes for each subscriber.

    >>> list(defer(lambda: [1, 2]))
    [1, 2]

    Args:
        factory: called once per subscriber, when it subscribes; its error is the flow's error. It
            may return anything that `from_` takes; a coroutine function, for example, makes a flow
            of its result.

    Raises:
        TypeError: if `factory` cannot be called.
    """
    if not callable(factory):
        raise TypeError(f"defer() takes a function that makes a flow, not {factory!r}")
    return Flow(FactorySource(factory))


def error(
    error: BaseException | Callable[[], BaseException],
    *,
    when: Literal["subscribe", "request"] = "subscribe",
) -> Flow[Never]:
    """Fail, without any item.

    >>> failing = error(ValueError("no data"))
    >>> handle = failing.subscribe(print, lambda error: print(repr(error)))
    ValueError('no data')

    Demand: fails without demand, or with the first request. Thread: the subscriber's, or the
    requester's.
    Fusion: none.

    Args:
        error: the error to signal, as the same object; or a function that returns an error, called
            once per subscriber when it subscribes.
        when: ``"subscribe"`` fails at once; ``"request"`` when the first item is requested.

    Raises:
        ValueError: if `when` is something else.
    """
    if when not in ("subscribe", "request"):
        raise ValueError(f'error(when=) takes "subscribe" or "request", not {when!r}')
    source: ErrorSource[Never] = ErrorSource(error, on_request=when == "request")
    return Flow(source)


_never: Final[NeverSource[Never]] = NeverSource()


def never() -> Flow[Never]:
    """Send no signal after on_subscribe: neither items nor an end.

    Demand: checked for bad amounts, but never served. Thread: none. Fusion: none.
    """
    return Flow(_never)


def from_publisher(publisher: Publisher[T] | Flow[T]) -> Flow[T]:
    """Any Reactive Streams publisher, with the operators of a `Flow`.

    If the publisher sends None, or signals after a terminal or a cancel, this source stops it. Use
    ``Flow(publisher)`` for one that is known to follow the rules. Demand: passed on. Thread: the
    publisher's. Fusion: as the publisher grants.

    Args:
        publisher: an object with ``subscribe(subscriber)``; a Flow is returned as it is.

    Raises:
        TypeError: if `publisher` has no ``subscribe``.
    """
    if not callable(getattr(publisher, "subscribe", None)):
        raise TypeError(
            f"from_publisher() takes what has subscribe(subscriber), not {publisher!r}; "
            "from_() makes a flow of other things"
        )
    return publisher if isinstance(publisher, Flow) else Flow(ForeignSource(publisher))
