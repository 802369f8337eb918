"""Context variables across boundaries: they do not follow a flow to other threads by themselves.

A signal runs in the context of whoever brings it: a pool's thread has one of its own, and so has
each task of an event loop. `context_capture` has what is below run in the context of the
subscriber; `context_write` gives values to what is above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import Context, ContextVar, copy_context
from typing import Any, ClassVar, Generic, TypeVar, cast, final, overload

from flow_core import hooks
from flow_core.errors import none_given
from flow_core.flow import AbsorbingSource, Flow
from flow_core.homes import Home
from flow_core.introspection import Statistics
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
from flow_core.structure import source_of
from flow_core.subscribers.strict import core_subscriber

__all__ = ["context_capture", "context_write"]

T = TypeVar("T")
V = TypeVar("V")

# Any: each variable has a type of its own, which a mapping of several cannot say.
_Values = tuple[tuple[ContextVar[Any], object], ...]


def context_capture() -> Operator[T, Flow[T]]:
    """Run everything downstream in the context that the subscriber has when it subscribes.

    >>> from contextvars import ContextVar
    >>> from threading import Thread
    >>> import flow_core as flow
    >>> user = ContextVar("user", default="nobody")
    >>> def from_elsewhere(emitter):
    ...     thread = Thread(target=lambda: (emitter.next(1), emitter.complete()))
    ...     thread.start()
    ...     thread.join()
    >>> flows = flow.create(from_elsewhere), flow.create(from_elsewhere).pipe(context_capture())
    >>> token = user.set("Ada")
    >>> [made.map(lambda _: user.get()).first() for made in flows]
    ['nobody', 'Ada']
    >>> user.reset(token)

    Put it behind the operator that changes threads. Each signal runs in a copy of the captured
    context (a context cannot be entered twice at a time): what it sets is gone when it returns.
    What is above keeps the context that it runs in.

    Demand: passed on. Thread: unchanged. Fusion: none, since what is polled would run in the
    context of who polls; conditional. When the flow is iterated over and no thread is changed above
    it, there is nothing to do: the consumer asks in its own context.
    Source: checklist X11.
    """
    return Operator("context_capture", lambda flow: Flow(_source(flow, None)))


@overload
def context_write(values: Mapping[ContextVar[Any], object], /) -> Operator[T, Flow[T]]: ...


@overload
def context_write(variable: ContextVar[V], value: V, /) -> Operator[T, Flow[T]]: ...


# Any: see _Values.
def context_write(
    values: Mapping[ContextVar[Any], object] | ContextVar[Any], /, *value: object
) -> Operator[Any, Flow[Any]]:
    """Let everything upstream see these values, in the context that the subscriber has.

    >>> from contextvars import ContextVar
    >>> import flow_core as flow
    >>> user = ContextVar("user", default="nobody")
    >>> who = flow.range(2).map(lambda _: user.get()).pipe(context_write(user, "Ada"))
    >>> list(who.map(lambda name: (name, user.get())))
    [('Ada', 'nobody'), ('Ada', 'nobody')]

    What runs above (sources and stages, when they are subscribed, requested or cancelled) sees the
    context of the subscriber as it was when it subscribed, with the values. The signals go down in
    the subscriber's context again, without them. Each call runs in a copy: what it sets is gone
    when it returns; only an iterator keeps what it sets to its end.

    Above an operator that changes threads, ``context_write({})`` takes the subscriber's context
    there. What a thread brings that was not started from here (an emitter's, a pool's) has its own.

    Demand: passed on. Thread: unchanged. Fusion: none, since what is polled would run in the
    context of who polls; conditional. Iterated over, it stays an iterator if it is one.
    Source: checklist X11.

    Args:
        values: the values by their variables; or one variable, and
        value: its value.

    Raises:
        TypeError: if it is neither.
    """
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
    return Operator("context_write", lambda flow: Flow(_source(flow, pairs)), detail)


# Any: what is passed on is of no matter here.
def _source(flow: Flow[Any], written: _Values | None) -> Publisher[Any] | IterableSource[Any]:
    """An iterator if `flow` is one; subscribed to, it is a link all the same."""
    source = source_of(flow)
    if isinstance(source, IterableSource) and not isinstance(source, AbsorbingSource):
        return _IterableContextSource(flow, written)
    return _ContextSource(flow, written)


def _written(context: Context, values: _Values | None) -> Context:
    """A copy of `context` with `values`."""
    made = context.copy()
    for variable, value in values or ():
        made.run(variable.set, value)
    return made


class _ContextSource(Publisher[T]):
    """`upstream`, in another context than its subscriber.

    Args:
        upstream: where the items come from.
        written: what it sees besides the subscriber's context; None to leave its context alone.
    """

    __slots__ = ("_upstream", "_written")

    def __init__(self, upstream: Flow[T], written: _Values | None) -> None:
        self._upstream = upstream
        self._written = written

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
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
    """The same over an iterator: who iterates needs no link."""

    __slots__ = ()

    none_free: ClassVar[bool] = True

    def iterate(self) -> Iterator[T]:
        """See `IterableSource.iterate`."""
        if self._written is None:
            return iter(self._upstream)
        return _iterated(self._upstream, _written(copy_context(), self._written))


def _iterated(upstream: Flow[T], context: Context) -> Iterator[T]:
    """The items of `upstream`, each asked for in `context`, which nobody else enters."""
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
class _Link(ConditionalSubscriber[T], Generic[T]):
    """Brings each signal into the context of the side that it goes to.

    It is no queue: a poll would bring nobody into another context. Each call has a copy of the
    context to itself, since calls may be within one another, or come from two threads at once.

    Args:
        downstream: gets the signals.
        below: the context for signals.
        above: the context for requests and cancel; None for that of who calls.
    """

    __slots__ = ("_above", "_below", "_downstream", "_upstream")

    def __init__(
        self, downstream: CoreSubscriber[T], below: Context, above: Context | None
    ) -> None:
        self._downstream: CoreSubscriber[T] | None = downstream
        self._below = below
        self._above = above
        self._upstream: Subscription | None = None

    def home(self) -> Home | None:
        """See `CoreSubscriber.home`."""
        downstream = self._downstream
        return None if downstream is None else downstream.home()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`. The upstream's subscription is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        downstream = self._downstream
        if self._upstream is not None or downstream is None:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        self._below.copy().run(downstream.on_subscribe, self)

    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`."""
        if item is None:
            raise none_given("on_next")
        downstream = self._downstream
        if downstream is None or self._upstream is None:  # over, or before on_subscribe (§1.9)
            hooks.drop_item(item)
        else:
            self._below.copy().run(downstream.on_next, item)

    def try_on_next(self, item: T, /) -> bool:
        """See `ConditionalSubscriber.try_on_next`; asks the downstream, if it can be asked."""
        downstream = self._downstream
        if not isinstance(downstream, ConditionalSubscriber) or self._upstream is None:
            self.on_next(item)
            return True
        if item is None:
            raise none_given("on_next")
        return self._below.copy().run(downstream.try_on_next, item)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        if error is None:
            raise none_given("on_error")
        downstream = None if self._upstream is None else self._release()
        if downstream is None:
            hooks.drop_error(error)
        else:
            self._below.copy().run(downstream.on_error, error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        downstream = None if self._upstream is None else self._release()
        if downstream is not None:
            self._below.copy().run(downstream.on_complete)

    def on_next_raised(self, error: BaseException, /) -> bool:
        """See `CoreSubscriber.on_next_raised`."""
        downstream = self._release()
        if downstream is None:
            return False
        return self._below.copy().run(downstream.on_next_raised, error)

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        if self._upstream is not None:
            self._call(self._upstream.request, n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._release()
        if self._upstream is not None:
            self._call(self._upstream.cancel)

    def _call(self, function: Callable[..., object], *args: int) -> None:
        if self._above is None:
            function(*args)
        else:
            self._above.copy().run(function, *args)

    def _release(self) -> CoreSubscriber[T] | None:
        """Let go of the subscriber (§3.13), and return it."""
        downstream, self._downstream = self._downstream, None
        return downstream

    def statistics(self) -> Statistics:
        """See `Scannable.statistics`."""
        return Statistics(
            operator="context_capture" if self._above is None else "context_write",
            terminated=self._downstream is None,
            upstream=cast("object", self._upstream),
        )
