"""`DirectProcessor`: what comes goes to those who are there and have asked for it."""

from __future__ import annotations

from typing import TypeVar, final

from flow_core import hooks
from flow_core.errors import MissingBackpressureError
from flow_core.protocols import CoreSubscriber, Subscriber
from flow_multicast.processors._hot import HotProcessor, Line

__all__ = ["DirectProcessor"]

T = TypeVar("T")


@final
class DirectProcessor(HotProcessor[T]):
    """Gives each item to whoever is subscribed, at once; nothing waits.

    >>> numbers = DirectProcessor[int]()
    >>> handle = numbers.flow.subscribe(print)
    >>> numbers.on_next(1)
    1

    A subscriber gets the items that come from its subscription on. One who has not asked for an
    item when it comes fails with MissingBackpressureError, alone; the others go on. Who subscribes
    after the end gets the end.

    Demand: everything is requested of the upstream; see above. `offer` asks before it sends.
    Thread: that of the upstream. Fusion: none.
    Errors: those of the upstream go to all. A subscriber that raises is out; the others go on.
    """

    __slots__ = ()

    def full(self) -> bool:
        """See `HotProcessor.full`: a subscriber has no demand."""
        return any(line.demand <= 0 for line in self.lines)

    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> Line[T]:
        """See `HotProcessor.line`."""
        return _DirectLine(self, subscriber, downstream)

    def accept(self, item: T) -> None:
        """See `HotProcessor.accept`."""
        for line in self.lines:
            permit = line._permit
            if not permit.pop(0, False):
                # It is just being told of a bad request, or sends items itself within on_next.
                if line.downstream is not None:
                    hooks.drop_item(item)
                continue
            try:
                if line.emitted < line.requested:
                    line.send(item)
                elif line.downstream is not None:
                    line.finish(
                        MissingBackpressureError(
                            f"a subscriber of {self!r} has not requested the item that came; put a "
                            "back-pressure operator behind the processor, or feed it by offer()"
                        )
                    )
            finally:
                permit[0] = True
                if line._missed:
                    line.signal()

    def __repr__(self) -> str:
        return "DirectProcessor()"


@final
class _DirectLine(Line[T]):
    """One subscriber. It is sent items by `DirectProcessor.accept` alone."""

    __slots__ = ()

    def deliver(self) -> None:
        """See `Line.deliver`."""
        if self.owner.ended:
            self.finish(self.owner.error)
