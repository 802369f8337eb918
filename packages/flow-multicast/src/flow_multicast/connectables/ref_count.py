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
    """One run, from its first subscriber on. Guarded by the lock of its `RefCounted`."""

    __slots__ = ("__weakref__", "connected", "connection", "subscribers", "timer")

    def __init__(self) -> None:
        self.subscribers = 0
        self.connected = False
        """Somebody has connected, or is about to."""
        self.connection: Disposable | None = None
        self.timer: Disposable | None = None


@final
class RefCounted(Publisher[T]):
    """Counts those who are subscribed.

    Args:
        connectable: what they subscribe to.
        min_subscribers: how many it takes to connect.
        grace_s: seconds to go on without subscribers.
        clock: measures them.
    """

    __slots__ = ("_clock", "_connectable", "_grace_s", "_lock", "_min_subscribers", "_run")

    def __init__(
        self, connectable: Connectable[T], min_subscribers: int, grace_s: float, clock: Clock
    ) -> None:
        self._connectable = connectable
        self._min_subscribers = min_subscribers
        self._grace_s = grace_s
        self._clock = clock
        self._lock = Lock()
        """Guards `_run` and what is in it; a connectable's own lock may be taken under it."""
        self._run: _Run | None = None

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        with self._lock:
            run = self._run
            if run is None:
                run = self._run = _Run()
                self._connectable.reset()  # the end of an earlier run is no end of this one
            run.subscribers += 1
            timer, run.timer = run.timer, None
            connects = not run.connected and run.subscribers >= self._min_subscribers
            run.connected = run.connected or connects
        if timer is not None:
            timer.dispose()
        counted = (
            _ConditionalCounted(downstream, self, run)
            if isinstance(downstream, ConditionalSubscriber)
            else _Counted(downstream, self, run)
        )
        self._connectable.subscribe(counted)
        if connects:
            self._connect(run)

    def _connect(self, run: _Run) -> None:
        def connected(connection: Disposable) -> None:
            with self._lock:
                run.connection = connection

        try:
            self._connectable.connect(connected)
        except BaseException:
            with self._lock:
                run.connected = False
            raise
        # All may have left before there was anything to dispose of.
        stop = self._stopping(run)
        if stop is not None:
            stop()

    def left(self, run: _Run) -> None:
        """A subscriber has cancelled."""
        with self._lock:
            run.subscribers -= 1
            waits = run.subscribers == 0 and run.connected and self._grace_s > 0
        if not waits:
            stop = self._stopping(run)
            if stop is not None:
                stop()
            return
        timer = self._clock.schedule(self._grace_s, lambda: self._expired(run))
        with self._lock:
            keeps = run.subscribers == 0 and run.timer is None
            if keeps:
                run.timer = timer
        if not keeps:
            timer.dispose()

    def _expired(self, run: _Run) -> None:
        stop = self._stopping(run)
        if stop is not None:
            stop()

    def _stopping(self, run: _Run) -> Callable[[], object] | None:
        """What ends `run`, if nobody is left; who comes from now on begins another one."""
        with self._lock:
            connection = run.connection
            if run.subscribers or not run.connected or connection is None:
                if not run.subscribers and not run.connected and self._run is run:
                    self._run = None  # it never was connected
                return None
            run.connection = None
            if self._run is run:
                self._run = None
            return self._connectable.detach(connection)

    def ended(self, run: _Run) -> None:
        """The run has told a subscriber of its end."""
        with self._lock:
            run.subscribers -= 1
            if self._run is run:
                self._run = None
            timer, run.timer = run.timer, None
        if timer is not None:
            timer.dispose()

    def __repr__(self) -> str:
        return f"{self._connectable!r}.ref_count({self._min_subscribers})"


class _Counted(Relay[T]):
    """One of the subscribers that are counted."""

    __slots__ = ("_counter", "_run")

    def __init__(self, downstream: CoreSubscriber[T], counter: RefCounted[T], run: _Run) -> None:
        super().__init__(downstream)
        self._counter = counter
        self._run = run

    def over(self, *, cancelled: bool) -> None:
        """See `Relay.over`. After an end, even a subscriber from within it starts a new run."""
        if cancelled:
            self._counter.left(self._run)
        else:
            self._counter.ended(self._run)


@final
class _ConditionalCounted(_Counted[T], ConditionalRelay[T]):
    """A `_Counted` for a conditional subscriber."""

    __slots__ = ()
