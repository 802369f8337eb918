"""A bridge between Python's publishers, subscribers, processors and Java's `Flow` interfaces.

It works in both directions with `java.util.concurrent.Flow`, and repairs nothing: a None arrives as
None, and an error raised in Python is thrown in Java. It only translates the error's class to the
one that the rules name: `NoneItemError` becomes a NullPointerException, `ValueError` an
IllegalArgumentException. A Java error stays the identical object.

Start the virtual machine before you make an object of these classes.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Final, final

from flow_core import (
    ConditionalSubscriber,
    CoreSubscriber,
    NoneItemError,
    Processor,
    Publisher,
    Subscriber,
    Subscription,
)
from flow_tck.java import Java, implements, is_java, is_java_error, java_class, override

__all__ = [
    "ConditionalReceiver",
    "Foreign",
    "Journal",
    "Receiver",
    "Upstream",
    "java_processor",
    "java_publisher",
    "java_subscriber",
    "journal",
]


@final
class Journal:
    """The Python side of a failure: the tracebacks since the current test began."""

    def __init__(self) -> None:
        self._entries: list[str] = []

    def start(self) -> None:
        """Forget everything, because another test begins."""
        self._entries.clear()

    def note(self, where: str, error: BaseException) -> None:
        """Record `error`, which occurred in `where`."""
        text = "".join(traceback.format_exception(error)).rstrip()
        self._entries.append(f"{where}:\n{text}")

    def text(self) -> str:
        """Return everything that was recorded."""
        return "\n".join(self._entries)


journal: Final = Journal()
"""One journal for the process: a virtual machine verifies one subject at a time."""


def _throwable(error: BaseException) -> Java:
    """Convert `error` for Java: keep a Java error, or make one of the class the rules require."""
    if is_java_error(error):
        return error
    text = f"{type(error).__name__}: {error}"
    made = java_class("flow.tck.Python")
    if isinstance(error, NoneItemError):
        return made.nullPointer(text)
    if isinstance(error, ValueError):
        return made.illegalArgument(text)
    return made.error(text)


def _item(item: object) -> object:
    """Convert `item` for Java, preserving equality: anything but an int or a str becomes a str."""
    return item if isinstance(item, (int, str)) or is_java(item) else repr(item)


def _caught(where: str, call: Callable[..., object], *args: object) -> Java:
    """Return the error that ``call(*args)`` raises, for Java to throw; null if it returns."""
    try:
        call(*args)
    except BaseException as error:
        if not isinstance(error, NoneItemError):  # the rules require that one
            journal.note(where, error)
        return _throwable(error)
    return None


# -- ours, for Java


def java_publisher(publisher: Publisher[Any], receiver: type[Foreign]) -> Java:
    """Wrap `publisher` as a Flow.Publisher.

    Args:
        publisher: the publisher that Java's subscribers subscribe to.
        receiver: the class in which the publisher sees a Java subscriber.
    """
    return java_class("flow.tck.Python$Publisher")(_PublisherSide(publisher, receiver))


def java_subscriber(subscriber: Subscriber[Any]) -> Java:
    """Wrap `subscriber` as a Flow.Subscriber."""
    return java_class("flow.tck.Python$Subscriber")(_SubscriberSide(subscriber))


def java_processor(processor: Processor[Any, Any]) -> Java:
    """Wrap `processor` as a Flow.Processor."""
    sides = _SubscriberSide(processor), _PublisherSide(processor, Receiver)
    return java_class("flow.tck.Python$Processor")(*sides)


@final
@implements("flow.tck.Python$PublisherSide")
class _PublisherSide:
    def __init__(self, publisher: Publisher[Any], receiver: type[Foreign]) -> None:
        self._publisher = publisher
        self._receiver = receiver

    @override
    def subscribe(self, subscriber: Java) -> Java:
        received = None if subscriber is None else self._receiver(subscriber)
        return _caught("subscribe", self._publisher.subscribe, received)

    def __str__(self) -> str:
        return repr(self._publisher)


@final
@implements("flow.tck.Python$SubscriptionSide")
class _SubscriptionSide:
    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    @override
    def request(self, n: int) -> Java:
        return _caught("request", self._subscription.request, int(n))

    @override
    def cancel(self) -> Java:
        return _caught("cancel", self._subscription.cancel)

    def __str__(self) -> str:
        return repr(self._subscription)


@final
@implements("flow.tck.Python$SubscriberSide")
class _SubscriberSide:
    def __init__(self, subscriber: Subscriber[Any]) -> None:
        self._subscriber = subscriber

    @override
    def onSubscribe(self, subscription: Java) -> Java:  # noqa: N802 - Java's name
        received = None if subscription is None else Upstream(subscription)
        return _caught("on_subscribe", self._subscriber.on_subscribe, received)

    @override
    def onNext(self, item: Java) -> Java:  # noqa: N802 - Java's name
        return _caught("on_next", self._subscriber.on_next, item)

    @override
    def onError(self, error: Java) -> Java:  # noqa: N802 - Java's name
        return _caught("on_error", self._subscriber.on_error, error)

    @override
    def onComplete(self) -> Java:  # noqa: N802 - Java's name
        return _caught("on_complete", self._subscriber.on_complete)

    def __str__(self) -> str:
        return repr(self._subscriber)


# -- Java's, for us


@final
class Upstream:
    """A Java subscription, wrapped for Python."""

    def __init__(self, subscription: Java) -> None:
        self._subscription = subscription

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        self._subscription.request(n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._subscription.cancel()


class Foreign:
    """A Java subscriber seen as a foreign one, which gets a strict guard."""

    def __init__(self, subscriber: Java) -> None:
        self._subscriber = subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`."""
        link = java_class("flow.tck.Python$Subscription")(_SubscriptionSide(subscription))
        self._subscriber.onSubscribe(link)

    def on_next(self, item: object, /) -> None:
        """See `Subscriber.on_next`."""
        self._subscriber.onNext(_item(item))

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        journal.note("an error for the subscriber", error)
        try:
            self._subscriber.onError(_throwable(error))
        except BaseException as raised:
            journal.note("the subscriber's on_error", raised)  # no one else may ever see it
            raise

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        self._subscriber.onComplete()


class Receiver(Foreign, CoreSubscriber[Any]):
    """A Java subscriber that vouches for the rules: no guard hides the signals it receives."""


class ConditionalReceiver(Receiver, ConditionalSubscriber[Any]):
    """A `Receiver` for an upstream that prefers to call `try_on_next`."""

    def try_on_next(self, item: object, /) -> bool:
        """See `ConditionalSubscriber.try_on_next`; it accepts every item."""
        self.on_next(item)
        return True
