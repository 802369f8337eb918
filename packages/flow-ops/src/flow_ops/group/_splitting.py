"""The base of operators that send parts of a flow, as flows or as lists."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Any, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import replenish_limit
from flow_core.errors import is_fatal
from flow_core.flow import Flow
from flow_core.homes import Home
from flow_core.protocols import CoreSubscriber, Subscription
from flow_core.serial import HAS_GIL
from flow_ops.coordination import Coordinator, Listener, overflow
from flow_ops.group._standstill import Standstill
from flow_ops.group._unicast import Unicast

__all__ = ["Main", "Splitting"]

T = TypeVar("T")
R = TypeVar("R")


@final
class Main(Unicast[R], CoreSubscriber[R], Generic[R]):
    """The parts that wait for the downstream: a queue between the downstream and the coordinator.

    A cancel of the downstream ends only this queue, and not the coordinator: parts that have a
    subscriber continue.

    Args:
        downstream: gets the parts.
        label: the operator, for messages.
        overtakes: whether an error comes before the parts that wait.
    """

    __slots__ = ("_first", "_home", "_splitting")

    def __init__(self, downstream: CoreSubscriber[R], label: str, overtakes: bool) -> None:
        super().__init__(label, None, overtakes)
        self._first: CoreSubscriber[R] | None = downstream
        self._home = downstream.home()
        self._subscribed = True
        self._splitting: Splitting[Any, R] | None = None  # Any: of the upstream's items

    def belong(self, hub: Splitting[Any, R]) -> None:  # Any: of the upstream's items
        """Set the hub that sends the parts. Call this once, before anything is signalled."""
        self.hub = self._splitting = hub

    @override
    def home(self) -> Home | None:
        return self._home

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        downstream, self._first = self._first, None
        if downstream is not None:
            self.serve(downstream)

    @override
    def on_next(self, item: R, /) -> None:
        self.offer(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        self.finish(error)

    @override
    def on_complete(self) -> None:
        self.finish(None)

    @override
    def taken(self, item: R) -> None:
        if self._splitting is not None:
            self._splitting.part_taken(item)

    @override
    def drop(self, item: R) -> None:
        if self._splitting is not None:
            self._splitting.part_dropped(item)

    @override
    def left(self) -> None:
        if self._splitting is not None:
            self._splitting.post(self._splitting.main_left, None)


class Splitting(Coordinator[R], Generic[T, R]):
    """Splits a flow into parts. At most `prefetch` items are under way or wait in parts.

    For each item that all its parts have consumed, or that was dropped, another item is requested:
    as soon as such items are 75 % of the prefetch, or when no more items would come otherwise. (If
    it always waited for 75 %, parts that pause with a few items would stop the others.)

    Args:
        source: the flow to split.
        downstream: gets the parts.
        label: the operator and where it was assembled, for messages.
        prefetch: items to request ahead.
        overtakes: whether an error comes before parts that wait.
        gives_flows: whether parts are flows, which have to be read.
    """

    __slots__ = (
        "_asked",
        "_free",
        "_freed",
        "_guard",
        "_limit",
        "_main",
        "_received",
        "_source",
        "_standstill",
        "_unheld",
        "_upstream",
        "main_gone",
        "prefetch",
        "read",
        "unsubscribed",
    )

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        prefetch: int,
        *,
        overtakes: bool,
        gives_flows: bool = True,
    ) -> None:
        main = Main(downstream, label, overtakes)
        super().__init__(main, label)
        main.belong(self)
        self._main: Main[R] | None = main
        self._source: Flow[T] | None = source
        self._upstream: Listener[T] | None = Listener(self, self._on_item, self.end, prefetch)
        self.prefetch = prefetch
        self._limit = replenish_limit(prefetch)
        self._guard = Lock()
        """Guards `_free` and `_asked`. Never held while calling out."""
        self._asked = prefetch
        """The number of items that were requested."""
        self._received: int = 0
        """The number of items that came and were not dropped at once. Written with the permit."""
        self._free = 0
        """The number of items that were consumed, and not requested again yet."""
        self._freed: deque[None] = deque()
        """One entry for each further item that was consumed: appending takes no lock."""
        self.main_gone = False
        """True when the downstream has cancelled: no parts follow."""
        self.unsubscribed: dict[Unicast[Any], None] = {}  # Any: never looked into
        """The parts that have had no subscriber so far."""
        self.read = False
        """True once a part has had a subscriber."""
        self._unheld = False
        """True while a part without references still has to be dropped."""
        self._standstill: Standstill | None = Standstill(self) if gives_flows else None

    # -- methods that subclasses define

    @abstractmethod
    def handle(self, item: T) -> bool:
        """Count `item` in `_received` and pass it to its parts; return False if it has no part."""

    names: str
    """The word for the parts, in the plural, for messages."""

    ends_parts: bool = False
    """True if a part may end before the upstream does, by something other than its items."""

    @abstractmethod
    def open_parts(self) -> Iterable[Unicast[Any]]:  # Any: never looked into
        """Return the parts that further items may go to."""

    def unread(self) -> bool:
        """Return whether each item under way waits in a part without a subscriber."""
        return sum([part.waiting for part in list(self.unsubscribed)]) >= self.buffered

    @abstractmethod
    def running(self) -> bool:
        """Return whether there are parts that continue without the downstream."""

    @abstractmethod
    def ended(self, error: BaseException | None) -> bool:
        """End all parts. The result is whether a subscriber gets the error."""

    def part_taken(self, part: R) -> None:
        """Note that the downstream has got `part`, or that it was dropped.

        Any thread may call this.
        """

    @abstractmethod
    def part_dropped(self, part: R) -> None:
        """Note that the downstream will not get `part`. Any thread may call this."""

    # -- methods that subclasses use

    def send(self, part: R) -> None:
        """Send `part` to the downstream, on demand."""
        main = self._main
        if main is None:
            self.part_dropped(part)
        else:
            main.offer(part)

    def credit(self, n: int) -> None:
        """Note that `n` items were consumed; request more, if it is time.

        Any thread may call this.
        """
        freed = self._freed
        if n == 1:
            freed.append(None)
            n = 0
            # The thread that has just received the last requested item checks this after that.
            if self._free + len(freed) < self._limit and self._received < self._asked:
                return
        with self._guard:
            for _ in range(len(freed)):  # no other thread removes any
                freed.popleft()
                n += 1
            free = self._free = self._free + n
            if free < self._limit and (not free or self._received < self._asked):
                return
            self._free = 0
            self._asked += free
        upstream = self._upstream
        if upstream is None:
            return
        try:
            upstream.request(free)
        except BaseException as error:  # §3.16
            if is_fatal(error):
                raise
            self.post(self.fail, error, hooks.drop_error)

    # -- methods that parts use; Any: see `unsubscribed`

    def part_arrived(self, part: Unicast[Any], /) -> None:
        """Note that `part` has a subscriber; see `Hub.part_arrived`."""
        self.read = True
        self.unsubscribed.pop(part, None)

    def part_unheld(self, part: Unicast[Any], /) -> None:
        """Note that `part` has no reference any more; see `Hub.part_unheld`.

        A finaliser calls this, at any moment of a thread that may hold a lock of this object. So
        the part is dropped with the next item, or by `Standstill` if there is no room for an item.
        Without the GIL, the thread that has made the part may be anywhere, such as in the `submit`
        of an executor, whose lock a request needs if the source answers it there.
        """
        if HAS_GIL and not (self._guard.locked() or self._lock.locked()):
            part.signal()
        else:
            self._unheld = True

    def part_unread(self, part: Unicast[Any], /) -> None:
        """Note that `part` will never have a subscriber; see `Hub.part_unread`."""
        self.unsubscribed.pop(part, None)

    # -- methods that `Standstill` uses

    @property
    def full(self) -> bool:
        """Return whether as many items as allowed are under way, and none was requested again."""
        return self._received >= self._asked and self.buffered >= self.prefetch

    @property
    def parts_wait(self) -> bool:
        """Return whether parts wait for the downstream to request them."""
        return self._main is None or self._main.waiting > 0

    def drop_unheld(self) -> None:
        """Drop the items of parts without references that `part_unheld` could not drop."""
        for part in list(self.unsubscribed):
            if part.abandoned and part.waiting:
                part.signal()

    def hurry(self) -> None:
        """Have an error overtake the parts that wait, from now on."""
        if self._main is not None:
            self._main.hurry()

    def check_over(self) -> None:
        """Cancel the upstream if no subscriber is left. The caller must hold the permit."""
        if self.main_gone and not self.running():
            self.cancel()

    def main_left(self, _: object) -> None:
        """Drop the parts without a subscriber.

        The parts with a subscriber continue, though the downstream has cancelled.
        """
        self.main_gone = True
        for part in list(self.unsubscribed):
            part.close_unread()
        self.check_over()

    # -- as a coordinator

    @override
    def open(self) -> None:
        source, upstream = self._source, self._upstream
        if source is not None and upstream is not None:
            self._source = None
            self.connect(source, upstream)

    @override
    def requested(self, n: int) -> None:
        """Do nothing: `Main` counts the demand."""

    @override
    def closed(self) -> None:
        self._upstream = None
        self._source = None
        self._main = None
        self.unsubscribed.clear()
        standstill, self._standstill = self._standstill, None
        if standstill is not None:
            standstill.end()

    @property
    @override
    def buffered(self) -> int:
        return self._received - (self._asked - self.prefetch) - self._free - len(self._freed)

    def _finish(self, error: BaseException | None) -> None:
        main = self._main
        if not self.over and main is not None:
            told = self.ended(error)
            if error is not None and main.gone and not told:
                hooks.drop_error(error)
        super()._finish(error)

    def _on_item(self, item: T) -> bool:
        if self._received >= self._asked:
            hooks.drop_item(item)
            raise overflow(self.label, self._asked, who="the upstream")
        if not self.handle(item):
            return False
        if self._unheld:
            self._unheld = False
            self.drop_unheld()
        if self._received >= self._asked:
            self.credit(0)
            if self._received >= self._asked and self._standstill is not None:
                self._standstill.begin()
        return True
