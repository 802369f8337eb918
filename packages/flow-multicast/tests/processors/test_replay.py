"""The items that a `ReplayProcessor` keeps, compared with a list."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flow_core.errors import MissingBackpressureError
from flow_multicast import ReplayProcessor
from flow_testing import TestPublisher, TestSubscriber, VirtualClock

several = settings(max_examples=150, deadline=None)


class Item:
    pass


@several
@given(
    count=st.integers(0, 300),
    size=st.one_of(st.none(), st.integers(1, 100)),
    request=st.integers(1, 400),
)
def test_a_newcomer_gets_the_last_of_a_list(count: int, size: int | None, request: int) -> None:
    processor = ReplayProcessor[int](size)
    for n in range(count):
        processor.on_next(n)
    kept = list(range(count)) if size is None else list(range(count))[-size:]
    assert processor.buffered == len(kept)
    subscriber = TestSubscriber[int](request)
    processor.subscribe(subscriber)
    subscriber.assert_items(*kept[:request])
    processor.on_complete()
    subscriber.request(400)
    subscriber.assert_result(*kept)


@several
@given(
    waits=st.lists(st.integers(0, 5), max_size=60),
    later=st.integers(0, 12),
    ttl=st.integers(1, 12),
    size=st.one_of(st.none(), st.integers(1, 10)),
)
def test_a_newcomer_gets_the_items_that_are_young_enough(
    waits: list[int], later: int, ttl: int, size: int | None
) -> None:
    clock = VirtualClock()
    processor = ReplayProcessor[int](size, ttl=ttl, clock=clock)
    times: list[int] = []
    now = 0
    for n, wait in enumerate(waits):
        now += wait
        clock.advance_by(wait)
        processor.on_next(n)
        times.append(now)
    clock.advance_by(later)
    young = [n for n, time in enumerate(times) if time > now + later - ttl]
    subscriber = TestSubscriber[int](100)
    processor.subscribe(subscriber)
    subscriber.assert_items(*(young if size is None else young[-size:]))
    assert processor.buffered == len(subscriber.items)


@several
@given(
    size=st.integers(1, 9),
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 7)), max_size=80),
)
def test_no_subscriber_misses_an_item_of_an_upstream_that_goes_by_demand(
    size: int, steps: list[tuple[int, int]]
) -> None:
    source = TestPublisher[int]()
    processor = ReplayProcessor[int](size)
    source.subscribe(processor)
    subscribers: list[TestSubscriber[int]] = []
    sent = 0
    for what, n in steps:
        if what == 0:
            for _ in range(n):
                if source.outstanding:
                    source.next(sent)
                    sent += 1
        elif what == 1:
            subscribers.append(TestSubscriber[int](n - 1))
            processor.subscribe(subscribers[-1])
        elif subscribers and what == 2:
            subscribers[n % len(subscribers)].request(n)
        elif subscribers and n > 5:
            subscribers.pop().cancel()
        assert source.outstanding <= size
        assert processor.buffered <= 2 * size
    for _ in range(sent + 20):
        for subscriber in subscribers:
            subscriber.request(3)
        if source.outstanding:
            source.next(sent)
            sent += 1
    assert source.outstanding  # it never comes to a stop
    for subscriber in subscribers:
        subscriber.assert_not_terminated()
        assert subscriber.items == list(range(sent))[-len(subscriber.items) :]
        assert subscriber.items[-1] == sent - 1


@pytest.mark.parametrize("size", [1, 3, 100])
def test_it_holds_as_many_items_as_its_size_and_no_more(size: int) -> None:
    processor = ReplayProcessor[Item](size)
    processor.flow.subscribe(lambda _: None)
    alive: list[weakref.ref[Item]] = []
    gc.disable()
    try:
        for _ in range(1000):
            item = Item()
            alive.append(weakref.ref(item))
            processor.on_next(item)
            del item
            assert sum(each() is not None for each in alive[-2 * size - 2 :]) <= size
        assert sum(each() is not None for each in alive) == size
    finally:
        gc.enable()


def test_an_item_that_is_too_old_is_released_when_the_next_one_comes() -> None:
    clock = VirtualClock()
    processor = ReplayProcessor[Item](ttl=2, clock=clock)
    item = Item()
    alive = weakref.ref(item)
    processor.on_next(item)
    del item
    clock.advance_by(2)
    processor.on_next(Item())
    assert alive() is None


@pytest.mark.parametrize("comes", ["nothing", "an item", "a newcomer"])
def test_an_expired_item_stays_for_a_slow_subscriber_until_something_comes(
    comes: str,
) -> None:
    clock = VirtualClock()
    processor = ReplayProcessor[int](ttl=1, clock=clock)
    slow, newcomer = TestSubscriber[int](0), TestSubscriber[int]()
    processor.subscribe(slow)
    processor.on_next(1)
    clock.advance_by(10)
    if comes == "an item":
        processor.on_next(2)
    elif comes == "a newcomer":
        processor.subscribe(newcomer)
        newcomer.assert_no_items()
    slow.request(1)
    if comes == "nothing":
        slow.assert_items(1).assert_not_terminated()
    else:
        slow.assert_failure(MissingBackpressureError)


def test_a_subscriber_that_on_next_has_overrun_fails_when_it_requests() -> None:
    processor = ReplayProcessor[int](2)
    slow = TestSubscriber[int](1)
    processor.subscribe(slow)
    for n in range(10):
        processor.on_next(n)
    slow.assert_items(0).assert_not_terminated()
    slow.request(1)
    slow.assert_failure(MissingBackpressureError, 0)


def test_the_slowest_subscriber_sets_the_pace_until_it_leaves() -> None:
    source = TestPublisher[int]()
    processor = ReplayProcessor[int](4)
    quick, slow = TestSubscriber[int](), TestSubscriber[int](0)
    processor.subscribe(quick)
    processor.subscribe(slow)
    source.subscribe(processor)
    source.next(0, 1, 2, 3)
    source.assert_requests(4)
    slow.request(2)
    source.assert_requests(4)
    slow.request(1)
    source.assert_requests(4, 3)
    source.next(4, 5, 6)
    slow.cancel()
    source.assert_requests(4, 3, 4)
    source.next(7)
    quick.assert_items(*range(8))


def test_without_subscribers_it_runs_freely() -> None:
    source = TestPublisher[int]()
    processor = ReplayProcessor[int](4)
    source.subscribe(processor)
    for n in range(20):
        source.next(n)
    late = TestSubscriber[int](10)
    processor.subscribe(late)
    late.assert_items(16, 17, 18, 19)


def test_a_callback_that_requests_one_by_one_continues() -> None:
    source = TestPublisher[int]()
    processor = ReplayProcessor[int](3)
    seen: list[int] = []
    processor.flow.subscribe(seen.append, prefetch=1)
    source.subscribe(processor)
    for n in range(50):
        source.next(n)
    assert seen == list(range(50))
