"""The rules for subscribers, checked from inside (white box)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from threading import Condition
from typing import Generic, TypeVar, final

from flow_core.protocols import Subscriber
from flow_testing.drops import recorded_drops
from flow_testing.tck.rules import Verification, check, rule
from flow_testing.tck.subscriber import Link

__all__ = ["SubscriberWhiteboxVerification", "WhiteboxProbe"]

T = TypeVar("T")


@final
class WhiteboxProbe(Generic[T]):
    """Records what a subscriber under test reports, and makes the subscriber act.

    The subscriber calls the probe's methods when it has finished its own work for a signal.

    Args:
        timeout_s: how long to wait for a report, in seconds.

    Attributes:
        request: makes the subscriber request `n` items.
        cancel: makes the subscriber cancel.
    """

    def __init__(self, timeout_s: float) -> None:
        self.items: list[T] = []
        self.errors: list[BaseException] = []
        self.completions = 0
        self.subscriptions = 0
        self.request: Callable[[int], object] = _missing
        self.cancel: Callable[[], object] = _missing
        self._timeout_s = timeout_s
        self._changed = Condition()

    def on_subscribe(
        self, request: Callable[[int], object], cancel: Callable[[], object], /
    ) -> None:
        """Report that a subscription was accepted.

        The two functions make the subscriber act on it.
        """
        with self._changed:
            self.request, self.cancel = request, cancel
            self.subscriptions += 1
            self._changed.notify_all()

    def on_next(self, item: T, /) -> None:
        """Report that the subscriber has accepted `item`."""
        with self._changed:
            self.items.append(item)
            self._changed.notify_all()

    def on_error(self, error: BaseException, /) -> None:
        """Report that the subscriber has received `error`."""
        with self._changed:
            self.errors.append(error)
            self._changed.notify_all()

    def on_complete(self) -> None:
        """Report that the subscriber has received the end."""
        with self._changed:
            self.completions += 1
            self._changed.notify_all()

    def wait(self, until: Callable[[], bool], missing: str) -> None:
        """Wait for a report after which `until` returns True.

        Raises:
            AssertionError: if the report does not come in time; the message says that it is
                `missing`.
        """
        with self._changed:
            check(
                self._changed.wait_for(until, self._timeout_s),
                f"the subscriber did not tell the probe of {missing} within {self._timeout_s} s",
            )


class SubscriberWhiteboxVerification(Verification, Generic[T]):
    """The duties of every subscriber, checked with a subscriber that reports to a probe.

    To test a subscriber, subclass it, and override `create_subscriber` and `create_item`.
    """

    @abstractmethod
    def create_subscriber(self, probe: WhiteboxProbe[T]) -> Subscriber[T]:
        """Return a new subscriber that reports each signal to `probe`, and acts only when made to.

        Args:
            probe: its method `on_subscribe` gets the functions that make the subscriber request and
                cancel.
        """
        raise NotImplementedError(f"{type(self).__name__} must have create_subscriber(probe)")

    @abstractmethod
    def create_item(self, n: int) -> T:
        """Return an object that the subscriber accepts as an item.

        Args:
            n: 0, 1, …; a different number for each item of a test.
        """
        raise NotImplementedError(f"{type(self).__name__} must have create_item(n)")

    @rule()
    def test_spec201_signals_demand(self) -> None:
        """§2.1: a subscriber signals demand by ``request(n)``."""
        _, probe, link = self._subscribed()
        before = link.demand
        probe.request(3)
        link.wait(lambda: link.demand >= before + 1, "no request (§2.1)", self.timeout_s)

    @rule()
    def test_spec203_calls_nothing_of_the_subscription_in_on_complete(self) -> None:
        """§2.3: ``on_complete`` calls no method of the subscription."""
        subscriber, probe, link = self._subscribed()
        before = link.calls
        subscriber.on_complete()
        probe.wait(lambda: probe.completions == 1, "on_complete")
        check(link.calls == before, "on_complete called the subscription")

    @rule()
    def test_spec203_calls_nothing_of_the_subscription_in_on_error(self) -> None:
        """§2.3: ``on_error`` calls no method of the subscription."""
        subscriber, _, link = self._subscribed()
        before = link.calls
        self._fail(subscriber)
        self.settle()
        check(link.calls == before, "on_error called the subscription")

    @rule()
    def test_spec205_cancels_a_second_subscription(self) -> None:
        """§2.5: a second subscription is cancelled, and the first one continues."""
        subscriber, probe, first = self._subscribed()
        second = Link()
        subscriber.on_subscribe(second)
        second.wait(
            lambda: second.cancels > 0, "no cancel of the second subscription", self.timeout_s
        )
        probe.request(1)
        first.wait(lambda: first.demand > 0, "no request of the first one", self.timeout_s)
        check(not second.requests, "it requested of the second subscription")
        check(not first.cancels, "it cancelled its own subscription")

    @rule()
    def test_spec206_cancels_when_it_is_made_to(self) -> None:
        """§2.6: a subscriber that needs no more items cancels its subscription."""
        _, probe, link = self._subscribed()
        probe.cancel()
        link.wait(lambda: link.cancels > 0, "no cancel (§2.6)", self.timeout_s)

    @rule()
    def test_spec208_bears_items_after_cancel(self) -> None:
        """§2.8: items that were requested may still come after a cancel."""
        subscriber, probe, link = self._subscribed()
        probe.request(2)
        link.wait(lambda: link.demand >= 1, "no request", self.timeout_s)
        probe.cancel()
        link.wait(lambda: link.cancels > 0, "no cancel", self.timeout_s)
        with recorded_drops():
            subscriber.on_next(self.create_item(0))

    @rule()
    def test_spec209_takes_on_complete_with_demand(self) -> None:
        """§2.9: the subscriber handles ``on_complete`` when there was a request."""
        subscriber, probe, link = self._subscribed()
        probe.request(1)
        link.wait(lambda: link.demand >= 1, "no request", self.timeout_s)
        subscriber.on_complete()
        probe.wait(lambda: probe.completions == 1, "on_complete")

    @rule()
    def test_spec209_takes_on_complete_without_demand(self) -> None:
        """§2.9: the subscriber handles ``on_complete`` when there was no request."""
        subscriber, probe, _ = self._subscribed()
        subscriber.on_complete()
        probe.wait(lambda: probe.completions == 1, "on_complete")

    @rule()
    def test_spec210_takes_on_error_with_demand(self) -> None:
        """§2.10: the subscriber handles ``on_error`` when there was a request."""
        subscriber, probe, link = self._subscribed()
        probe.request(1)
        link.wait(lambda: link.demand >= 1, "no request", self.timeout_s)
        error = self._fail(subscriber)
        probe.wait(lambda: bool(probe.errors), "on_error")
        check(probe.errors == [error], f"expected {error!r} itself, got {probe.errors!r}")

    @rule()
    def test_spec210_takes_on_error_without_demand(self) -> None:
        """§2.10: the subscriber handles ``on_error`` when there was no request."""
        subscriber, probe, _ = self._subscribed()
        error = self._fail(subscriber)
        probe.wait(lambda: bool(probe.errors), "on_error")
        check(probe.errors == [error], f"expected {error!r} itself, got {probe.errors!r}")

    @rule()
    def test_spec211_has_seen_each_item_in_order(self) -> None:
        """§2.11: the subscriber handles signals one after the other, and each item once."""
        subscriber, probe, link = self._subscribed()
        probe.request(3)
        link.wait(lambda: link.demand >= 1, "no request", self.timeout_s)
        items = [self.create_item(n) for n in range(min(link.demand, 3))]
        for item in items:
            subscriber.on_next(item)
        probe.wait(lambda: len(probe.items) >= len(items), f"{len(items)} items")
        same = len(items) == len(probe.items) and all(map(_is, items, probe.items))
        check(same, f"sent {items}, told of {probe.items}")

    @rule()
    def test_spec212_is_subscribed_once(self) -> None:
        """§2.12: a subscriber accepts one subscription in its life."""
        subscriber, probe, _ = self._subscribed()
        subscriber.on_subscribe(Link())
        self.settle()
        check(probe.subscriptions == 1, f"it took {probe.subscriptions} subscriptions")

    @rule()
    def test_spec213_on_subscribe_none_raises(self) -> None:
        """§2.13: ``on_subscribe(None)`` raises TypeError."""
        self._raises(self.create_subscriber(WhiteboxProbe[T](self.timeout_s)), "on_subscribe")

    @rule()
    def test_spec213_on_next_none_raises(self) -> None:
        """§2.13: ``on_next(None)`` raises TypeError."""
        subscriber, probe, _ = self._subscribed()
        probe.request(1)
        self._raises(subscriber, "on_next")

    @rule()
    def test_spec213_on_error_none_raises(self) -> None:
        """§2.13: ``on_error(None)`` raises TypeError."""
        subscriber, _, _ = self._subscribed()
        self._raises(subscriber, "on_error")

    @rule()
    def test_spec308_requests_what_it_is_made_to(self) -> None:
        """§3.8: each request adds to the demand; none is lost, and none is below 1."""
        _, probe, link = self._subscribed()
        before = link.demand
        probe.request(1)
        probe.request(2)
        link.wait(lambda: link.demand >= before + 3, "not 3 more requested", self.timeout_s)
        wrong = [n for n in link.requests if not isinstance(n, int) or n < 1]
        check(not wrong, f"it requested {wrong}")

    def _subscribed(self) -> tuple[Subscriber[T], WhiteboxProbe[T], Link]:
        probe, link = WhiteboxProbe[T](self.timeout_s), Link()
        subscriber = self.create_subscriber(probe)
        subscriber.on_subscribe(link)
        probe.wait(lambda: probe.subscriptions > 0, "on_subscribe")
        return subscriber, probe, link

    def _fail(self, subscriber: Subscriber[T]) -> BaseException:
        error = LookupError("sent by the verification")
        with recorded_drops():  # of a subscriber that does not handle errors
            subscriber.on_error(error)
        return error

    def _raises(self, subscriber: Subscriber[T], method: str) -> None:
        try:
            getattr(subscriber, method)(None)
        except TypeError:
            return
        raise AssertionError(f"{method}(None) did not raise TypeError")


def _is(a: object, b: object) -> bool:
    return a is b


def _missing(*_: object) -> None:
    raise AssertionError("the subscriber did not tell the probe how to make it request and cancel")
