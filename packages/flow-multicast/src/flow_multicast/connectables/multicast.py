"""`multicast` and its kin: connectables that a processor serves."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar, cast, final

from flow_core.errors import is_fatal
from flow_core.protocols import (
    ConditionalSubscriber,
    Disposable,
    Processor,
    Publisher,
    Subscriber,
)
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.connectable import Connectable, ConnectableStatistics
from flow_multicast.connectables.connection import (
    ConditionalSeat,
    Connection,
    DisconnectedError,
    Feeder,
    Seat,
    State,
)

__all__ = ["MulticastConnectable"]

T = TypeVar("T")
R = TypeVar("R")


@final
class MulticastConnectable(Connectable[R], Generic[T, R]):
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
    """

    __slots__ = (
        "__weakref__",
        "_current",
        "_factory",
        "_fixed",
        "_keeps",
        "_label",
        "_lock",
        "_source",
    )

    def __init__(
        self,
        source: Publisher[T],
        factory: Callable[[], Processor[T, R]] | None,
        *,
        processor: Processor[T, R] | None = None,
        keeps: bool = False,
        label: str = "multicast",
    ) -> None:
        self._source = source
        self._factory = factory
        self._fixed = processor
        self._keeps = keeps
        self._label = label
        self._lock = Lock()
        """Guards `_current` and what is in it. Nothing is called under it."""
        self._current: Connection[T, R] = Connection(self, processor)

    def join(self, subscriber: Subscriber[R], /) -> Connection[T, R]:
        """See `Connectable.join`."""
        downstream = core_subscriber(subscriber)
        with self._lock:
            connection = self._current
            processor = connection.processor
        if processor is not None:
            processor.subscribe(downstream)
            return connection
        seat: Seat[R] = (
            ConditionalSeat(downstream, self._leave)
            if isinstance(downstream, ConditionalSubscriber)
            else Seat(downstream, self._leave)
        )
        seat.introduce()
        with self._lock:
            # Who has connected meanwhile has done so without this one.
            connection = self._current
            processor = connection.processor
            if processor is None and not seat.gone:  # who leaves later finds it on the list
                connection.seats[seat] = None
        if processor is not None:
            processor.subscribe(seat)
        return connection

    def _leave(self, seat: Seat[R]) -> None:
        with self._lock:
            self._current.seats.pop(seat, None)

    def connect(self, callback: Callable[[Disposable], object] | None = None) -> Disposable:
        """See `Connectable.connect`."""
        with self._lock:
            connection = self._current
            if connection.state is State.OVER:  # kept for those who come late
                connection = self._current = Connection(self, self._fixed)
            first = connection.state is State.GATHERING
            if first:
                connection.state = State.STARTING
        if first:
            self._start(connection, callback)
        elif callback is not None:
            callback(connection)
        return connection

    def _start(
        self, connection: Connection[T, R], callback: Callable[[Disposable], object] | None
    ) -> None:
        try:
            processor = self._fixed or self._made()
            if callback is not None:
                callback(connection)
        except BaseException:
            with self._lock:
                if connection.state is State.STARTING:
                    connection.state = State.GATHERING  # the next connect() tries again (C35, C36)
            raise
        feeder = Feeder(self, connection, processor)
        with self._lock:
            if connection.state is not State.STARTING:
                return  # disposed of meanwhile; those who wait were moved on (C13, C32)
            connection.state = State.RUNNING
            connection.processor = processor
            connection.feeder = feeder
            seats = [*connection.seats]
            connection.seats.clear()
        for seat in seats:
            processor.subscribe(seat)
        try:
            self._source.subscribe(feeder)
        except BaseException as error:
            if is_fatal(error):
                self._detach(connection, tell=False)()
                raise
            feeder.on_error(error)

    def _made(self) -> Processor[T, R]:
        processor = None if self._factory is None else self._factory()
        if not (hasattr(processor, "subscribe") and hasattr(processor, "on_next")) or not processor:
            raise TypeError(f"{self._label}: its factory gave {processor!r}, not a Processor")
        return processor

    def ended(self, connection: Connection[T, R]) -> None:
        """The run has ended by itself."""
        with self._lock:
            if connection.state is not State.RUNNING:
                return
            connection.state = State.OVER
            connection.feeder = None
            if self._current is connection and not self._keeps:
                self._current = Connection(self, self._fixed)

    def detach(self, connection: Disposable) -> Callable[[], object]:
        """See `Connectable.detach`."""
        if not isinstance(connection, Connection):
            return connection.dispose
        return self._detach(cast("Connection[T, R]", connection))  # handed out by this object

    def _detach(self, connection: Connection[T, R], *, tell: bool = True) -> Callable[[], object]:
        with self._lock:
            if connection.state in {State.OVER, State.GATHERING}:
                return _nothing
            connection.state = State.OVER
            feeder, connection.feeder = connection.feeder, None
            if self._current is connection:
                self._current = later = Connection(self, self._fixed)
                later.seats, connection.seats = connection.seats, later.seats
        if feeder is None:
            return _nothing
        error = None
        if self._fixed is None and tell:
            error = DisconnectedError(
                f"{self._label}: its connection was disposed of while the source ran"
            )
        return lambda: feeder.disconnect(error)

    def reset(self) -> None:
        """See `Connectable.reset`."""
        with self._lock:
            if self._current.state is State.OVER:
                self._current = Connection(self, self._fixed)

    def statistics(self) -> ConnectableStatistics:
        """See `Connectable.statistics`."""
        with self._lock:
            current = self._current
            return ConnectableStatistics(
                connected=current.state is State.RUNNING,
                waiting=len(current.seats),
                processor=current.processor,
            )

    def __repr__(self) -> str:
        return self._label


def _nothing() -> None:
    pass
