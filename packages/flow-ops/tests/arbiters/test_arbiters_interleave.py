"""The arbiters under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest

from flow_ops import ProducerArbiter, SubscriptionArbiter, SwitchArbiter
from flow_testing import TestPublisher, TestSubscriber, Violation
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = [
    pytest.mark.interleave,
    pytest.mark.essential,
    pytest.mark.usefixtures("dropped"),
]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core.serial", "flow_ops", __name__], expect=expect)


class Link:
    """A producer and a subscription; notices calls that overlap."""

    def __init__(self) -> None:
        self.amounts: list[int] = []
        self.cancelled = False
        self.overlaps = False
        self._inside = False

    def request(self, n: int, /) -> None:
        self.overlaps = self.overlaps or self._inside
        self._inside = True
        step()
        self.amounts.append(n)
        self._inside = False

    @property
    def requested(self) -> int:
        return sum(self.amounts)

    def cancel(self) -> None:
        self.cancelled = True


@pytest.mark.checklist("P07", "P10", "P20")
def test_a_producer_is_asked_for_all_demand_once_however_it_is_set() -> None:
    def body() -> Scenario:
        arbiter, link = ProducerArbiter(), Link()
        arbiter.request(1)

        def check() -> None:
            assert link.requested == arbiter.outstanding == 6
            assert not link.overlaps

        return Scenario(
            lambda: arbiter.set(link),
            lambda: arbiter.request(5),
            check=check,
        )

    exhaust(body)


@pytest.mark.checklist("P10", "P12")
def test_production_and_demand_add_up_however_they_fall() -> None:
    def body() -> Scenario:
        arbiter, first, second = ProducerArbiter(), Link(), Link()
        arbiter.set(first)
        arbiter.request(5)

        def check() -> None:
            arbiter.set(second)
            assert (first.requested, second.requested) == (7, 4)

        return Scenario(lambda: arbiter.produced(3), lambda: arbiter.request(2), check=check)

    exhaust(body)


@pytest.mark.checklist("P06", "P12")
def test_a_subscription_is_asked_for_all_demand_once_however_it_is_set() -> None:
    def body() -> Scenario:
        arbiter, link = SubscriptionArbiter(), Link()
        arbiter.request(1)

        def check() -> None:
            assert link.requested == arbiter.outstanding == 3

        return Scenario(lambda: arbiter.set(link), lambda: arbiter.request(2), check=check)

    exhaust(body)


@pytest.mark.checklist("P24")
def test_no_subscription_survives_a_cancel() -> None:
    def body() -> Scenario:
        arbiter, first, second = SubscriptionArbiter(cancel_on_replace=True), Link(), Link()
        arbiter.set(first)

        def check() -> None:
            assert first.cancelled
            assert second.cancelled

        return Scenario(lambda: arbiter.set(second), arbiter.cancel, check=check)

    exhaust(body)


def switching(
    request: int, first: TestPublisher[int]
) -> tuple[TestSubscriber[int], SwitchArbiter[int]]:
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    arbiter = SwitchArbiter(subscriber)
    arbiter.start()
    arbiter.switch_to(first)
    return subscriber, arbiter


@pytest.mark.checklist("P19", "P28")
def test_an_item_under_way_counts_once_when_the_source_changes() -> None:
    """It is delivered and counted, or dropped and asked for again."""

    def body() -> Scenario:
        first = TestPublisher[int](Violation.IGNORED_CANCEL)
        second = TestPublisher[int]()
        subscriber, arbiter = switching(3, first)

        def outcome() -> tuple[int, int]:
            subscriber.assert_rules_kept()
            assert len(subscriber.items) + second.requested == 3
            return len(subscriber.items), second.requested

        return Scenario(lambda: first.next(1), lambda: arbiter.switch_to(second), outcome=outcome)

    exhaust(body, expect=[(0, 3), (1, 2)])


@pytest.mark.checklist("P28")
def test_two_sources_never_send_at_once() -> None:
    def body() -> Scenario:
        first = TestPublisher[int](Violation.IGNORED_CANCEL)
        second = TestPublisher[int](on_request=lambda source, _: source.next(2))
        subscriber, arbiter = switching(5, first)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.items in ([2], [1, 2])

        return Scenario(lambda: first.next(1), lambda: arbiter.switch_to(second), check=check)

    exhaust(body)


@pytest.mark.checklist("P12", "P28")
def test_a_request_reaches_the_sources_once_when_they_change() -> None:
    def body() -> Scenario:
        first, second = TestPublisher[int](), TestPublisher[int]()
        subscriber, arbiter = switching(1, first)

        def outcome() -> int:
            assert second.requested == 3, second.requests
            assert subscriber.outstanding == 3
            return len(second.requests)

        return Scenario(
            lambda: subscriber.request(2), lambda: arbiter.switch_to(second), outcome=outcome
        )

    exhaust(body, expect=[1, 2])


@pytest.mark.checklist("P28")
def test_the_last_of_two_changes_wins() -> None:
    def body() -> Scenario:
        first, *others = (TestPublisher[int]() for _ in range(3))
        _, arbiter = switching(4, first)

        def outcome() -> tuple[bool, ...]:
            first.assert_cancelled()
            running = [one for one in others if one.subscribed and not one.cancelled]
            assert len(running) == 1
            running[0].assert_requests(4)
            return tuple(bool(one.subscribed) for one in others)

        return Scenario(
            lambda: arbiter.switch_to(others[0]),
            lambda: arbiter.switch_to(others[1]),
            outcome=outcome,
        )

    exhaust(body)


@pytest.mark.checklist("P24", "P28")
def test_a_change_against_a_cancel_leaves_no_source_running() -> None:
    def body() -> Scenario:
        first, second = TestPublisher[int](), TestPublisher[int]()
        subscriber, arbiter = switching(4, first)

        def check() -> None:
            first.assert_cancelled()
            assert not second.subscribed or second.cancelled
            assert arbiter._current is None
            assert arbiter._permit
            assert arbiter._later_permit in (None, {0: True})
            assert not arbiter._later

        return Scenario(lambda: arbiter.switch_to(second), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("P28")
def test_a_change_against_the_end_of_the_source() -> None:
    """The two race: each may come first."""

    def body() -> Scenario:
        first, second = TestPublisher[int](), TestPublisher[int]()
        subscriber, arbiter = switching(4, first)

        def outcome() -> tuple[bool, bool]:
            subscriber.assert_rules_kept()
            running = bool(second.subscribed) and not second.cancelled
            assert subscriber.completed is not running
            return subscriber.completed, running

        return Scenario(first.complete, lambda: arbiter.switch_to(second), outcome=outcome)

    exhaust(body, expect=[(True, False), (False, True)])


def test_an_error_of_a_replaced_source_is_not_lost(dropped: Any) -> None:
    def body() -> Scenario:
        first = TestPublisher[int](Violation.IGNORED_CANCEL)
        second = TestPublisher[int]()
        subscriber, arbiter = switching(4, first)
        error = ValueError("failed")
        dropped.errors.clear()

        def outcome() -> bool:
            assert (subscriber.error is error) is not (dropped.errors == [error])
            assert subscriber.error is error or second.subscribed
            return subscriber.error is error

        return Scenario(
            lambda: first.error(error), lambda: arbiter.switch_to(second), outcome=outcome
        )

    exhaust(body, expect=[True, False])
