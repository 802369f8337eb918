"""What gives parts of a flow as flows of their own, or as lists."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from threading import Lock
from typing import Any, Generic, TypeVar, final

from flow_core import hooks
from flow_core.demand import replenish_limit
from flow_core.errors import is_fatal
from flow_core.flow import Flow
from flow_core.homes import Home
from flow_core.protocols import CoreSubscriber, Subscription
from flow_ops.coordination import Coordinator, Listener, overflow
from flow_ops.group._unicast import Unicast

__all__ = ["Main", "Splitting"]

T = TypeVar("T")
R = TypeVar("R")


@final
class Main(Unicast[R], CoreSubscriber[R], Generic[R]):
    """The parts that wait for the downstream: between it and the coordinator.

    So the coordinator goes on when the downstream has cancelled and parts of the flow still run.

    Args:
        downstream: gets the parts.
        label: the operator, for messages.
        overtakes: whether an error comes before the parts that wait.
    """

    __slots__ = ("_first", "_home", "hub")

    def __init__(self, downstream: CoreSubscriber[R], label: str, overtakes: bool) -> None:
        super().__init__(label, overtakes)
        self._first: CoreSubscriber[R] | None = downstream
        self._home = downstream.home()
        self._subscribed = True
        self.hub: Splitting[Any, R] | None = None  # Any: of the upstream's items
        """Set once, before anything is signalled."""

    def home(self) -> Home | None:
        """See `CoreSubscriber.home`."""
        return self._home

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`."""
        downstream, self._first = self._first, None
        if downstream is not None:
            self.serve(downstream)

    def on_next(self, item: R, /) -> None:
        """See `Subscriber.on_next`."""
        self.offer(item)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        self.finish(error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        self.finish(None)

    def taken(self, item: R) -> None:
        """See `Unicast.taken`."""
        if self.hub is not None:
            self.hub.part_taken(item)

    def drop(self, item: R) -> None:
        """See `Unicast.drop`."""
        if self.hub is not None:
            self.hub.part_dropped(item)

    def left(self) -> None:
        """See `Unicast.left`."""
        if self.hub is not None:
            self.hub.post(self.hub.main_left, None)

    def above(self) -> object | None:
        """See `Unicast.above`."""
        return None if self.hub is None else self.hub.statistics().upstream


class Splitting(Coordinator[R], Generic[T, R]):
    """Splits a flow into parts. At most `prefetch` items are under way or wait in parts.

    An item that is consumed by all parts it belongs to, or dropped, is requested again: as soon as
    these are 75 % of the prefetch, or when nothing more is to come before. (If it waited for 75 %
    always, parts that pause with a few items would stop the others.)

    Args:
        source: what is split.
        downstream: gets the parts.
        label: the operator and its place, for messages.
        prefetch: items to request ahead.
        overtakes: whether an error comes before parts that wait.
    """

    __slots__ = (
        "_asked",
        "_free",
        "_freed",
        "_guard",
        "_limit",
        "_main",
        "_prefetch",
        "_received",
        "_source",
        "_upstream",
        "main_gone",
        "unsubscribed",
    )

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        prefetch: int,
        overtakes: bool = False,
    ) -> None:
        main = Main(downstream, label, overtakes)
        super().__init__(main, label)
        main.hub = self
        self._main: Main[R] | None = main
        self._source: Flow[T] | None = source
        self._upstream: Listener[T] | None = Listener(self, self._on_item, self.end, prefetch)
        self._prefetch = prefetch
        self._limit = replenish_limit(prefetch)
        self._guard = Lock()
        """Guards `_free` and `_asked`. Nothing is called under it."""
        self._asked = prefetch
        """All that was requested."""
        self._received: int = 0
        """All that came and was not dropped at once. Written with the permit."""
        self._free = 0
        """Items that were consumed, and not requested again yet."""
        self._freed: deque[None] = deque()
        """One for each more of them: to count them one by one takes no lock."""
        self.main_gone = False
        """The downstream has cancelled: there are no new parts."""
        self.unsubscribed: dict[Unicast[Any], None] = {}  # Any: never looked into
        """Parts that nobody has subscribed to so far."""

    # -- for subclasses to say

    @abstractmethod
    def handle(self, item: T) -> bool:
        """Give `item` to its parts, having increased `_received`; or say False if it has none."""

    @abstractmethod
    def running(self) -> bool:
        """Whether there are parts that go on without the downstream."""

    @abstractmethod
    def ended(self, error: BaseException | None) -> bool:
        """End all parts. Whether somebody gets the error."""

    def part_taken(self, part: R) -> None:
        """The downstream has got `part`, or it was dropped. Any thread."""

    @abstractmethod
    def part_dropped(self, part: R) -> None:
        """The downstream will not get `part`. Any thread."""

    # -- for subclasses to use

    def send(self, part: R) -> None:
        """Give `part` to the downstream, when it wants one."""
        main = self._main
        if main is None:
            self.part_dropped(part)
        else:
            main.offer(part)

    def credit(self, n: int) -> None:
        """`n` items were consumed: request more, if it is time. Any thread."""
        freed = self._freed
        if n == 1:
            freed.append(None)
            n = 0
            # Who has just received the last one that was requested looks here after that.
            if self._free + len(freed) < self._limit and self._received < self._asked:
                return
        with self._guard:
            while freed:
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

    def check_over(self) -> None:
        """Cancel the upstream if nobody is left. With the permit."""
        if self.main_gone and not self.running():
            self.cancel()

    def main_left(self, _: object) -> None:
        """The downstream has cancelled: running parts run on, others are dropped."""
        self.main_gone = True
        for part in list(self.unsubscribed):
            part.abandon()
        self.check_over()

    # -- as a coordinator

    def open(self) -> None:
        """See `Coordinator.open`."""
        source, upstream = self._source, self._upstream
        if source is not None and upstream is not None:
            self._source = None
            self.connect(source, upstream)

    def requested(self, n: int) -> None:
        """See `Coordinator.requested`. Demand is the business of `Main`."""

    def closed(self) -> None:
        """See `Coordinator.closed`."""
        self._upstream = None
        self._source = None
        self._main = None
        self.unsubscribed.clear()

    @property
    def buffered(self) -> int:
        """See `Coordinator.buffered`."""
        return self._received - (self._asked - self._prefetch) - self._free - len(self._freed)

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
        if self._received >= self._asked:
            self.credit(0)
        return True
