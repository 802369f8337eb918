"""What ``for`` and ``async for`` have in common: items wait in a bounded queue for one consumer."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from itertools import repeat
from operator import length_hint
from typing import Any, ClassVar, Final, Generic, TypeVar

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, replenish_limit
from flow_core.errors import MissingBackpressureError, none_given
from flow_core.homes import Home, current_home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import CoreSubscriber, Subscription

__all__ = ["QueuedSubscriber"]

T = TypeVar("T")

# Any: of a queue of any items
_take: Final[Callable[[deque[Any]], Any]] = deque[Any].popleft


class QueuedSubscriber(CoreSubscriber[T], Scannable, Generic[T]):
    """Takes items from any thread and wakes one consumer, whose way of waiting subclasses know.

    No wake-up is lost: the consumer says that it waits and looks at the queue again before it does,
    and a producer appends before it asks. No item is lost in silence, either: who cancels sets the
    flag before it empties the queue, and a producer appends before it looks at the flag. What
    becomes of an error that nobody waits for, subclasses may say.

    Args:
        prefetch: how many items may wait; they are requested again at 75 %. None for one at a time,
            which is not requested before the consumer asks for it.
    """

    operator: ClassVar[str]
    """What the consumer is, in words."""

    __slots__ = (
        "_asked",
        "_cancelled",
        "_consumed",
        "_done",
        "_errors",
        "_home",
        "_left",
        "_limit",
        "_prefetch",
        "_subscription",
        "_waits",
        "queue",
    )

    def __init__(self, prefetch: int | None) -> None:
        self._prefetch = prefetch or 1
        self._limit = UNBOUNDED if prefetch is None else replenish_limit(prefetch)
        self._asked = 0 if prefetch is None else None
        """How many items were asked for after the first one; None if they are requested ahead."""
        self.queue: deque[T] = deque()
        """The items that wait."""
        self._subscription: Subscription | None = None
        self._errors: list[BaseException] = []
        """What the flow has failed with: of whoever takes it out."""
        self._done = self._cancelled = False
        self._home = current_home()
        self._waits = False
        """Whether the consumer waits, or is about to look whether it has to; or has cancelled, so
        that each item is looked at."""
        self._consumed = 0
        """Items since the last request: those that were taken, and those of `at_hand`."""
        self._left = repeat(self.queue, 0)
        """As many as `at_hand` has not given yet."""

    @abstractmethod
    def _wake(self) -> None:
        """The consumer has to look again."""

    def ask(self) -> None:
        """The consumer is about to wait: request an item, unless they are requested ahead."""
        asked, subscription = self._asked, self._subscription
        if asked is not None and asked < self._consumed and subscription is not None:
            self._asked = asked + 1
            subscription.request(1)

    @override
    def home(self) -> Home | None:
        """That of the thread in which this was made."""
        return self._home

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._subscription is not None or self._cancelled:
            subscription.cancel()
            return
        self._subscription = subscription
        if self._cancelled:  # meanwhile, by a thread that saw no subscription yet
            subscription.cancel()
        else:
            subscription.request(self._prefetch)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._cancelled or self._done:
            hooks.drop_item(item)
            return
        queue = self.queue
        if len(queue) >= self._prefetch:
            hooks.drop_item(item)
            if self._subscription is not None:
                hooks.cancel(self._subscription)
            self.on_error(  # what waits still comes before it
                MissingBackpressureError(
                    f"the flow sent more than the {self._prefetch} items that were requested"
                )
            )
            return
        queue.append(item)
        if self._waits:
            self._told()

    @override
    def receiver(self) -> Callable[[T], object]:
        """`on_next`, for who sends nothing after an end."""
        queue, prefetch = self.queue, self._prefetch
        append = queue.append

        def receive(item: T) -> None:
            if len(queue) >= prefetch:
                self.on_next(item)
                return
            append(item)
            if self._waits:
                self._told()

        return receive

    def _told(self) -> None:
        """An item has been added, and somebody cares."""
        if self._cancelled:
            hooks.drop_waiting(self.queue)
        else:
            self._wake()

    def _waits_no_more(self) -> None:
        """The consumer goes on. Who cancels meanwhile sets `_cancelled` before `_waits`."""
        self._waits = False
        if self._cancelled:
            self._waits = True

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self._cancelled or self._done:
            self._drop(error)
            return
        self._errors.append(error)
        self._done = True
        if self._cancelled:
            self._drop_errors()
        elif self._waits:
            self._wake()

    @override
    def on_complete(self) -> None:
        self._done = True
        if self._waits:
            self._wake()

    def taken(self) -> T | None:
        """The next item, or None if the flow has ended. Raises what it failed with.

        To be called when an item waits, or the flow has ended.
        """
        if not self.queue:
            if self._errors:
                raise self._errors.pop()
            return None
        item = self.queue.popleft()
        self._consumed += 1
        if self._consumed == self._limit:
            self._consumed = 0
            if self._subscription is not None and not self._done:
                self._subscription.request(self._limit)
        return item

    def at_hand(self, most: int = UNBOUNDED) -> Iterator[T]:
        """What waits right now, up to the item with which more is to be requested.

        An item is taken when it is asked for, and no Python runs for it. To be iterated to its end,
        unless `cancel` comes first.

        Args:
            most: how many items to give.
        """
        count = min(len(self.queue), self._limit - 1 - self._consumed, most)
        self._consumed += count
        self._left = repeat(self.queue, count)
        return map(_take, self._left)

    def cancel(self) -> None:
        """Cancel the flow and forget what waits."""
        self._cancelled = True
        self._waits = True
        if self._subscription is not None:
            hooks.cancel(self._subscription)
        hooks.drop_waiting(self.queue)
        self._drop_errors()

    def _drop_errors(self) -> None:
        while self._errors:
            try:
                error = self._errors.pop()
            except IndexError:  # another thread was faster
                return
            self._drop(error)

    def _drop(self, error: BaseException) -> None:
        """Nobody waits for this error any more."""
        hooks.drop_error(error)

    @override
    def statistics(self) -> Statistics:
        waiting, prefetch = len(self.queue), self._prefetch
        if self._subscription is None or self._done:
            requested = 0
        elif prefetch == UNBOUNDED:
            requested = UNBOUNDED
        else:
            consumed = self._consumed - length_hint(self._left)
            if self._asked is not None:
                consumed -= self._asked
            requested = max(0, prefetch - consumed - waiting)
        return Statistics(
            operator=self.operator,
            requested=requested,
            buffered=waiting,
            capacity=prefetch,
            cancelled=self._cancelled,
            terminated=self._done,
            error=next(iter(self._errors), None),
            upstream=self._subscription,
        )
