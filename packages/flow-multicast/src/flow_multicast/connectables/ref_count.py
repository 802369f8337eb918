"""`Connectable.ref_count`: runs while there are subscribers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, final

from typing_extensions import override

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
from flow_core.sources import LoopWatch
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.atomic_reference import AtomicReference
from flow_multicast.connectables.relay import ConditionalRelay, Relay

if TYPE_CHECKING:
    from flow_multicast.connectables.connectable import ConnectableBase

__all__ = ["ref_counted"]

T = TypeVar("T")


def ref_counted(
    connectable: ConnectableBase[T], min_subscribers: int, grace: Seconds, clock: Clock | None
) -> Flow[T]:
    """See `Connectable.ref_count`."""
    check_prefetch(min_subscribers, "min_subscribers")
    return Flow(RefCounted(connectable, min_subscribers, check_delay(grace), clock))


class _Run(NamedTuple):
    """The state of one run."""

    connection: Disposable
    """The connection; if another one has replaced it, `ConnectableBase.current` returns that."""
    subscribers: int = 0
    connected: bool = False
    """True when a subscriber has connected, or is about to."""
    begun: bool = False
    """True when nothing can keep the run from beginning any more."""
    waiting: tuple[_Counted[Any], ...] = ()  # Any: items of any type
    """Subscribers that came while another one was about to connect: if that one fails, they try in
    turn."""
    home: Home | Empty | None = EMPTY
    """The home of the first subscriber."""
    grace: _Grace | None = None
    """The timer that runs while there is no subscriber."""


class _Runs(NamedTuple):
    """The state of all runs."""

    joining: tuple[_Counted[Any], ...] = ()
    """Subscribers that are just subscribing."""
    runs: Mapping[object, _Run] = {}
    stopping: tuple[Disposable, ...] = ()
    """Connections that no subscriber may join any more; the next thread that comes here stops
    them."""

    def of(self, key: object, connection: Disposable) -> _Run:
        """Return the state of the run with this `key`, or that of a new one."""
        return self.runs.get(key) or _Run(connection)

    def having(self, key: object, run: _Run) -> _Runs:
        """Return a copy of this with `run` as the state of the run with this `key`."""
        return _Runs(self.joining, {**self.runs, key: run}, self.stopping)

    def without(self, counted: _Counted[Any]) -> _Runs:
        """Return a copy of this without `counted` among those that are just subscribing."""
        joining = tuple(one for one in self.joining if one is not counted)
        if len(joining) == len(self.joining):
            return self
        return _Runs(joining, self.runs, self.stopping)


@final
class _Grace:
    """A timer that may be stopped before the clock has returned it."""

    __slots__ = ("_stopped", "_timer", "_watch")

    def __init__(self) -> None:
        self._stopped = False
        self._timer: Disposable | None = None
        self._watch: LoopWatch | None = None

    def begin(self, clock: Clock, grace_s: float, expired: Callable[[], object]) -> None:
        """Call `expired` when the time has passed, or when the loop of the clock is closed.

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
        self._timer, self._watch = timer, watch
        if self._stopped:  # read after they are there: `stop` does it in the other order
            self.stop()

    def stop(self) -> None:
        """Do not call `expired`. Calling this twice is harmless."""
        self._stopped = True
        timer, self._timer = self._timer, None
        watch, self._watch = self._watch, None
        if timer is not None:
            timer.dispose()
        if watch is not None:
            watch.end()


@final
class RefCounted(Publisher[T]):
    """Counts the subscribers of each connection.

    A subscriber learns which connection it belongs to when it has subscribed. While a subscriber is
    just subscribing, no connection is stopped: it might be the one that this subscriber gets.

    Args:
        connectable: the connectable.
        min_subscribers: how many subscribers it takes to connect.
        grace_s: how long to continue without subscribers, in seconds.
        clock: the clock of that time; None for that of the first subscriber's loop, or of the
            process.
    """

    __slots__ = (
        "_clock",
        "_connectable",
        "_grace_s",
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
        self._runs: AtomicReference[_Runs] = AtomicReference(_Runs())

    @property
    def upstreams(self) -> tuple[object, ...]:
        """The upstreams of the connectable; for `flow explain`."""
        return self._connectable.upstreams

    @property
    def shared(self) -> object:
        """The connectable, which runs once for all; for `flow explain`."""
        return self._connectable

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        counted = (
            _ConditionalCounted(downstream, self)
            if isinstance(downstream, ConditionalSubscriber)
            else _Counted(downstream, self)
        )
        home = downstream.home()
        try:
            # We enter before we join: from here to the removal in `finally`, `joining` is not
            # empty, and no thread stops a run that we may be joining.
            self._enter(counted)
            connection = self._connectable.join(counted)
            if self._count(counted, connection, home):
                self._connect(connection, counted)
        finally:
            self._runs.update(lambda runs: runs.without(counted))
            self._settle()

    def _enter(self, counted: _Counted[T]) -> None:
        """Note that a subscriber is subscribing.

        If a run without subscribers ends now, that is not this subscriber's end.
        """
        _, runs = self._runs.update(
            lambda runs: _Runs((*runs.joining, counted), runs.runs, runs.stopping)
        )
        # Stop what is to be stopped before we join, so that `join` finds no connection that is
        # about to end.
        for connection in runs.stopping:
            self._stop(connection)
        kept = self._connectable.kept()
        if kept is not None:
            run = runs.runs.get(self._connectable.run(kept))
            if run is None or not run.subscribers:
                self._connectable.detach(kept)()

    def _stop(self, connection: Disposable) -> None:
        """Stop a run that no subscriber may join any more.

        Any thread may call this, and more than once.
        """
        self._connectable.detach(connection)()

        def stopped(runs: _Runs) -> _Runs:
            left = tuple(one for one in runs.stopping if one is not connection)
            return runs._replace(stopping=left) if len(left) < len(runs.stopping) else runs

        self._runs.update(stopped)

    def _count(self, counted: _Counted[T], connection: Disposable, home: Home | None) -> bool:
        """Count a subscriber of `connection`; return whether this subscriber has to connect."""
        if not counted.belong(connection):
            return False  # it has left before
        key = self._connectable.run(connection)

        def count(runs: _Runs) -> _Runs:
            _, before, connected, begun, waiting, first, grace = runs.of(key, connection)
            if connected and not begun:
                waiting = (*waiting, counted)
            run = _Run(
                connection,
                before + 1,
                connected or before + 1 >= self._min_subscribers,
                begun,
                waiting,
                home if first is EMPTY else first,
                grace,
            )
            # In one step: a thread that saw us as neither joining nor counted would stop the run.
            return runs.without(counted).having(key, run)

        before, now = self._runs.update(count)
        return now.of(key, connection).connected and not before.of(key, connection).connected

    def _connect(self, connection: Disposable, counted: _Counted[T]) -> None:
        def connected(made: Disposable) -> None:
            # `made` belongs to another run if the run of `connection` has ended meanwhile; then no
            # subscriber belongs to it.
            key = self._connectable.run(made)
            self._runs.update(
                lambda runs: runs.having(
                    key,
                    runs.of(key, made)._replace(
                        connection=made, connected=True, begun=True, waiting=()
                    ),
                )
            )
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

    def _next(self, connection: Disposable, failed: _Counted[T]) -> _Counted[Any] | None:
        """Return the subscriber that has to connect next, after `failed` has failed to.

        If there is none, the next subscriber to come connects.
        """
        key = self._connectable.run(connection)
        found: list[_Counted[Any]] = []  # Any: items of any type, which do not pass here

        def tried(runs: _Runs) -> _Runs:
            run = runs.of(key, connection)
            there = run.subscribers - (failed.served_by is not None)
            enough = there >= self._min_subscribers
            # `update` may call this more than once, so we set `found` and never add to it.
            found[:] = [one for one in run.waiting if not one.ended] if enough else []
            return runs.having(
                key,
                run._replace(
                    connected=bool(found),
                    begun=False,
                    waiting=tuple(found[1:]) if enough else run.waiting,
                ),
            )

        self._runs.update(tried)
        return found[0] if found else None

    def leave(self, connection: Disposable) -> None:
        """Note that a subscriber of a connection has cancelled, or got the end."""
        key = self._connectable.run(connection)

        def left(runs: _Runs) -> _Runs:
            run = runs.of(key, connection)
            return runs.having(key, run._replace(subscribers=run.subscribers - 1))

        _, now = self._runs.update(left)
        if now.of(key, connection).subscribers <= 0:
            self._settle()

    def _settle(self) -> None:
        """Stop runs that have no subscribers."""
        ended: list[_Grace] = []
        begun: list[tuple[object, _Run, _Grace]] = []

        def settle(runs: _Runs) -> _Runs:
            # `update` may call this more than once, so each call begins with empty lists.
            ended.clear()
            begun.clear()
            if runs.joining:
                return runs  # a subscriber that joins looks again after that
            if all(run.subscribers and run.grace is None for run in runs.runs.values()):
                return runs
            left: dict[object, _Run] = {}
            stopping = runs.stopping
            for key, run in runs.runs.items():
                connection = self._connectable.current(run.connection)
                grace, over = run.grace, connection.disposed
                if run.subscribers:
                    left[key] = run._replace(grace=None)
                elif not run.connected or over or self._grace_s <= 0:
                    if run.connected or over:  # no subscriber will get what it keeps
                        stopping = (*stopping, connection)
                else:
                    if grace is None:
                        begun.append((key, run, _Grace()))
                    left[key] = run._replace(grace=grace or begun[-1][2])
                    continue
                if grace is not None:
                    ended.append(grace)
            return runs._replace(runs=left, stopping=stopping)

        _, now = self._runs.update(settle)
        # Timers and connections call code of others, which may come back here: only after the
        # update.
        for grace in ended:
            grace.stop()
        if not now.joining:
            for connection in now.stopping:
                self._stop(connection)
        for key, run, grace in begun:
            self._begin(key, run, grace)

    def _begin(self, key: object, run: _Run, grace: _Grace) -> None:
        def expire(runs: _Runs) -> _Runs:
            now = runs.runs.get(key)
            # A timer that was stopped too late still calls this, but is not the run's timer now.
            if now is None or now.grace is not grace:
                return runs
            if runs.joining or now.subscribers:
                # A subscriber that joins looks again after that, and begins again.
                return runs.having(key, now._replace(grace=None))
            left = {each: one for each, one in runs.runs.items() if each is not key}
            connection = self._connectable.current(now.connection)
            return runs._replace(runs=left, stopping=(*runs.stopping, connection))

        def expired() -> None:
            before, now = self._runs.update(expire)
            if now is before:
                return
            grace.stop()
            for connection in now.stopping:
                self._stop(connection)

        home = None if run.home is EMPTY else run.home
        try:
            grace.begin(home_clock(self._clock, home), self._grace_s, expired)
        except BaseException as error:
            throw_if_fatal(error)
            hooks.drop_error(error)
            expired()  # otherwise it would never be stopped

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

    __slots__ = ("_counter", "_label", "_place")

    def __init__(self, downstream: CoreSubscriber[T], counter: RefCounted[T]) -> None:
        super().__init__(downstream)
        self._counter: RefCounted[T] | None = counter
        self._label = counter.name
        self._place: dict[int, list[Disposable | None]] = {}
        """The connection that serves this subscriber, as entry 0, once it is counted; None once it
        has left."""

    @property
    @override
    def label(self) -> str:
        return self._label

    @property
    @override
    def served_by(self) -> Disposable | None:
        place = self._place.get(0)
        return None if place is None else place[0]

    def belong(self, connection: Disposable) -> bool:
        """Note the connection that serves this; return False if the subscriber has left already."""
        # `belong` and `over` both enter at 0, and `setdefault` lets one of them win. If we lose,
        # the subscriber has left, and must not be counted.
        place: list[Disposable | None] = [connection]
        return self._place.setdefault(0, place) is place

    @override
    def over(self, *, cancelled: bool) -> None:
        """Leave the run.

        When the run ends, this is called before the terminal is sent: even a subscriber that comes
        while the terminal is being sent starts a new run.
        """
        counter, self._counter = self._counter, None
        # If `belong` was first, the entry names our connection, and we leave it; if not, `belong`
        # finds our entry and does not count.
        left: list[Disposable | None] = [None]
        connection = self._place.setdefault(0, left)[0]
        self._place[0] = left
        if counter is not None and connection is not None:
            counter.leave(connection)


@final
class _ConditionalCounted(_Counted[T], ConditionalRelay[T]):
    """A `_Counted` for a conditional subscriber."""

    __slots__ = ()
