"""The rules for subscribers, checked from outside (black box)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from threading import Condition, Event, get_ident
from typing import Any, Generic, TypeVar, cast, final

from typing_extensions import override

from flow_core.protocols import Subscriber, Subscription
from flow_testing.drops import recorded_drops
from flow_testing.tck.rules import Verification, check, rule

__all__ = ["Link", "SubscriberVerification"]

T = TypeVar("T")


@final
class Link(Subscription):
    """A subscription that records what its subscriber calls.

    Args:
        slow_s: how long each call takes, in seconds.

    Attributes:
        requests: the requested amounts, one by one.
        cancels: how often the subscriber has cancelled.
        overlaps: the calls that came while a call of another thread was running.
    """

    def __init__(self, slow_s: float = 0) -> None:
        self.requests: list[object] = []
        self.cancels = 0
        self.overlaps = 0
        self._slow_s = slow_s
        self._changed = Condition()
        self._inside: list[int] = []

    @property
    def calls(self) -> int:
        """Return how many calls have come."""
        return len(self.requests) + self.cancels

    @property
    def demand(self) -> int:
        """Return the sum of the requests."""
        return sum(n for n in self.requests if isinstance(n, int))

    @override
    def request(self, n: int, /) -> None:
        with self._changed:
            self.requests.append(n)
        self._called()

    @override
    def cancel(self) -> None:
        with self._changed:
            self.cancels += 1
        self._called()

    def _called(self) -> None:
        me = get_ident()
        with self._changed:
            self.overlaps += any(thread != me for thread in self._inside)
            self._inside.append(me)
            self._changed.notify_all()
        if self._slow_s > 0:
            Event().wait(self._slow_s)  # long enough for another thread to come in
        with self._changed:
            self._inside.remove(me)

    def wait(self, until: Callable[[], bool], missing: str, timeout_s: float) -> None:
        """Wait for a call after which `until` returns True.

        Raises:
            AssertionError: if the call does not come in time; the message says that it is
                `missing`.
        """
        with self._changed:
            check(
                self._changed.wait_for(until, timeout_s),
                f"{missing} within {timeout_s} s; requests {self.requests}, {self.cancels} cancels",
            )


class SubscriberVerification(Verification, Generic[T]):
    """The duties of every subscriber. To test one, subclass it, and override `create_subscriber`.

    The subscriber is a black box here: the tests only see what it calls on its subscription.
    `SubscriberWhiteboxVerification` looks inside.
    """

    @abstractmethod
    def create_subscriber(self) -> Subscriber[T]:
        """Return a new subscriber, without a subscription."""
        raise NotImplementedError(f"{type(self).__name__} must have create_subscriber()")

    def create_item(self, n: int) -> T:
        """Return an object that the subscriber accepts as an item; by default, the int `n`.

        Args:
            n: 0, 1, …; a different number for each item of a test.
        """
        return cast("T", n)  # verifications with other items override this

    def trigger_request(self, subscriber: Subscriber[T]) -> None:
        """Make `subscriber` request, if it does not do so by itself in ``on_subscribe``."""

    @rule()
    def test_spec201_signals_demand(self) -> None:
        """§2.1: a subscriber signals demand by ``request(n)``; without it nothing can come."""
        self._requested(self.create_subscriber())

    @rule()
    def test_spec203_calls_nothing_of_the_subscription_in_on_complete(self) -> None:
        """§2.3: ``on_complete`` calls no method of the subscription (nor of the publisher)."""
        subscriber = self.create_subscriber()
        link = self._requested(subscriber)
        before = link.calls
        subscriber.on_complete()
        self.settle()
        check(link.calls == before, f"on_complete called the subscription: {link.requests}")

    @rule()
    def test_spec203_calls_nothing_of_the_subscription_in_on_error(self) -> None:
        """§2.3: ``on_error`` calls no method of the subscription (nor of the publisher)."""
        subscriber = self.create_subscriber()
        link = self._requested(subscriber)
        before = link.calls
        self._fail(subscriber)
        self.settle()
        check(link.calls == before, f"on_error called the subscription: {link.requests}")

    @rule()
    def test_spec205_cancels_a_second_subscription(self) -> None:
        """§2.5: a subscriber that has a subscription cancels a second one, and keeps the first."""
        subscriber = self.create_subscriber()
        first, second = self._requested(subscriber), Link()
        subscriber.on_subscribe(second)
        second.wait(
            lambda: second.cancels > 0, "no cancel of the second subscription", self.timeout_s
        )
        check(not second.requests, f"it requested {second.requests} of the second subscription")
        check(not first.cancels, "it cancelled its own subscription")

    @rule()
    def test_spec207_calls_its_subscription_serially(self) -> None:
        """§2.7: calls of ``request`` and ``cancel`` do not overlap, whichever threads make them."""
        subscriber = self.create_subscriber()
        link = self._requested(subscriber, Link(slow_s=0.01))
        for n in range(min(link.demand, 20)):
            subscriber.on_next(self.create_item(n))
        self.settle()
        check(not link.overlaps, f"{link.overlaps} calls of the subscription overlapped")

    @rule()
    def test_spec208_bears_as_many_items_as_it_has_requested(self) -> None:
        """§2.8: a subscriber can take all the items that it has requested, and the end."""
        subscriber = self.create_subscriber()
        link = self._requested(subscriber)
        for n in range(min(link.demand, 10)):
            subscriber.on_next(self.create_item(n))
        subscriber.on_complete()

    @rule()
    def test_spec209_bears_on_complete_with_demand(self) -> None:
        """§2.9: ``on_complete`` may come when there was a request."""
        subscriber = self.create_subscriber()
        self._requested(subscriber)
        subscriber.on_complete()

    @rule()
    def test_spec209_bears_on_complete_without_demand(self) -> None:
        """§2.9: ``on_complete`` may come when there was no request."""
        subscriber = self.create_subscriber()
        subscriber.on_subscribe(Link())
        subscriber.on_complete()

    @rule()
    def test_spec210_bears_on_error_with_demand(self) -> None:
        """§2.10: ``on_error`` may come when there was a request."""
        subscriber = self.create_subscriber()
        self._requested(subscriber)
        self._fail(subscriber)

    @rule()
    def test_spec210_bears_on_error_without_demand(self) -> None:
        """§2.10: ``on_error`` may come when there was no request."""
        subscriber = self.create_subscriber()
        subscriber.on_subscribe(Link())
        self._fail(subscriber)

    @rule()
    def test_spec213_on_subscribe_none_raises(self) -> None:
        """§2.13: ``on_subscribe(None)`` raises TypeError."""
        subscriber = self.create_subscriber()
        self._raises(subscriber.on_subscribe, "on_subscribe")

    @rule()
    def test_spec213_on_next_none_raises(self) -> None:
        """§2.13: ``on_next(None)`` raises TypeError."""
        subscriber = self.create_subscriber()
        self._requested(subscriber)
        self._raises(subscriber.on_next, "on_next")

    @rule()
    def test_spec213_on_error_none_raises(self) -> None:
        """§2.13: ``on_error(None)`` raises TypeError."""
        subscriber = self.create_subscriber()
        self._requested(subscriber)
        self._raises(subscriber.on_error, "on_error")

    @rule()
    def test_spec309_requests_at_least_one_item(self) -> None:
        """§3.9: a subscriber requests positive ints."""
        subscriber = self.create_subscriber()
        link = self._requested(subscriber)
        for n in range(min(link.demand, 100)):
            subscriber.on_next(self.create_item(n))
        self.settle()
        wrong = [n for n in link.requests if not isinstance(n, int) or n < 1]
        check(not wrong, f"it requested {wrong}")

    def _requested(self, subscriber: Subscriber[T], link: Link | None = None) -> Link:
        """Give `subscriber` a subscription, and wait for its first request."""
        if link is None:
            link = Link()
        subscriber.on_subscribe(link)
        self.trigger_request(subscriber)
        link.wait(lambda: bool(link.requests), "no request (§2.1)", self.timeout_s)
        self.settle()
        return link

    def _fail(self, subscriber: Subscriber[T]) -> None:
        with recorded_drops():  # of a subscriber that does not handle errors
            subscriber.on_error(LookupError("sent by the verification"))

    def _raises(self, call: Callable[[Any], object], name: str) -> None:
        try:
            call(None)
        except TypeError:
            return
        raise AssertionError(f"{name}(None) did not raise TypeError")
