"""`AsyncProcessor`: the last item, when the upstream has completed."""

from __future__ import annotations

from typing import Any, Final, TypeVar, final

from typing_extensions import override

from flow_core.protocols import CoreSubscriber, Subscriber
from flow_multicast.processors._hot import HotProcessor, HotSubscription

__all__ = ["AsyncProcessor"]

T = TypeVar("T")


@final
class AsyncProcessor(HotProcessor[T]):
    """Keeps the last item, and sends it to all subscribers when the upstream has completed.

    >>> answer = AsyncProcessor[int]()
    >>> early = answer.flow.subscribe(lambda n: print("early", n))
    >>> answer.on_next(41), answer.on_next(42), answer.on_complete()
    early 42
    (None, None, None)
    >>> late = answer.flow.subscribe(lambda n: print("late", n))
    late 42

    A subscriber that comes after the end gets the same, however late. If no item has come,
    subscribers get only the end; after an error, only the error.

    Demand: everything is requested of the upstream; the item waits until it is requested.
    Thread: that of the upstream's end, or of the thread that requests or subscribes. Fusion: none.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        super().__init__()
        self._last: T | None = None

    @property
    def last(self) -> T | None:
        """The last item so far."""
        return self._last

    @override
    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> HotSubscription[T]:
        return _LastSubscription(self, subscriber, downstream)

    @override
    def keep(self, item: T) -> None:
        self._last = item

    @property
    @override
    def buffered(self) -> int:
        return int(self._last is not None)

    @property
    @override
    def capacity(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "AsyncProcessor()"


@final
class _LastSubscription(HotSubscription[T]):
    """One subscriber of an `AsyncProcessor`."""

    __slots__ = ("_last_of",)

    def __init__(
        self,
        owner: AsyncProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__(owner, subscriber, downstream)
        self._last_of = owner

    @override
    def disown(self) -> None:
        self.owner = self._last_of = _NOBODY

    @property
    @override
    def waiting(self) -> int:
        return self._last_of.buffered

    @override
    def joins(self, late: bool) -> None:
        """Do nothing: early or late makes no difference."""

    @override
    def deliver(self) -> None:
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
"""Takes the place of the processor in lines that have ended; see `HotSubscription.disown`."""
