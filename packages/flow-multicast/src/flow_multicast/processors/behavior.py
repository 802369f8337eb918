"""`BehaviorProcessor`: a value that changes, and its subscribers."""

from __future__ import annotations

from typing import Any, Final, TypeVar, final

from typing_extensions import override

from flow_core.errors import NoneItemError
from flow_core.protocols import CoreSubscriber, Subscriber
from flow_multicast.processors._hot import HotProcessor, HotSubscription

__all__ = ["BehaviorProcessor"]

T = TypeVar("T")


@final
class BehaviorProcessor(HotProcessor[T]):
    """Keeps the newest value; each subscriber gets it first, and then every change.

    >>> level = BehaviorProcessor(1)
    >>> level.on_next(2)
    >>> handle = level.flow.subscribe(print)
    2
    >>> level.on_next(3)
    3
    >>> level.value
    3

    A value replaces the one before it. A subscriber that requests values more slowly than they come
    gets the newest one whenever it requests, and never an older one after a newer one; it does not
    get the values in between. So nothing piles up and no subscriber fails. Use `MulticastProcessor`
    where every item counts. When the processor completes, subscribers that have not got the newest
    value get it before the end; a subscriber that comes after the end gets only the end.

    An item that comes within an on_next waits until the item before it was sent to all. Up to 128
    may wait; one more ends the processor with MissingBackpressureError.

    Demand: everything is requested of the upstream; subscribers get values on demand, as said
    above.
    Thread: that of the upstream, or of the thread that requests or subscribes. Fusion: none.
    Errors: an error of the upstream comes at once. A subscriber that raises is removed.

    Args:
        value: the first value; without it, subscribers wait for one.

    Raises:
        NoneItemError: if `value` is None.
    """

    __slots__ = ("_latest",)

    def __init__(self, *value: T) -> None:
        super().__init__()
        if len(value) > 1:
            raise TypeError(f"BehaviorProcessor() takes one value or none, not {len(value)}")
        if value and value[0] is None:
            raise NoneItemError("BehaviorProcessor(None): None is not an item")
        self._latest: tuple[int, T] | None = (0, value[0]) if value else None
        """The position of the newest value, and the value; both are replaced together."""
        self.position = len(value)

    @property
    def latest(self) -> tuple[int, T] | None:
        """The newest value and its position."""
        return self._latest

    @property
    def value(self) -> T | None:
        """The newest value; None if there was none yet."""
        return None if self._latest is None else self._latest[1]

    @override
    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> HotSubscription[T]:
        return _BehaviorSubscription(self, subscriber, downstream)

    @override
    def keep(self, item: T) -> None:
        self._latest = (self.position, item)

    @property
    @override
    def buffered(self) -> int:
        return int(self._latest is not None)

    @property
    @override
    def capacity(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "BehaviorProcessor()"


@final
class _BehaviorSubscription(HotSubscription[T]):
    """One subscriber of a `BehaviorProcessor`, and the position of its next value."""

    __slots__ = ("_late", "_values")

    def __init__(
        self,
        owner: BehaviorProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__(owner, subscriber, downstream)
        self._values = owner
        self._late = False
        """True if the subscriber has come after the end."""

    @override
    def disown(self) -> None:
        self.owner = self._values = _NOBODY

    @property
    @override
    def waiting(self) -> int:
        latest = None if self.live else self._values.latest
        return int(latest is not None and latest[0] >= self.position)

    @override
    def joins(self, late: bool) -> None:
        """Start with the newest value."""
        self.position = self.start = max(self.owner.position - 1, 0)
        self._late = late

    @override
    def deliver(self) -> None:
        owner = self._values
        while self.wanted:
            # Read before the value: values from before the end are there by then.
            ended = owner.ended
            if ended and (self._late or owner.error is not None):
                self.finish(owner.error)
                return
            latest = owner.latest
            if latest is None or latest[0] < self.position:
                if ended:
                    self.finish(None)
                elif self.demand > 0 and not owner.enter_live(self):
                    continue
                return
            if self.demand <= 0:
                return
            position, value = latest
            self.start += position - self.position  # it does not get the values in between
            self.position = position + 1
            self.send(value)


_NOBODY: Final[BehaviorProcessor[Any]] = BehaviorProcessor()  # Any: it never has a value
"""Takes the place of the processor in lines that have ended; see `HotSubscription.disown`."""
