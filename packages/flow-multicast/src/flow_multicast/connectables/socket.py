"""The upstream of a processor that serves all connections, one after the other."""

from __future__ import annotations

import weakref
from collections import deque
from threading import Lock
from typing import Any, Generic, TypeVar, final

from flow_core import hooks
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.introspection import Statistics
from flow_core.protocols import CoreSubscriber, Processor, Subscription
from flow_core.serial import SerialDrain

__all__ = ["Plug", "Socket"]

T = TypeVar("T")
R = TypeVar("R")


@final
class Socket(SerialDrain, Generic[T, R]):
    """The one upstream that a processor has: a processor takes no second one (§2.5).

    What the processor has requested of a connection and not got from it, the next connection owes.

    Args:
        processor: what is fed.
    """

    __slots__ = (
        "__weakref__",
        "_current",
        "_ended",
        "_error",
        "_inbox",
        "_introduced",
        "_lock",
        "_newest",
        "_outstanding",
        "_processor",
        "_refused",
        "_upstream",
    )

    def __init__(self, processor: Processor[T, R]) -> None:
        super().__init__()
        self._processor = processor
        self._lock = Lock()
        """Guards all that follows. Nothing is called under it."""
        self._introduced = False
        self._refused = False
        """The processor wants nothing, or nothing more."""
        self._outstanding = 0
        self._newest = 0
        """The number of the connection that was made last."""
        self._current: Plug[T, R] | None = None
        self._upstream: Subscription | None = None
        self._inbox: deque[T] = deque()
        """Items that were requested, and have come while the processor took another one."""
        self._ended = False
        self._error: BaseException | None = None

    # -- from the connections

    def expect(self, plug: Plug[T, R]) -> None:
        """A connection is made. The source of an older one may still be at its on_subscribe."""
        with self._lock:
            self._newest += 1
            plug.number = self._newest

    def plug_in(self, plug: Plug[T, R], upstream: Subscription) -> None:
        """A connection begins; the one before is over."""
        with self._lock:
            first = False
            if self._refused or self._ended or plug.number != self._newest:
                owed = -1
            else:
                first, self._introduced = not self._introduced, True
                self._current, self._upstream = plug, upstream
                owed = self._outstanding
        if owed < 0:
            hooks.cancel(upstream)
        elif first:
            self._processor.on_subscribe(_Wire(self))
        elif owed:
            upstream.request(owed)

    def put(self, plug: Plug[T, R], item: T) -> None:
        """An item of a connection."""
        with self._lock:
            taken = self._current is plug and not self._ended
            if taken and self._outstanding != UNBOUNDED:
                self._outstanding -= 1
            if taken:
                self._inbox.append(item)
        if taken:
            self.signal()
        else:
            hooks.drop_item(item)

    def end(self, plug: Plug[T, R], error: BaseException | None) -> None:
        """The source of a connection has ended: so does the processor (C17)."""
        with self._lock:
            taken = self._current is plug and not self._ended
            if taken:
                self._error = error
                self._ended = True
                self._current = self._upstream = None
        if taken:
            self.signal()
        elif error is not None:
            hooks.drop_error(error)

    def pull(self, plug: Plug[T, R]) -> None:
        """A connection is over, without an end."""
        with self._lock:
            if self._current is plug:
                self._current = self._upstream = None

    # -- from the processor

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        bad = bad_request(n)
        with self._lock:
            if bad is None:
                self._outstanding = add_demand(self._outstanding, n)
            upstream = self._upstream
        if upstream is not None:
            upstream.request(n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        with self._lock:
            self._refused = True
            self._current = None
            upstream, self._upstream = self._upstream, None
        if upstream is not None:
            hooks.cancel(upstream)

    def statistics(self) -> Statistics:
        """See `Scannable.statistics`."""
        return Statistics(
            operator="connections",
            requested=self._outstanding,
            buffered=len(self._inbox),
            cancelled=self._refused,
            terminated=self._ended,
            upstream=self._upstream,
        )

    def drain(self) -> None:
        """See `SerialDrain.drain`."""
        inbox, processor = self._inbox, self._processor
        while True:
            ended = self._ended  # read before the items: what came before the end is there by then
            if not inbox:
                break
            processor.on_next(inbox.popleft())
        if not ended or self._refused:
            return
        self._refused = True
        error, self._error = self._error, None
        if error is None:
            processor.on_complete()
        else:
            processor.on_error(error)


@final
class _Wire(Subscription):
    """What the processor has of its socket. If it had more, both would be a cycle."""

    __slots__ = ("_socket",)

    def __init__(self, socket: Socket[Any, Any]) -> None:  # Any: no items pass here
        self._socket = weakref.ref(socket)  # which lives in its connectable, and in what runs

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        socket = self._socket()
        if socket is not None:
            socket.request(n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        socket = self._socket()
        if socket is not None:
            hooks.cancel(socket)

    def statistics(self) -> Statistics:
        """See `Scannable.statistics`."""
        socket = self._socket()
        if socket is None:
            return Statistics(operator="connections", cancelled=True)
        return socket.statistics()


@final
class Plug(CoreSubscriber[T], Generic[T, R]):
    """The end of one connection that is put into a `Socket`.

    Args:
        socket: where the signals go, until another connection is there.
    """

    __slots__ = ("_socket", "number")

    def __init__(self, socket: Socket[T, R]) -> None:
        self._socket = socket
        self.number = 0
        """The socket's affair."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`."""
        self._socket.plug_in(self, subscription)

    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`."""
        self._socket.put(self, item)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        self._socket.end(self, error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        self._socket.end(self, None)

    def pull(self) -> None:
        """Nothing more is wanted of this connection."""
        self._socket.pull(self)
