"""Runs of stages between two threads, under every schedule within the bound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core.demand import UNBOUNDED
from flow_testing import Drops, TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave

Stages = Callable[[flow.Flow[int]], flow.Flow[int]]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core", __name__], expect=expect)


def busy(*_: object) -> None:
    """A subscriber that takes its time."""
    step()


def one_to_one(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.map(abs)


def some(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.filter(lambda n: n > 0)


def one_to_two(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.flat_map_iterable(lambda n: (n, n))


def at_the_end(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.reduce(lambda a, b: a + b)


def first(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.take(1)


SHAPES = pytest.mark.parametrize(
    "stages", [one_to_one, some, one_to_two, at_the_end, first], ids=lambda stages: stages.__name__
)


def staged(
    stages: Stages, request: int
) -> tuple[TestPublisher[int], TestSubscriber[int], Callable[[], None]]:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](request, on_item=busy)
    return source, subscriber, lambda: stages(flow.Flow(source)).subscribe(subscriber)


def released(subscriber: TestSubscriber[int]) -> None:
    """The subscription refers to no subscriber any more (§3.13), and nothing waits in it."""
    subscription: Any = subscriber.subscription
    assert subscription._downstream is None
    assert subscription._loop is None
    assert not subscription._inbox
    assert subscription._permit, "the permit is lost"


@pytest.mark.checklist("M13")
def test_a_request_for_everything_holds_against_requests_of_other_threads() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](0, on_item=busy)
        flow.range(4).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_result(0, 1, 2, 3)

        def some() -> None:
            subscriber.request(1)

        return Scenario(some, some, lambda: subscriber.request(UNBOUNDED), check=check)

    exhaust(body)


@SHAPES
def test_a_cancel_while_it_is_being_subscribed_reaches_the_upstream(stages: Stages) -> None:
    def body() -> Scenario:
        source, subscriber, subscribe = staged(stages, 1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            released(subscriber)

        return Scenario(subscribe, subscriber.cancel, check=check)

    exhaust(body)


@SHAPES
def test_a_request_while_it_is_being_subscribed_counts(stages: Stages) -> None:
    def body() -> Scenario:
        source, subscriber, subscribe = staged(stages, 0)

        def request() -> None:
            subscriber.request(2)

        def check() -> None:
            assert source.requested >= 1
            source.next(1)
            source.complete()
            subscriber.assert_result(*((1, 1) if stages is one_to_two else (1,)))

        return Scenario(subscribe, request, check=check)

    exhaust(body)


@SHAPES
def test_an_error_of_the_upstream_against_a_cancel_is_signalled_at_most_once(
    stages: Stages, drops: Drops
) -> None:
    error = ValueError("upstream")

    def body() -> Scenario:
        drops.take_errors()
        source, subscriber, subscribe = staged(stages, 1)
        subscribe()

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            released(subscriber)
            dropped = drops.take_errors()
            assert subscriber.error is None or not dropped
            return type(subscriber.error).__name__

        return Scenario(lambda: source.error(error), subscriber.cancel, outcome=outcome)

    exhaust(body, {"ValueError", "NoneType"})


@SHAPES
def test_the_end_of_the_upstream_against_a_request(stages: Stages) -> None:
    def body() -> Scenario:
        source, subscriber, subscribe = staged(stages, 1)
        subscribe()

        def send() -> None:
            source.next(1)
            source.complete()

        def check() -> None:
            subscriber.assert_result(*((1, 1) if stages is one_to_two else (1,)))
            released(subscriber)

        return Scenario(send, lambda: subscriber.request(1), check=check)

    exhaust(body)


@SHAPES
def test_the_end_of_the_upstream_against_a_bad_request(stages: Stages) -> None:
    def body() -> Scenario:
        source, subscriber, subscribe = staged(stages, 1)
        subscribe()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.terminated
            released(subscriber)

        return Scenario(source.complete, lambda: subscriber.subscription.request(0), check=check)

    exhaust(body)


def test_two_requests_at_once_for_what_waits_add_up() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = TestSubscriber[int](0, on_item=busy)
        one_to_two(flow.Flow(source)).subscribe(subscriber)
        subscriber.request(1)
        source.next(1, 2)

        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items(1, 1, 2).assert_not_terminated(),
        )

    exhaust(body)


def test_a_cancel_while_a_source_without_stages_is_being_subscribed() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](2, on_item=busy)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            subscription: Any = subscriber.subscription
            assert subscription._downstream is None

        return Scenario(lambda: flow.range(5).subscribe(subscriber), subscriber.cancel, check=check)

    exhaust(body)


def test_disposing_against_counted_items_stops_the_flow() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        seen: list[int] = []

        def on_next(item: int) -> None:
            step()
            seen.append(item)

        handle = flow.Flow(source).subscribe(on_next, prefetch=1)

        def check() -> None:
            assert seen == list(range(1, len(seen) + 1))
            source.assert_cancelled()
            assert handle.disposed

        def send() -> None:
            source.next(1)
            if source.outstanding and not source.cancelled:
                source.next(2)

        return Scenario(send, handle.dispose, check=check)

    exhaust(body)
