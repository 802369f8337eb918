"""The contract: Reactive Streams 1.0.4 (Java 9 ``Flow``) in Python names.

The four roles of the specification are structural protocols (PEP 544): any object with the right
methods can play a role. The extensions that make flows fast (conditional subscribers, queue fusion,
scalar and callable sources) are nominal classes: an object only has them if its class inherits from
them, and ``isinstance`` stays cheap.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Protocol, TypeVar

from typing_extensions import override

if TYPE_CHECKING:
    from flow_core.homes import Home

__all__ = [
    "EMPTY",
    "CallableSource",
    "ConditionalSubscriber",
    "CoreSubscriber",
    "Disposable",
    "Empty",
    "Fusion",
    "IterableSource",
    "Processor",
    "Publisher",
    "QueueSubscription",
    "ScalarSource",
    "Subscriber",
    "Subscription",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Empty(enum.Enum):
    """The type of `EMPTY`: "no item right now" (ASYNC fusion) or "no more items" (SYNC fusion)."""

    EMPTY = "EMPTY"


EMPTY: Final = Empty.EMPTY


class Subscription(Protocol):
    """The link between one publisher and one subscriber: requests and the cancel go upstream."""

    __slots__ = ()

    @abstractmethod
    def request(self, n: int, /) -> None:
        """Allow `n` more items, added to the outstanding ones and capped at `UNBOUNDED`.

        It never raises for a wrong amount: ``n <= 0`` cancels the flow and signals
        ``on_error(ValueError)``. Anything but an int raises TypeError.
        """

    @abstractmethod
    def cancel(self) -> None:
        """Stop the flow, now or soon. Further calls have no effect. Callable from any thread."""


class Subscriber(Protocol[T_contra]):
    """Receives ``on_subscribe on_next* (on_error | on_complete)?``, one signal at a time."""

    __slots__ = ()

    @abstractmethod
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the subscription; request items from it when ready.

        This is the first signal, and it returns before the other signals come.
        """

    @abstractmethod
    def on_next(self, item: T_contra, /) -> object:
        """Take one of the items that were requested; `item` is never None.

        The result is ignored.
        """

    @abstractmethod
    def on_error(self, error: BaseException, /) -> None:
        """Handle the `error` with which the flow has failed; no signal follows."""

    @abstractmethod
    def on_complete(self) -> None:
        """Handle the completion of the flow; no signal follows."""


class Publisher(Protocol[T_co]):
    """Provides items to each subscriber, as many as it requests."""

    __slots__ = ()

    @abstractmethod
    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        """Start (or join) the flow for `subscriber`. Raises TypeError for None."""


class Processor(Subscriber[T_contra], Publisher[T_co], Protocol[T_contra, T_co]):
    """Both a subscriber and a publisher, bound by the rules of both."""

    __slots__ = ()


class Disposable(Protocol):
    """A handle of something that runs. ``with disposable:`` disposes of it on exit."""

    __slots__ = ()

    @property
    @abstractmethod
    def disposed(self) -> bool:
        """True if what runs has ended or was disposed of."""

    @abstractmethod
    def dispose(self) -> None:
        """End what runs. Further calls have no effect. Callable from any thread."""


class CoreSubscriber(Generic[T_contra]):
    """A subscriber that follows the rules itself, so it needs no strict guard in front of it.

    Operators and the subscribers of this library are of this class. Any other subscriber gets a
    guard: it allows one subscription only, stops signals after a terminal, and keeps the
    subscriber's errors out of the flow.
    """

    __slots__ = ()

    @abstractmethod
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """As `Subscriber.on_subscribe`."""

    @abstractmethod
    def on_next(self, item: T_contra, /) -> object:
        """As `Subscriber.on_next`."""

    @abstractmethod
    def on_error(self, error: BaseException, /) -> None:
        """As `Subscriber.on_error`."""

    @abstractmethod
    def on_complete(self) -> None:
        """As `Subscriber.on_complete`."""

    def receiver(self) -> Callable[[T_contra], object]:
        """Return the function that gets the items of a loop: `on_next`, or one that does less.

        The loop has already checked the items for None. This is called once, when the loop begins.
        """
        return self.on_next

    def checks(self, who: str) -> bool:
        """Return True if this subscriber fails for None, so that no stage has to check before.

        A flow of a foreign publisher calls this before it subscribes to the publisher.

        Args:
            who: the source or function that may emit None, for the error's text.
        """
        return False

    def home(self) -> Home | None:
        """Return the event loop that this subscription belongs to; None if it belongs to none.

        Publishers call this while they are subscribed to, in the subscribing thread. An operator
        returns the answer of its downstream; a subscriber of your own returns the loop that runs in
        this thread.
        """
        from flow_core.homes import current_home

        return current_home()

    def on_next_raised(self, error: BaseException, /) -> bool:
        """Handle `error`, which `on_next` has raised; the upstream has already cancelled itself.

        Returns:
            True if this subscriber handles the error; if not, the error goes to the dropped-errors
            hook.
        """
        return False


class ConditionalSubscriber(CoreSubscriber[T_contra]):
    """A subscriber that says of each item whether it has used it (conditional fusion).

    An upstream calls `try_on_next` instead of `on_next`. When the result is False, it sends the
    next item at once: a dropped item costs no ``request(1)``.
    """

    __slots__ = ()

    @abstractmethod
    def try_on_next(self, item: T_contra, /) -> bool:
        """Take `item`. Return True if it uses up demand, False if it was dropped."""


class Fusion(enum.IntFlag):
    """The modes that two neighbours may agree on in `QueueSubscription.request_fusion`."""

    NONE = 0
    SYNC = 1
    """The upstream is an iterator: ``poll() is EMPTY`` means completed, errors are raised."""
    ASYNC = 2
    """The upstream's queue is shared; ``on_next(EMPTY)`` is only a wake-up."""
    ANY = 3
    THREAD_BOUNDARY = 4
    """Requested in addition to a mode: `poll` will run on another thread, and so will the user's
    functions upstream."""


class QueueSubscription(Generic[T_co]):
    """A subscription whose items can be polled instead of being pushed (queue fusion).

    The subscriber asks for fusion once, inside `on_subscribe` and before any `request`. With SYNC
    it only polls and never requests; with ASYNC it requests as usual, and polls when it is woken.
    """

    __slots__ = ()

    @abstractmethod
    def request(self, n: int, /) -> None:
        """As `Subscription.request`."""

    @abstractmethod
    def cancel(self) -> None:
        """As `Subscription.cancel`."""

    @abstractmethod
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Agree on one of the requested modes; the result lies within `mode`, or is NONE.

        Raises:
            ProtocolViolationError: if this was called before, or is called outside of on_subscribe,
                or after a request.
        """

    @abstractmethod
    def poll(self) -> T_co | Empty:
        """Return the next item, or `EMPTY`. Raises the error of the flow."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return False if the next `poll` may return an item; it may still return `EMPTY`."""

    @abstractmethod
    def clear(self) -> None:
        """Drop everything that could still be polled."""


class IterableSource(Generic[T_co]):
    """A source whose items come from a plain iterator, in the subscriber's own thread.

    Everything between this source and the next boundary is compiled with it into one loop. A source
    that also has ``subscribe`` is iterated over when the flow is iterated over, and subscribed to
    otherwise.
    """

    __slots__ = ()

    none_free: ClassVar[bool] = False
    """True if None is never among the items, so that the loop need not check (§2.13)."""

    calls_user_code: bool = False
    """True if the iterator calls functions of the user. If so, the items must not be polled on
    another thread, where these functions would then run. An iterable that a user passes does not
    count: it is meant to move."""

    @abstractmethod
    def iterate(self) -> Iterator[T_co]:
        """Return a new iterator for one subscriber.

        If it is a generator, it is closed at the end or on cancel.
        """


class CallableSource(IterableSource[T_co]):
    """A source of at most one item, computed when a flow is subscribed to.

    A callable object is not such a source by itself: its class has to inherit from this class.
    """

    __slots__ = ()

    none_free: ClassVar[bool] = True

    @abstractmethod
    def call(self) -> T_co | None:
        """Return the item, or None for an empty flow. May raise, block, and have side effects."""

    @override
    def iterate(self) -> Iterator[T_co]:
        """Return an iterator that calls `call` when the first item is requested."""
        item = self.call()
        if item is not None:
            yield item


class ScalarSource(CallableSource[T_co]):
    """A constant source of at most one item, which operators may look at during assembly."""

    __slots__ = ()
