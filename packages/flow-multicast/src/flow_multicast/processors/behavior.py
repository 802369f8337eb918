"""`BehaviorProcessor`: a value that changes, and those who follow it."""

from __future__ import annotations

from typing import TypeVar, final

from flow_core.errors import NoneItemError
from flow_core.protocols import CoreSubscriber, Subscriber
from flow_multicast.processors._hot import HotProcessor, Line

__all__ = ["BehaviorProcessor"]

T = TypeVar("T")


@final
class BehaviorProcessor(HotProcessor[T]):
    """Keeps the newest value; each subscriber gets it at first, and then every change.

    >>> level = BehaviorProcessor(1)
    >>> level.on_next(2)
    >>> handle = level.flow.subscribe(print)
    2
    >>> level.on_next(3)
    3
    >>> level.value
    3

    A value replaces the one before it. A subscriber that asks for values more slowly than they come
    gets the newest one whenever it asks, and never an older one after a newer one; the values in
    between are not for it. So nothing piles up and nobody fails. Use `MulticastProcessor` where
    every item counts. When it completes, those who have not got the newest value get it before the
    end; who subscribes after the end gets the end only.

    Demand: everything is requested of the upstream; see above.
    Thread: that of the upstream, or of whoever requests or subscribes. Fusion: none.
    Errors: an error of the upstream comes at once. A subscriber that raises is out.

    Args:
        value: the first value; without it, subscribers wait for one.

    Raises:
        NoneItemError: if it is None.
    """

    __slots__ = ("_latest",)

    def __init__(self, *value: T) -> None:
        super().__init__()
        if len(value) > 1:
            raise TypeError(f"BehaviorProcessor() takes one value or none, not {len(value)}")
        if value and value[0] is None:
            raise NoneItemError("BehaviorProcessor(None): None is not an item (§2.13)")
        self._latest: tuple[int, T] | None = (1, value[0]) if value else None
        """A number that grows, and the value: replaced as one."""

    @property
    def latest(self) -> tuple[int, T] | None:
        """The newest value, and how many there were."""
        return self._latest

    @property
    def value(self) -> T | None:
        """The newest value; None if there was none yet."""
        return None if self._latest is None else self._latest[1]

    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> Line[T]:
        """See `HotProcessor.line`."""
        return _BehaviorLine(self, subscriber, downstream)

    def joins(self, line: Line[T]) -> None:
        """See `HotProcessor.joins`."""
        if self.ended and isinstance(line, _BehaviorLine):
            line.late = True

    def accept(self, item: T) -> None:
        """See `HotProcessor.accept`."""
        latest = self._latest
        self._latest = (1 if latest is None else latest[0] + 1, item)
        for line in self.lines:
            line.signal()

    @property
    def buffered(self) -> int:
        """See `HotProcessor.buffered`."""
        return int(self._latest is not None)

    def __repr__(self) -> str:
        return "BehaviorProcessor()"


@final
class _BehaviorLine(Line[T]):
    """One subscriber, and which value it got last."""

    __slots__ = ("_got", "_values", "late")

    def __init__(
        self,
        owner: BehaviorProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__(owner, subscriber, downstream)
        self._values = owner
        self._got = 0
        self.late = False
        """It has come after the end."""

    def deliver(self) -> None:
        """See `Line.deliver`."""
        owner = self._values
        while self.wanted:
            ended = owner.ended  # read before the value: what came before the end is there by then
            latest = owner.latest
            if ended and (owner.error is not None or self.late):
                self.finish(owner.error)
                return
            if latest is None or latest[0] == self._got:
                if ended:
                    self.finish(None)
                return
            if self.demand <= 0:
                return
            self._got = latest[0]
            self.send(latest[1])
