"""`observe_on` under every schedule within the bound (two preemptions, or more).

Its executor starts a thread for each task, and these threads are the explorer's.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import RejectedExecutionError
from flow_ops import concat_map, observe_on
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import (
    Body,
    Report,
    Scenario,
    explore_all,
    step,
    thread_per_task,
)

pytestmark = [pytest.mark.interleave, pytest.mark.essential]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(
        body,
        modules=["flow_core.serial", "flow_core.executors", "flow_ops", __name__],
        expect=expect,
    )


def observed(source: TestPublisher[int], request: int = 0, **more: Any) -> TestSubscriber[int]:
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    flow.Flow(source).pipe(observe_on(thread_per_task, **more)).subscribe(subscriber)
    return subscriber


@pytest.mark.checklist("O15", "M33")
def test_items_and_the_end_come_in_order_however_the_request_falls() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = observed(source)

        def send() -> None:
            source.next(1)
            source.complete()

        return Scenario(
            send, lambda: subscriber.request(2), check=lambda: subscriber.assert_result(1)
        )

    exhaust(body)


@pytest.mark.checklist("O15")
def test_a_request_while_it_introduces_itself_keeps_no_item_back() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](0)
        made = flow.range(2).hide().pipe(observe_on(thread_per_task, prefetch=1))
        return Scenario(
            lambda: made.subscribe(subscriber),
            lambda: subscriber.request(9),
            check=lambda: subscriber.assert_result(0, 1),
        )

    exhaust(body)


@pytest.mark.checklist("O15")
def test_no_item_is_left_behind_by_a_task_that_ends() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = observed(source, 10)

        def send() -> None:
            source.next(1)
            source.next(2)

        return Scenario(send, check=lambda: subscriber.assert_items(1, 2))

    exhaust(body)


@pytest.mark.checklist("O22", "O27", "O28")
def test_a_cancel_empties_the_queue_and_lets_everything_go() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = observed(source, 10)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            subscription: Any = subscriber.subscription
            assert subscription._downstream is None
            assert not subscription._queue
            assert subscription._permit, "the permit is lost"

        return Scenario(lambda: source.next(1), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("O25", "O29")
def test_a_request_against_a_cancel_leaves_no_task_and_no_handle() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = observed(source)
        source.next(1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            subscription: Any = subscriber.subscription
            assert not subscription._queue
            assert subscription._handle is None
            assert subscription._permit, "the permit is lost"

        return Scenario(lambda: subscriber.request(1), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("O12")
def test_a_bad_request_waits_for_a_running_on_next() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = observed(source, 10)

        def check() -> None:
            subscriber.assert_failure(ValueError, *subscriber.items)
            source.assert_cancelled()

        return Scenario(
            lambda: source.next(1), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


@pytest.mark.checklist("O18")
def test_an_error_that_does_not_wait_is_signalled_once() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = observed(source, delay_error=False)
        error = ValueError("upstream")

        def send() -> None:
            source.next(1)
            source.error(error)

        def outcome() -> Hashable:
            subscriber.assert_failure(error, *subscriber.items)
            return tuple(subscriber.items)

        return Scenario(send, lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, {(), (1,)})


def test_two_requests_at_once_add_up() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = observed(source)
        source.next(1, 2, 3)
        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items(1, 2),
        )

    exhaust(body)


@pytest.mark.checklist("O04", "F25")
def test_a_fused_source_is_polled_once_for_each_item_that_is_requested() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](0, on_item=lambda *_: step())
        flow.range(2).pipe(observe_on(thread_per_task)).subscribe(subscriber)
        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_result(0, 1),
        )

    exhaust(body)


@pytest.mark.checklist("O13", "X06")
def test_a_cancel_while_it_is_being_subscribed_reaches_the_upstream() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = TestSubscriber[int](3, on_item=lambda *_: step())
        observed_flow = flow.Flow(source).pipe(observe_on(thread_per_task))

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            subscription: Any = subscriber.subscription
            assert subscription._downstream is None
            assert subscription._permit, "the permit is lost"

        return Scenario(lambda: observed_flow.subscribe(subscriber), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("O30")
def test_an_executor_that_refuses_ends_the_flow_once() -> None:
    def refuse(task: object) -> None:
        raise RuntimeError("full")

    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = TestSubscriber[int](0)
        flow.Flow(source).pipe(observe_on(refuse)).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_failure(RejectedExecutionError)
            source.assert_cancelled()

        return Scenario(lambda: source.next(1), lambda: subscriber.request(1), check=check)

    exhaust(body)


@pytest.mark.checklist("O04")
def test_a_prefetch_of_one_is_asked_for_again_after_each_item() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = observed(source, 10, prefetch=1)

        def send() -> None:
            for n in (1, 2):
                while not source.outstanding:
                    time.sleep(1)  # virtual: until no other thread can continue
                source.next(n)
            source.complete()

        return Scenario(send, check=lambda: subscriber.assert_result(1, 2))

    exhaust(body)


# -- concat_map


def busy(*_: object) -> None:
    """A subscriber that takes its time."""
    step()


def concatenated(
    *inners: flow.Flow[int], request: int = 0
) -> tuple[TestPublisher[int], TestSubscriber[int]]:
    """A subscription to the flows that items 0, 1, ... become."""
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](request, on_item=busy)
    flow.Flow(source).pipe(concat_map(lambda n: inners[n])).subscribe(subscriber)
    return source, subscriber


def exhaust_all(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core", "flow_ops", __name__], expect=expect)


def test_an_inner_flow_that_ends_against_a_request_leaves_the_rest_of_it_to_the_next() -> None:
    def body() -> Scenario:
        one, two = TestPublisher[int](), TestPublisher[int]()
        source, subscriber = concatenated(flow.Flow(one), flow.Flow(two), request=1)
        source.next(0, 1)
        source.complete()

        def send() -> None:
            one.next(1)
            one.complete()

        def check() -> None:
            assert two.outstanding == 2
            two.next(2, 3)
            two.complete()
            subscriber.assert_result(1, 2, 3)

        return Scenario(send, lambda: subscriber.request(2), check=check)

    exhaust_all(body)


def test_an_inner_flow_that_ends_against_a_cancel_cancels_the_upstream() -> None:
    def body() -> Scenario:
        one, two = TestPublisher[int](), TestPublisher[int]()
        source, subscriber = concatenated(flow.Flow(one), flow.Flow(two), request=2)
        source.next(0, 1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            assert one.terminated or one.cancelled
            assert not two.subscribed or two.cancelled
            subscription: Any = subscriber.subscription
            assert subscription._downstream is None
            assert subscription._inner is None
            assert subscription._permit, "the permit is lost"

        return Scenario(one.complete, subscriber.cancel, check=check)

    exhaust_all(body)


def test_an_item_of_an_inner_flow_against_a_bad_request_comes_before_the_error() -> None:
    def body() -> Scenario:
        one = TestPublisher[int]()
        source, subscriber = concatenated(flow.Flow(one), request=2)
        source.next(0)

        def check() -> None:
            subscriber.assert_failure(ValueError, *subscriber.items)
            source.assert_cancelled()
            one.assert_cancelled()

        return Scenario(
            lambda: one.next(1), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust_all(body)


def test_the_end_of_the_upstream_against_that_of_the_inner_flow_completes_once() -> None:
    def body() -> Scenario:
        one = TestPublisher[int]()
        source, subscriber = concatenated(flow.Flow(one), request=1)
        source.next(0)
        return Scenario(one.complete, source.complete, check=lambda: subscriber.assert_result())

    exhaust_all(body)


def test_a_paused_inner_flow_continues_where_it_was_when_two_requests_race() -> None:
    def body() -> Scenario:
        source, subscriber = concatenated(flow.range(3), flow.just(3))
        source.next(0, 1)
        source.complete()
        return Scenario(
            lambda: subscriber.request(2),
            lambda: subscriber.request(2),
            check=lambda: subscriber.assert_result(0, 1, 2, 3),
        )

    exhaust_all(body)


def test_an_error_of_an_inner_flow_against_a_request_is_signalled_once() -> None:
    error = ValueError("inner")

    def body() -> Scenario:
        one = TestPublisher[int]()
        source, subscriber = concatenated(flow.Flow(one), request=1)
        source.next(0)

        def check() -> None:
            subscriber.assert_failure(error)
            source.assert_cancelled()

        return Scenario(lambda: one.error(error), lambda: subscriber.request(1), check=check)

    exhaust_all(body)


def test_an_inner_flow_is_subscribed_to_or_not_when_an_item_meets_a_cancel() -> None:
    def body() -> Scenario:
        one = TestPublisher[int]()
        source, subscriber = concatenated(flow.Flow(one), request=1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            assert not one.subscribed or one.cancelled
            subscription: Any = subscriber.subscription
            assert subscription._inner is None
            assert subscription._permit, "the permit is lost"

        return Scenario(lambda: source.next(0), subscriber.cancel, check=check)

    exhaust_all(body)
