"""`Connectable.auto_connect`: the subscriber that makes the number full starts the run."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeVar, final

from flow_core import Flow
from flow_core.protocols import Disposable, Publisher, Subscriber
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.connectable import Connectable

__all__ = ["auto_connected"]

T = TypeVar("T")


def auto_connected(
    connectable: Connectable[T],
    subscribers: int,
    on_connect: Callable[[Disposable], object] | None,
) -> Flow[T]:
    """See `Connectable.auto_connect`."""
    if not isinstance(subscribers, int) or isinstance(subscribers, bool):
        raise TypeError(f"auto_connect() takes a number of subscribers, not {subscribers!r}")
    if subscribers < 0:
        raise ValueError(f"auto_connect() takes 0 subscribers or more, not {subscribers}")
    if subscribers == 0:
        connectable.connect(on_connect)
        return connectable.flow
    return Flow(AutoConnected(connectable, subscribers, on_connect))


@final
class AutoConnected(Publisher[T]):
    """Counts those who subscribe.

    Args:
        connectable: what they subscribe to.
        subscribers: how many it takes to connect.
        on_connect: gets the connection.
    """

    __slots__ = ("_connectable", "_left", "_lock", "_on_connect", "_subscribers")

    def __init__(
        self,
        connectable: Connectable[T],
        subscribers: int,
        on_connect: Callable[[Disposable], object] | None,
    ) -> None:
        self._connectable = connectable
        self._subscribers = subscribers
        self._left = subscribers
        self._on_connect = on_connect
        self._lock = Lock()

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        self._connectable.subscribe(core_subscriber(subscriber))
        if self._left > 0:
            with self._lock:
                self._left -= 1
                last = self._left == 0
            if last:
                self._connectable.connect(self._on_connect)

    def __repr__(self) -> str:
        return f"{self._connectable!r}.auto_connect({self._subscribers})"
