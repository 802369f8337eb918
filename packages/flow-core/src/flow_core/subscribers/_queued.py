"""The base of ``for`` and ``async for``: items wait in a bounded queue for one consumer."""

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
    """Takes items from any thread and wakes one consumer; subclasses define how it waits.

    No wake-up is lost: the consumer sets a flag before it waits, and looks at the queue again after
    that; a producer appends before it reads the flag. No item is lost silently, either: `cancel`
    sets its own flag before it empties the queue, and a producer appends before it reads that flag.
    Subclasses decide what happens to an error when no consumer waits for it.

    Args:
        prefetch: how many items may wait; refilled at 75 %. None to request one item at a time, and
            only when the consumer needs it.
    """

    operator: ClassVar[str]
    """The name of the consumer in texts."""

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
        """The number of items that were requested after the first one; None if items are requested
        ahead."""
        self.queue: deque[T] = deque()
        """The items that wait."""
        self._subscription: Subscription | None = None
        self._errors: list[BaseException] = []
        """Contains the error of the flow, until it is taken out."""
        self._done = self._cancelled = False
        self._home = current_home()
        self._waits = False
        """True if the consumer waits, or is about to check whether it has to wait; also if it has
        cancelled, so that each item is checked."""
        self._consumed = 0
        """The number of items that have left the queue since the last request: those that were
        taken, and those that `at_hand` was asked to yield."""
        self._left = repeat(self.queue, 0)
        """Has one entry left for each item that `at_hand` has not yielded yet."""

    @abstractmethod
    def _wake(self) -> None:
        """Have the consumer look at the queue again."""

    def ask(self) -> None:
        """Prepare to wait: request an item, unless this subscriber prefetches."""
        asked, subscription = self._asked, self._subscription
        if asked is not None and asked < self._consumed and subscription is not None:
            self._asked = asked + 1
            subscription.request(1)

    @override
    def home(self) -> Home | None:
        """The home of the thread in which this subscriber was made."""
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
            self.on_error(  # items that wait still come before it
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
        """Return a shorter `on_next`, for sources that send nothing after an end."""
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
        """Note that an item was added and that the consumer wants to know."""
        if self._cancelled:
            hooks.drop_waiting(self.queue)
        else:
            self._wake()

    def _waits_no_more(self) -> None:
        """Let the consumer continue. `cancel` sets `_cancelled` before it sets `_waits`."""
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
        """Return the next item, or None if the flow has completed.

        Raise its error if it has failed.

        This may be called only if an item waits, or the flow has ended.
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
        """Iterate over the items that wait now, up to the one after which more are requested.

        An item is taken when the iterator is asked for it, and no Python code runs for that.
        Iterate to the end, unless `cancel` comes first.

        Args:
            most: the maximum number of items to yield.
        """
        count = min(len(self.queue), self._limit - 1 - self._consumed, most)
        self._consumed += count
        self._left = repeat(self.queue, count)
        return map(_take, self._left)

    def cancel(self) -> None:
        """Cancel the flow and drop the items that wait."""
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
        """Handle an error that no consumer waits for any more."""
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
