"""Two boundaries that share a queue, under every schedule within the bound."""

from __future__ import annotations

from typing import Any

import pytest

from flow_core import Flow, Fusion
from flow_ops import observe_on
from flow_testing import TestPublisher, TestSubscriber, recorded_drops
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = [pytest.mark.interleave, pytest.mark.essential]


def exhaust(body: Body) -> Report:
    report = explore_all(body, modules=["flow_core.serial", "flow_ops", __name__])
    assert report.exhausted
    return report


def polling(source: TestPublisher[int], request: int = 10) -> TestSubscriber[int]:
    """Polls the boundary's queue; the tasks run where they are submitted."""
    subscriber = TestSubscriber[int](request, fusion=Fusion.ANY, on_item=lambda *_: step())
    Flow(source).pipe(observe_on(lambda task: task(), prefetch=2)).subscribe(subscriber)
    assert subscriber.fused is Fusion.ASYNC
    return subscriber


@pytest.mark.checklist("F26", "F33")
def test_no_wake_up_is_lost_during_a_request() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = polling(source, 0)

        def send() -> None:
            source.next(1)
            source.complete()

        return Scenario(
            send, lambda: subscriber.request(2), check=lambda: subscriber.assert_result(1)
        )

    exhaust(body)


@pytest.mark.checklist("F26", "O22")
def test_cancel_while_items_come_leaves_nothing_to_poll() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = polling(source)
        queue: Any = subscriber.subscription

        def check() -> None:
            subscriber.assert_rules_kept()
            assert queue.is_empty()
            source.assert_cancelled()

        return Scenario(lambda: source.next(1), subscriber.cancel, check=check)

    with recorded_drops():
        exhaust(body)


@pytest.mark.checklist("F33")
def test_cancel_while_it_ends_leaves_nothing_to_poll() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = polling(source, 0)
        queue: Any = subscriber.subscription
        source.next(1)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.items == []
            assert queue.is_empty()

        return Scenario(source.complete, subscriber.cancel, check=check)

    with recorded_drops():
        exhaust(body)


@pytest.mark.checklist("O12")
def test_a_wrong_amount_never_overlaps_a_wake_up() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = polling(source)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert isinstance(subscriber.error, ValueError)

        return Scenario(
            lambda: source.next(1), lambda: subscriber.subscription.request(0), check=check
        )

    with recorded_drops():
        exhaust(body)
