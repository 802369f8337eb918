"""`ReplayProcessor`: what was, for those who come later."""

from __future__ import annotations

from collections import deque
from typing import Final, TypeVar, cast, final

from flow_core.clocks import Clock, check_period, system_clock
from flow_core.demand import UNBOUNDED, check_prefetch, replenish_limit
from flow_core.errors import MissingBackpressureError
from flow_core.protocols import CoreSubscriber, Subscriber, Subscription
from flow_multicast.processors._hot import HotProcessor, Line

__all__ = ["ReplayProcessor"]

T = TypeVar("T")

_CHUNK: Final = 256
"""Items that a line takes at a time: between two, it looks for what has changed."""
_SLACK: Final = 64
"""Items that may be forgotten before the room of these is given back."""


@final
class ReplayProcessor(HotProcessor[T]):
    """Keeps items, and gives each subscriber all that it has kept and then what comes.

    >>> numbers = ReplayProcessor[int](size=2)
    >>> for n in range(4):
    ...     numbers.on_next(n)
    >>> handle = numbers.flow.subscribe(print)
    2
    3
    >>> numbers.on_next(4)
    4

    Each subscriber has a position of its own, and is sent items as it asks for them. Who subscribes
    after the end gets what is kept, and then the end.

    Demand: without `size`, everything is requested of the upstream, and everything is kept. With
    it, the upstream may be `size` items ahead of the slowest subscriber, so that nobody misses an
    item, and the slowest sets the pace beyond that; without subscribers it runs freely, and old
    items are forgotten.
    A processor that is fed faster than that, by hand or by an upstream that ignores demand, forgets
    what it has no room for: a subscriber that had not got it yet fails with
    MissingBackpressureError, alone. The same holds for items that grow older than `ttl_s` before
    a subscriber asks for them.
    Thread: that of the upstream, or of whoever requests or subscribes. Fusion: none.
    Memory: 8 bytes for each kept item, and 40 with `ttl_s`, beside the item itself.
    Errors: those of the upstream come after the items that are kept.

    Args:
        size: how many items to keep at most; None keeps all.
        ttl_s: how many seconds to keep an item; None keeps it for ever.
        clock: what these are measured by; None is the clock of the process.

    Raises:
        TypeError: if `size` is no int, or `ttl_s` no number.
        ValueError: if `size` is less than 1, or `ttl_s` not above 0 and finite.
    """

    __slots__ = (
        "_clock",
        "_first",
        "_granted",
        "_limit",
        "_log",
        "_slowest",
        "_times",
        "_ttl_s",
        "size",
    )

    def __init__(
        self, size: int | None = None, *, ttl_s: float | None = None, clock: Clock | None = None
    ) -> None:
        super().__init__()
        self.size: Final = None if size is None else check_prefetch(size, "size")
        self._ttl_s = None if ttl_s is None else check_period(ttl_s)
        self._clock = clock or system_clock()
        self._log: tuple[int, list[T | None]] = (0, [])
        """The position of the first entry, and the entries; None for what is forgotten. The list
        only grows; when its begin is cut off, the pair is replaced, so that who reads sees one or
        the other."""
        self._first = 0
        """The position of the oldest item that is kept."""
        self._times: deque[float] = deque()
        """When the items that are kept have come; only with `ttl_s`."""
        self._granted = 0
        """How many items were requested of the upstream. Under the lock."""
        self._limit = replenish_limit(size or 1)
        self._slowest = 0
        """No subscriber stands before this position, as far as is known. Under the lock."""

    # -- the log

    @property
    def end(self) -> int:
        """The position of the item that comes next."""
        base, entries = self._log
        return base + len(entries)

    def read(self, position: int, count: int) -> list[T] | None:
        """Up to `count` items from `position` on; None if the first of them is forgotten."""
        base, entries = self._log
        found = entries[position - base : position - base + count] if position >= base else []
        # Looked at after that: `_forget` says what is gone before it takes it away.
        if position < self._first:
            return None
        return cast("list[T]", found)  # what is None is forgotten

    def accept(self, item: T) -> None:
        """See `HotProcessor.accept`."""
        self._log[1].append(item)
        if self._ttl_s is not None:
            self._times.append(self._clock.now())
            self._expire()
        if self.size is not None:
            self._forget(self.end - self.size)
        lines = self.lines
        for line in lines:
            line.signal()
        if not lines:
            self.ask()

    def _expire(self) -> None:
        if self._ttl_s is None:
            return
        with self._lock:
            oldest = self._clock.now() - self._ttl_s
            times, first = self._times, self._first
            while times and times[0] <= oldest:
                times.popleft()
                first += 1
        if first > self._first:
            self._forget(first, expired=True)

    def _forget(self, first: int, *, expired: bool = False) -> None:
        """Forget the items before position `first`."""
        with self._lock:
            base, entries = self._log
            before, self._first = self._first, max(first, self._first)
            for index in range(before - base, self._first - base):
                entries[index] = None
                if self._times and not expired:
                    self._times.popleft()
            gone = self._first - base
            if gone > _SLACK and gone > len(entries) - gone:
                self._log = (self._first, entries[gone:])

    @property
    def buffered(self) -> int:
        """See `HotProcessor.buffered`."""
        return self.end - self._first

    # -- demand of the upstream

    def begin(self, upstream: Subscription) -> None:
        """See `HotProcessor.begin`."""
        if self.size is None:
            upstream.request(UNBOUNDED)
        else:
            self.ask()

    def left(self) -> None:
        """See `HotProcessor.left`: it may have been the slowest."""
        self.ask()

    def moved(self, before: int) -> None:
        """A subscriber that stood at position `before` has got items."""
        if before <= self._slowest:
            self.ask()

    def ask(self) -> None:
        """Request as many items as there is room for, if those are enough to be worth it."""
        size = self.size
        if size is None:
            return
        with self._lock:
            upstream = self._upstream
            slowest = end = self.end
            for line in self._lines:
                if isinstance(line, _ReplayLine):
                    slowest = min(slowest, line.position)
            self._slowest = slowest
            room = slowest + size - max(self._granted, end)
            if upstream is None or (room < self._limit and self._granted > end):
                return
            if room <= 0:
                return
            self._granted = max(self._granted, end) + room
        upstream.request(room)

    # -- subscribers

    def full(self) -> bool:
        """See `HotProcessor.full`: an item would be forgotten that a subscriber has yet to get."""
        size = self.size
        if size is None:
            return False
        oldest = self.end - size
        return any(isinstance(one, _ReplayLine) and one.position <= oldest for one in self.lines)

    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> Line[T]:
        """See `HotProcessor.line`."""
        self._expire()  # what is too old is not for newcomers
        return _ReplayLine(self, subscriber, downstream)

    def joins(self, line: Line[T]) -> None:
        """See `HotProcessor.joins`."""
        if isinstance(line, _ReplayLine):
            line.position = self._first
            self._slowest = min(self._slowest, self._first)

    def __repr__(self) -> str:
        parts = [f"size={self.size}"] if self.size is not None else []
        if self._ttl_s is not None:
            parts.append(f"ttl_s={self._ttl_s:g}")
        return f"ReplayProcessor({', '.join(parts)})"


@final
class _ReplayLine(Line[T]):
    """One subscriber, and the position of the item that it gets next."""

    __slots__ = ("_log_of", "position")

    def __init__(
        self,
        owner: ReplayProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__(owner, subscriber, downstream)
        self._log_of = owner
        self.position = 0

    def deliver(self) -> None:
        """See `Line.deliver`."""
        owner = self._log_of
        before = self.position
        while self.wanted:
            ended = owner.ended  # read before the items: what came before the end is there by then
            if self.position >= owner.end:
                if ended:
                    self.finish(owner.error)
                break
            demand = self.demand
            if demand <= 0:
                break
            items = owner.read(self.position, min(demand, _CHUNK))
            if items is None:
                self.finish(
                    MissingBackpressureError(
                        f"{owner!r} has forgotten items that a subscriber had not requested yet; "
                        "request faster, keep more, or put a back-pressure operator before it"
                    )
                )
                return
            self.position += self.send_all(items)
        if self.position > before:
            owner.moved(before)
