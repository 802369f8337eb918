"""`multicast` and its kin: connectables that a processor serves."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Final, Generic, TypeVar, cast, final

from flow_core.errors import is_fatal
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    ConditionalSubscriber,
    Disposable,
    Processor,
    Publisher,
    Subscriber,
)
from flow_core.stored import release_frames
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.connectable import ConnectableBase
from flow_multicast.connectables.connection import (
    Completed,
    ConditionalSeat,
    Connection,
    DisconnectedError,
    Feeder,
    Seat,
    State,
)
from flow_multicast.connectables.socket import Plug, Socket

__all__ = ["MulticastConnectable"]

T = TypeVar("T")
R = TypeVar("R")


def _no_run() -> None:
    """Nothing has run before."""


@final
class MulticastConnectable(ConnectableBase[R], Generic[T, R]):
    """Runs `source` for all subscribers, through a processor.

    Args:
        source: what is run once per connection.
        factory: makes a processor for each connection. Those who subscribe before are remembered,
            and served from the first item on (C19).
        processor: one that serves all connections, in the place of `factory`: subscribers go
            straight to it; once it has ended, there is nothing more to get (C17).
        keeps: whether who subscribes after the end still goes to the processor of the last run, up
            to `reset` or the next `connect`; otherwise he waits for the next run.
        label: for messages.
        name: for statistics.
    """

    __slots__ = (
        "__weakref__",
        "_current",
        "_factory",
        "_fixed",
        "_keeps",
        "_label",
        "_lock",
        "_socket",
        "_source",
        "name",
    )

    def __init__(
        self,
        source: Publisher[T],
        factory: Callable[[], Processor[T, R]] | None,
        *,
        processor: Processor[T, R] | None = None,
        keeps: bool = False,
        label: str = "multicast()",
        name: str = "multicast()",
    ) -> None:
        self._source = source
        self._factory = factory
        self._fixed = processor
        self._socket: Socket[T, R] | None = None if processor is None else Socket(processor)
        self._keeps = keeps
        self._label = label
        self.name: Final = name
        """The operator with its arguments, for statistics."""
        self._lock = Lock()
        """Guards `_current` and what is in it. Nothing is called under it."""
        self._current: Connection[T, R] = Connection(self, processor)

    def join(
        self,
        subscriber: Subscriber[R],
        /,
        last: Callable[[], Disposable | None] = _no_run,
    ) -> Connection[T, R]:
        """See `Connectable.join`."""
        downstream = core_subscriber(subscriber)
        connection = self._current
        # Items may wait in a run whose source has ended; without those, there is a next run.
        if connection.state is State.OVER and not self._keeps and not _waits(connection.processor):
            self.reset()
        with self._lock:
            connection = self._current
            processor = connection.processor
        if processor is not None:
            processor.subscribe(downstream)
            return connection
        seat: Seat[R] = (
            ConditionalSeat(downstream, self, subscriber)
            if isinstance(downstream, ConditionalSubscriber)
            else Seat(downstream, self, subscriber)
        )
        seat.introduce()
        over: Connection[T, R] | None = None
        with self._lock:
            # Who has connected meanwhile has done so without this one.
            connection = self._current
            processor = connection.processor
            if processor is None and connection.state is State.GATHERING:
                before = last()
                if isinstance(before, Connection) and before.outcome is not None:
                    # The run was handed out by this object.
                    over = cast("Connection[T, R]", before)
            if processor is None and over is None and not seat.gone:
                connection.seats[seat] = None  # who leaves later finds it on the list
            seat.connection = weakref.ref(connection)
        if processor is not None:
            processor.subscribe(seat)
        elif over is not None:
            seat.turn_away(over)
        return connection

    def leave(self, seat: Seat[R]) -> None:
        """Who waits has had enough."""
        with self._lock:
            self._current.seats.pop(seat, None)

    def connect(self, callback: Callable[[Disposable], object] | None = None) -> Disposable:
        """See `Connectable.connect`."""
        with self._lock:
            connection = self._current
            gone = None
            if connection.state is State.OVER:  # kept for those who come late
                gone = self._replace(connection)
                connection = self._current
            first = connection.state is State.GATHERING
            if first:
                connection.state = State.STARTING
        _let_go(gone)
        del gone  # before the next run fills another one
        if first:
            self._start(connection, callback)
        elif callback is not None:
            callback(connection)
        return connection

    def _replace(self, connection: Connection[T, R]) -> Processor[T, R] | None:
        """What is over makes room; those who still wait in it go on waiting. Under the lock.

        Returns:
            Its processor, which may keep items: nothing of the user's is to die under the lock.
        """
        gone, connection.processor = connection.processor, None
        if self._current is connection:
            self._current = later = Connection(self, self._fixed)
            later.seats, connection.seats = connection.seats, later.seats
            for seat in later.seats:
                seat.connection = weakref.ref(later)
                connection.successor = later
        return gone

    def _start(
        self, connection: Connection[T, R], callback: Callable[[Disposable], object] | None
    ) -> None:
        try:
            processor = self._made() if self._fixed is None else self._fixed
            if callback is not None:
                callback(connection)
        except BaseException:
            with self._lock:
                if connection.state is State.STARTING:
                    # The next connect() tries again (C35, C36), and whoever was given this one
                    # cannot stop that (C09).
                    connection.state = State.OVER
                    self._replace(connection)
            raise
        plug = None if self._socket is None else Plug(self._socket)
        feeder: Feeder[T, R] = Feeder(self, connection, plug or processor)
        with self._lock:
            if connection.state is not State.STARTING:
                return  # disposed of meanwhile; those who wait were moved on (C13, C32)
            connection.state = State.RUNNING
            connection.processor = processor
            connection.feeder = feeder
            if self._socket is not None and plug is not None:
                self._socket.expect(plug)
            seats = [*connection.seats]
            connection.seats.clear()
        feeder.belong(seats)
        for seat in seats:
            processor.subscribe(seat)
        if feeder.over:
            return  # disposed of by one of those
        try:
            self._source.subscribe(feeder)
        except BaseException as error:
            if is_fatal(error):
                self.disconnect(connection, tell=False)
                raise
            feeder.on_error(error)

    def _made(self) -> Processor[T, R]:
        processor = None if self._factory is None else self._factory()
        if processor is None or not (
            hasattr(processor, "subscribe") and hasattr(processor, "on_next")
        ):
            raise TypeError(f"{self._label}: its factory gave {processor!r}, not a Processor")
        return processor

    def ended(self, connection: Connection[T, R], end: BaseException | Completed | None) -> None:
        """The run has ended; `end` is None if its processor has stopped it."""
        kept = self._keeps or (end is not None and _waits(connection.processor))
        with self._lock:
            if connection.state is not State.RUNNING:
                return
            connection.state = State.OVER
            connection.feeder = None
            connection.outcome = end or DisconnectedError(f"{self._label}: its processor stopped")
            if not kept:
                self._replace(connection)

    def told(self, connection: Connection[T, R]) -> None:
        """The processor knows of the end: it is let go of, unless items wait in it (C06)."""
        if isinstance(connection.outcome, BaseException):
            connection.trace = release_frames(connection.outcome)
        if self._keeps or connection.processor is None or _waits(connection.processor):
            return
        gone = None
        with self._lock:
            if connection.state is State.OVER:
                gone = self._replace(connection)
        _let_go(gone)

    def kept(self) -> Disposable | None:
        """See `Connectable.kept`."""
        connection = self._current
        return connection if connection.state is State.OVER else None

    def detach(self, connection: Disposable) -> Callable[[], object]:
        """See `Connectable.detach`."""
        if not isinstance(connection, Connection):
            return connection.dispose
        ours = cast("Connection[T, R]", connection)  # handed out by this object
        gone: Processor[T, R] | None = None
        with self._lock:
            if ours.state is State.OVER and self._current is ours:
                gone = self._replace(ours)
        return partial(_let_go, gone) if gone is not None else self._detach(ours)

    def disconnect(self, connection: Connection[T, R], *, tell: bool = True) -> None:
        """Cancel the source of a connection, unless that is over.

        Args:
            connection: one of this object.
            tell: whether its subscribers hear of it, if it had a processor of its own.
        """
        self._detach(connection, tell=tell)()

    def _detach(self, connection: Connection[T, R], *, tell: bool = True) -> Callable[[], object]:
        with self._lock:
            if connection.state in {State.OVER, State.GATHERING}:
                return _nothing
            error = DisconnectedError(
                f"{self._label}: its connection was disposed of while the source ran"
            )
            connection.state = State.OVER
            connection.outcome = error
            feeder, connection.feeder = connection.feeder, None
            self._replace(connection)  # its feeder has the processor
        if feeder is None:
            return _nothing
        told = error if tell and self._fixed is None else None
        return lambda: feeder.disconnect(told)

    def current(self, connection: Disposable) -> Disposable:
        """See `Connectable.current`."""
        if not isinstance(connection, Connection):
            return connection
        later = cast("Connection[T, R]", connection)  # handed out by this object
        while later.successor is not None:
            later = later.successor
        return later

    def reset(self) -> None:
        """See `Connectable.reset`."""
        gone = None
        with self._lock:
            if self._current.state is State.OVER:
                gone = self._replace(self._current)
        _let_go(gone)

    def statistics(self) -> Statistics:
        """See `Connectable.statistics`."""
        return self.statistics_of(self._current)

    def statistics_of(self, connection: Connection[T, R]) -> Statistics:
        """See `Connectable.statistics`; of one connection."""
        state, processor, feeder = connection.state, connection.processor, connection.feeder
        seats = connection.seats.copy()
        waiting = [seat.subscriber for seat in seats]
        found = processor.statistics() if isinstance(processor, Scannable) else None
        # Processors of others need not tell anything.
        told = found or Statistics(operator="")
        return Statistics(
            operator=repr(self),
            requested=told.requested or 0,
            buffered=told.buffered,
            capacity=told.capacity,
            terminated=state is State.OVER,
            upstream=None if feeder is None else feeder.upstream,
            inners=() if processor is None else (processor,),
            subscribers=told.subscribers,
            held_back_by=tuple(_who(one) for one in told.held_back_by),
            waiting=tuple(one for one in waiting if one is not None),
            connected=state is State.RUNNING,
        )

    def __repr__(self) -> str:
        return self._label


def _who(subscriber: object) -> object:
    """Who has subscribed, also if that was before there was a processor."""
    if isinstance(subscriber, Seat):
        seat = cast("Seat[object]", subscriber)  # of whatever items
        return seat.subscriber or seat
    return subscriber


def _waits(processor: object) -> bool:
    """Whether items wait in a processor for subscribers to get them (C06)."""
    found = processor.statistics() if isinstance(processor, Scannable) else None
    if found is None or not found.buffered:
        return False
    return not found.terminated or found.connected is False


def _nothing() -> None:
    pass


def _let_go(processor: object) -> None:
    """A processor that nobody has any more, and its items, die where this is called."""
