"""The guard before a subscriber that this library does not know."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow
from flow_core.subscribers import StrictSubscriber, core_subscriber
from flow_testing import Drops, TestPublisher, Violation


class Stranger:
    """A subscriber by its methods alone (PEP 544)."""

    def __init__(self, request: int = UNBOUNDED) -> None:
        self.request = request
        self.seen: list[Any] = []
        self.subscription: Any = None

    def on_subscribe(self, subscription: Any) -> None:
        assert self.subscription is None
        self.subscription = subscription
        if self.request:
            subscription.request(self.request)

    def on_next(self, item: Any) -> None:
        self.seen.append(item)

    def on_error(self, error: BaseException) -> None:
        self.seen.append(error)

    def on_complete(self) -> None:
        self.seen.append("|")


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f,
        lambda f: f.map(lambda n: n),
        lambda f: f.hide(),
        lambda f: f.hide().flat_map_iterable(lambda n: [n]),
    ],
)
def test_a_stranger_is_served_like_any_other(stages: Any) -> None:
    subscriber = Stranger(0)
    stages(flow.range(4)).subscribe(subscriber)
    for request, seen in ((1, [0]), (2, [0, 1, 2]), (5, [0, 1, 2, 3, "|"])):
        subscriber.subscription.request(request)
        assert subscriber.seen == seen
    failing = Stranger()
    error = ValueError()
    stages(flow.error(error)).subscribe(failing)
    assert failing.seen == [error]


def test_a_stranger_sees_one_subscription_and_one_terminal(drops: Drops) -> None:
    publisher = TestPublisher[int](Violation.AFTER_TERMINAL)
    subscriber = Stranger()
    Flow(publisher).subscribe(subscriber)
    assert publisher.subscribe_again().cancelled
    publisher.next(1).complete()
    publisher.complete()
    publisher.error(error := ValueError())
    assert subscriber.seen == [1, "|"]
    assert drops.take_errors() == [error]
    publisher.next(2) if publisher.outstanding else None
    assert subscriber.seen == [1, "|"]


def test_a_request_within_the_terminal_does_nothing() -> None:
    """§2.3"""

    class Wrong(Stranger):
        def on_complete(self) -> None:
            super().on_complete()
            self.subscription.request(1)
            self.subscription.cancel()

    for made in (flow.range(2), flow.range(2).hide().map(lambda n: n)):
        subscriber = Wrong()
        made.subscribe(subscriber)
        assert subscriber.seen == [0, 1, "|"]


def test_the_guard_is_put_before_strangers_only() -> None:
    subscriber = Stranger()
    guard = core_subscriber(subscriber)
    assert isinstance(guard, StrictSubscriber)
    assert core_subscriber(guard) is guard


def test_the_same_stranger_may_subscribe_twice_to_different_flows() -> None:
    class Twice(Stranger):
        def on_subscribe(self, subscription: Any) -> None:
            subscription.request(UNBOUNDED)

    subscriber = Twice()
    flow.range(2).subscribe(subscriber)
    flow.range(2).subscribe(subscriber)
    assert subscriber.seen == [0, 1, "|", 0, 1, "|"]
