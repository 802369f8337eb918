"""Signals from any threads, put in a row before a processor."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    UnicastProcessor,
    serialized,
)
from flow_testing import Drops, TestPublisher, TestSubscriber, assert_result
from flow_testing.interleave import Body, Scenario, explore_all, step

SENDING: dict[str, Callable[[], Any]] = {
    "behavior": BehaviorProcessor,
    "direct": DirectProcessor,
    "multicast": MulticastProcessor,
    "replay": ReplayProcessor,
    "unicast": UnicastProcessor,
}
each = pytest.mark.parametrize("make", list(SENDING.values()), ids=list(SENDING))


def test_its_results_are_those_of_the_processor() -> None:
    def fed() -> flow.Flow[int]:
        processor = serialized(ReplayProcessor[int]())
        flow.range(4).subscribe(processor)
        return processor.flow

    assert_result(fed, [0, 1, 2, 3])


@each
def test_the_items_of_each_thread_stay_in_order(make: Callable[[], Any]) -> None:
    processor = serialized(make(), capacity=2_000)
    seen: list[tuple[int, int]] = []
    processor.flow.subscribe(seen.append)

    def feed(thread: int) -> None:
        for n in range(500):
            processor.on_next((thread, n))

    threads = [Thread(target=feed, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(seen) == 1500
    for number in range(3):
        assert [n for thread, n in seen if thread == number] == list(range(500))


@each
def test_an_item_without_room_fails_it_after_the_waiting_items(
    make: Callable[[], Any], drops: Drops
) -> None:
    processor = serialized(make(), capacity=2)
    source = TestPublisher[int]()
    source.subscribe(processor)

    def feed(_: object, item: int) -> None:
        if item == 0:
            for n in range(1, 5):
                processor.on_next(n)

    subscriber = TestSubscriber[int](10, on_item=feed)
    processor.subscribe(subscriber)
    processor.on_next(0)
    subscriber.assert_failure(MissingBackpressureError, 0, 1, 2)
    subscriber.assert_error_message("offer()")
    source.assert_cancelled()
    assert drops.take_items() == [3, 4]


@each
def test_offer_returns_false_when_there_is_no_room(make: Callable[[], Any]) -> None:
    processor = serialized(make(), capacity=2)
    taken: list[bool] = []

    def feed(_: object, item: int) -> None:
        if item == 0:
            taken.extend(processor.offer(n) for n in range(1, 5))

    subscriber = TestSubscriber[int](10, on_item=feed)
    processor.subscribe(subscriber)
    assert processor.offer(0)
    assert taken == [True, True, False, False]
    subscriber.assert_items(0, 1, 2)
    processor.on_complete()
    assert not processor.offer(5)
    subscriber.assert_result(0, 1, 2)


def test_offer_asks_the_processor_too() -> None:
    processor = serialized(MulticastProcessor[int](2))
    assert [processor.offer(n) for n in range(4)] == [True, True, False, False]
    assert processor.waiting == 0


def test_the_first_end_is_the_end(drops: Drops) -> None:
    processor = serialized(AsyncProcessor[int]())
    error = ValueError()
    processor.on_next(1)
    processor.on_complete()
    processor.on_error(error)
    processor.on_next(2)
    assert drops.take_errors() == [error]
    assert drops.take_items() == [2]
    source = TestPublisher[int]()
    source.subscribe(processor)
    source.assert_cancelled()


def test_wrong_arguments() -> None:
    processor = serialized(DirectProcessor[Any]())
    for call in (processor.on_next, processor.on_error, processor.on_subscribe, processor.offer):
        with pytest.raises(NoneItemError):
            call(None)  # type: ignore[arg-type]  # the mistake to be found
    with pytest.raises(ValueError, match="capacity"):
        serialized(DirectProcessor[int](), capacity=0)
    assert repr(processor) == "serialized(DirectProcessor())"


def exhaust(body: Body) -> None:
    explore_all(
        body, modules=["flow_core.serial", "flow_multicast.processors.serialized", __name__]
    )


@pytest.mark.interleave
def test_two_items_and_an_end_at_once() -> None:
    seen: set[Hashable] = set()

    def body() -> Scenario:
        processor = serialized(DirectProcessor[int]())
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())
        processor.subscribe(subscriber)

        def feed() -> None:
            processor.on_next(2)
            processor.on_complete()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.completed
            seen.add(tuple(subscriber.items))

        return Scenario(lambda: processor.offer(1), feed, check=check)

    exhaust(body)
    assert seen == {(1, 2), (2, 1), (2,)}


@pytest.mark.interleave
def test_two_threads_that_call_on_next_are_serialized_in_some_order() -> None:
    seen: set[Hashable] = set()

    def body() -> Scenario:
        processor = serialized(DirectProcessor[int]())
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())
        processor.subscribe(subscriber)

        def feed() -> None:
            processor.on_next(2)
            processor.on_next(3)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            seen.add(tuple(subscriber.items))

        return Scenario(lambda: processor.on_next(1), feed, check=check)

    exhaust(body)
    assert seen == {(1, 2, 3), (2, 1, 3), (2, 3, 1)}
