"""`SwitchArbiter`: one source at a time, and exactly the demand that is left."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.demand import UNBOUNDED
from flow_core.protocols import CoreSubscriber
from flow_ops import SwitchArbiter
from flow_testing import (
    ConditionalTestSubscriber,
    Payloads,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_released,
)


def started(subscriber: CoreSubscriber[Any]) -> SwitchArbiter[Any]:
    arbiter: SwitchArbiter[Any] = SwitchArbiter(subscriber)
    arbiter.start()
    return arbiter


@pytest.mark.checklist("P04", "P17")
def test_the_next_source_is_asked_for_what_the_one_before_left() -> None:
    subscriber, first, second = TestSubscriber[int](5), TestPublisher[int](), TestPublisher[int]()
    arbiter = started(subscriber)
    arbiter.switch_to(first)
    first.next(1, 2)
    arbiter.switch_to(second)
    first.assert_requests(5).assert_cancelled()
    second.assert_requests(3)
    subscriber.request(4)
    second.assert_requests(3, 4)
    second.next(3).complete()
    subscriber.assert_result(1, 2, 3)


@pytest.mark.checklist("P06", "P18")
def test_demand_waits_for_a_source_and_a_source_for_demand() -> None:
    subscriber, first, second = TestSubscriber[int](3), TestPublisher[int](), TestPublisher[int]()
    arbiter = started(subscriber)
    subscriber.request(4)
    arbiter.switch_to(first)
    first.assert_requests(7).next(*range(7))
    arbiter.switch_to(second)
    second.assert_not_requested()
    subscriber.request(1)
    second.assert_requests(1)


@pytest.mark.checklist("P16")
def test_demand_without_bound_stays_so() -> None:
    subscriber, first, second = TestSubscriber[int](2), TestPublisher[int](), TestPublisher[int]()
    arbiter = started(subscriber)
    arbiter.switch_to(first)
    subscriber.request(UNBOUNDED)
    subscriber.request(5)
    first.assert_requests(2, UNBOUNDED).next(1)
    arbiter.switch_to(second)
    second.assert_requests(UNBOUNDED)


@pytest.mark.checklist("P28")
def test_nothing_of_a_replaced_source_gets_through(dropped: Any) -> None:
    subscriber, second = TestSubscriber[int](), TestPublisher[int]()
    first = TestPublisher[int](Violation.IGNORED_CANCEL)
    arbiter = started(subscriber)
    arbiter.switch_to(first)
    arbiter.switch_to(second)
    error = ValueError("late")
    first.next(1).error(error)
    second.next(2).complete()
    subscriber.assert_result(2)
    assert (dropped.items, dropped.errors) == ([1], [error])


@pytest.mark.checklist("P19")
def test_a_change_during_on_next_does_not_ask_for_the_item_under_way_again() -> None:
    second = TestPublisher[int]()
    subscriber = TestSubscriber[int](2, on_item=lambda _, item: arbiter.switch_to(second))
    arbiter = started(subscriber)
    arbiter.switch_to(flow.range(5))
    second.assert_requests(1)
    subscriber.assert_items(0)


def test_a_source_that_is_replaced_before_it_was_subscribed_to_never_is() -> None:
    sources = [TestPublisher[int]() for _ in range(3)]

    def change(_: Any, item: int) -> None:
        if item == 0:
            for source in sources:
                arbiter.switch_to(source)

    subscriber = TestSubscriber[int](5, on_item=change)
    arbiter = started(subscriber)
    arbiter.switch_to(flow.range(3))
    assert [source.subscribed for source in sources] == [0, 0, 1]
    sources[2].assert_requests(4)


def test_a_source_may_be_given_within_on_subscribe() -> None:
    source = TestPublisher[int]()

    class Early(TestSubscriber[int]):
        def on_subscribe(self, subscription: Any, /) -> None:
            subscription.switch_to(source)
            super().on_subscribe(subscription)

    started(Early(3))
    source.assert_requests(3)


@pytest.mark.slow
@pytest.mark.checklist("P27")
def test_ten_thousand_changes_from_within_do_not_recurse() -> None:
    left = [10**4]

    def change(_: Any, item: int) -> None:
        if left[0]:
            left[0] -= 1
            arbiter.switch_to(flow.just(1, 2))

    subscriber = TestSubscriber[int](on_item=change)
    arbiter = started(subscriber)
    arbiter.switch_to(flow.just(1, 2))
    assert subscriber.completed
    assert len(subscriber.items) == 10**4 + 2


def test_a_rejected_item_is_requested_again() -> None:
    second = TestPublisher[int]()
    subscriber = ConditionalTestSubscriber[int](lambda item: item % 2 == 0, 3)
    arbiter = started(subscriber)
    first = TestPublisher[int]()
    arbiter.switch_to(first)
    first.next(0, 1, 3)
    first.assert_requests(3, 1, 1)
    arbiter.switch_to(second)
    second.assert_requests(2)


@pytest.mark.checklist("P24")
def test_a_cancel_reaches_the_source_and_later_ones_are_not_subscribed_to() -> None:
    subscriber, first, second = TestSubscriber[int](), TestPublisher[int](), TestPublisher[int]()
    arbiter = started(subscriber)
    arbiter.switch_to(first)
    subscriber.cancel()
    first.assert_cancelled()
    arbiter.switch_to(second)
    second.assert_not_subscribed()


@pytest.mark.checklist("P09")
def test_a_bad_request_cancels_and_fails() -> None:
    subscriber, first = TestSubscriber[int](), TestPublisher[int]()
    started(subscriber).switch_to(first)
    subscriber.subscription.request(0)
    first.assert_cancelled()
    subscriber.assert_failure(ValueError).assert_error_message("3.9")


def test_the_end_of_the_source_is_the_end() -> None:
    error = ValueError("failed")
    for end in (None, error):
        subscriber, source = TestSubscriber[int](), TestPublisher[int]()
        started(subscriber).switch_to(source)
        source.next(1)
        if end is None:
            source.complete()
            subscriber.assert_result(1)
        else:
            source.error(end)
            subscriber.assert_failure(error, 1)


def test_a_source_that_cannot_be_subscribed_to_fails_the_flow() -> None:
    error = ValueError("no")

    class Broken:
        def subscribe(self, _: Any, /) -> None:
            raise error

    subscriber = TestSubscriber[int]()
    started(subscriber).switch_to(Broken())
    subscriber.assert_failure(error)


@pytest.mark.parametrize("hidden", [False, True])
def test_it_lets_go_of_everything(hidden: bool) -> None:
    class Source:
        def __init__(self, source: Flow[Any]) -> None:
            self.source = source

        def subscribe(self, subscriber: Any, /) -> None:
            arbiter: SwitchArbiter[Any] = SwitchArbiter(subscriber)
            arbiter.start()
            arbiter.switch_to(flow.never())
            arbiter.switch_to(self.source)

    def make(payloads: Payloads) -> Flow[Any]:
        source = payloads.pushed() if hidden else flow.from_iterable(payloads)
        return Flow(Source(source))

    assert_released(make)
