"""The guard in front of a subscriber that is not a class of this library."""

from __future__ import annotations

from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import NoneItemError, add_note, is_fatal, none_given
from flow_core.homes import Home, current_home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import CoreSubscriber, Subscriber, Subscription

__all__ = ["StrictSubscriber", "core_subscriber"]

T = TypeVar("T")


def core_subscriber(subscriber: Subscriber[T]) -> CoreSubscriber[T]:
    """Return `subscriber` if it follows the rules itself, or else a guard in front of it.

    Raises:
        NoneItemError: if `subscriber` is None.
        TypeError: if `subscriber` lacks a method of a subscriber.
    """
    if isinstance(subscriber, CoreSubscriber):
        return subscriber
    if subscriber is None:
        raise NoneItemError("subscribe(None): a subscriber is needed")
    missing = [
        name
        for name in ("on_subscribe", "on_next", "on_error", "on_complete")
        if not callable(getattr(subscriber, name, None))
    ]
    if missing:
        raise TypeError(f"{subscriber!r} is not a subscriber: it has no {', '.join(missing)}")
    return StrictSubscriber(subscriber)


@final
class StrictSubscriber(CoreSubscriber[T], Scannable, Generic[T]):
    """Follows the rules towards another subscriber, and keeps its mistakes out of the flow.

    It allows one subscription only, and sends nothing after a terminal. If one of the subscriber's
    methods raises an error, the flow is cancelled, and the error goes to the dropped-errors hook.
    """

    __slots__ = ("_done", "_home", "_subscriber", "_subscription")

    def __init__(self, subscriber: Subscriber[T]) -> None:
        self._subscriber = subscriber
        self._subscription: Subscription | None = None
        self._done = False
        self._home = current_home()

    @override
    def home(self) -> Home | None:
        """The home of the thread in which this subscriber was made."""
        return self._home

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        if self._subscription is not None:
            subscription.cancel()  # §2.5
            return
        self._subscription = subscription
        try:
            self._subscriber.on_subscribe(subscription)
        except BaseException as error:
            self._done = True
            subscription.cancel()
            self._drop(error)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._done:
            hooks.drop_item(item)
            return
        try:
            self._subscriber.on_next(item)
        except BaseException as error:
            self._done = True
            if self._subscription is not None:
                hooks.cancel(self._subscription)
            self._drop(error)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self._done:
            hooks.drop_error(error)
            return
        self._done = True
        try:
            self._subscriber.on_error(error)
        except BaseException as raised:
            self._drop(raised)

    @override
    def on_complete(self) -> None:
        if self._done:
            return
        self._done = True
        try:
            self._subscriber.on_complete()
        except BaseException as raised:
            self._drop(raised)

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator=type(self._subscriber).__name__,
            terminated=self._done,
            upstream=self._subscription,
        )

    def _drop(self, error: BaseException) -> None:
        if is_fatal(error):
            raise error
        add_note(error, f"raised by {self._subscriber!r}, a subscriber must not raise")
        hooks.drop_error(error)
