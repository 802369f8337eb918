"""`AsyncProcessor`: the last item, when all is over."""

from __future__ import annotations

from typing import Any, Final, TypeVar, final

from flow_core.protocols import CoreSubscriber, Subscriber
from flow_multicast.processors._hot import HotProcessor, Line

__all__ = ["AsyncProcessor"]

T = TypeVar("T")


@final
class AsyncProcessor(HotProcessor[T]):
    """Keeps the last item, and gives it to all subscribers when the upstream has completed.

    >>> answer = AsyncProcessor[int]()
    >>> early = answer.flow.subscribe(lambda n: print("early", n))
    >>> answer.on_next(41), answer.on_next(42), answer.on_complete()
    early 42
    (None, None, None)
    >>> late = answer.flow.subscribe(lambda n: print("late", n))
    late 42

    Who subscribes after the end gets the same, however late. Without an item there is only the
    end; after an error, only the error.

    Demand: everything is requested of the upstream; the item waits until it is requested.
    Thread: that of the upstream's end, or of whoever requests or subscribes. Fusion: none.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        super().__init__()
        self._last: T | None = None

    @property
    def last(self) -> T | None:
        """The last item so far."""
        return self._last

    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> Line[T]:
        """See `HotProcessor.line`."""
        return _LastLine(self, subscriber, downstream)

    def keep(self, item: T) -> None:
        """See `HotProcessor.keep`."""
        self._last = item

    @property
    def buffered(self) -> int:
        """See `HotProcessor.buffered`."""
        return int(self._last is not None)

    @property
    def capacity(self) -> int:
        """See `HotProcessor.capacity`."""
        return 1

    def __repr__(self) -> str:
        return "AsyncProcessor()"


@final
class _LastLine(Line[T]):
    """One subscriber."""

    __slots__ = ("_last_of",)

    def __init__(
        self,
        owner: AsyncProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__(owner, subscriber, downstream)
        self._last_of = owner

    def disown(self) -> None:
        """See `Line.disown`."""
        self.owner = self._last_of = _NOBODY

    @property
    def waiting(self) -> int:
        """See `Line.waiting`."""
        return self._last_of.buffered

    def joins(self, late: bool) -> None:
        """See `Line.joins`: early or late is all the same."""

    def deliver(self) -> None:
        """See `Line.deliver`."""
        owner = self._last_of
        if not owner.ended:
            return
        last = owner.last if owner.error is None else None
        if last is None:
            self.finish(owner.error)
        elif self.demand > 0:
            self.position += 1
            if self.send(last) and self.bad is None:
                self.finish(None)


_NOBODY: Final[AsyncProcessor[Any]] = AsyncProcessor()  # Any: it never has an item
"""See `Line.disown`."""
