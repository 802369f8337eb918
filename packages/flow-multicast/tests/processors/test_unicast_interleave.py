"""`UnicastProcessor` under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

import pytest

from flow_core import Fusion
from flow_multicast.processors import UnicastProcessor
from flow_testing import TestPublisher, TestSubscriber, recorded_drops
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave

each_mode = pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC, Fusion.ANY])


def exhaust(body: Body) -> Report:
    report = explore_all(body, modules=["flow_core.serial", "flow_multicast", __name__])
    assert report.exhausted
    return report


def observer(mode: Fusion, request: int = 10) -> TestSubscriber[int]:
    return TestSubscriber[int](request, fusion=mode, on_item=lambda *_: step())


@each_mode
@pytest.mark.checklist("F31", "F32")
def test_an_item_that_comes_during_subscribe_arrives(mode: Fusion) -> None:
    def body() -> Scenario:
        processor = UnicastProcessor[int](4)
        subscriber = observer(mode)

        def send() -> None:
            processor.on_next(1)
            processor.on_complete()

        return Scenario(
            send,
            lambda: processor.subscribe(subscriber),
            check=lambda: subscriber.assert_result(1),
        )

    exhaust(body)


@each_mode
@pytest.mark.checklist("F33")
def test_the_end_does_not_overtake_an_item_during_a_request(mode: Fusion) -> None:
    def body() -> Scenario:
        processor = UnicastProcessor[int](4)
        subscriber = observer(mode, 0)
        processor.subscribe(subscriber)

        def send() -> None:
            processor.on_next(1)
            processor.on_complete()

        return Scenario(
            send, lambda: subscriber.request(2), check=lambda: subscriber.assert_result(1)
        )

    exhaust(body)


@each_mode
@pytest.mark.checklist("F32")
def test_of_two_that_subscribe_one_is_served(mode: Fusion) -> None:
    def body() -> Scenario:
        processor = UnicastProcessor[int](4)
        processor.on_next(1)
        processor.on_complete()
        both = [observer(mode), observer(mode)]

        def check() -> None:
            served, refused = sorted(both, key=lambda one: one.error is not None)
            served.assert_result(1)
            refused.assert_items()
            assert refused.error is not None

        return Scenario(
            lambda: processor.subscribe(both[0]), lambda: processor.subscribe(both[1]), check=check
        )

    exhaust(body)


@each_mode
@pytest.mark.checklist("F32")
def test_nothing_stays_behind_when_it_is_cancelled_meanwhile(mode: Fusion) -> None:
    def body() -> Scenario:
        processor = UnicastProcessor[int](4)
        subscriber = observer(mode)
        processor.subscribe(subscriber)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert processor.is_empty()
            assert processor._downstream is None

        return Scenario(lambda: processor.offer(1), subscriber.cancel, check=check)

    with recorded_drops():
        exhaust(body)


def test_of_two_simultaneous_offers_with_room_for_one_one_or_both_are_taken() -> None:
    def body() -> Scenario:
        processor = UnicastProcessor[int](1)
        said: list[bool] = []

        def offer() -> None:
            said.append(processor.offer(1))

        def check() -> None:
            assert any(said)
            assert processor.statistics().buffered == sum(said)

        return Scenario(offer, offer, check=check)

    exhaust(body)


@each_mode
def test_an_offered_item_that_was_taken_comes_before_the_end(mode: Fusion) -> None:
    def body() -> Scenario:
        processor = UnicastProcessor[int](4)
        subscriber = observer(mode)
        processor.subscribe(subscriber)
        said: list[bool] = []

        def check() -> None:
            subscriber.assert_result(*[1] * sum(said))

        return Scenario(lambda: said.append(processor.offer(1)), processor.on_complete, check=check)

    exhaust(body)


@each_mode
def test_an_upstream_that_comes_while_items_are_taken_exceeds_the_room_by_one_at_most(
    mode: Fusion,
) -> None:
    def body() -> Scenario:
        source, processor = TestPublisher[int](), UnicastProcessor[int](2)
        subscriber = observer(mode, 0)
        processor.subscribe(subscriber)
        for item in range(2):
            assert processor.offer(item)

        def check() -> None:
            sent = 2
            while source.outstanding and sent < 9:
                assert processor.statistics().buffered < (2 if mode is Fusion.NONE else 3)
                source.next(sent)
                sent += 1
            subscriber.request(9)
            subscriber.assert_items(*range(sent)).assert_not_terminated()
            assert source.outstanding

        return Scenario(
            lambda: source.subscribe(processor), lambda: subscriber.request(2), check=check
        )

    exhaust(body)


@pytest.mark.parametrize("capacity", [1, 2, 3])
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_the_upstream_is_asked_again_though_an_item_comes_as_another_is_taken(
    mode: Fusion, capacity: int
) -> None:
    def body() -> Scenario:
        source, processor = TestPublisher[int](), UnicastProcessor[int](capacity)
        subscriber = TestSubscriber[int](0, fusion=mode)
        source.subscribe(processor)
        processor.subscribe(subscriber)
        sent: list[int] = []

        def send(until: int) -> None:
            while source.outstanding and len(sent) < until:
                sent.append(len(sent))
                source.next(sent[-1])

        def check() -> None:
            send(10)
            subscriber.assert_items(*range(10)).assert_not_terminated()

        return Scenario(lambda: send(capacity), lambda: subscriber.request(50), check=check)

    exhaust(body)
