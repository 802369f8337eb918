"""`DirectProcessor`: items go to the subscribers that are there and have requested them."""

from __future__ import annotations

from typing import Any, ClassVar, Final, TypeVar, final

from typing_extensions import override

from flow_core.demand import UNBOUNDED
from flow_core.errors import MissingBackpressureError
from flow_core.protocols import CoreSubscriber, Subscriber
from flow_multicast.processors._hot import HotProcessor, HotSubscription

__all__ = ["DirectProcessor"]

T = TypeVar("T")


@final
class DirectProcessor(HotProcessor[T]):
    """Sends each item to the present subscribers, at once; nothing waits.

    >>> numbers = DirectProcessor[int]()
    >>> handle = numbers.flow.subscribe(print)
    >>> numbers.on_next(1)
    1

    A subscriber gets the items that come from its subscription on. A subscriber that has not
    requested an item by the time it comes fails with MissingBackpressureError; the others continue.
    A subscriber that comes after the end gets the end.

    An item that comes within an on_next waits until the item before it was sent to all. Up to 128
    may wait; one more ends the processor with MissingBackpressureError.

    Demand: everything is requested of the upstream, whatever the subscribers request. `offer`
    checks first whether all have requested the item.
    Thread: that of the upstream. Fusion: none.
    Errors: those of the upstream go to all. A subscriber that raises is removed; the others
    continue.
    """

    __slots__ = ()

    keeps: ClassVar[bool] = False

    @override
    def room(self) -> int:
        """Return the smallest demand of all subscribers."""
        wanted = self.common - self.position
        if wanted > 0:  # as far as is known, without a look at all of them
            return min(wanted, UNBOUNDED)
        return max(min((line.demand for line in self.lines()), default=UNBOUNDED), 0)

    @override
    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> HotSubscription[T]:
        return _DirectSubscription(self, subscriber, downstream)

    @override
    def counts(self, line: HotSubscription[T], *, on_its_own: bool) -> None:
        """Note that a line is on its own: it has not requested an item."""
        if on_its_own and isinstance(line, _DirectSubscription):
            line.behind = True

    def __repr__(self) -> str:
        return "DirectProcessor()"


@final
class _DirectSubscription(HotSubscription[T]):
    """One subscriber of a `DirectProcessor`: live from the first moment on."""

    __slots__ = ("behind",)

    def __init__(
        self,
        owner: DirectProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__(owner, subscriber, downstream)
        self.behind = False
        """True if the subscriber has missed an item."""

    @override
    def disown(self) -> None:
        self.owner = _NOBODY

    @override
    def joins(self, late: bool) -> None:
        owner = self.owner
        self.position = self.start = owner.position
        if not late and self.wanted:
            owner.make_live(self)

    @override
    def enters(self, position: int) -> bool:
        """Return True: no item that comes is too early for this line."""
        self.position = self.start = position
        return True

    @override
    def deliver(self) -> None:
        """Handle the fact that this line is not live any more."""
        owner = self.owner
        # `ended` is read before `behind`: an item that this line has missed came before the end.
        if owner.ended and not self.behind:
            self.finish(owner.error)
            return
        self.finish(
            MissingBackpressureError(
                f"a subscriber of {owner!r} has not requested the item that came; put a "
                "back-pressure operator behind the processor, or feed it by offer()"
            )
        )


_NOBODY: Final[DirectProcessor[Any]] = DirectProcessor()  # Any: it never has an item
"""Takes the place of the processor in lines that have ended; see `HotSubscription.disown`."""
