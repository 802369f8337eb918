"""`ReplayProcessor`: the earlier items, for late subscribers."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Any, Final, TypeVar, cast, final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds, check_period, home_clock
from flow_core.demand import UNBOUNDED, check_prefetch, replenish_limit
from flow_core.errors import MissingBackpressureError
from flow_core.protocols import CoreSubscriber, Subscriber, Subscription
from flow_multicast.processors._hot import HotProcessor, HotSubscription

__all__ = ["ReplayProcessor"]

T = TypeVar("T")

_CHUNK: Final = 256
"""The number of items that a line takes at a time; after each of these chunks, it looks for
changes."""
_SLACK: Final = 128
"""The number of forgotten items at which their memory is freed."""


@final
class ReplayProcessor(HotProcessor[T]):
    """Keeps items, and sends each subscriber all that it has kept and then the new ones.

    >>> numbers = ReplayProcessor[int](size=2)
    >>> for n in range(4):
    ...     numbers.on_next(n)
    >>> handle = numbers.flow.subscribe(print)
    2
    3
    >>> numbers.on_next(4)
    4

    Each subscriber has its own position, and is sent items on demand. A subscriber that comes after
    the end gets the kept items, and then the end.

    An item that comes within an on_next waits until the item before it was sent to all. Up to 128
    may wait; one more ends the processor with MissingBackpressureError.

    Demand: without `size`, everything is requested of the upstream, and everything is kept. With
    `size`, the upstream may be `size` items ahead of the slowest subscriber. So no subscriber
    misses an item, and beyond that the slowest one sets the pace; without subscribers the upstream
    runs freely, and old items are forgotten. More is requested when 75 % of `size` were taken. The
    upstream waits for a newcomer that does not request at once, too: up to twice `size` items are
    kept while a subscriber is behind. If a processor is fed faster than that, by hand or by an
    upstream that ignores demand, it forgets items for which it has no room: a subscriber that had
    not got one of these yet fails with MissingBackpressureError; the others continue. The same
    holds for items that grow older than `ttl` before a subscriber requests them, if they are
    forgotten by then; old items are forgotten when the next item or a newcomer comes. So no
    subscriber fails only because time has passed.
    Thread: that of the upstream, or of the thread that requests or subscribes. Fusion: none.
    Memory: 8 bytes for each kept item, and 40 with `ttl`, beside the item itself.
    Errors: those of the upstream come after the kept items.

    Args:
        size: how many items to keep at most; None to keep all.
        ttl: how long to keep an item, in seconds; None to keep it for ever.
        clock: the clock of `ttl`; None for that of the process.

    Raises:
        TypeError: if `size` is not an int, or `ttl` is not a time.
        ValueError: if `size` is less than 1, or `ttl` is not above 0 and finite.
    """

    __slots__ = (
        "_clock",
        "_due",
        "_first",
        "_going",
        "_granted",
        "_grants",
        "_known",
        "_latest",
        "_limit",
        "_log",
        "_pinned",
        "_slow",
        "_slowest",
        "_times",
        "_ttl_s",
        "size",
    )

    def __init__(
        self, size: int | None = None, *, ttl: Seconds | None = None, clock: Clock | None = None
    ) -> None:
        super().__init__()
        self.size: Final = None if size is None else check_prefetch(size, "size")
        self._ttl_s = None if ttl is None else check_period(ttl)
        self._clock = home_clock(clock, None)
        self._log: tuple[int, list[T | None]] = (0, [])
        """The position of the first entry, and the entries; None for forgotten items. The list only
        grows; when its beginning is cut off, the pair is replaced, so that a reader sees one or the
        other."""
        self._first = 0
        """The position of the oldest kept item."""
        self._times: deque[float] = deque()
        """The times at which the kept items have come; only with `ttl`."""
        self._going = 0
        """The items before this position are forgotten, or are about to be."""
        self._due = False
        """True if items that are too old have to be forgotten before a newcomer is served."""
        # The following is for a processor with a size.
        self._slow: dict[_ReplaySubscription[T], None] = {}
        """The lines that are on their own. Any thread adds and removes."""
        self._latest: object = None
        """A new object for each line that comes to be on its own. Any thread replaces it."""
        self._known: object = None
        self._pinned: _ReplaySubscription[T] | None = None
        self._slowest = 0
        """The value of `_latest` that `lowest` saw last, the line that was then the slowest, and
        that line's position. Used with the permit."""
        self._granted = 0
        """The number of items requested of the upstream. Used with the permit."""
        self._limit = replenish_limit(size or 1)
        self._grants: deque[int] = deque()
        """Amounts to request when the permit is given back."""

    # -- the log

    def read(self, position: int, count: int) -> list[T] | None:
        """Return up to `count` items from `position` on; None if the first of them is forgotten."""
        base, entries = self._log
        found = entries[position - base : position - base + count] if position >= base else []
        # Read after that: `_forget` sets the position before it removes items.
        if position < self._first:
            return None
        return cast("list[T]", found)  # what is None is forgotten

    @override
    def keep(self, item: T) -> None:
        size = self.size
        if self._ttl_s is None:
            base, entries = self._log
            if size is None:
                entries.append(item)
                return
            # The fast path, if no line can still want the items that are to be forgotten. A
            # newcomer is found in `_slow`, or reads `_going` after we set it: see `welcome`.
            before = self._first
            self._going = first = self.position + 1 - size
            if first == before + 1 and first - base <= _SLACK and not self._slow:
                entries.append(item)
                self._first = first
                entries[before - base] = None
                return
        self._keep(item, size)

    def _keep(self, item: T, size: int | None) -> None:
        self._log[1].append(item)
        if self._ttl_s is not None:
            now = self._clock.now()
            self._times.append(now)
            self._expire(now)
        if size is not None:
            first = self.position + 1 - size
            if self._slow:
                first = max(first - size, min(first, self.lowest()))
            if first > self._first:
                self._forget(first)

    def _expire(self, now: float) -> None:
        """Forget items that are too old."""
        oldest = now - (self._ttl_s or 0.0)
        gone = 0
        for time in self._times:
            if time > oldest:
                break
            gone += 1
        if gone:
            self._forget(self._first + gone)

    def _forget(self, first: int) -> None:
        """Forget the items before position `first`."""
        base, entries = self._log
        before, self._first = self._first, first
        for index in range(before - base, first - base):
            entries[index] = None
            if self._times:
                self._times.popleft()
        gone = first - base
        if gone > _SLACK and gone > len(entries) - gone:
            self._log = (first, entries[gone:])

    @property
    def oldest(self) -> int:
        """Return the position of the first item for newcomers."""
        first = self._first
        return first if self.size is None else max(first, self.position - self.size)

    @property
    @override
    def buffered(self) -> int:
        return self.position - self._first

    @property
    @override
    def capacity(self) -> int:
        return UNBOUNDED if self.size is None else self.size

    # -- demand for the upstream

    @override
    def begin(self, upstream: Subscription) -> None:
        if self.size is None:
            upstream.request(UNBOUNDED)
            return
        self.refill = 0
        self.signal()

    @override
    def left(self) -> None:
        """Note that a line has left; it may have been the slowest."""
        if self.position >= self.refill:
            self.signal()

    def welcome(self, line: _ReplaySubscription[T]) -> None:
        """Let a new line begin, with the oldest item."""
        line.position = line.start = self._young() if self._due else self.oldest
        if self.size is not None and not self.ended:
            self.counts(line, on_its_own=True)
            # `keep` sets the items to be forgotten before it looks at `_slow`.
            line.position = line.start = max(line.position, self._going)

    def _young(self) -> int:
        """Return the position of the first item for newcomers that is not too old.

        In contrast to `oldest`, this leaves out items that are too old but not forgotten yet, since
        an item is being sent.
        """
        end, times = self.position, list(self._times)
        old = bisect_right(times, self._clock.now() - (self._ttl_s or 0.0))
        return max(self.oldest, end - (len(times) - old))

    @override
    def counts(self, line: HotSubscription[T], *, on_its_own: bool) -> None:
        if self.size is None or not isinstance(line, _ReplaySubscription):
            return
        if on_its_own:
            self._slow[line] = None
            self._latest = object()
        else:
            self._slow.pop(line, None)

    def lowest(self) -> int:
        """Return the position of the slowest line on its own.

        The caller must hold the permit.
        """
        slow, pinned, latest = self._slow, self._pinned, self._latest
        known = latest is self._known and pinned in slow and pinned.position == self._slowest
        if not known:  # lines only move forward, and a line that comes later changes `_latest`
            lines = list(slow)
            positions = [line.position for line in lines]
            self._slowest = lowest = min(positions, default=self.position)
            self._pinned = lines[positions.index(lowest)] if lines else None
            self._known = latest
        return self._slowest

    def moved(self) -> None:
        """Note that a line on its own has got items."""
        if self.position >= self.refill:
            self.signal()

    @override
    def ask(self) -> None:
        self.signal()

    @override
    def tidy(self) -> None:
        if self._due:
            self._due = False
            self._expire(self._clock.now())
        if self.position >= self.refill:
            self._grant()

    def _grant(self) -> None:
        """Note a request for as many items as there is room for, if they are worth a request."""
        size, end = self.size, self.position
        if size is None or self._upstream is None:
            return
        lowest = self.lowest() if self._slow else end
        if lowest < self.refill:
            return
        before = max(self._granted, end)
        self._granted = granted = max(lowest + size, before)
        self.refill = granted - size + self._limit
        if granted > before:
            self._grants.append(granted - before)

    @override
    def signal(self) -> None:
        """Drain, then request as many items as there was room for."""
        super().signal()
        grants = self._grants
        while grants:
            try:
                room = grants.popleft()
            except IndexError:  # another thread was faster
                return
            upstream = self._upstream
            if upstream is not None:
                upstream.request(room)

    # -- subscribers

    @override
    def room(self) -> int:
        """Return how many items can come before a line misses one that it has not got yet."""
        size = self.size
        if size is None:
            return UNBOUNDED
        end = self.position
        return size - end + min([line.position for line in list(self._slow)], default=end)

    @override
    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> HotSubscription[T]:
        if self._ttl_s is not None:  # newcomers do not get items that are too old
            self._due = True
            self.signal()
        return _ReplaySubscription(self, subscriber, downstream)

    def __repr__(self) -> str:
        parts = [f"size={self.size}"] if self.size is not None else []
        if self._ttl_s is not None:
            parts.append(f"ttl={self._ttl_s:g}")
        return f"ReplayProcessor({', '.join(parts)})"


@final
class _ReplaySubscription(HotSubscription[T]):
    """One subscriber of a `ReplayProcessor`, and the position of the item that it gets next."""

    __slots__ = ("_log_of",)

    def __init__(
        self,
        owner: ReplayProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__(owner, subscriber, downstream)
        self._log_of = owner

    @override
    def disown(self) -> None:
        self.owner = self._log_of = _NOBODY

    @property
    @override
    def waiting(self) -> int:
        return 0 if self.live else max(self.owner.position - self.position, 0)

    @override
    def joins(self, late: bool) -> None:
        self._log_of.welcome(self)

    @override
    def deliver(self) -> None:
        owner = self._log_of
        while self.wanted:
            # Read before the items: those from before the end are there by then.
            ended = owner.ended
            position = self.position
            if position >= owner.position:
                if ended:
                    self.finish(owner.error)
                elif self.demand > 0 and not owner.enter_live(self):
                    continue
                return
            demand = self.demand
            if demand <= 0:
                return
            items = owner.read(position, min(demand, _CHUNK))
            if items is None:
                self.finish(
                    MissingBackpressureError(
                        f"{owner!r} has forgotten items that a subscriber had not requested yet; "
                        "request faster, keep more, or put a back-pressure operator before it"
                    )
                )
                return
            self.send_all(items)
            if owner.size is not None:
                owner.moved()


_NOBODY: Final[ReplayProcessor[Any]] = ReplayProcessor()  # Any: it never has an item
"""Takes the place of the processor in lines that have ended; see `HotSubscription.disown`."""
