"""`Connectable.auto_connect`: the subscriber that completes the number starts the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, final

from typing_extensions import override

from flow_core import Flow
from flow_core.errors import throw_if_fatal
from flow_core.introspection import Statistics
from flow_core.protocols import ConditionalSubscriber, Disposable, Publisher, Subscriber
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.atomic_reference import AtomicReference
from flow_multicast.connectables.connection import DisconnectedError
from flow_multicast.connectables.relay import ConditionalRelay, Relay

if TYPE_CHECKING:
    from flow_multicast.connectables.connectable import ConnectableBase

__all__ = ["auto_connected"]

T = TypeVar("T")


def auto_connected(
    connectable: ConnectableBase[T],
    subscribers: int,
    on_connect: Callable[[Disposable], object] | None,
) -> Flow[T]:
    """See `Connectable.auto_connect`."""
    if not isinstance(subscribers, int) or isinstance(subscribers, bool):
        raise TypeError(f"auto_connect() takes a number of subscribers, not {subscribers!r}")
    if subscribers < 0:
        raise ValueError(f"auto_connect() takes 0 subscribers or more, not {subscribers}")
    made = AutoConnected(connectable, subscribers, on_connect)
    if subscribers == 0:
        made.connect()
    return Flow(made)


class _Count(NamedTuple, Generic[T]):
    """The subscribers that have come so far."""

    left: int
    """The number of subscribers that are still missing; below 0 if more have come."""
    connection: Disposable | None = None
    """The connection, once nothing can keep its run from beginning."""
    spare: tuple[_Waiting[T], ...] = ()
    """Subscribers that came while the last one needed was connecting: if it fails, they try in
    turn."""


@final
class AutoConnected(Publisher[T]):
    """Counts subscribers, and connects when enough have come.

    Args:
        connectable: the connectable.
        subscribers: how many subscribers it takes to connect.
        on_connect: called with the connection that is made.
    """

    __slots__ = ("_connectable", "_count", "_on_connect", "_subscribers")

    def __init__(
        self,
        connectable: ConnectableBase[T],
        subscribers: int,
        on_connect: Callable[[Disposable], object] | None,
    ) -> None:
        self._connectable = connectable
        self._subscribers = subscribers
        self._on_connect = on_connect
        self._count: AtomicReference[_Count[T]] = AtomicReference(_Count(subscribers))

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
        if self._last() is not None:
            self._connectable.join(downstream, self._last)
            return
        # This subscriber may be the one that connects: if that fails, it has to get the error.
        waiting: _Waiting[T] = (
            _ConditionalWaiting(downstream)
            if isinstance(downstream, ConditionalSubscriber)
            else _Waiting(downstream)
        )
        self._connectable.join(waiting, self._last)

        def counted(count: _Count[T]) -> _Count[T]:
            left, connection, spare = count
            spare = (*spare, waiting) if left <= 0 and connection is None else spare
            return _Count(left - 1, connection, spare)

        _, now = self._count.update(counted)
        tries = waiting if now.left == 0 else None
        while tries is not None:
            try:
                self.connect()
                return
            except BaseException as error:
                failed, tries = tries, self._next()
                throw_if_fatal(error)
                failed.fail(error)

    def _next(self) -> _Waiting[T] | None:
        """Return the subscriber that has to connect next, after another one has failed to.

        If there is none, the next subscriber to come connects.
        """
        found: list[_Waiting[T]] = []

        def tried(count: _Count[T]) -> _Count[T]:
            found[:] = [one for one in count.spare if not one.ended]
            left = count.left if found else 1
            return _Count(left, count.connection, tuple(found[1:]))

        self._count.update(tried)
        return found[0] if found else None

    def connect(self) -> None:
        """Connect, and keep the connection for later subscribers."""
        self._connectable.connect_until_begun(self._connected)

    def _last(self) -> Disposable | None:
        return self._count.get().connection

    def _connected(self, connection: Disposable) -> None:
        if self._on_connect is not None:
            self._on_connect(connection)
            if connection.disposed:
                raise DisconnectedError(f"{self!r}: on_connect has disposed of the connection")
        self._count.update(lambda count: _Count(count.left, connection))

    def statistics(self) -> Statistics:
        """See `Connectable.statistics`."""
        return self._connectable.statistics()

    def __repr__(self) -> str:
        return f"{self._connectable!r}.auto_connect({self._subscribers})"


class _Waiting(Relay[T]):
    """One of the subscribers that an `AutoConnected` waits for."""

    __slots__ = ()

    @property
    @override
    def label(self) -> str:
        return "auto_connect"

    @override
    def over(self, *, cancelled: bool) -> None:
        """Do nothing: a subscriber that has left counts as well."""


@final
class _ConditionalWaiting(_Waiting[T], ConditionalRelay[T]):
    """A `_Waiting` for a conditional subscriber."""

    __slots__ = ()
