"""The items of `fork_join`; its demand, errors and cancel."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_ops import fork_join
from flow_testing import TestPublisher, TestSubscriber, assert_result, recorded_drops


def played(*, request=flow.UNBOUNDED):
    """A subscription to flows that the test plays."""
    a, b = TestPublisher(), TestPublisher()
    subscriber = TestSubscriber(request)
    fork_join(flow.Flow(a), flow.Flow(b)).subscribe(subscriber)
    return a, b, subscriber


def test_the_last_items_come_together():
    assert_result(lambda: fork_join(flow.range(5), flow.just("a", "b").hide()), [(4, "b")])
    assert_result(lambda: fork_join(*[flow.just(n) for n in range(6)]), [(0, 1, 2, 3, 4, 5)])
    assert_result(lambda: fork_join(flow.just(1)), [(1,)])


def test_without_an_item_it_is_empty():
    assert_result(lambda: fork_join(), [])
    assert_result(lambda: fork_join(flow.never(), flow.empty()), [])
    a, b, subscriber = played()
    a.next(1)
    b.complete()
    subscriber.assert_result()
    a.assert_cancelled()
    b.assert_not_cancelled()


def test_it_waits_for_all_to_complete():
    a, b, subscriber = played()
    a.assert_requests(flow.UNBOUNDED)
    a.next(1, 2)
    a.complete()
    b.next(3)
    subscriber.assert_no_items()
    b.next(4)
    b.complete()
    subscriber.assert_result((2, 4))


def test_the_tuple_waits_for_demand():
    a, b, subscriber = played(request=0)
    a.next(1)
    b.next(2)
    a.complete()
    b.complete()
    subscriber.assert_no_items().assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_result((1, 2))


def test_an_error_ends_it_without_demand():
    a, b, subscriber = played(request=0)
    a.next(1)
    error = ValueError()
    b.error(error)
    subscriber.assert_failure(error)
    a.assert_cancelled()


def test_cancel_reaches_all():
    a, b, subscriber = played(request=0)
    a.next(1)
    a.complete()
    b.next(2)
    with recorded_drops() as drops:
        subscriber.cancel()
    a.assert_not_cancelled()
    b.assert_cancelled()
    assert drops.errors == []
    subscriber.assert_silent_after_cancel()


def test_a_stage_behind_it_may_drop_the_tuple():
    assert list(fork_join(flow.just(1), flow.just(2)).filter(lambda _: False)) == []


def test_many_flows_take_no_deep_stack():
    assert list(fork_join(*[flow.range(3)] * 3_000).map(len)) == [3_000]


def test_arguments_are_checked_when_it_is_assembled():
    with pytest.raises(TypeError, match="takes flows"):
        fork_join(flow.range(3), [1])
