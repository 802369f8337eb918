"""`MulticastProcessor` under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

from collections.abc import Collection, Hashable

import pytest

import flow_core as flow
from flow_multicast.processors import MulticastProcessor
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = [pytest.mark.interleave, pytest.mark.essential]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(
        body, modules=["flow_core.serial", "flow_multicast", __name__], expect=expect
    )


def fed(prefetch: int = 4, *, ref_count: bool = False) -> MulticastProcessor[int]:
    processor = MulticastProcessor[int](prefetch, ref_count=ref_count)
    processor.start()
    return processor


def joined(processor: MulticastProcessor[int], request: int = 10) -> TestSubscriber[int]:
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    processor.subscribe(subscriber)
    return subscriber


@pytest.mark.checklist("M37")
def test_a_subscriber_that_comes_while_it_completes_gets_one_terminal() -> None:
    def body() -> Scenario:
        processor = fed()
        subscriber = TestSubscriber[int]()
        return Scenario(
            lambda: processor.subscribe(subscriber),
            processor.on_complete,
            check=subscriber.assert_result,
        )

    exhaust(body)


@pytest.mark.checklist("M33")
def test_the_end_does_not_overtake_an_item_during_a_request() -> None:
    def body() -> Scenario:
        processor = fed()
        subscriber = joined(processor, 0)

        def send() -> None:
            processor.on_next(1)
            processor.on_complete()

        return Scenario(
            send, lambda: subscriber.request(2), check=lambda: subscriber.assert_result(1)
        )

    exhaust(body)


@pytest.mark.checklist("M10")
def test_a_subscriber_that_cancels_while_items_are_sent_holds_no_other_back() -> None:
    def body() -> Scenario:
        processor = fed()
        leaving, staying = joined(processor, 1), joined(processor)

        def send() -> None:
            processor.on_next(1)
            processor.on_next(2)

        def check() -> None:
            staying.assert_items(1, 2)
            leaving.assert_rules_kept().assert_not_terminated()
            assert leaving.items in ([], [1])
            assert processor.statistics().subscribers == 1

        return Scenario(send, leaving.cancel, check=check)

    exhaust(body)


def test_a_subscriber_that_comes_while_items_are_sent_gets_the_rest_in_order() -> None:
    def body() -> Scenario:
        processor = fed()
        first, late = joined(processor), TestSubscriber[int]()

        def send() -> None:
            processor.on_next(1)
            processor.on_next(2)
            processor.on_complete()

        def outcome() -> Hashable:
            first.assert_result(1, 2)
            late.assert_rules_kept()
            assert late.completed
            return tuple(late.items)

        return Scenario(send, lambda: processor.subscribe(late), outcome=outcome)

    exhaust(body, {(), (2,), (1, 2)})


def test_two_simultaneous_offers_are_put_in_some_order() -> None:
    def body() -> Scenario:
        processor = fed()
        first, second = joined(processor), joined(processor)

        def outcome() -> Hashable:
            first.assert_rules_kept()
            second.assert_items(*first.items)
            return tuple(first.items)

        return Scenario(lambda: processor.offer(1), lambda: processor.offer(2), outcome=outcome)

    exhaust(body, {(1, 2), (2, 1)})


def test_of_two_simultaneous_offers_with_room_for_one_one_or_both_are_taken() -> None:
    def body() -> Scenario:
        processor = fed(1)
        taken: list[bool] = []

        def outcome() -> Hashable:
            assert processor.statistics().buffered == taken.count(True)
            assert not processor.offer(3)
            return tuple(sorted(taken))

        return Scenario(
            lambda: taken.append(processor.offer(1)),
            lambda: taken.append(processor.offer(2)),
            outcome=outcome,
        )

    exhaust(body, {(False, True), (True, True)})


@pytest.mark.checklist("M14")
def test_a_bad_request_waits_for_a_running_on_next() -> None:
    def body() -> Scenario:
        processor = fed()
        wrong, right = joined(processor), joined(processor)

        def check() -> None:
            wrong.assert_failure(ValueError, *wrong.items)
            right.assert_items(1)

        return Scenario(
            lambda: processor.on_next(1), lambda: wrong.subscription.request(0), check=check
        )

    exhaust(body)


def test_a_cancel_during_a_bad_request_brings_no_more_than_was_requested() -> None:
    def body() -> Scenario:
        processor = fed()
        leaving = joined(processor, 1)
        joined(processor)
        processor.on_next(1)

        def leave() -> None:
            leaving.cancel()
            processor.on_next(2)

        return Scenario(
            lambda: leaving.subscription.request(0), leave, check=leaving.assert_rules_kept
        )

    exhaust(body)


@pytest.mark.checklist("M40", "M42")
def test_the_last_subscriber_to_leave_cancels_the_upstream_unless_another_joins() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        processor = MulticastProcessor[int](4, ref_count=True)
        leaving = joined(processor)
        source.subscribe(processor)
        late = TestSubscriber[int]()

        def outcome() -> Hashable:
            leaving.assert_rules_kept()
            late.assert_rules_kept()
            assert late.completed == source.cancelled
            return source.cancelled

        return Scenario(leaving.cancel, lambda: processor.subscribe(late), outcome=outcome)

    exhaust(body, {True, False})


@pytest.mark.checklist("M25")
def test_two_ends_at_once_are_one() -> None:
    def body() -> Scenario:
        processor = fed()
        subscriber = joined(processor)
        error = ValueError("one of both")

        def fail() -> None:
            processor.on_error(error)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert subscriber.terminated
            return subscriber.completed

        return Scenario(processor.on_complete, processor.on_complete, outcome=outcome)

    exhaust(body, {True})


@pytest.mark.nightly  # takes half a minute
def test_two_subscribers_that_cancel_while_it_completes_are_released() -> None:
    def body() -> Scenario:
        processor = fed()
        first, second = joined(processor), joined(processor)

        def check() -> None:
            first.assert_rules_kept()
            second.assert_rules_kept()
            assert processor.statistics().subscribers == 0
            assert not processor.has_subscribers

        return Scenario(first.cancel, second.cancel, processor.on_complete, check=check)

    exhaust(body)


@pytest.mark.checklist("M10")
def test_a_polled_source_continues_for_the_subscriber_that_stays() -> None:
    def body() -> Scenario:
        processor = MulticastProcessor[int](2)
        staying, leaving = joined(processor, 0), joined(processor, 0)
        flow.range(3).subscribe(processor)

        def check() -> None:
            staying.assert_result(0, 1, 2)
            leaving.assert_rules_kept().assert_not_terminated()

        return Scenario(lambda: staying.request(5), leaving.cancel, check=check)

    exhaust(body)


def test_an_item_that_one_has_filtered_out_is_not_counted_against_it() -> None:
    def body() -> Scenario:
        processor = fed(2)
        odd, every = TestSubscriber[int](0, on_item=lambda *_: step()), joined(processor)
        processor.flow.filter(lambda n: n > 1).subscribe(odd)

        def send() -> None:
            processor.offer(1)
            processor.offer(2)
            processor.on_complete()

        def check() -> None:
            odd.assert_result(2)
            every.assert_result(1, 2)

        return Scenario(send, lambda: odd.request(2), check=check)

    exhaust(body)


@pytest.mark.checklist("M04", "M27")
@pytest.mark.parametrize("prefetch", [1, 2, 4])
@pytest.mark.parametrize("meanwhile", ["it takes one", "another offers"])
def test_an_upstream_that_comes_is_asked_for_what_there_is_room_for(
    prefetch: int, meanwhile: str
) -> None:
    def body() -> Scenario:
        processor, source = MulticastProcessor[int](prefetch), TestPublisher[int]()
        subscriber = TestSubscriber[int](0)
        processor.subscribe(subscriber)
        offered = [100] if processor.offer(100) else []
        sent: list[int] = []

        def send(until: int) -> None:
            while source.outstanding and len(sent) < until:
                sent.append(len(sent))
                source.next(sent[-1])

        def come() -> None:
            source.subscribe(processor)
            send(1)  # unless it is to be asked by the other thread

        def go() -> None:
            if meanwhile == "it takes one":
                subscriber.request(1)
            elif processor.offer(101):
                offered.append(101)

        def check() -> None:
            send(20)  # as much as it may, before more is taken
            at_once = len(offered) == 2  # an offer is not put in order with the request
            assert len(sent) + len(offered) - len(subscriber.items) <= prefetch + at_once
            subscriber.request(50)
            send(20)
            subscriber.assert_not_terminated()
            assert sorted(subscriber.items) == [*range(20), *offered]

        return Scenario(come, go, check=check)

    exhaust(body)
