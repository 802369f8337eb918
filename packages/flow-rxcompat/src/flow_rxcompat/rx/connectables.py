"""Connectable observables as connectables of flows, and the other way round."""

from __future__ import annotations

from collections.abc import Callable, Sized
from threading import Lock
from typing import Generic, TypeVar, final

from reactivex import ConnectableObservable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable, SingleAssignmentDisposable
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.subject import Subject
from typing_extensions import override

from flow_core import error
from flow_core.demand import UNBOUNDED
from flow_core.introspection import Statistics
from flow_core.protocols import Disposable as FlowDisposable
from flow_core.protocols import Subscriber
from flow_core.sources import Overflow
from flow_multicast import Connectable, ConnectableBase, DisconnectedError
from flow_rxcompat.rx.flows import to_rx
from flow_rxcompat.rx.observables import ObservableSource, check_strategy
from flow_rxcompat.rx.trampoline import run_trampolined

__all__ = ["from_rx_connectable", "to_rx_connectable"]

T = TypeVar("T")


def _no_run() -> None:
    """Return None: there was no run before."""


def from_rx_connectable(
    connectable: ConnectableObservable[T],
    *,
    strategy: Overflow = "buffer",
    capacity: int = UNBOUNDED,
) -> Connectable[T]:
    """A connectable Observable as a `Connectable`, with ``connect``, ``ref_count`` and the rest.

    >>> import reactivex
    >>> from reactivex import operators as ops
    >>> numbers = from_rx_connectable(reactivex.of(1, 2).publish())
    >>> handle = numbers.flow.map(lambda n: n * n).subscribe(print)
    >>> connection = numbers.connect()
    1
    4

    ``connect`` connects `connectable` itself: its own observers get the items, too. Disposing of
    the connection stops `connectable` for all of them, without a signal, as in ReactiveX; present
    subscribers then get the items of the next connection. When the source has ended, so has the
    subject of `connectable`: later subscribers get the end, and another ``connect`` does nothing.

    Demand: see `from_rx`; the items of each subscriber wait separately. Thread: that of the source,
    or the requester's. Fusion: see `from_rx`. Errors: the source's, as the same object.

    Args:
        connectable: the result of ``ops.publish()``, ``ops.replay()`` and their kin.
        strategy: what happens to items that a subscriber has not requested; see `from_rx`.
        capacity: the most items that wait, at least 1, for each subscriber.

    Raises:
        TypeError: if `connectable` is not a connectable Observable, or `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or there is no such strategy.
    """
    if not isinstance(connectable, ConnectableObservable):
        raise TypeError(
            "from_rx_connectable() takes what ops.publish() and its kin give, not "
            f"{connectable!r}; from_rx() takes any Observable"
        )
    check_strategy("from_rx_connectable", strategy, capacity)
    return ObservableConnectable(connectable, strategy, capacity)


@final
class _Connection(FlowDisposable):
    """One connection; it may be disposed of while it is being made."""

    __slots__ = ("__weakref__", "begun", "disconnected", "ended", "upstream")

    def __init__(self) -> None:
        self.begun = False
        """True when the connection was made, or is about to be. Guarded by the owner's lock."""
        self.disconnected = False
        self.ended = False
        """True when the source has ended, and the subject with it."""
        self.upstream = SingleAssignmentDisposable()

    @property
    @override
    def disposed(self) -> bool:
        return self.disconnected or self.ended

    @override
    def dispose(self) -> None:
        if not self.begun:
            return  # it is only the promise of one
        self.disconnected = True
        self.upstream.dispose()

    def end(self) -> None:
        """Note that the source has ended."""
        self.ended = True


@final
class ObservableConnectable(ConnectableBase[T], Generic[T]):
    """The result of `from_rx_connectable`.

    Args:
        connectable: the connectable Observable.
        strategy: what happens to items that a subscriber has not requested.
        capacity: the most items that wait for one subscriber.
    """

    __slots__ = ("__weakref__", "_connectable", "_current", "_lock", "_source")

    def __init__(
        self, connectable: ConnectableObservable[T], strategy: Overflow, capacity: int
    ) -> None:
        self._connectable = connectable
        self._source = ObservableSource(connectable, strategy, capacity, None)
        self._lock = Lock()
        """Guards `_current`. Never held while calling out."""
        self._current = _Connection()

    @override
    def join(
        self,
        subscriber: Subscriber[T],
        /,
        last: Callable[[], FlowDisposable | None] = _no_run,
    ) -> FlowDisposable:
        with self._lock:
            before = last()
            connection = self._next()
        if isinstance(before, _Connection) and before.disconnected and not before.ended:
            why = f"{self!r}: its connection was disposed of while the source ran"
            error(DisconnectedError(why)).subscribe(subscriber)
        else:
            self._source.subscribe(subscriber)
        return connection

    def _next(self) -> _Connection:
        """Return the connection for a subscriber that comes now. Call this under the lock."""
        if self._current.disconnected and not self._current.ended:
            self._current = _Connection()
        return self._current

    @override
    def connect(self, callback: Callable[[FlowDisposable], object] | None = None) -> FlowDisposable:
        with self._lock:
            connection = self._next()
            first = not connection.begun
            connection.begun = True
        if callback is not None:
            try:
                callback(connection)
            except BaseException:
                if first:
                    connection.dispose()  # the next connect() tries again (C36)
                raise
        if first and not connection.disposed:
            self._begin(connection)
        return connection

    def _begin(self, connection: _Connection) -> None:
        def ended(_: object = None) -> None:
            connection.end()
            watch.dispose()

        watch = SingleAssignmentDisposable()

        def begin() -> None:
            watch.disposable = self._connectable.subscribe(on_error=ended, on_completed=ended)
            made = self._connectable.connect()
            connection.upstream.disposable = Disposable(lambda: _dispose(made, watch))

        try:
            run_trampolined(begin)
        except BaseException:
            connection.dispose()
            raise

    @override
    def statistics(self) -> Statistics:
        """Return the statistics, without those that a subject does not have."""
        connection = self._current
        observers: object = getattr(self._connectable.subject, "observers", ())
        return Statistics(
            operator=repr(self),
            requested=UNBOUNDED,
            terminated=connection.ended,
            inners=(self._connectable.subject,),
            subscribers=len(observers) if isinstance(observers, Sized) else 0,
            connected=connection.begun and not connection.disposed,
        )

    def __repr__(self) -> str:
        return f"from_rx_connectable({type(self._connectable).__name__})"


def _dispose(*disposables: DisposableBase | None) -> None:
    for disposable in disposables:
        if disposable is not None:
            disposable.dispose()


def to_rx_connectable(
    connectable: Connectable[T], scheduler: SchedulerBase | None = None
) -> ConnectableObservable[T]:
    """A `Connectable` as a connectable Observable, for ``connect`` and ``ops.ref_count()``.

    >>> import flow_core as flow
    >>> numbers = to_rx_connectable(flow.range(1, 3).publish())
    >>> first, second = numbers.subscribe(print), numbers.subscribe(lambda n: print(n * n))
    >>> connection = numbers.connect()
    1
    1
    2
    4

    It behaves like the connectable: it may run again after its end, and observers fail with
    DisconnectedError when it is disconnected. ``connect`` is an action of the current thread's
    scheduler: within another action, the source runs when that one has returned.

    Demand: observers request everything, with `scheduler` 128 items ahead; see `to_rx`.
    Thread: see `to_rx`. Errors: the connectable's, as the same object.

    Args:
        connectable: the result of ``publish()``, ``replay()`` and their kin.
        scheduler: runs the observers; None for the thread that the items come on.

    Raises:
        TypeError: if `connectable` is not a `Connectable`, or `scheduler` is not a scheduler.
    """
    if not isinstance(connectable, Connectable):
        raise TypeError(
            f"to_rx_connectable() takes what publish() and its kin give, not {connectable!r}; "
            "to_rx() takes any flow"
        )
    return FlowConnectableObservable(connectable, scheduler)


@final
class FlowConnectableObservable(ConnectableObservable[T]):
    """The result of `to_rx_connectable`.

    Args:
        connectable: the connectable.
        scheduler: runs the observers.
    """

    def __init__(self, connectable: Connectable[T], scheduler: SchedulerBase | None) -> None:
        observable = to_rx(connectable, scheduler)
        subject: Subject[T] = Subject()  # the base would use it; nothing is pushed into it
        super().__init__(observable, subject)
        self._connectable = connectable
        self._observable = observable

    def _subscribe_core(
        self, observer: ObserverBase[T], scheduler: SchedulerBase | None = None
    ) -> DisposableBase:
        return self._observable.subscribe(observer, scheduler=scheduler)

    @override
    def connect(self, scheduler: SchedulerBase | None = None) -> DisposableBase | None:
        connection = SingleAssignmentDisposable()

        def start(_: SchedulerBase, __: object) -> None:
            def connected(made: FlowDisposable) -> None:
                connection.disposable = Disposable(made.dispose)

            if not connection.is_disposed:
                self._connectable.connect(connected)

        (scheduler or CurrentThreadScheduler.singleton()).schedule(start)
        return connection
