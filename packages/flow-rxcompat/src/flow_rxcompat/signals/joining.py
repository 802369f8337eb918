"""Operators that join several sources, or cross threads. Signals that wait are only counted."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, final

from typing_extensions import override

from flow_core import Flow, from_publisher
from flow_core.demand import UNBOUNDED, check_prefetch
from flow_core.errors import RejectedExecutionError, throw_if_fatal
from flow_core.executors import Executor, Runner, as_runner
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber, Subscription
from flow_core.subscribers import core_subscriber
from flow_rxcompat._outlets import Counted, Outlet
from flow_rxcompat.signals.handles import Removable
from flow_rxcompat.signals.updatables import UPDATE, Signal

__all__ = ["flat_mapped", "merged", "observed_on", "subscribed_on", "until"]

_Connect = Callable[["_Joined"], object]


@final
class _JoinedSource(Publisher[Signal]):
    """Makes an outlet for each subscriber, and connects the sources to it."""

    __slots__ = ("_connect", "_label", "_most", "_runner")

    def __init__(
        self,
        label: str,
        connect: _Connect,
        *,
        runner: Runner | None = None,
        most: int | None = None,
    ) -> None:
        self._label = label
        self._connect = connect
        self._runner = runner
        self._most = most

    @override
    def subscribe(self, subscriber: Subscriber[Signal], /) -> None:
        outlet: Outlet[Signal] = Outlet(
            core_subscriber(subscriber), Counted(UPDATE, self._most), self._label, self._runner
        )
        joined = _Joined(outlet)
        outlet.attach(joined.leave)
        outlet.start()
        if outlet.over:
            return
        try:
            self._connect(joined)
        except BaseException as error:
            throw_if_fatal(error)
            joined.fail(error)

    def __repr__(self) -> str:
        return self._label


@final
class _Joined:
    """The sources of one subscriber. They end it when all have ended, or one has failed."""

    __slots__ = ("_inputs", "_lock", "_open", "outlet")

    def __init__(self, outlet: Outlet[Signal]) -> None:
        self.outlet = outlet
        self._lock = Lock()
        self._inputs: dict[_Input, None] | None = {}
        """The open inputs, in the order in which they were attached; None when the subscriber has
        got the end."""
        self._open = 0

    def connect(self, source: Publisher[object], on_next: Callable[[], object]) -> _Input:
        """Subscribe to `source`, which counts as open until it has ended."""
        made = _Input(self, on_next, counts=True)
        with self._lock:
            self._open += 1
        self.attach(source, made)
        return made

    def attach(self, source: Publisher[object], made: _Input) -> None:
        """Subscribe `made` to `source`, unless no more updates are needed."""
        with self._lock:
            wanted = self._inputs is not None
            if self._inputs is not None:
                self._inputs[made] = None
        if wanted:
            from_publisher(source).subscribe(made)

    def pass_on(self) -> None:
        """Pass an update to the subscriber."""
        self.outlet.put(UPDATE)
        self.outlet.signal()

    def ended(self, one: _Input) -> None:
        """Note that `one` has completed."""
        with self._lock:
            if self._inputs is not None:
                self._inputs.pop(one, None)
            self._open -= one.counts
            last = not self._open
        if last:
            self.complete()

    def complete(self) -> None:
        """Complete the subscriber, after the updates that wait."""
        self.outlet.end(None)

    def fail(self, error: BaseException) -> None:
        """Fail the subscriber with `error`."""
        self.outlet.end(error)

    def leave(self) -> None:
        """Cancel all sources."""
        with self._lock:
            inputs, self._inputs = self._inputs, None
        for one in inputs or ():
            one.handle.remove()
            one.release()


@final
class _Input(CoreSubscriber[object]):
    """One source of a `_Joined`. Inputs are compared by identity."""

    __slots__ = ("_joined", "_on_end", "_on_next", "_requests", "counts", "handle", "subscription")

    def __init__(
        self,
        joined: _Joined,
        on_next: Callable[[], object],
        *,
        counts: bool,
        on_end: Callable[[], object] | None = None,
        requests: int = UNBOUNDED,
    ) -> None:
        self._joined = joined
        self._on_next = on_next
        self._on_end = on_end
        self._requests: Final = requests
        self.counts = counts
        self.handle = Removable()
        self.subscription: Subscription | None = None

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self.subscription is not None:
            subscription.cancel()  # §2.5
            return
        self.subscription = subscription
        self.handle.attach(subscription.cancel)
        if not self.handle.removed:
            subscription.request(self._requests)

    @override
    def on_next(self, item: object, /) -> None:
        try:
            self._on_next()
        except BaseException as error:
            self.handle.remove()
            throw_if_fatal(error)
            self._joined.fail(error)

    @override
    def on_error(self, error: BaseException, /) -> None:
        self._joined.fail(error)
        self.release()

    @override
    def on_complete(self) -> None:
        on_end = self._on_end
        self.release()
        if on_end is not None:
            on_end()
        self._joined.ended(self)

    def release(self) -> None:
        """Drop the function and the subscription of this input."""
        self._on_next = _nothing
        self._on_end = None
        self.subscription = _OVER
        self.handle.attach(_nothing)


def _nothing() -> None:
    """Do nothing: the input has ended."""


@final
class _Over(Subscription):
    """The subscription of an input that has ended: a second one is still refused (§2.5)."""

    __slots__ = ()

    @override
    def request(self, n: int, /) -> None:
        pass

    @override
    def cancel(self) -> None:
        pass


_OVER: Final = _Over()


def merged(*sources: Publisher[Signal]) -> Flow[Signal]:
    """See `merge` of `flow_rxcompat.signals`: the updates of all `sources`."""

    def connect(joined: _Joined) -> None:
        if not sources:
            joined.complete()
            return
        inputs = [_Input(joined, joined.pass_on, counts=True) for _ in sources]
        joined._open = len(inputs)  # before the first one can end
        for source, one in zip(sources, inputs, strict=True):
            joined.attach(source, one)

    return Flow(_JoinedSource("merge", connect))


def until(source: Publisher[Signal], other: Publisher[object]) -> Flow[Signal]:
    """See `Observable.take_until`: the updates of `source` until `other` emits an item."""

    def connect(joined: _Joined) -> None:
        stop = _Input(joined, joined.complete, counts=False, on_end=joined.complete)
        joined._open = 1
        joined.attach(other, stop)
        joined.attach(source, _Input(joined, joined.pass_on, counts=True))

    return Flow(_JoinedSource("take_until", connect))


def flat_mapped(
    source: Publisher[Signal],
    function: Callable[[], Publisher[Signal]],
    concurrency: int,
) -> Flow[Signal]:
    """See `Observable.flat_map`: the updates of all inner observables."""
    check_prefetch(concurrency, "concurrency")

    def connect(joined: _Joined) -> None:
        def more() -> None:
            subscription = outer.subscription
            if subscription is not None:
                subscription.request(1)

        def add() -> None:
            made = function()
            one = _Input(joined, joined.pass_on, counts=True, on_end=more)
            with joined._lock:
                joined._open += 1
            joined.attach(made, one)

        outer = _Input(joined, add, counts=True, requests=concurrency)
        joined._open = 1
        joined.attach(source, outer)

    return Flow(_JoinedSource("flat_map", connect))


def observed_on(source: Publisher[Signal], executor: Executor, *, coalesce: bool) -> Flow[Signal]:
    """See `Observable.observe_on`: the updates, delivered on `executor`."""
    return Flow(
        _JoinedSource(
            "observe_on",
            lambda joined: joined.connect(source, joined.pass_on),
            runner=as_runner(executor),
            most=1 if coalesce else None,
        )
    )


def subscribed_on(source: Publisher[Signal], executor: Executor) -> Flow[Signal]:
    """See `Observable.subscribe_on`: the updates; `source` is registered with on `executor`."""
    runner = as_runner(executor)

    def connect(joined: _Joined) -> None:
        def start() -> None:
            try:
                joined.connect(source, joined.pass_on)
            except BaseException as error:
                throw_if_fatal(error)
                joined.fail(error)

        def dropped(error: RejectedExecutionError) -> None:
            joined.fail(error)

        runner.execute(start, dropped)

    return Flow(_JoinedSource("subscribe_on", connect))
