"""The rules of subscribers: kept by the core's, and caught when they are broken."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest

from flow_core import UNBOUNDED
from flow_core.errors import none_given
from flow_core.protocols import Subscriber, Subscription
from flow_core.subscribers import CallbackSubscriber, core_subscriber
from flow_testing import TestSubscriber
from flow_testing.tck import (
    SubscriberVerification,
    SubscriberWhiteboxVerification,
    WhiteboxProbe,
)

pytestmark = pytest.mark.tck


class TestFunctions(SubscriberVerification[int]):
    quiet_s = 0

    def create_subscriber(self) -> Subscriber[int]:
        return CallbackSubscriber[int](lambda _: None)


class TestFunctionsWithPrefetch(SubscriberVerification[int]):
    quiet_s = 0

    def create_subscriber(self) -> Subscriber[int]:
        return CallbackSubscriber[int](lambda _: None, lambda _: None, prefetch=8)


class TestTheTestingKit(SubscriberVerification[int]):
    quiet_s = 0

    def create_subscriber(self) -> Subscriber[int]:
        return TestSubscriber[int]()


class TestTheTestingKitOnDemand(SubscriberVerification[int]):
    quiet_s = 0

    def create_subscriber(self) -> Subscriber[int]:
        return TestSubscriber[int](0)

    def trigger_request(self, subscriber: Any) -> None:
        subscriber.request(5)


class Breakable:
    """Requests one item after the other, and keeps the rules, except for the one to break."""

    def __init__(self, breaks: str = "", probe: WhiteboxProbe[int] | None = None) -> None:
        self.breaks = breaks
        self.probe = probe
        self.subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None and self.breaks != "takes None":
            raise none_given("on_subscribe")
        if self.subscription is not None:
            if self.breaks == "keeps two subscriptions":
                self.subscription = subscription
                self.tell_of_subscription()
                return
            if self.breaks == "leaves the first for the second":
                self.subscription.cancel()
            if self.breaks == "requests of both":
                subscription.request(1)
            subscription.cancel()
            return
        self.subscription = subscription
        self.tell_of_subscription()
        if self.breaks == "requests on two threads":
            threads = [Thread(target=self.request, args=(1,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        elif self.probe is None:
            self.request(1)

    def tell_of_subscription(self) -> None:
        if self.probe is not None:
            self.probe.on_subscribe(self.request, self.cancel)

    def request(self, n: int) -> None:
        if self.subscription is not None and self.breaks != "never requests":
            self.subscription.request(0 if self.breaks == "requests nothing" else n)

    def cancel(self) -> None:
        if self.subscription is not None and self.breaks != "never cancels":
            self.subscription.cancel()
        self.cancelled = True

    cancelled = False

    def on_next(self, item: int, /) -> None:
        if item is None and self.breaks != "takes None":
            raise none_given("on_next")
        if self.breaks == "bears no item":
            raise AssertionError("no item was expected")
        if self.cancelled and self.breaks == "bears no item after a cancel":
            raise AssertionError("no item was expected")
        if self.probe is not None:
            self.probe.on_next(-item if self.breaks == "changes items" else item)
        else:
            self.request(1)

    def on_error(self, error: BaseException, /) -> None:
        if error is None and self.breaks != "takes None":
            raise none_given("on_error")
        self.end()
        if self.probe is not None:
            self.probe.on_error(RuntimeError() if self.breaks == "wraps errors" else error)

    def on_complete(self) -> None:
        self.end()
        if self.probe is not None and self.breaks != "does not hear the end":
            self.probe.on_complete()

    def end(self) -> None:
        if self.subscription is not None and self.breaks == "cancels in the end":
            self.subscription.cancel()
        if self.breaks == "bears no end":
            raise AssertionError("no end was expected")


class BlackBox(SubscriberVerification[int]):
    timeout_s = 0.05
    quiet_s = 0

    def __init__(self, breaks: str = "") -> None:
        self.breaks = breaks

    def create_subscriber(self) -> Subscriber[int]:
        return Breakable(self.breaks)


class WhiteBox(SubscriberWhiteboxVerification[int]):
    timeout_s = 0.05
    quiet_s = 0

    def __init__(self, breaks: str = "") -> None:
        self.breaks = breaks

    def create_subscriber(self, probe: WhiteboxProbe[int]) -> Subscriber[int]:
        return Breakable(self.breaks, probe)

    def create_item(self, n: int) -> int:
        return n + 1


class TestTheGuard(SubscriberWhiteboxVerification[int]):
    """Before a foreign subscriber, it keeps rules that the subscriber does not know."""

    quiet_s = 0

    def create_subscriber(self, probe: WhiteboxProbe[int]) -> Subscriber[int]:
        return core_subscriber(Breakable("keeps two subscriptions", probe))

    def create_item(self, n: int) -> int:
        return n


BLACK = [
    ("spec201_signals_demand", "never requests"),
    ("spec203_calls_nothing_of_the_subscription_in_on_complete", "cancels in the end"),
    ("spec203_calls_nothing_of_the_subscription_in_on_error", "cancels in the end"),
    ("spec205_cancels_a_second_subscription", "keeps two subscriptions"),
    ("spec205_cancels_a_second_subscription", "leaves the first for the second"),
    ("spec205_cancels_a_second_subscription", "requests of both"),
    ("spec207_calls_its_subscription_serially", "requests on two threads"),
    ("spec208_bears_as_many_items_as_it_has_requested", "bears no item"),
    ("spec209_bears_on_complete_with_demand", "bears no end"),
    ("spec209_bears_on_complete_without_demand", "bears no end"),
    ("spec210_bears_on_error_with_demand", "bears no end"),
    ("spec210_bears_on_error_without_demand", "bears no end"),
    ("spec213_on_subscribe_none_raises", "takes None"),
    ("spec213_on_next_none_raises", "takes None"),
    ("spec213_on_error_none_raises", "takes None"),
    ("spec309_requests_at_least_one_item", "requests nothing"),
]

WHITE = [
    ("spec201_signals_demand", "never requests"),
    ("spec203_calls_nothing_of_the_subscription_in_on_complete", "cancels in the end"),
    ("spec203_calls_nothing_of_the_subscription_in_on_error", "cancels in the end"),
    ("spec205_cancels_a_second_subscription", "keeps two subscriptions"),
    ("spec205_cancels_a_second_subscription", "leaves the first for the second"),
    ("spec206_cancels_when_it_is_made_to", "never cancels"),
    ("spec208_bears_items_after_cancel", "bears no item after a cancel"),
    ("spec209_takes_on_complete_with_demand", "does not hear the end"),
    ("spec209_takes_on_complete_without_demand", "does not hear the end"),
    ("spec210_takes_on_error_with_demand", "wraps errors"),
    ("spec210_takes_on_error_without_demand", "wraps errors"),
    ("spec211_has_seen_each_item_in_order", "changes items"),
    ("spec212_is_subscribed_once", "keeps two subscriptions"),
    ("spec213_on_subscribe_none_raises", "takes None"),
    ("spec213_on_next_none_raises", "takes None"),
    ("spec213_on_error_none_raises", "takes None"),
    ("spec308_requests_what_it_is_made_to", "requests nothing"),
]


def rules(verification: type) -> list[str]:
    return [name for name in dir(verification) if name.startswith("test_")]


@pytest.mark.parametrize("name", rules(BlackBox))
def test_a_subscriber_that_keeps_all_rules_passes(name: str) -> None:
    getattr(BlackBox(), name)()


@pytest.mark.parametrize("name", rules(WhiteBox))
def test_a_subscriber_that_keeps_all_rules_passes_with_a_probe(name: str) -> None:
    getattr(WhiteBox(), name)()


@pytest.mark.parametrize(("name", "breaks"), BLACK, ids=[f"{n}-{b}" for n, b in BLACK])
def test_a_broken_rule_is_caught_from_outside(name: str, breaks: str) -> None:
    with pytest.raises(AssertionError):
        getattr(BlackBox(breaks), f"test_{name}")()


@pytest.mark.parametrize(("name", "breaks"), WHITE, ids=[f"{n}-{b}" for n, b in WHITE])
def test_a_broken_rule_is_caught_with_a_probe(name: str, breaks: str) -> None:
    with pytest.raises(AssertionError):
        getattr(WhiteBox(breaks), f"test_{name}")()


def test_every_rule_is_broken_here() -> None:
    assert set(rules(BlackBox)) == {f"test_{name}" for name, _ in BLACK}
    assert set(rules(WhiteBox)) == {f"test_{name}" for name, _ in WHITE}


def test_a_probe_without_a_subscription_says_so() -> None:
    with pytest.raises(AssertionError, match="how to make it request and cancel"):
        WhiteboxProbe[int](0.01).request(UNBOUNDED)
