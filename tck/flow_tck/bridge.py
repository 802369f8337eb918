"""Python's publishers, subscribers and processors in Java's `java.util.concurrent.Flow`, and back.

Nothing is repaired on the way: a None arrives as None, and what Python raises is thrown in Java.
Only its class is translated as the rules name it: `NoneItemError` becomes a NullPointerException,
`ValueError` an IllegalArgumentException. An error of Java's stays the identical object.

The virtual machine must have been started before an object of these classes is made.
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
    """The Python side of a failure: tracebacks since the current test has begun."""

    def __init__(self) -> None:
        self._entries: list[str] = []

    def start(self) -> None:
        """Forget everything: another test begins."""
        self._entries.clear()

    def note(self, where: str, error: BaseException) -> None:
        """Keep `error`, which was seen in `where`."""
        text = "".join(traceback.format_exception(error)).rstrip()
        self._entries.append(f"{where}:\n{text}")

    def text(self) -> str:
        """All that was noted."""
        return "\n".join(self._entries)


journal: Final = Journal()
"""One for the process: a virtual machine verifies one subject at a time."""


def _throwable(error: BaseException) -> Java:
    """`error` for Java: itself if it is Java's, or one of the class that the rules ask for."""
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
    """`item` for Java, equal to others if they are equal; a str unless it is an int or a str."""
    return item if isinstance(item, (int, str)) or is_java(item) else repr(item)


def _caught(where: str, call: Callable[..., object], *args: object) -> Java:
    """What ``call(*args)`` raises, for Java to throw; null if it returns."""
    try:
        call(*args)
    except BaseException as error:
        if not isinstance(error, NoneItemError):  # that one is asked for
            journal.note(where, error)
        return _throwable(error)
    return None


# -- ours, for Java


def java_publisher(publisher: Publisher[Any], receiver: type[Foreign]) -> Java:
    """`publisher` as a Flow.Publisher.

    Args:
        publisher: what Java's subscribers subscribe to.
        receiver: what the publisher takes a subscriber of Java's for.
    """
    return java_class("flow.tck.Python$Publisher")(_PublisherSide(publisher, receiver))


def java_subscriber(subscriber: Subscriber[Any]) -> Java:
    """`subscriber` as a Flow.Subscriber."""
    return java_class("flow.tck.Python$Subscriber")(_SubscriberSide(subscriber))


def java_processor(processor: Processor[Any, Any]) -> Java:
    """`processor` as a Flow.Processor."""
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
    """A subscription of Java's."""

    def __init__(self, subscription: Java) -> None:
        self._subscription = subscription

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        self._subscription.request(n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._subscription.cancel()


class Foreign:
    """A subscriber of Java's as what it is: a stranger, which gets a strict guard."""

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
            journal.note("the subscriber's on_error", raised)  # which nobody may ever see
            raise

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        self._subscriber.onComplete()


class Receiver(Foreign, CoreSubscriber[Any]):
    """A subscriber of Java's that vouches for the rules: no guard hides what it is sent."""


class ConditionalReceiver(Receiver, ConditionalSubscriber[Any]):
    """The same, for an upstream that would rather call `try_on_next`."""

    def try_on_next(self, item: object, /) -> bool:
        """See `ConditionalSubscriber.try_on_next`; every item is taken."""
        self.on_next(item)
        return True
