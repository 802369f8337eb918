"""A downstream that polls the buffer: the same items, and one queue less."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Fusion
from flow_core.errors import MissingBackpressureError, ProtocolViolationError
from flow_ops import observe_on, on_backpressure_buffer, on_backpressure_latest
from flow_testing import TestPublisher, TestSubscriber, observe


def fused(source: TestPublisher[int], operator: Any, request: int) -> TestSubscriber[int]:
    return observe(Flow(source).pipe(operator), request, fusion=Fusion.ANY | Fusion.THREAD_BOUNDARY)


@pytest.mark.checklist("F23", "F26", "F39")
def test_it_grants_async_across_threads_too() -> None:
    source = TestPublisher[int]()
    subscriber = fused(source, on_backpressure_buffer(2), 1)
    assert subscriber.fused is Fusion.ASYNC
    source.next(1, 2)
    subscriber.assert_items(1).request(1)
    source.complete()
    subscriber.assert_result(1, 2)


@pytest.mark.parametrize(
    "operator",
    [
        on_backpressure_buffer(2, overflow="drop_oldest"),
        on_backpressure_buffer(2, timeout=9),
        on_backpressure_latest(),
    ],
    ids=["drop_oldest", "timed", "latest"],
)
def test_it_refuses_where_items_are_taken_out_of_the_middle(operator: Any) -> None:
    source = TestPublisher[int]()
    subscriber = fused(source, operator, 3)
    assert subscriber.fused is Fusion.NONE
    source.next(1, 2).complete()
    subscriber.assert_result(1, 2)


def test_sync_alone_is_refused() -> None:
    subscriber = observe(flow.range(2).pipe(on_backpressure_buffer(2)), fusion=Fusion.SYNC)
    assert subscriber.fused is Fusion.NONE
    subscriber.assert_result(0, 1)


@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.ASYNC])
def test_requested_items_take_no_capacity_fused_or_not(fusion: Fusion, dropped: Any) -> None:
    """A downstream that has requested 3, and polls late, has 3 places beyond the capacity."""
    source = TestPublisher[int]()
    pool_of_none: list[Any] = []
    subscriber = TestSubscriber[int](0)
    boundary = observe_on(pool_of_none.append, prefetch=3)
    buffered = Flow(source).pipe(on_backpressure_buffer(2))
    if fusion is Fusion.NONE:
        buffered = buffered.hide()
    buffered.pipe(boundary).subscribe(subscriber)
    source.next(1, 2, 3, 4, 5)
    assert dropped.items == []
    source.next(6)
    assert dropped.items == [6]
    source.assert_cancelled()
    subscriber.request(9)
    while pool_of_none:
        pool_of_none.pop()()
    subscriber.assert_failure(MissingBackpressureError, 1, 2, 3, 4, 5)


@pytest.mark.checklist("F33")
def test_items_that_wait_when_the_terminal_comes_can_still_be_polled() -> None:
    source = TestPublisher[int]()
    subscriber = fused(source, on_backpressure_buffer(9), 1)
    source.next(1, 2, 3).complete()
    subscriber.assert_items(1).assert_not_terminated().request(2)
    subscriber.assert_result(1, 2, 3)


def test_a_cancel_drops_waiting_items(dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = fused(source, on_backpressure_buffer(9), 1)
    source.next(1, 2, 3)
    subscriber.cancel()
    assert dropped.items == [2, 3]
    source.assert_cancelled()


def test_clear_drops_waiting_items_after_the_end(dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = fused(source, on_backpressure_buffer(9), 0)
    source.next(1, 2).complete()
    queue: Any = subscriber.subscription
    assert not queue.is_empty()
    subscriber.cancel()
    queue.clear()
    assert queue.is_empty()
    assert dropped.items == [1, 2]


@pytest.mark.checklist("F24", "F47")
def test_it_is_asked_once_and_in_on_subscribe() -> None:
    source = TestPublisher[int]()
    subscriber = fused(source, on_backpressure_buffer(9), 0)
    queue: Any = subscriber.subscription
    with pytest.raises(ProtocolViolationError):
        queue.request_fusion(Fusion.ASYNC)


def test_between_two_threads_nothing_is_lost_and_the_order_is_kept() -> None:
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        flowing = (
            flow.range(2_000)
            .pipe(observe_on(one, prefetch=16))
            .pipe(on_backpressure_buffer(2_000))
            .pipe(observe_on(two, prefetch=4))
        )
        assert list(flowing) == list(range(2_000))


def test_statistics_tell_of_it() -> None:
    source = TestPublisher[int]()
    subscriber = fused(source, on_backpressure_buffer(9), 1)
    source.next(1, 2, 3)
    queue: Any = subscriber.subscription
    told = queue.statistics()
    assert (told.operator, told.buffered, told.capacity) == ("on_backpressure_buffer(9)", 2, 9)
    assert told.fusion is Fusion.ASYNC
