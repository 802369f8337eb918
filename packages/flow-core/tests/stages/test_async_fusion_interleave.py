"""Stages over a shared queue, under every schedule within the bound."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from flow_core import EMPTY, Flow, Fusion, QueueSubscription
from flow_core.protocols import Subscriber
from flow_testing import TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave


class SharedQueue(QueueSubscription[Any]):
    """A publisher whose queue is polled."""

    def __init__(self) -> None:
        self.items: deque[Any] = deque()
        self.cancels = 0
        self.subscriber: Subscriber[Any]

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def send(self, *items: Any) -> None:
        for item in items:
            self.items.append(item)
            wake_up: Any = EMPTY
            self.subscriber.on_next(wake_up)

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        return mode & Fusion.ASYNC

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        self.cancels += 1

    def poll(self) -> Any:
        return self.items.popleft() if self.items else EMPTY

    def is_empty(self) -> bool:
        return not self.items

    def clear(self) -> None:
        self.items.clear()


def exhaust(body: Body) -> Report:
    report = explore_all(
        body, modules=["flow_core.serial", "flow_core.hooks", "flow_core.stages._pushed", __name__]
    )
    assert report.exhausted
    return report


def polling(upstream: SharedQueue, request: int = 10) -> TestSubscriber[str]:
    subscriber = TestSubscriber[str](request, fusion=Fusion.ANY, on_item=lambda *_: step())
    Flow(upstream).filter(bool).map(str).subscribe(subscriber)
    assert subscriber.fused is Fusion.ASYNC
    return subscriber


@pytest.mark.checklist("F26", "F33")
def test_no_wake_up_is_lost_during_a_request() -> None:
    def body() -> Scenario:
        upstream = SharedQueue()
        subscriber = polling(upstream, 0)

        def send() -> None:
            upstream.send(0, 1)
            upstream.subscriber.on_complete()

        return Scenario(
            send, lambda: subscriber.request(2), check=lambda: subscriber.assert_result("1")
        )

    exhaust(body)


@pytest.mark.checklist("F26")
def test_cancel_while_it_is_woken_and_ends() -> None:
    def body() -> Scenario:
        upstream = SharedQueue()
        subscriber = polling(upstream)

        def send() -> None:
            upstream.send(1)
            upstream.subscriber.on_complete()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert upstream.cancels == 1

        return Scenario(send, subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("F26")
def test_a_wrong_amount_never_overlaps_a_wake_up() -> None:
    def body() -> Scenario:
        upstream = SharedQueue()
        subscriber = polling(upstream)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert isinstance(subscriber.error, ValueError)

        return Scenario(
            lambda: upstream.send(1), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


@pytest.mark.checklist("F33", "F38")
def test_a_poll_that_fails_while_it_ends_is_not_lost() -> None:
    def body() -> Scenario:
        upstream = SharedQueue()
        subscriber = TestSubscriber[float](0, fusion=Fusion.ANY)
        Flow(upstream).map(lambda n: 1 / n).subscribe(subscriber)
        upstream.send(0)

        def check() -> None:
            # An end that was on its way may still come, as after a cancel (§2.8).
            assert isinstance(subscriber.error, ZeroDivisionError)
            assert upstream.cancels
            assert subscriber.items == []

        return Scenario(upstream.subscriber.on_complete, lambda: subscriber.request(1), check=check)

    exhaust(body)
