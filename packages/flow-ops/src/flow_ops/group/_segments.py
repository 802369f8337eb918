"""The ways in which windows and buffers begin and end: one class for each."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.clocks import Clock
from flow_core.conversion import as_flow
from flow_core.errors import MissingBackpressureError
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Disposable, Publisher
from flow_core.structure import source_of
from flow_ops.coordination import Listener
from flow_ops.group._splitting import Splitting
from flow_ops.group._unicast import Part, Unicast
from flow_ops.time._timed import SLACK_S

__all__ = [
    "BUFFERS",
    "WINDOWS",
    "ByBoundary",
    "ByCount",
    "ByTime",
    "ByTimeOrCount",
    "ByToggle",
    "Kind",
    "Segmenting",
    "When",
    "buffers",
    "windows",
]

T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W")

# Any, in this file: the type of the items, where it does not matter; and of hubs whose parts do
# not.


class Segment(Generic[T]):
    """A window or a buffer: it takes neighbouring items."""

    __slots__ = ()

    size: int
    """The number of items that were added."""

    @abstractmethod
    def begin(self) -> None:
        """Called when the segment is opened."""

    @abstractmethod
    def add(self, item: T) -> None:
        """Add the next item, while the segment is open."""

    @abstractmethod
    def close(self, *, last: bool) -> None:
        """End the segment; if `last`, because the flow has ended."""

    @abstractmethod
    def fail(self, error: BaseException) -> None:
        """End the segment, because the flow has failed while the segment is open."""

    @abstractmethod
    def discard(self) -> None:
        """Drop the items: the flow has ended, and the segment was not closed."""

    def forsake(self, error: BaseException) -> None:
        """Note that a fatal `error` stops the hub, which will send no end."""


@final
@dataclass(frozen=True, slots=True)
class Kind(Generic[T, R]):
    """The kind of segments, windows or buffers, and how the downstream gets them.

    Args:
        name: the word for messages, "windows" or "buffers".
        make: creates a segment.
        outlives: whether segments continue when the downstream has cancelled.
        weigh: returns how many items are consumed when the downstream gets a segment.
        drop: releases a segment that the downstream does not get.
    """

    name: str
    make: Callable[[Segmenting[T, R]], Segment[T]]
    outlives: bool
    weigh: Callable[[R], int]
    drop: Callable[[R], object]


class Segmenting(Splitting[T, R], Generic[T, R]):
    """Passes items to the segments that are open. A subclass opens and closes segments.

    Args:
        source: the flow to split.
        downstream: gets the parts.
        label: the operator and where it was assembled, for messages.
        kind: the kind of segments.
        prefetch: items to request ahead.
        max_waiting: how many segments may wait for demand; None if their items limit them.
        overlapping: whether an item may belong to several segments.
    """

    __slots__ = (
        "_heads",
        "_last",
        "_max_waiting",
        "_overlapping",
        "_released",
        "_sent",
        "kind",
        "names",
        "opened",
    )

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        kind: Kind[T, R],
        *,
        prefetch: int,
        max_waiting: int | None = None,
        overlapping: bool = False,
    ) -> None:
        super().__init__(
            source, downstream, label, prefetch, overtakes=True, gives_flows=kind.outlives
        )
        self.kind = kind
        self.names = kind.name
        self.opened: dict[Segment[T], None] = {}
        """The open segments, in the order in which they were opened."""
        self._max_waiting = max_waiting
        self._overlapping = overlapping
        # Only for overlapping segments: the number of the first item that was not consumed yet, and
        # the number after that of the last item, if it is known. Guarded by `_guard`, like the next
        # two.
        self._heads: dict[Segment[T], list[int]] = {}
        self._released: int = 0
        """Items with a lower number were consumed in all segments that they belong to."""
        self._last: int = 0
        """The number of segments that have not consumed the item with that number."""
        self._sent: deque[Segment[T]] = deque()
        """Buffers that wait for the downstream."""

    ends_parts = True

    # -- methods that subclasses define

    def before(self) -> None:
        """Called before each item: open the segments that begin with it."""

    def added(self) -> None:
        """Called after each item: close the segments that end with it."""

    def forgotten(self, segment: Segment[T]) -> None:
        """Stop waiting for the end of a segment, which was closed or cancelled."""

    def max_waiting(self) -> int | None:
        """The number of segments that may wait for demand when a further segment comes now.

        The value is None for any number.
        """
        return self._max_waiting

    # -- methods that subclasses use

    def open_segment(self) -> Segment[T] | None:
        """Begin a segment, unless the downstream has cancelled."""
        if self.main_gone:
            self.check_over()
            return None
        segment = self.kind.make(self)
        self.opened[segment] = None
        if self._overlapping:
            with self._guard:
                self._heads[segment] = [self._received, -1]
                self._last += self._received == self._released
        segment.begin()
        return segment

    def close_segment(self, segment: Segment[T] | None) -> None:
        """End a segment, if it is still open."""
        if segment is None or segment not in self.opened:
            return
        self._close(segment, last=False)
        self.forgotten(segment)
        self.check_over()

    def _close(self, segment: Segment[T], *, last: bool) -> None:
        self.opened.pop(segment, None)
        if self._overlapping:
            with self._guard:
                head = self._heads.get(segment)
                if head is not None:
                    head[1] = self._received
                    if head[0] == self._received and self.kind.outlives:
                        # All items were consumed, so this frees none.
                        self._gone(self._heads.pop(segment)[0])
        try:
            segment.close(last=last)
        except BaseException:
            # So that `forsake` finds it: the end may not have got through.
            self.opened[segment] = None
            raise

    # -- methods that segments use

    def give(self, part: R, segment: Segment[T]) -> None:
        """Send `part`, which stands for `segment`, to the downstream.

        Raises:
            MissingBackpressureError: if too many segments wait already.
        """
        main, limit = self._main, self.max_waiting()
        if main is not None and limit is not None and main.waiting >= limit:
            self.kind.drop(part)
            raise MissingBackpressureError(
                f"{limit} {self.kind.name} wait for demand, and there is one more; put a "
                "back-pressure operator behind, or raise max_waiting"
            )
        if self._overlapping and not self.kind.outlives:
            self._sent.append(segment)
        self.send(part)

    def item_taken(self, segment: Segment[T]) -> None:
        """Note that an item of a window was consumed or dropped. Any thread may call this."""
        free = 1
        if self._overlapping:
            with self._guard:
                head = self._heads.get(segment)
                if head is None:
                    return
                head[0] += 1
                if head[0] == head[1]:
                    del self._heads[segment]
                free = self._gone(head[0] - 1)
        if free:
            self.credit(free)

    def left(self, segment: Segment[T]) -> None:
        """Note that a window was cancelled. The caller must hold the permit."""
        self.opened.pop(segment, None)
        self.let_go(segment)
        self.forgotten(segment)
        self.check_over()

    def let_go(self, segment: Segment[T]) -> None:
        """Note that `segment` no longer holds its items.

        The items that no other segment holds count as consumed.
        """
        free = 0
        if self._overlapping:
            with self._guard:
                head = self._heads.pop(segment, None)
                if head is not None:
                    free = self._gone(head[0])
        if free:
            self.credit(free)

    def _gone(self, number: int) -> int:
        """Note that a segment is past the item `number`.

        The result is how many more items are consumed now, in all their segments.

        Call this under the lock. An item is consumed when all its segments have consumed it. Other
        segments are looked at only if this segment was the last one at its item.
        """
        if number != self._released:
            return 0
        self._last -= 1
        if self._last:
            return 0
        heads = [head[0] for head in self._heads.values()]
        low = min(heads, default=self._received)
        free, self._released, self._last = low - self._released, low, heads.count(low)
        return free

    # -- as a coordinator

    @override
    def handle(self, item: T) -> bool:
        self.before()
        opened = self.opened
        if not opened:
            return False
        self._received += 1
        for segment in opened:  # which only changes with the permit
            segment.add(item)
        self.added()
        return True

    @override
    def open_parts(self) -> Iterable[Unicast[Any]]:
        return [segment for segment in self.opened if isinstance(segment, Unicast)]

    @override
    def unread(self) -> bool:
        """Return whether all items wait in windows without a subscriber.

        An item may wait in several windows.
        """
        if not self._overlapping:
            return super().unread()
        with self._guard:
            heads = list(self._heads.items())
        received = self._received
        return all(
            isinstance(segment, Unicast) and segment in self.unsubscribed
            for segment, (first, end) in heads
            if first < (received if end < 0 else end)
        )

    @override
    def running(self) -> bool:
        return self.kind.outlives and bool(self.opened)

    @override
    def ended(self, error: BaseException | None) -> bool:
        opened = tuple(self.opened)
        self._max_waiting = None  # the last ones may always wait: none follows
        for segment in opened:
            if error is None:
                self._close(segment, last=True)
            else:
                self.opened.pop(segment, None)
                segment.fail(error)
        return self.kind.outlives and bool(opened)

    @override
    def part_taken(self, part: R) -> None:
        if self.kind.outlives:
            return
        if self._overlapping:
            if self._sent:
                self.let_go(self._sent.popleft())
        else:
            self.credit(self.kind.weigh(part))

    @override
    def part_dropped(self, part: R) -> None:
        self.kind.drop(part)

    @override
    def forsake(self, error: BaseException) -> None:
        for segment in self.opened:
            segment.forsake(error)
        super().forsake(error)

    @override
    def closed(self) -> None:
        super().closed()
        opened, self.opened = self.opened, {}
        for segment in opened:
            segment.discard()
        with self._guard:
            self._heads.clear()


# -- the two kinds


@final
class Window(Unicast[T], Segment[T], Generic[T]):
    """A segment that is a flow.

    Args:
        hub: opens and closes the window.
    """

    __slots__ = ("_hub", "size")

    def __init__(self, hub: Segmenting[T, Flow[T]]) -> None:
        super().__init__(f"a window of {hub.label}", hub)
        self._hub = hub
        self.size = 0

    @override
    def begin(self) -> None:
        self._hub.unsubscribed[self] = None
        self._hub.give(Flow(Part(self)), self)

    @override
    def add(self, item: T) -> None:
        self.size += 1
        self.offer(item)

    @override
    def close(self, *, last: bool) -> None:
        """Complete the window. If it has no items and no subscriber, nothing is dropped."""
        self.finish(None)
        if not self.waiting:
            self._hub.part_unread(self)

    @override
    def fail(self, error: BaseException) -> None:
        self.finish(error)

    @override
    def discard(self) -> None:
        pass

    @override
    def taken(self, item: T) -> None:
        self._hub.item_taken(self)

    @override
    def left(self) -> None:
        self._hub.post(self._hub.left, self)


@final
class Buffer(Segment[T], Generic[T]):
    """A segment that is a list.

    Args:
        hub: opens and closes the buffer.
        empty: whether the downstream gets the buffer when it has no items.
    """

    __slots__ = ("__weakref__", "_empty", "_hub", "_items", "size")

    def __init__(self, hub: Segmenting[T, list[T]], *, empty: bool = True) -> None:
        self._empty = empty
        self._hub = hub
        self._items: list[T] = []
        self.size = 0

    @override
    def begin(self) -> None:
        pass

    @override
    def add(self, item: T) -> None:
        self.size += 1
        self._items.append(item)

    @override
    def close(self, *, last: bool) -> None:
        """Send the buffer, but leave out the last one if it has no items."""
        items, self._items = self._items, []
        if items or (self._empty and not last):
            self._hub.give(items, self)
        elif not last:
            self._hub.let_go(self)

    @override
    def fail(self, error: BaseException) -> None:
        self.discard()

    @override
    def discard(self) -> None:
        items, self._items = self._items, []
        _drop_items(items)


def _drop_items(items: list[Any]) -> None:
    for item in items:
        hooks.drop_item(item)


def _drop_window(flow: Flow[Any]) -> None:
    part = source_of(flow)
    if isinstance(part, Part):
        part.queue.close_unread()


def _nothing(_: object) -> int:
    return 0


WINDOWS: Kind[Any, Flow[Any]] = Kind("windows", Window, True, _nothing, _drop_window)
BUFFERS: Kind[Any, list[Any]] = Kind("buffers", Buffer, False, len, _drop_items)
FILLED: Kind[Any, list[Any]] = Kind(
    "buffers", partial(Buffer, empty=False), False, len, _drop_items
)


def windows() -> Kind[T, Flow[T]]:
    """Return the kind of segments that are windows, of items of any type."""
    return WINDOWS


def buffers(*, empty: bool = True) -> Kind[T, list[T]]:
    """Return the kind of segments that are buffers; without `empty`, only those with items."""
    return BUFFERS if empty else FILLED


# -- the ways


@final
class ByCount(Segmenting[T, R], Generic[T, R]):
    """Runs `window_with_count`."""

    __slots__ = ("_count", "_next", "_skip")

    ends_parts = False

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        kind: Kind[T, R],
        *,
        count: int,
        skip: int,
        prefetch: int,
    ) -> None:
        super().__init__(
            source, downstream, label, kind, prefetch=prefetch, overlapping=skip < count
        )
        self._count = count
        self._skip = skip
        self._next = 0
        """The number of items until the next segment begins."""

    @override
    def before(self) -> None:
        if not self._next:
            self._next = self._skip
            self.open_segment()
        self._next -= 1

    @override
    def added(self) -> None:
        oldest = next(iter(self.opened), None)
        if oldest is not None and oldest.size == self._count:
            self.close_segment(oldest)


_ALMOST: Final = 1 - 1e-9


@final
class ByTime(Segmenting[T, R], Generic[T, R]):
    """Runs `window_with_time`."""

    __slots__ = ("_clock", "_due", "_opened", "_period_s", "_shift_s", "_timers")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        kind: Kind[T, R],
        *,
        period_s: float,
        shift_s: float,
        clock: Clock | None,
        prefetch: int,
        max_waiting: int,
    ) -> None:
        super().__init__(
            source,
            downstream,
            label,
            kind,
            prefetch=prefetch,
            max_waiting=max_waiting,
            overlapping=shift_s < period_s,
        )
        self._period_s = period_s
        self._shift_s = shift_s
        self._clock = self.clock_for(clock)
        self._due: deque[Segment[T] | None] = deque()
        """Segments in the order in which they end."""
        self._opened = 0
        self._timers: list[Disposable] = []

    @override
    def open(self) -> None:
        self.post(self._begin, None)
        super().open()

    def _begin(self, _: object) -> None:
        clock, shift_s = self._clock, self._shift_s
        self._open(None)
        ticks = [(shift_s, self._open)]
        if not self._aligned():
            ticks.append((self._period_s, self._end))
        for delay_s, handler in ticks:
            if self.over:
                return
            tick = partial(self.post, handler, None)
            self._timers.append(clock.schedule_periodically(delay_s, shift_s, tick))

    def _aligned(self) -> bool:
        """Return whether one segment begins at the very moment when another one ends."""
        return math.isclose(self._period_s, round(self._period_s / self._shift_s) * self._shift_s)

    def _open(self, _: object) -> None:
        """Begin a segment, and if segments are aligned, end another one.

        The end comes first, and both happen in one step: the end of a buffer may cause items to be
        requested, and items that come at once belong to the segment that begins.
        """
        if self._aligned() and self._opened * self._shift_s >= self._period_s * _ALMOST:
            self._end(None)
        self._opened += 1
        if not self.over:
            self._due.append(self.open_segment())

    def _end(self, _: object) -> None:
        if self._due:
            self.close_segment(self._due.popleft())

    @override
    def closed(self) -> None:
        super().closed()
        timers, self._timers = self._timers, []
        for timer in timers:
            timer.dispose()
        self._due.clear()


@final
class ByTimeOrCount(Segmenting[T, R], Generic[T, R]):
    """Runs `window_with_time_or_count`."""

    __slots__ = ("_clock", "_count", "_current", "_full", "_period_s", "_timer")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        kind: Kind[T, R],
        *,
        period_s: float,
        count: int,
        clock: Clock | None,
        prefetch: int,
        max_waiting: int,
    ) -> None:
        super().__init__(
            source, downstream, label, kind, prefetch=prefetch, max_waiting=max_waiting
        )
        self._period_s = period_s
        self._count = count
        self._clock = self.clock_for(clock)
        self._current: Segment[T] | None = None
        self._full = False
        """True while a segment ends because it is full: it waits because of its items, whose number
        is bounded."""
        self._timer: Disposable | None = None

    @override
    def open(self) -> None:
        self.post(self._begin, None)
        super().open()

    @override
    def added(self) -> None:
        current = self._current
        if current is not None and current.size == self._count:
            self._full = True
            self._turn(current)
            self._full = False

    @override
    def max_waiting(self) -> int | None:
        return None if self._full else super().max_waiting()

    def _begin(self, _: object) -> None:
        self._current = current = self.open_segment()
        if not self.over and current is not None:
            self._timer = self.after(self._clock, self._period_s, self._turn, current)

    def _turn(self, ended: Segment[T]) -> None:
        """End a segment, which is full or whose time has passed."""
        if ended is not self._current:  # the timer was late
            return
        if self._timer is not None:
            self._timer.dispose()
        self.close_segment(ended)
        if not self.over:
            self._begin(None)

    @override
    def closed(self) -> None:
        super().closed()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.dispose()
        self._current = None


@final
class ByFirst(Segmenting[T, R], Generic[T, R]):
    """Runs `batch` and `session_window`: a segment begins with an item.

    Args:
        source: the flow to split.
        downstream: gets the parts.
        label: the operator and where it was assembled, for messages.
        kind: the kind of segments.
        count: the number of items after which a segment ends.
        gap_s: how long after its last item a segment ends, in seconds; infinite for never.
        limit_s: how long after its first item a segment ends, in seconds; infinite for never.
        clock: the clock; see `home_clock`.
        prefetch: items to request ahead.
        max_waiting: how many segments may wait for demand that are not full.
    """

    __slots__ = (
        "_clock",
        "_count",
        "_current",
        "_full",
        "_gap_s",
        "_limit_s",
        "_seen_s",
        "_timer",
        "_until_s",
    )

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        kind: Kind[T, R],
        *,
        count: int | None,
        gap_s: float,
        limit_s: float,
        clock: Clock | None,
        prefetch: int,
        max_waiting: int,
    ) -> None:
        super().__init__(
            source, downstream, label, kind, prefetch=prefetch, max_waiting=max_waiting
        )
        self._count = count
        self._gap_s = gap_s
        self._limit_s = limit_s
        self._clock = self.clock_for(clock)
        self._current: Segment[T] | None = None
        """The segment that began last, until its time has passed; it may have been cancelled before
        that."""
        self._full = False
        """True while a segment ends because it is full; see `ByTimeOrCount`."""
        self._seen_s = 0.0
        """The time of the last item of the current segment."""
        self._until_s = 0.0
        """The time at which the current segment ends at the latest."""
        self._timer: Disposable | None = None

    @override
    def before(self) -> None:
        self._seen_s = now_s = self._clock.now()
        if self._current is None:
            self._current = current = self.open_segment()
            if current is not None:
                self._until_s = now_s + self._limit_s
                self._wait(min(self._gap_s, self._limit_s), current)

    @override
    def added(self) -> None:
        current = self._current
        if current is not None and current.size == self._count:
            self._full = True
            self._end(current)
            self._full = False

    @override
    def max_waiting(self) -> int | None:
        return None if self._full else super().max_waiting()

    def _wait(self, delay_s: float, current: Segment[T]) -> None:
        self._timer = self.after(self._clock, delay_s, self._rang, current)

    def _rang(self, current: Segment[T]) -> None:
        """End a segment if its time has passed, unless items have come meanwhile."""
        if current is not self._current:  # the timer was late
            return
        self._timer = None
        left_s = min(self._seen_s + self._gap_s, self._until_s) - self._clock.now()
        if left_s > SLACK_S:
            self._wait(left_s, current)
        else:
            self._end(current)

    def _end(self, current: Segment[T]) -> None:
        self._current = None
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.dispose()
        self.close_segment(current)

    @override
    def closed(self) -> None:
        super().closed()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.dispose()
        self._current = None


@final
class ByBoundary(Segmenting[T, R], Generic[T, R]):
    """Runs `window_boundary`."""

    __slots__ = ("_boundary", "_current")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        kind: Kind[T, R],
        *,
        boundary: Publisher[object],
        prefetch: int,
        max_waiting: int,
    ) -> None:
        super().__init__(
            source, downstream, label, kind, prefetch=prefetch, max_waiting=max_waiting
        )
        self._boundary: Publisher[object] | None = boundary
        self._current: Segment[T] | None = None

    @override
    def open(self) -> None:
        self.post(self._begin, None)
        boundary, self._boundary = self._boundary, None
        if boundary is not None:
            self.connect(boundary, Listener(self, self._turn, self.end, 1))
        super().open()

    def _begin(self, _: object) -> None:
        self._current = self.open_segment()

    def _turn(self, _: object) -> bool:
        self.close_segment(self._current)
        if not self.over:
            self._current = self.open_segment()
        return False  # another one is wanted

    @override
    def closed(self) -> None:
        super().closed()
        self._current = None
        self._boundary = None


@final
class ByToggle(Segmenting[T, R], Generic[T, R, W]):
    """Runs `window_toggle`."""

    __slots__ = ("_closing", "_ends", "_openings", "_opens")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        kind: Kind[T, R],
        *,
        openings: Publisher[W],
        closing: Callable[[W], Publisher[object]],
        prefetch: int,
        max_waiting: int,
    ) -> None:
        super().__init__(
            source,
            downstream,
            label,
            kind,
            prefetch=prefetch,
            max_waiting=max_waiting,
            overlapping=True,
        )
        self._openings: Publisher[W] | None = openings
        self._closing = closing
        self._opens = True
        """True while more segments may begin."""
        self._ends: dict[Segment[T], Listener[object]] = {}

    @override
    def open(self) -> None:
        openings, self._openings = self._openings, None
        if openings is not None:
            self.connect(openings, Listener(self, self._open, self._no_more, 1))
        super().open()

    def _open(self, opening: W) -> bool:
        if not self.main_gone:
            ends = self._closing(opening)
            segment = self.open_segment()
            if segment is not None and not self.over:
                self._ends[segment] = listener = Listener(
                    self, partial(self._end, segment), partial(self._ended, segment), 1
                )
                self.connect(_checked(ends, "closing_mapper"), listener)
        return False  # another one is wanted

    def _end(self, segment: Segment[T], _: object) -> None:
        """End a segment: its closing flow has emitted an item."""
        self.close_segment(segment)

    def _ended(self, segment: Segment[T], error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)
        else:
            self.close_segment(segment)

    def _no_more(self, error: BaseException | None) -> None:
        self._opens = False
        if error is not None:
            self.fail(error)
        elif not self.opened:
            self.complete()

    @override
    def forgotten(self, segment: Segment[T]) -> None:
        listener = self._ends.pop(segment, None)
        if listener is not None:
            self.disconnect(listener)
        if not (self._opens or self.opened or self.over):
            self.complete()

    @override
    def closed(self) -> None:
        super().closed()
        self._ends.clear()
        self._openings = None


@final
class When(Segmenting[T, R], Generic[T, R]):
    """Runs `window_when`."""

    __slots__ = ("_closing", "_current", "_listener")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        label: str,
        kind: Kind[T, R],
        *,
        closing: Callable[[], Publisher[object]],
        prefetch: int,
        max_waiting: int,
    ) -> None:
        super().__init__(
            source, downstream, label, kind, prefetch=prefetch, max_waiting=max_waiting
        )
        self._closing = closing
        self._current: Segment[T] | None = None
        self._listener: Listener[object] | None = None

    @override
    def open(self) -> None:
        self.post(self._begin, None)
        super().open()

    def _begin(self, _: object) -> None:
        ends = _checked(self._closing(), "closing_supplier")
        self._current = self.open_segment()
        if self._current is not None and not self.over:
            self._listener = listener = Listener(self, self._turn, self._ended, 1)
            self.connect(ends, listener)

    def _ended(self, error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)
        else:
            self._turn(None)

    def _turn(self, _: object) -> None:
        """End the segment: the closing flow has emitted an item or has completed."""
        listener, self._listener = self._listener, None
        if listener is not None:
            self.disconnect(listener)
        self.close_segment(self._current)
        if not self.over:
            self._begin(None)

    @override
    def closed(self) -> None:
        super().closed()
        self._current = None
        self._listener = None


def _checked(made: Publisher[object], name: str) -> Publisher[object]:
    """Check the result of a function of the user.

    Raises:
        NoneItemError: if `made` is None.
        TypeError: if `made` is anything else that is not a publisher.
    """
    return as_flow(made, name)
