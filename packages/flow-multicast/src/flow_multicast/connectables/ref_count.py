"""`Connectable.ref_count`: runs while there are subscribers."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeVar, final

from flow_core import Flow
from flow_core.clocks import Clock, check_delay, system_clock
from flow_core.demand import check_prefetch
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Disposable,
    Publisher,
    Subscriber,
)
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.connectable import Connectable
from flow_multicast.connectables.relay import ConditionalRelay, Relay

__all__ = ["ref_counted"]

T = TypeVar("T")


def ref_counted(
    connectable: Connectable[T], min_subscribers: int, grace_s: float, clock: Clock | None
) -> Flow[T]:
    """See `Connectable.ref_count`."""
    check_prefetch(min_subscribers, "min_subscribers")
    return Flow(
        RefCounted(connectable, min_subscribers, check_delay(grace_s), clock or system_clock())
    )


@final
class _Run:
    """What is known of one connection. Guarded by the lock of its `RefCounted`."""

    __slots__ = ("__weakref__", "connected", "subscribers", "timer")

    def __init__(self) -> None:
        self.subscribers = 0
        self.connected = False
        """Somebody has connected, or is about to."""
        self.timer: Disposable | None = None
        """Measures how long there have been no subscribers."""


@final
class RefCounted(Publisher[T]):
    """Counts those who are subscribed, for each connection.

    A subscriber learns which connection it belongs to when it has subscribed. As long as one is
    just subscribing, no connection is stopped: it might be that one's.

    Args:
        connectable: what they subscribe to.
        min_subscribers: how many it takes to connect.
        grace_s: seconds to go on without subscribers.
        clock: measures them.
    """

    __slots__ = (
        "_clock",
        "_connectable",
        "_grace_s",
        "_joining",
        "_lock",
        "_min_subscribers",
        "_runs",
    )

    def __init__(
        self, connectable: Connectable[T], min_subscribers: int, grace_s: float, clock: Clock
    ) -> None:
        self._connectable = connectable
        self._min_subscribers = min_subscribers
        self._grace_s = grace_s
        self._clock = clock
        self._lock = Lock()
        """Guards all that follows; the connectable's own lock may be taken under it."""
        self._joining = 0
        self._runs: dict[Disposable, _Run] = {}

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        counted = (
            _ConditionalCounted(downstream, self)
            if isinstance(downstream, ConditionalSubscriber)
            else _Counted(downstream, self)
        )
        with self._lock:
            self._joining += 1
        connection: Disposable | None = None
        connects = False
        try:
            self._connectable.reset()  # the end of an earlier run is no end of this one
            connection = self._connectable.join(counted)
            with self._lock:
                connects = self._count(counted, connection)
        finally:
            with self._lock:
                self._joining -= 1
            if connects and connection is not None:
                self._connect(connection)
            self._settle()

    def _count(self, counted: _Counted[T], connection: Disposable) -> bool:
        """A subscriber belongs to a connection; whether it is the one to connect."""
        if counted.left:  # before it was counted
            return False
        counted.connection = connection
        run = self._runs.setdefault(connection, _Run())
        run.subscribers += 1
        if run.connected or run.subscribers < self._min_subscribers:
            return False
        run.connected = True
        return True

    def _connect(self, connection: Disposable) -> None:
        def connected(made: Disposable) -> None:
            # It is another one if that has ended meanwhile; nobody belongs to it then.
            with self._lock:
                self._runs.setdefault(made, _Run()).connected = True

        try:
            self._connectable.connect(connected)
        except BaseException:
            with self._lock:
                run = self._runs.get(connection)
                if run is not None:
                    run.connected = False
            raise

    def leave(self, counted: _Counted[T]) -> None:
        """A subscriber has cancelled, or heard of the end."""
        with self._lock:
            counted.left = True
            connection, counted.connection = counted.connection, None
            if connection is None:
                return  # it is not counted yet
            self._runs[connection].subscribers -= 1
        self._settle()

    def _settle(self) -> None:
        """Stop what runs without subscribers."""
        timers: list[Disposable] = []
        stops: list[Callable[[], object]] = []
        late: list[tuple[Disposable, _Run]] = []
        with self._lock:
            if self._joining:
                return
            for connection, run in [*self._runs.items()]:
                if run.subscribers:
                    if run.timer is not None:
                        timers.append(run.timer)
                        run.timer = None
                elif not run.connected or connection.disposed or not self._grace_s:
                    self._forget(connection, timers)
                    if run.connected:
                        stops.append(self._connectable.detach(connection))
                elif run.timer is None:
                    late.append((connection, run))
        for timer in timers:
            timer.dispose()
        for stop in stops:
            stop()
        for connection, run in late:
            self._wait(connection, run)

    def _forget(self, connection: Disposable, timers: list[Disposable]) -> None:
        run = self._runs.pop(connection)
        if run.timer is not None:
            timers.append(run.timer)

    def _wait(self, connection: Disposable, run: _Run) -> None:
        timer = self._clock.schedule(self._grace_s, lambda: self._expired(connection, run))
        with self._lock:
            waits = not run.subscribers and run.timer is None
            if waits:
                run.timer = timer
        if not waits:
            timer.dispose()

    def _expired(self, connection: Disposable, run: _Run) -> None:
        with self._lock:
            run.timer = None
            if run.subscribers or self._joining or self._runs.get(connection) is not run:
                return  # who joins looks again after that
            self._runs.pop(connection)
            stop = self._connectable.detach(connection)
        stop()

    def __repr__(self) -> str:
        return f"{self._connectable!r}.ref_count({self._min_subscribers})"


class _Counted(Relay[T]):
    """One of the subscribers that are counted."""

    __slots__ = ("_counter", "connection", "left")

    def __init__(self, downstream: CoreSubscriber[T], counter: RefCounted[T]) -> None:
        super().__init__(downstream)
        self._counter = counter
        self.connection: Disposable | None = None
        """What serves it, from when it is counted until it leaves."""
        self.left = False

    def over(self, *, cancelled: bool) -> None:
        """See `Relay.over`. After an end, even a subscriber from within it starts a new run."""
        self._counter.leave(self)


@final
class _ConditionalCounted(_Counted[T], ConditionalRelay[T]):
    """A `_Counted` for a conditional subscriber."""

    __slots__ = ()
