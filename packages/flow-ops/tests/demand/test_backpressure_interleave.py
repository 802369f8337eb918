"""The back-pressure operators under every schedule within the bound."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest

from flow_core import Flow, Fusion
from flow_core.errors import MissingBackpressureError
from flow_ops import (
    on_backpressure_buffer,
    on_backpressure_drop,
    on_backpressure_error,
    on_backpressure_latest,
    on_backpressure_reduce,
    rebatch_requests,
)
from flow_testing import TestPublisher, TestSubscriber, VirtualClock
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = [pytest.mark.interleave, pytest.mark.usefixtures("dropped")]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core.serial", "flow_ops", __name__], expect=expect)


def behind(
    source: TestPublisher[int], operator: Any, request: int = 0, fusion: Fusion = Fusion.NONE
) -> TestSubscriber[int]:
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step(), fusion=fusion)
    Flow(source).pipe(operator).subscribe(subscriber)
    return subscriber


def send(source: TestPublisher[int], *items: int, end: bool = True) -> Any:
    def run() -> None:
        for item in items:
            source.next(item)
        if end:
            source.complete()

    return run


LOSSLESS = {
    "buffer": lambda: on_backpressure_buffer(2),
    "timed": lambda: on_backpressure_buffer(2, timeout=1, clock=VirtualClock()),
}


@pytest.mark.parametrize("make", LOSSLESS.values(), ids=LOSSLESS)
def test_items_and_the_end_come_in_order_however_the_request_falls(make: Any) -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, make())
        return Scenario(
            send(source, 1, 2),
            lambda: subscriber.request(2),
            check=lambda: subscriber.assert_result(1, 2),
        )

    exhaust(body)


def test_fused_items_and_the_end_come_in_order_however_the_request_falls() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_buffer(2), fusion=Fusion.ASYNC)
        return Scenario(
            send(source, 1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_result(1),
        )

    exhaust(body)


def test_two_requests_at_once_add_up() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_buffer(3))
        source.next(1, 2, 3)
        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items(1, 2),
        )

    exhaust(body)


@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.ASYNC])
def test_a_cancel_leaves_nothing(fusion: Fusion) -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_buffer(2), fusion=fusion)

        def check() -> None:
            subscriber.assert_rules_kept()
            subscription: Any = subscriber.subscription
            if source.terminated:
                subscription.clear()  # as polling subscribers do, when cancelled after the end
            assert not subscription.waiting
            assert subscription._downstream is None
            assert subscription._permit, "the permit is lost"
            assert source.cancelled or source.terminated

        return Scenario(send(source, 1, 2), subscriber.cancel, check=check)

    exhaust(body)


def test_a_bad_request_fails_once_and_never_within_on_next() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_buffer(2), 9)

        def check() -> None:
            subscriber.assert_failure(ValueError, *subscriber.items)
            assert subscriber.items == [1, 2][: len(subscriber.items)]

        return Scenario(
            send(source, 1, 2, end=False), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


def test_an_overflow_is_an_error_after_waiting_items() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_buffer(1))

        def outcome() -> Hashable:
            subscriber.request(9)
            if subscriber.error is not None:
                subscriber.assert_failure(MissingBackpressureError, *subscriber.items)
            return tuple(subscriber.items), subscriber.terminated

        def run() -> None:
            source.next(1)
            source.next(2)

        return Scenario(run, lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, {((1,), True), ((1, 2), False)})


def test_drop_oldest_against_a_request() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_buffer(1, overflow="drop_oldest"))

        def outcome() -> Hashable:
            subscriber.request(9)
            subscriber.assert_result(*subscriber.items)
            return tuple(subscriber.items)

        return Scenario(send(source, 1, 2), lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, {(1, 2), (2,)})


def test_timed_drop_oldest_against_a_timer() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        clock = VirtualClock()
        subscriber = behind(
            source,
            on_backpressure_buffer(1, overflow="drop_oldest", timeout=1, clock=clock),
        )
        source.next(1)

        def outcome() -> Hashable:
            clock.run()
            subscriber.request(9)
            subscriber.assert_rules_kept()
            assert clock.pending == 0
            return tuple(subscriber.items), subscriber.completed

        return Scenario(send(source, 2), lambda: clock.advance_by(1), outcome=outcome)

    exhaust(body, {((), True)})


def test_a_request_against_a_timer() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        clock = VirtualClock()
        subscriber = behind(source, on_backpressure_buffer(3, timeout=1, clock=clock))
        source.next(1)
        clock.advance_by(0.5)
        source.next(2).complete()

        def outcome() -> Hashable:
            subscriber.request(9)
            subscriber.assert_result(*subscriber.items)
            clock.run()
            assert clock.pending == 0
            return tuple(subscriber.items)

        return Scenario(
            lambda: clock.advance_by(0.5), lambda: subscriber.request(1), outcome=outcome
        )

    exhaust(body, {(1, 2), (2,)})


def test_latest_gives_the_last_one_at_least() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_latest())

        def outcome() -> Hashable:
            subscriber.request(9)
            subscriber.assert_result(*subscriber.items)
            return tuple(subscriber.items)

        return Scenario(send(source, 1, 2), lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, {(1, 2), (2,)})


def test_reduce_loses_nothing() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()

        def add(a: int, b: int) -> int:
            step()
            return a + b

        subscriber = behind(source, on_backpressure_reduce(add))

        def outcome() -> Hashable:
            subscriber.request(9)
            subscriber.assert_result(*subscriber.items)
            return tuple(subscriber.items)

        return Scenario(send(source, 1, 2), lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, {(1, 2), (3,)})


def test_drop_against_a_request() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        lost: list[int] = []
        subscriber = behind(source, on_backpressure_drop(lost.append))

        def outcome() -> Hashable:
            subscriber.assert_result(*subscriber.items)
            assert sorted([*lost, *subscriber.items]) == [1, 2]
            return tuple(subscriber.items)

        return Scenario(send(source, 1, 2), lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, {(), (1,), (2,)})


def test_error_against_a_request() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_error())

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            return tuple(subscriber.items), subscriber.terminated

        return Scenario(send(source, 1, end=False), lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, {((1,), False), ((), True)})


def test_an_overflow_against_a_cancel() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_error())

        def check() -> None:
            subscriber.assert_rules_kept()
            source.assert_cancelled()

        return Scenario(send(source, 1, end=False), subscriber.cancel, check=check)

    exhaust(body)


def test_a_requested_item_is_not_a_surplus_when_the_flow_is_cut_short() -> None:
    """A bad request fails as such, though an item comes meanwhile."""

    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, on_backpressure_error(), 1)

        def check() -> None:
            subscriber.assert_failure(ValueError, *subscriber.items)

        return Scenario(
            send(source, 1, end=False), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


def test_rebatched_items_and_the_end_come_in_order() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, rebatch_requests(4))

        def check() -> None:
            subscriber.assert_result(1)
            assert source.requests[0] == 4

        return Scenario(send(source, 1), lambda: subscriber.request(2), check=check)

    exhaust(body)


def test_a_request_against_items_that_go_straight_on() -> None:
    """Rebatched items keep their order, whether they have waited or not."""

    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, rebatch_requests(4), 1)
        return Scenario(
            send(source, 1, 2),
            lambda: subscriber.request(2),
            check=lambda: subscriber.assert_result(1, 2),
        )

    exhaust(body)


def test_a_cancel_against_an_item_that_goes_straight_on() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = behind(source, rebatch_requests(4), 9)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.items in ([], [1])
            assert source.cancelled

        return Scenario(send(source, 1, end=False), subscriber.subscription.cancel, check=check)

    exhaust(body)
