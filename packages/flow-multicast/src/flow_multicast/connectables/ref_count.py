"""`Connectable.ref_count`: runs while there are subscribers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, final

from flow_core import Flow, hooks
from flow_core.clocks import AsyncioClock, Clock, Seconds, check_delay, home_clock
from flow_core.demand import check_prefetch
from flow_core.errors import throw_if_fatal
from flow_core.homes import Home
from flow_core.introspection import Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Disposable,
    Empty,
    Publisher,
    Subscriber,
)
from flow_core.sources.loops import LoopWatch
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.connectable import ConnectableBase
from flow_multicast.connectables.relay import ConditionalRelay, Relay

__all__ = ["ref_counted"]

T = TypeVar("T")


def ref_counted(
    connectable: ConnectableBase[T], min_subscribers: int, grace: Seconds, clock: Clock | None
) -> Flow[T]:
    """See `Connectable.ref_count`."""
    check_prefetch(min_subscribers, "min_subscribers")
    return Flow(RefCounted(connectable, min_subscribers, check_delay(grace), clock))


@final
class _Run:
    """What is known of one connection. Guarded by the lock of its `RefCounted`."""

    __slots__ = ("__weakref__", "begun", "connected", "grace", "home", "subscribers", "waiting")

    def __init__(self) -> None:
        self.subscribers = 0
        self.connected = False
        """Somebody has connected, or is about to."""
        self.begun = False
        """Nothing can keep it from running any more."""
        self.waiting: deque[_Counted[Any]] = deque()  # Any: of any items
        """Who came while another one was about to connect: should that fail, they try in turn."""
        self.home: Home | Empty | None = EMPTY
        """That of the first subscriber."""
        self.grace: _Grace | None = None
        """Measures how long there have been no subscribers."""


@final
class _Grace:
    """A timer that may be stopped before the clock has given it."""

    __slots__ = ("_lock", "_stopped", "_timer", "_watch")

    def __init__(self) -> None:
        self._lock = Lock()
        self._stopped = False
        self._timer: Disposable | None = None
        self._watch: LoopWatch | None = None

    def begin(self, clock: Clock, grace_s: float, expired: Callable[[], object]) -> None:
        """Call `expired` when the time is over, or when the loop of the clock is closed.

        Raises:
            RejectedExecutionError: if the clock takes no task.
        """
        watch = LoopWatch(clock.loop, expired) if isinstance(clock, AsyncioClock) else None
        try:
            timer = clock.schedule(grace_s, expired)
        except BaseException:
            if watch is not None:
                watch.end()
            raise
        with self._lock:
            stopped = self._stopped
            self._timer, self._watch = timer, watch
        if stopped:
            self.stop()

    def stop(self) -> None:
        """Do not call it. Idempotent."""
        with self._lock:
            self._stopped = True
            timer, self._timer = self._timer, None
            watch, self._watch = self._watch, None
        if timer is not None:
            timer.dispose()
        if watch is not None:
            watch.end()


@final
class RefCounted(Publisher[T]):
    """Counts those who are subscribed, for each connection.

    A subscriber learns which connection it belongs to when it has subscribed. As long as one is
    just subscribing, no connection is stopped: it might be that one's.

    Args:
        connectable: what they subscribe to.
        min_subscribers: how many it takes to connect.
        grace_s: seconds to go on without subscribers.
        clock: measures them; None for that of the first subscriber's loop, or of the process.
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
        self,
        connectable: ConnectableBase[T],
        min_subscribers: int,
        grace_s: float,
        clock: Clock | None,
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
        home = downstream.home()
        self._enter()
        connection: Disposable | None = None
        connects = False
        try:
            connection = self._connectable.join(counted)
            with self._lock:
                connects = self._count(counted, connection, home)
        finally:
            with self._lock:
                self._joining -= 1
            if connects and connection is not None:
                self._connect(connection, counted)
            self._settle()

    def _enter(self) -> None:
        """Somebody subscribes. The end of a run that nobody is served by is no end of his."""
        with self._lock:
            self._joining += 1
            kept = self._connectable.kept()
            run = None if kept is None else self._runs.get(kept)
            if kept is None or (run is not None and run.subscribers):
                return
            forget = self._connectable.detach(kept)
        forget()

    def _count(self, counted: _Counted[T], connection: Disposable, home: Home | None) -> bool:
        """A subscriber belongs to a connection; whether it is the one to connect."""
        if counted.left:  # before it was counted
            return False
        counted.connection = connection
        run = self._run(connection)
        run.subscribers += 1
        if run.home is EMPTY:
            run.home = home
        if run.connected and not run.begun:
            run.waiting.append(counted)
        if run.connected or run.subscribers < self._min_subscribers:
            return False
        run.connected = True
        return True

    def _run(self, connection: Disposable) -> _Run:
        """What is known of the connection, or of that which its subscribers wait for now."""
        later = self._connectable.current(connection)
        run = self._runs.setdefault(later, _Run())
        if later is not connection:
            before = self._runs.pop(connection, None)
            if before is not None:
                run.subscribers += before.subscribers
                run.waiting.extend(before.waiting)
                run.home = before.home
        return run

    def _connect(self, connection: Disposable, counted: _Counted[T]) -> None:
        def connected(made: Disposable) -> None:
            # It is another one if that has ended meanwhile; nobody belongs to it then.
            with self._lock:
                run = self._run(made)
                run.connected = run.begun = True
                run.waiting.clear()
            self._settle()  # all may have left by now, and the source need not be run

        tries: _Counted[T] | None = counted
        while tries is not None:
            try:
                self._connectable.connect_until_begun(connected)
                return
            except BaseException as error:
                failed, tries = tries, self._next(connection, tries)
                throw_if_fatal(error)
                failed.fail(error)

    def _next(self, connection: Disposable, failed: _Counted[T]) -> _Counted[T] | None:
        """Who is to connect when one has failed to; the next subscriber, if nobody is there."""
        with self._lock:
            run = self._run(connection)
            run.connected = run.begun = False
            there = run.subscribers - (failed.connection is not None)
            while run.waiting and there >= self._min_subscribers:
                found = run.waiting.popleft()
                if not found.ended:
                    run.connected = True
                    return found
            return None

    def leave(self, counted: _Counted[T]) -> None:
        """A subscriber has cancelled, or heard of the end."""
        with self._lock:
            counted.left = True
            connection, counted.connection = counted.connection, None
            if connection is None:
                return  # it is not counted yet
            self._run(connection).subscribers -= 1
        self._settle()

    def _settle(self) -> None:
        """Stop what runs without subscribers."""
        ended: list[_Grace] = []
        stops: list[Callable[[], object]] = []
        begun: list[tuple[Disposable, _Run, _Grace]] = []
        with self._lock:
            if self._joining:
                return  # who joins looks again after that
            for known in [*self._runs]:
                run = self._run(known)
                connection = self._connectable.current(known)
                grace = run.grace
                if run.subscribers:
                    run.grace = None
                elif not run.connected or connection.disposed or self._grace_s <= 0:
                    self._runs.pop(connection, None)
                    if run.connected or connection.disposed:  # what that keeps is for nobody
                        stops.append(self._connectable.detach(connection))
                elif grace is None:
                    run.grace = _Grace()
                    begun.append((connection, run, run.grace))
                    continue
                else:
                    continue
                if grace is not None:
                    ended.append(grace)
        for grace in ended:
            grace.stop()
        for stop in stops:
            stop()
        for connection, run, grace in begun:
            self._begin(connection, run, grace)

    def _begin(self, connection: Disposable, run: _Run, grace: _Grace) -> None:
        def expired() -> None:
            with self._lock:
                if run.grace is not grace:
                    return
                run.grace = None
                if self._joining or run.subscribers:
                    return  # who joins looks again after that, and begins anew
                self._runs.pop(connection, None)
                stop = self._connectable.detach(connection)
            grace.stop()
            stop()

        home = None if run.home is EMPTY else run.home
        try:
            grace.begin(home_clock(self._clock, home), self._grace_s, expired)
        except BaseException as error:
            throw_if_fatal(error)
            hooks.drop_error(error)
            expired()  # or nobody would ever stop it

    @property
    def name(self) -> str:
        """The operator, for statistics."""
        return f"ref_count({self._min_subscribers})"

    def statistics(self) -> Statistics:
        """See `Connectable.statistics`."""
        return self._connectable.statistics()

    def __repr__(self) -> str:
        return f"{self._connectable!r}.{self.name}"


class _Counted(Relay[T]):
    """One of the subscribers that are counted."""

    __slots__ = ("_counter", "_label", "connection", "left")

    def __init__(self, downstream: CoreSubscriber[T], counter: RefCounted[T]) -> None:
        super().__init__(downstream)
        self._counter: RefCounted[T] | None = counter
        self._label = counter.name
        self.connection: Disposable | None = None
        """What serves it, from when it is counted until it leaves."""
        self.left = False

    @property
    def label(self) -> str:
        """See `Relay.label`."""
        return self._label

    @property
    def served_by(self) -> object | None:
        """See `Relay.served_by`."""
        return self.connection

    def over(self, *, cancelled: bool) -> None:
        """See `Relay.over`. After an end, even a subscriber from within it starts a new run."""
        counter, self._counter = self._counter, None
        if counter is not None:
            counter.leave(self)


@final
class _ConditionalCounted(_Counted[T], ConditionalRelay[T]):
    """A `_Counted` for a conditional subscriber."""

    __slots__ = ()
