"""Operators for context variables.

Operators that move a flow to another thread, or to a later time, take the subscriber's context
along. Where a thread of the user brings the items, or a source that other subscribers have started,
`context_capture` runs everything downstream in the context of the subscriber; `context_write` gives
values to everything upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import none_given
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.operator import Operator
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    IterableSource,
    Publisher,
    Subscriber,
    Subscription,
)
from flow_core.structure import AbsorbingSource, source_of
from flow_core.subscribers._strict import core_subscriber

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["CAPTURE", "context_write"]

T = TypeVar("T")

# Any: each variable has its own type, which a mapping of several cannot express.
_Values = tuple[tuple[ContextVar[Any], object], ...]


CAPTURE: Final[Operator[Any, Flow[Any]]] = Operator(  # Any: passes any items on
    "context_capture", lambda flow: flow._of(_source(flow, None))
)
"""See `Flow.context_capture`."""


# Any: see _Values.
def context_write(
    values: Mapping[ContextVar[Any], object] | ContextVar[Any], *value: object
) -> Operator[Any, Flow[Any]]:
    """See `Flow.context_write`."""
    if isinstance(values, ContextVar) and len(value) == 1:
        pairs: _Values = ((values, value[0]),)
    elif isinstance(values, Mapping) and not value:
        pairs = tuple(values.items())
    else:
        raise TypeError(
            "context_write() takes a ContextVar and its value, or a mapping of such, not "
            f"{(values, *value)!r}"
        )
    for variable, _ in pairs:
        if not isinstance(variable, ContextVar):
            raise TypeError(f"context_write() takes values by their ContextVar, not {variable!r}")
    detail = ", ".join(f"{variable.name}={value!r}" for variable, value in pairs)
    return Operator("context_write", lambda flow: flow._of(_source(flow, pairs)), detail)


# Any: the types that are passed on do not matter here.
def _source(flow: Flow[Any], written: _Values | None) -> Publisher[Any] | IterableSource[Any]:
    """Return a source that is an iterator if `flow` is one; a subscription to it is a link."""
    source = source_of(flow)
    if isinstance(source, IterableSource) and not isinstance(source, AbsorbingSource):
        return _IterableContextSource(flow, written)
    return _ContextSource(flow, written)


def _written(context: Context, values: _Values | None) -> Context:
    """Return a copy of `context` with `values`."""
    made = context.copy()
    for variable, value in values or ():
        made.run(variable.set, value)
    return made


class _ContextSource(Publisher[T]):
    """The items of `upstream`, which runs in another context than the subscriber's.

    Args:
        upstream: the flow that the items come from.
        written: the values that the upstream sees besides the subscriber's context; None to leave
            the upstream's context as it is.
    """

    __slots__ = ("_upstream", "_written")

    def __init__(self, upstream: Flow[T], written: _Values | None) -> None:
        self._upstream = upstream
        self._written = written

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        below = copy_context()
        above = None if self._written is None else _written(below, self._written)
        link = _Link(core_subscriber(subscriber), below, above)
        if above is None:
            self._upstream.subscribe(link)
        else:
            above.copy().run(self._upstream.subscribe, link)

    def __repr__(self) -> str:
        return repr(self._upstream)


@final
class _IterableContextSource(_ContextSource[T], IterableSource[T]):
    """The same source over an iterator; iterating over it needs no link."""

    __slots__ = ()

    none_free: ClassVar[bool] = True

    @override
    def iterate(self) -> Iterator[T]:
        if self._written is None:
            return iter(self._upstream)
        return _iterated(self._upstream, _written(copy_context(), self._written))


def _iterated(upstream: Flow[T], context: Context) -> Iterator[T]:
    """Yield the items of `upstream`, each requested in `context`, which no other code enters."""
    items = context.run(iter, upstream)
    try:
        while True:
            item = context.run(next, items, EMPTY)
            if item is EMPTY:
                return
            yield item
            del item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            context.run(close)


@final
class _Link(ConditionalSubscriber[T], Subscription, Scannable, Generic[T]):
    """Runs each signal in the context of the side that receives it.

    It is not a queue, because a poll would not change the context. Each call has its own copy of
    the context, since calls may be nested, or come from two threads at once.

    Args:
        downstream: gets the signals.
        below: the context for signals to the downstream.
        above: the context for requests and the cancel to the upstream; None for the caller's
            context.
    """

    __slots__ = ("_above", "_below", "_downstream", "_upstream")

    def __init__(
        self, downstream: CoreSubscriber[T], below: Context, above: Context | None
    ) -> None:
        self._downstream: CoreSubscriber[T] | None = downstream
        self._below = below
        self._above = above
        self._upstream: Subscription | None = None

    @override
    def home(self) -> Home | None:
        downstream, above = self._downstream, self._above
        home = None if downstream is None else downstream.home()
        return home if home is None or above is None else home.within(above)

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: the downstream never gets it (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        downstream = self._downstream
        if self._upstream is not None or downstream is None:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        self._below.copy().run(downstream.on_subscribe, self)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        downstream = self._downstream
        # It has ended, or this is before on_subscribe (§1.9).
        if downstream is None or self._upstream is None:
            hooks.drop_item(item)
        else:
            self._below.copy().run(downstream.on_next, item)

    @override
    def try_on_next(self, item: T, /) -> bool:
        """Pass the item on, and return the downstream's answer if it is conditional."""
        downstream = self._downstream
        if not isinstance(downstream, ConditionalSubscriber) or self._upstream is None:
            self.on_next(item)
            return True
        if item is None:
            raise none_given("on_next")
        return self._below.copy().run(downstream.try_on_next, item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        downstream = None if self._upstream is None else self._release()
        if downstream is None:
            hooks.drop_error(error)
        else:
            self._below.copy().run(downstream.on_error, error)

    @override
    def on_complete(self) -> None:
        downstream = None if self._upstream is None else self._release()
        if downstream is not None:
            self._below.copy().run(downstream.on_complete)

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        downstream = self._release()
        if downstream is None:
            return False
        return self._below.copy().run(downstream.on_next_raised, error)

    @override
    def request(self, n: int, /) -> None:
        if self._upstream is not None:
            self._call(self._upstream.request, n)

    @override
    def cancel(self) -> None:
        self._release()
        if self._upstream is not None:
            self._call(self._upstream.cancel)

    def _call(self, function: Callable[..., object], *args: int) -> None:
        if self._above is None:
            function(*args)
        else:
            self._above.copy().run(function, *args)

    def _release(self) -> CoreSubscriber[T] | None:
        """Drop the reference to the subscriber (§3.13), and return it."""
        downstream, self._downstream = self._downstream, None
        return downstream

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator="context_capture" if self._above is None else "context_write",
            terminated=self._downstream is None,
            upstream=cast("object", self._upstream),
        )
