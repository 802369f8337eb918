"""`on_backpressure_buffer`: items that are not requested yet wait in a bounded buffer."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, final, get_args

from typing_extensions import override

from flow_core import hooks
from flow_core.clocks import Clock, Seconds, check_delay
from flow_core.demand import UNBOUNDED, check_prefetch
from flow_core.errors import MissingBackpressureError, late_fusion
from flow_core.flow import Flow
from flow_core.introspection import Statistics
from flow_core.operator import Operator
from flow_core.protocols import (
    EMPTY,
    CoreSubscriber,
    Disposable,
    Empty,
    Fusion,
    QueueSubscription,
)
from flow_core.stages import describe
from flow_ops.coordination import coordinated
from flow_ops.demand.backpressured import Backpressured, UnboundedInput
from flow_ops.time._timed import checked_clock

__all__ = ["BufferOverflow", "on_backpressure_buffer"]

T = TypeVar("T")

BufferOverflow: TypeAlias = Literal["error", "drop_oldest", "drop_latest"]
"""The fate of an item for which there is no room: the flow fails after the items that wait, or the
oldest of them is dropped, or the new item is dropped."""

_WAKE_UP: Final[Any] = EMPTY  # Any: on_next takes it in the place of an item of any type (F26)


def on_backpressure_buffer(
    capacity: int,
    *,
    overflow: BufferOverflow = "error",
    on_overflow: Callable[[T], object] | None = None,
    timeout: Seconds | None = None,
    clock: Clock | None = None,
) -> Operator[T, Flow[T]]:
    """Keep up to `capacity` items that come without demand, until they are requested.

    >>> import flow_core as flow
    >>> newest = flow.range(9).on_backpressure_buffer(2, overflow="drop_oldest")
    >>> list(newest.iterate(prefetch=3))
    [0, 1, 2, 7, 8]

    Demand: everything is requested of the upstream, at once; items come on demand. A requested item
    passes without a queue, if no other item waits. Items that wait when the upstream ends are still
    delivered, before on_complete or on_error.
    Thread: that of the upstream, where `on_overflow` runs, too. Items that waited come on whichever
    thread is at work, mostly the requester's. Items that time out are dropped on the clock's
    thread.
    Fusion: grants ASYNC, across threads, too, if no item is ever dropped from the buffer: there is
    no timeout, and `overflow` is not ``"drop_oldest"``. Items that the downstream has requested and
    not polled take none of the capacity.
    Errors: the upstream's, and MissingBackpressureError, come after the items that wait; an error
    raised by `on_overflow` comes at once. Each cancels the upstream.

    Args:
        capacity: how many items may wait.
        overflow: what to do when there is no room: see `BufferOverflow`.
        on_overflow: called with each item that is dropped, because there is no room, or because it
            has waited too long. These items go to the dropped-items hook, too.
        timeout: how long an item may wait before it is dropped, in seconds; None for any time.
        clock: the clock of the timeout; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if `capacity` is less than 1, `overflow` is unknown, or `timeout` is not above
            0 and finite.
    """
    room = Room(capacity, overflow, on_overflow)
    detail = room.told()
    telling = checked_clock(clock)
    if timeout is None:
        return coordinated(
            "on_backpressure_buffer",
            detail,
            lambda flow, downstream, label: BackpressureBuffer(flow, room, downstream, label),
        )
    timeout_s = check_delay(timeout)
    if not 0 < timeout_s < math.inf:
        raise ValueError(f"timeout must be above 0 and finite, not {timeout_s} s")
    return coordinated(
        "on_backpressure_buffer",
        f"{detail}, timeout={timeout_s:g} s",
        lambda flow, downstream, label: TimedBuffer(
            flow, room, downstream, label, timeout_s=timeout_s, clock=telling
        ),
    )


@final
@dataclass(frozen=True, slots=True)
class Room(Generic[T]):
    """The capacity, and what happens to items beyond it; see `on_backpressure_buffer`.

    Args:
        capacity: how many items may wait.
        overflow: what happens to an item for which there is no room.
        on_overflow: called with each item that is dropped.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if `capacity` is less than 1, or `overflow` is unknown.
    """

    capacity: int
    overflow: BufferOverflow
    on_overflow: Callable[[T], object] | None

    def __post_init__(self) -> None:
        check_prefetch(self.capacity, "capacity")
        known = get_args(BufferOverflow)
        if self.overflow not in known:
            raise ValueError(f"overflow must be one of {', '.join(known)}, not {self.overflow!r}")
        if self.on_overflow is not None and not callable(self.on_overflow):
            raise TypeError(f"on_overflow must be a function of an item, not {self.on_overflow!r}")

    def told(self) -> str:
        """Describe these arguments, for messages."""
        detail = f"{self.capacity}"
        if self.overflow != "error":
            detail += f", overflow={self.overflow!r}"
        if self.on_overflow is not None:
            detail += f", on_overflow={describe(self.on_overflow)}"
        return detail


class _Bounded(Backpressured[T]):
    """The base of both buffers, with and without a timeout: the capacity, and its limits."""

    __slots__ = ("_room",)

    def __init__(
        self, source: Flow[T], room: Room[T], downstream: CoreSubscriber[T], label: str
    ) -> None:
        super().__init__(source, downstream, label)
        self._room = room

    def refused(self, item: T) -> BaseException | None:
        """Handle `item`, for which there is no room.

        The result is the error to end the flow with, or None.
        """
        self.lose(item, self._room.on_overflow)
        if self._room.overflow == "drop_latest" or self.over:
            return None
        return MissingBackpressureError(
            f"{self.label}: {self._room.capacity} items wait and there is no room for more; "
            'request more, raise capacity, or choose overflow="drop_oldest" or "drop_latest"'
        )

    @override
    def statistics(self) -> Statistics:
        return replace(super().statistics(), capacity=self._room.capacity)


@final
class BackpressureBuffer(_Bounded[T], QueueSubscription[T]):
    """Runs `on_backpressure_buffer`.

    When the downstream polls, no item goes straight, and `_emitted` counts the polled items.
    """

    __slots__ = ("_asked", "_left", "_shared")

    def __init__(
        self, source: Flow[T], room: Room[T], downstream: CoreSubscriber[T], label: str
    ) -> None:
        super().__init__(source, room, downstream, label)
        self._asked = False
        """True once the downstream has asked for fusion (F47)."""
        self._shared = False
        """True if the downstream polls."""
        self._left = False
        """True when the terminal was signalled, and the downstream polls the rest (F33)."""

    @override
    def open(self) -> None:
        self.connect(self._source, UnboundedInput(self, straight=not self._shared))

    @override
    def surplus(self, item: T) -> BaseException | None:
        waiting = self.waiting
        room = self._room.capacity
        if self._shared and self._requested != UNBOUNDED:
            # Read before `waiting`: an item that is polled meanwhile makes more room, not less.
            room += max(0, self._requested - self._emitted)
        if len(waiting) >= room:
            if self._room.overflow != "drop_oldest":
                return self.refused(item)
            try:
                oldest = waiting.popleft()
            except IndexError:  # delivered meanwhile
                pass
            else:
                self.lose(oldest, self._room.on_overflow)
        waiting.append(item)
        self.signal()
        return None

    @override
    def step(self) -> None:
        if not self._shared:
            super().step()
            return
        has_ended = self._has_ended
        downstream = self._downstream
        if self.waiting and downstream is not None:
            try:
                downstream.on_next(_WAKE_UP)
            except BaseException as error:
                self._raised(error)
        if has_ended and not self.over:
            self._left = True
            self.finish()

    @override
    def closed(self) -> None:
        if not self._left:
            super().closed()

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant ASYNC, unless items may be dropped from the buffer."""
        introduced = self._receive is not hooks.drop_item
        if self._asked or introduced or self._requested or self._bad is not None:
            raise late_fusion()
        self._asked = True
        if not mode & Fusion.ASYNC or self._room.overflow == "drop_oldest":
            return Fusion.NONE
        self._shared = True
        return Fusion.ASYNC

    @override
    def poll(self) -> T | Empty:
        """Take the next item; EMPTY if there is none right now."""
        try:
            item: T = self.waiting.popleft()
        except IndexError:
            return EMPTY
        self._emitted += 1
        return item

    @override
    def is_empty(self) -> bool:
        return not self.waiting

    @override
    def clear(self) -> None:
        self.discard()

    @override
    def statistics(self) -> Statistics:
        fusion = Fusion.ASYNC if self._shared else Fusion.NONE
        return replace(super().statistics(), fusion=fusion)


@final
class TimedBuffer(_Bounded[T]):
    """Runs `on_backpressure_buffer` with a timeout.

    One timer runs, for the item that has waited longest.
    """

    __slots__ = ("_clock", "_timeout_s", "_timer")

    def __init__(
        self,
        source: Flow[T],
        room: Room[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        timeout_s: float,
        clock: Clock | None,
    ) -> None:
        super().__init__(source, room, downstream, label)
        self._timeout_s = timeout_s
        self._clock = self.clock_for(clock)
        self._timer: Disposable | None = None
        """The timer for the item that has waited longest. Used only with the permit."""

    @override
    def surplus(self, item: T) -> BaseException | None:
        """Have the item wait, together with the time at which it is too old."""
        waiting: deque[tuple[float, T]] = self.waiting
        if len(waiting) >= self._room.capacity:
            if self._room.overflow != "drop_oldest":
                return self.refused(item)
            try:
                _, oldest = waiting.popleft()
            except IndexError:  # delivered or dropped meanwhile
                pass
            else:
                self.lose(oldest, self._room.on_overflow)
        waiting.append((self._clock.now() + self._timeout_s, item))
        self.signal()
        return None

    @override
    def step(self) -> None:
        waiting: deque[tuple[float, T]] = self.waiting
        while waiting and not self.over:
            now = self._clock.now()
            is_wanted = self._emitted < self._requested
            try:
                if not is_wanted and waiting[0][0] > now:
                    break
                first = waiting.popleft()
            except IndexError:  # the upstream's thread has removed it, to replace it
                break
            due, item = first
            if due <= now:
                self.lose(item, self._room.on_overflow)
            elif is_wanted:
                self.emit(item)
            else:  # it is another item than the one looked at, which was replaced meanwhile
                waiting.appendleft(first)
                break
            del item, first
        if self.over:
            return
        if not waiting:
            if self._has_ended:
                self.finish()
        elif self._timer is None:
            try:
                left = waiting[0][0] - self._clock.now()
            except IndexError:  # see above: it was replaced, and that is signalled
                return
            self._timer = self.after(self._clock, left, self._on_time, None)

    @override
    def discard(self) -> None:
        waiting: deque[tuple[float, T]] = self.waiting
        while True:
            try:
                _, item = waiting.popleft()
            except IndexError:
                return
            hooks.drop_item(item)

    @override
    def closed(self) -> None:
        super().closed()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.dispose()

    def _on_time(self, _: None) -> None:
        self._timer = None  # `step` follows, and drops the items that are too old
