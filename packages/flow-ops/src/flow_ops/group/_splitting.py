"""What gives parts of a flow as flows of their own, or as lists."""

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
    """The parts that wait for the downstream: between it and the coordinator.

    So the coordinator goes on when the downstream has cancelled and parts of the flow still run.

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
        """Say what gives the parts; once, before anything is signalled."""
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

    An item that is consumed by all parts it belongs to, or dropped, is requested again: as soon as
    these are 75 % of the prefetch, or when nothing more is to come before. (If it waited for 75 %
    always, parts that pause with a few items would stop the others.)

    Args:
        source: what is split.
        downstream: gets the parts.
        label: the operator and its place, for messages.
        prefetch: items to request ahead.
        overtakes: whether an error comes before parts that wait.
        gives_flows: whether parts are flows, which somebody has to read.
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
        self.read = False
        """Somebody has subscribed to a part."""
        self._unheld = False
        """A part was let go of that is still to be dropped."""
        self._standstill: Standstill | None = Standstill(self) if gives_flows else None

    # -- for subclasses to say

    @abstractmethod
    def handle(self, item: T) -> bool:
        """Give `item` to its parts, having increased `_received`; or say False if it has none."""

    names: str
    """What its parts are called."""

    ends_parts: bool = False
    """Whether a part may end before the upstream does, by something else than its items."""

    @abstractmethod
    def open_parts(self) -> Iterable[Unicast[Any]]:  # Any: never looked into
        """Those that further items may go to."""

    def unread(self) -> bool:
        """Whether each item under way waits in a part that nobody has subscribed to."""
        return sum([part.waiting for part in list(self.unsubscribed)]) >= self.buffered

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
            for _ in range(len(freed)):  # nobody else takes any out
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

    # -- for parts; Any: see `unsubscribed`

    def part_arrived(self, part: Unicast[Any], /) -> None:
        """See `Hub.part_arrived`."""
        self.read = True
        self.unsubscribed.pop(part, None)

    def part_unheld(self, part: Unicast[Any], /) -> None:
        """See `Hub.part_unheld`.

        A finaliser calls this, at any moment of a thread that may hold a lock of this: then the
        next item looks for the part, or the watch if there is no room for one. Without the GIL,
        the thread that has made the part may be anywhere, as in the `submit` of an executor, whose
        lock a request needs if the source is to answer it there.
        """
        if HAS_GIL and not (self._guard.locked() or self._lock.locked()):
            part.signal()
        else:
            self._unheld = True

    def part_unread(self, part: Unicast[Any], /) -> None:
        """See `Hub.part_unread`."""
        self.unsubscribed.pop(part, None)

    # -- for `Standstill`

    @property
    def full(self) -> bool:
        """Whether as many items are under way as may be, and none was requested again."""
        return self._received >= self._asked and self.buffered >= self.prefetch

    @property
    def parts_wait(self) -> bool:
        """Whether parts wait for the downstream to ask for them."""
        return self._main is None or self._main.waiting > 0

    def drop_unheld(self) -> None:
        """Drop what waits in parts that were let go of when `part_unheld` could not."""
        for part in list(self.unsubscribed):
            if part.abandoned and part.waiting:
                part.signal()

    def hurry(self) -> None:
        """From now on, an error overtakes the parts that wait."""
        if self._main is not None:
            self._main.hurry()

    def check_over(self) -> None:
        """Cancel the upstream if nobody is left. With the permit."""
        if self.main_gone and not self.running():
            self.cancel()

    def main_left(self, _: object) -> None:
        """The downstream has cancelled: running parts run on, others are dropped."""
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
        """Demand is the business of `Main`."""

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
