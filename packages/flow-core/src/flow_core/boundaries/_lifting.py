"""Boundaries for your own subscribers, and for signals that come from several threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import (
    DEFAULT_PREFETCH,
    UNBOUNDED,
    add_demand,
    bad_request,
    check_prefetch,
    replenish_limit,
)
from flow_core.errors import MissingBackpressureError, none_given, throw_if_fatal
from flow_core.flow import Flow
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.operator import Operator
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Publisher,
    Subscriber,
    Subscription,
)
from flow_core.serial import SerialDrain
from flow_core.sources._idle import fail
from flow_core.stages._template import describe
from flow_core.subscribers._strict import core_subscriber

__all__ = ["lift", "serialize"]

T = TypeVar("T")
R = TypeVar("R")


def lift(name: str, wrap: Callable[[CoreSubscriber[R]], Subscriber[T]], /) -> Operator[T, Flow[R]]:
    """A boundary made of your own subscriber, which stands between upstream and downstream.

    >>> import flow_core as flow
    >>> from flow_core import CoreSubscriber
    >>> class Twice(CoreSubscriber[int]):
    ...     def __init__(self, downstream):
    ...         self.on_subscribe = downstream.on_subscribe
    ...         self.on_next = lambda item: downstream.on_next(2 * item)
    ...         self.on_error = downstream.on_error
    ...         self.on_complete = downstream.on_complete
    ...         self.home = downstream.home
    >>> list(flow.range(3).hide().pipe(lift("twice", Twice)))
    [0, 2, 4]

    Demand, thread: as your subscriber decides. Fusion: none, unless the subscriber asks for it. If
    your subscriber changes items, it must not pass on an upstream's subscription that can be asked
    for fusion: the downstream could then poll items past your subscriber. Hand over a subscription
    of your own instead, or put ``hide()`` before. The `CoreSubscriber.home` of your subscriber
    should be that of the downstream, so that upstream operators that wait or run coroutines do so
    in the loop of the code that runs the flow.

    Args:
        name: the operator's name in messages and in `flow explain`.
        wrap: called with the downstream, once per subscriber, when it subscribes; returns your
            subscriber. If `wrap` raises an error, the flow fails with it. A subscriber that is not
            a `CoreSubscriber` gets a strict guard.

    Raises:
        TypeError: if `name` is not text, or `wrap` cannot be called.
    """
    if not isinstance(name, str) or not callable(wrap):
        raise TypeError(f"lift() takes a name and a function, not {name!r} and {wrap!r}")

    def apply(flow: Flow[T]) -> Flow[R]:
        return Flow(_LiftedSource(flow, wrap))

    return Operator(name, apply, describe(wrap))


@final
class _LiftedSource(Publisher[R], Generic[T, R]):
    """The items of `upstream`, received by the subscriber that `wrap` returns."""

    __slots__ = ("_upstream", "_wrap")

    def __init__(
        self, upstream: Publisher[T], wrap: Callable[[CoreSubscriber[R]], Subscriber[T]]
    ) -> None:
        self._upstream = upstream
        self._wrap = wrap

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        downstream = core_subscriber(subscriber)
        try:
            made = core_subscriber(self._wrap(downstream))
        except BaseException as error:
            throw_if_fatal(error)
            fail(downstream, error)
            return
        self._upstream.subscribe(made)

    def __repr__(self) -> str:
        return repr(self._upstream)


def serialize(*, prefetch: int = DEFAULT_PREFETCH) -> Operator[T, Flow[T]]:
    """Serialise the signals of an upstream that signals from several threads at once.

    >>> import flow_core as flow
    >>> list(flow.range(3).pipe(serialize()))
    [0, 1, 2]

    If an item comes while another one is being delivered, it waits in a bounded queue, and the
    delivering thread delivers it next. Nothing follows the first terminal; items and errors that
    come later go to the hooks.

    Demand: `prefetch` items are requested; whenever 75 % of that number were delivered, that many
    are requested again.
    Thread: one of the upstream's threads, or the requester's; one at a time. Fusion: none;
    conditional towards the downstream.

    Args:
        prefetch: how many items are requested ahead, which is also the most that wait.

    Returns:
        An operator for `Flow.pipe`. The flow that it makes fails with MissingBackpressureError if
        the upstream sends more than was requested and there is no room.

    Raises:
        TypeError: if `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    check_prefetch(prefetch)
    detail = "" if prefetch == DEFAULT_PREFETCH else f"prefetch={prefetch}"
    return Operator("serialize", lambda flow: Flow(_SerialSource(flow, prefetch)), detail)


@final
class _SerialSource(Publisher[T]):
    __slots__ = ("_upstream", "prefetch")

    def __init__(self, upstream: Publisher[T], prefetch: int) -> None:
        self._upstream = upstream
        self.prefetch = prefetch
        """The number of items that are requested ahead, for `flow explain`."""

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self._upstream.subscribe(_SerialSubscriber(core_subscriber(subscriber), self.prefetch))

    def __repr__(self) -> str:
        return repr(self._upstream)


@final
class _SerialSubscriber(SerialDrain, CoreSubscriber[T], Subscription, Scannable, Generic[T]):
    """The queue in front of the one thread that delivers.

    Args:
        downstream: gets the signals.
        prefetch: how many items are requested ahead; the capacity of the queue.
    """

    __slots__ = (
        "_bad",
        "_closed",
        "_consumed",
        "_done",
        "_downstream",
        "_emitted",
        "_error",
        "_limit",
        "_lock",
        "_prefetch",
        "_queue",
        "_requested",
        "_upstream",
    )

    def __init__(self, downstream: CoreSubscriber[T], prefetch: int) -> None:
        super().__init__()
        self._downstream: CoreSubscriber[T] | None = downstream
        self._prefetch = prefetch
        self._limit = replenish_limit(prefetch)
        self._upstream: Subscription | None = None
        self._queue: deque[T] = deque()
        self._lock = Lock()
        """Guards `_requested`; and guards `_closed` together with the items that are queued before
        it is set."""
        self._closed = False
        """True when no further item is accepted."""
        self._done = False
        """True when the upstream has ended; `_error` was set before this."""
        self._error: BaseException | None = None
        self._bad: ValueError | None = None
        self._requested = self._emitted = self._consumed = 0

    @override
    def home(self) -> Home | None:
        downstream = self._downstream
        return None if downstream is None else downstream.home()

    # -- signals from the upstream, from any thread

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: the downstream never gets it (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        downstream = self._downstream
        with self._lock:
            first = self._upstream is None and downstream is not None
            if first:
                self._upstream = subscription
        if not first or downstream is None:
            subscription.cancel()  # §2.5
            return
        # We hold the permit, so that no signal comes before on_subscribe has returned (§1.9).
        self.try_enter()
        try:
            downstream.on_subscribe(self)
        except BaseException:
            self._downstream = None
            self._close()
            self.leave()
            subscription.cancel()
            raise
        self.run_entered()
        if not self._closed:
            subscription.request(self._prefetch)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        full = False
        with self._lock:
            accepted = not self._closed and self._upstream is not None
            if accepted and len(self._queue) >= self._prefetch:
                accepted, full = False, True
                self._closed = True
            elif accepted:
                self._queue.append(item)
        if not accepted:
            hooks.drop_item(item)
        if full:
            self._error = MissingBackpressureError(
                f"the upstream of serialize() sent more than the {self._prefetch} items that were "
                "requested; put a back-pressure operator after a source that ignores demand"
            )
            self._done = True
            if self._upstream is not None:
                hooks.cancel(self._upstream)
        self.signal()

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Keep the error until the items that wait have been delivered."""
        if error is None:
            raise none_given("on_error")
        if self._end(error):
            self.signal()
        else:
            hooks.drop_error(error)

    @override
    def on_complete(self) -> None:
        if self._end(None):
            self.signal()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        ended = self._end(error)
        if ended:
            self.signal()
        return ended

    def _end(self, error: BaseException | None) -> bool:
        with self._lock:
            if self._closed or self._upstream is None:
                return False
            self._closed = True
        self._error = error
        self._done = True
        return True

    # -- signals from the downstream

    @override
    def request(self, n: int, /) -> None:
        bad = bad_request(n)
        upstream = self._upstream
        if self._downstream is None or upstream is None:
            return
        if bad is not None:
            self._close()
            self._bad = bad
            hooks.cancel(upstream)
        elif self._requested == UNBOUNDED:
            return
        else:
            with self._lock:
                self._requested = add_demand(self._requested, n)
        self.signal()

    @override
    def cancel(self) -> None:
        if self._downstream is None:
            return
        self._downstream = None
        self._close()
        if self._upstream is not None:
            hooks.cancel(self._upstream)
        self.signal()

    def _close(self) -> None:
        with self._lock:
            self._closed = True

    # -- draining, with the permit

    @override
    def drain(self) -> None:
        queue = self._queue
        while True:
            downstream, bad = self._downstream, self._bad
            if downstream is None or bad is not None:
                self._discard()
                self._downstream = None
                if downstream is not None and bad is not None:
                    downstream.on_error(bad)
                return
            done = self._done  # read before the queue: items from before the end are queued by then
            if not queue:
                if done:
                    error, self._error = self._error, None
                    self._downstream = None
                    if error is None:
                        downstream.on_complete()
                    else:
                        downstream.on_error(error)
                return
            if self._requested != UNBOUNDED and self._emitted >= self._requested:
                return
            item = queue.popleft()
            try:
                if not isinstance(downstream, ConditionalSubscriber):
                    downstream.on_next(item)
                    self._emitted += 1
                elif downstream.try_on_next(item):
                    self._emitted += 1
            except BaseException as error:
                self._raised(downstream, error)
                return
            del item
            self._replenish()

    def _replenish(self) -> None:
        self._consumed += 1
        if self._consumed == self._limit:
            self._consumed = 0
            if self._upstream is not None and not self._closed:
                self._upstream.request(self._limit)

    def _raised(self, downstream: CoreSubscriber[T], error: BaseException) -> None:
        """End the flow, because the downstream has raised `error` in its on_next (§2.13)."""
        over = self._downstream is None
        self._downstream = None
        if not self._done and self._upstream is not None:
            hooks.cancel(self._upstream)
        self._close()
        self._discard()
        throw_if_fatal(error)
        if over or not downstream.on_next_raised(error):
            hooks.drop_error(error)

    def _discard(self) -> None:
        hooks.drop_waiting(self._queue)
        lost, self._error = self._error, None
        if lost is not None:
            hooks.drop_error(lost)

    @override
    def statistics(self) -> Statistics:
        requested = self._requested
        return Statistics(
            operator="serialize()",
            requested=requested if requested == UNBOUNDED else requested - self._emitted,
            buffered=len(self._queue),
            capacity=self._prefetch,
            cancelled=self._closed and not self._done,
            terminated=self._downstream is None,
            error=self._bad if self._error is None else self._error,
            upstream=self._upstream,
        )
