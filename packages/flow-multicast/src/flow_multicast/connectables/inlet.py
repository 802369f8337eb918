"""The upstream of a processor that serves all connections, one after the other."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, bad_request
from flow_core.errors import throw_if_fatal
from flow_core.introspection import Scannable, Statistics, snapshot
from flow_core.protocols import EMPTY, CoreSubscriber, Empty, Processor, Subscription
from flow_core.serial import SerialDrain

__all__ = ["Inlet", "Link"]

T = TypeVar("T")
R = TypeVar("R")


@final
class Inlet(SerialDrain, Subscription, Scannable, Generic[T, R]):
    """The one upstream of a processor, which takes no second upstream (§2.5).

    The demand of the processor that one connection has not met is passed to the next one.
    Connections, their items and their ends wait in one inbox, in the order in which they come.

    Args:
        processor: the processor to feed.
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_current",
        "_ended",
        "_inbox",
        "_introduced",
        "_newest",
        "_outstanding",
        "_processor",
        "_refused",
        "_upstream",
    )

    def __init__(self, processor: Processor[T, R]) -> None:
        super().__init__()
        self._processor = processor
        self._inbox: deque[tuple[Link[T, R], T | Empty, Subscription | _End | None]] = deque()
        """The events in order: an item, or a connection that begins, ends, or was disposed of."""
        self._asked: list[int] = []
        """Amounts that were requested, and that the drain has not added up yet."""
        self._refused = False
        """True if the processor accepts nothing, or nothing more."""
        self._upstream: Subscription | None = None
        # Only the drain changes these.
        self._introduced = False
        self._outstanding = 0
        self._newest = 0
        """The number of the connection that has begun last."""
        self._current: Link[T, R] | None = None
        self._ended = False

    # -- for the connections

    def attach(self, link: Link[T, R], upstream: Subscription) -> None:
        """Begin a connection; the connection before it has ended."""
        self._inbox.append((link, EMPTY, upstream))
        self.signal()

    def put(self, link: Link[T, R], item: T) -> None:
        """Take an item of a connection."""
        self._inbox.append((link, item, None))
        self.signal()

    def end(self, link: Link[T, R], error: BaseException | None) -> None:
        """End the processor: the source of a connection has ended (C17)."""
        self._inbox.append((link, EMPTY, _End(error)))
        self.signal()

    def pull(self, link: Link[T, R]) -> None:
        """Note that a connection has ended; the processor gets no terminal."""
        self._inbox.append((link, EMPTY, None))
        self.signal()

    # -- for the processor

    @override
    def request(self, n: int, /) -> None:
        if bad_request(n) is None:
            self._asked.append(n)
            self.signal()
            return
        upstream = self._upstream
        if upstream is not None:
            upstream.request(n)  # it reports the error

    @override
    def cancel(self) -> None:
        self._refused = True
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            hooks.cancel(upstream)

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator="connections",
            requested=min(self._outstanding + sum(self._asked), UNBOUNDED),
            buffered=sum(item is not EMPTY for _, item, _ in snapshot(self._inbox)),
            cancelled=self._refused,
            terminated=self._ended,
            upstream=self._upstream,
        )

    # -- the drain

    @override
    def drain(self) -> None:
        inbox, asked = self._inbox, self._asked
        while inbox or asked:
            if asked:
                self._ask()
                continue
            link, item, what = inbox.popleft()
            current = self._current is link and not self._refused and not self._ended
            if item is not EMPTY:
                if current:
                    if self._outstanding < UNBOUNDED:
                        self._outstanding -= 1
                    self._processor.on_next(item)
                else:
                    hooks.drop_item(item)
            elif what is None:
                link.pulled = True
                if current:
                    self._current = self._upstream = None
            elif isinstance(what, _End):
                self._end(what.error, told=current)
            else:
                self._begin(link, what)

    def _ask(self) -> None:
        """Request the processor's demand."""
        asked, n = self._asked, 0
        while count := len(asked):
            n += sum(asked[:count])
            del asked[:count]
        self._outstanding = min(self._outstanding + n, UNBOUNDED)
        self._request(min(n, UNBOUNDED))

    def _request(self, n: int) -> None:
        upstream = self._upstream
        if upstream is None:
            return
        try:
            upstream.request(n)
        except BaseException as error:  # §3.16
            throw_if_fatal(error)
            hooks.cancel(upstream)
            self._end(error, told=not self._refused and not self._ended)

    def _begin(self, link: Link[T, R], upstream: Subscription) -> None:
        """Begin a connection, unless a newer one has begun: its source may have been slow."""
        if self._refused or self._ended or link.pulled or link.number <= self._newest:
            hooks.cancel(upstream)
            return
        self._newest = link.number
        self._current, self._upstream = link, upstream
        if self._refused:  # `cancel` may have looked before
            self._upstream = None
            hooks.cancel(upstream)
        elif not self._introduced:
            self._introduced = True
            self._processor.on_subscribe(_WeakSubscription(self))
        elif self._outstanding:
            self._request(self._outstanding)

    def _end(self, error: BaseException | None, *, told: bool) -> None:
        if told:
            self._ended = True
            self._current = self._upstream = None
            if error is None:
                self._processor.on_complete()
            else:
                self._processor.on_error(error)
        elif error is not None:
            hooks.drop_error(error)


@final
class _End:
    """The end of a source."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException | None) -> None:
        self.error: Final = error


@final
class _WeakSubscription(Subscription, Scannable):
    """The processor's reference to its inlet. A strong reference would make a cycle."""

    __slots__ = ("_inlet",)

    def __init__(self, inlet: Inlet[Any, Any]) -> None:  # Any: no items pass here
        # The connectable and the running connection keep the inlet alive.
        self._inlet = weakref.ref(inlet)

    @override
    def request(self, n: int, /) -> None:
        inlet = self._inlet()
        if inlet is not None:
            inlet.request(n)

    @override
    def cancel(self) -> None:
        inlet = self._inlet()
        if inlet is not None:
            hooks.cancel(inlet)

    @override
    def statistics(self) -> Statistics:
        inlet = self._inlet()
        if inlet is None:
            return Statistics(operator="connections", cancelled=True)
        return inlet.statistics()


@final
class Link(CoreSubscriber[T], Generic[T, R]):
    """The part of one connection that is plugged into an `Inlet`: the subscriber of its source.

    Args:
        inlet: gets the signals, until another connection has begun.
        number: greater than the numbers of all earlier connections.
    """

    __slots__ = ("_inlet", "number", "pulled")

    def __init__(self, inlet: Inlet[T, R], number: int) -> None:
        self._inlet = inlet
        self.number: Final = number
        self.pulled = False
        """True when the connection has ended or is no longer needed. Used by the inlet."""

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._inlet.attach(self, subscription)

    @override
    def on_next(self, item: T, /) -> None:
        self._inlet.put(self, item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        self._inlet.end(self, error)

    @override
    def on_complete(self) -> None:
        self._inlet.end(self, None)

    def pull(self) -> None:
        """Stop: nothing more of this connection is needed."""
        self._inlet.pull(self)
