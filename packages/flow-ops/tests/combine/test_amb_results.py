"""The items of `amb` and `amb_with`; their demand, errors and cancel."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_ops import amb, amb_with
from flow_testing import (
    PublisherProbe,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
    recorded_drops,
)


def played(count=2, *, request=flow.UNBOUNDED):
    """A subscription to flows that the test plays."""
    publishers = [TestPublisher() for _ in range(count)]
    subscriber = TestSubscriber(request)
    amb(*map(flow.Flow, publishers)).subscribe(subscriber)
    return *publishers, subscriber


def test_the_first_to_give_an_item_or_to_end_is_the_one():
    assert_result(lambda: amb(flow.never(), flow.range(5), flow.never()), [0, 1, 2, 3, 4])
    assert_result(lambda: amb(flow.range(5), flow.range(9)), [0, 1, 2, 3, 4])
    assert_result(lambda: amb(flow.never(), flow.empty(), flow.just(1)), [])
    error = ValueError()
    assert_result(lambda: amb(flow.never(), flow.error(error), flow.just(1)), [], error)
    assert_result(lambda: amb(flow.just(1)), [1])
    assert_result(lambda: amb(), [])


def test_amb_with_is_an_operator():
    assert_result(lambda: flow.range(3).pipe(amb_with(flow.never())), [0, 1, 2])
    assert_result(lambda: flow.never().pipe(amb_with(flow.range(3))), [0, 1, 2])


@pytest.mark.parametrize("first", range(3))
def test_the_others_are_cancelled_as_soon_as_one_begins(first):
    *publishers, subscriber = played(3)
    publishers[first].next(1)
    for n, publisher in enumerate(publishers):
        assert publisher.cancelled == (n != first)
    publishers[first].next(2, 3)
    publishers[first].complete()
    subscriber.assert_result(1, 2, 3)


@pytest.mark.parametrize("error", [None, ValueError("first")])
def test_an_end_is_a_beginning_too(error):
    a, b, subscriber = played(request=0)
    if error is None:
        b.complete()
        subscriber.assert_result()
    else:
        b.error(error)
        subscriber.assert_failure(error)
    a.assert_cancelled()
    b.assert_not_cancelled()


def test_an_error_after_its_items_is_that_of_the_first():
    a, b, subscriber = played()
    a.next(1)
    error = ValueError()
    a.error(error)
    subscriber.assert_failure(error, 1)
    assert b.cancels == 1


def test_a_flow_that_begins_while_it_is_subscribed_keeps_the_rest_away():
    probe = PublisherProbe(flow.range(9))
    assert list(amb(flow.just(1), probe.flow)) == [1]
    probe.assert_not_subscribed()


def test_demand_goes_to_all_and_then_to_the_first_alone():
    a, b, subscriber = played(request=0)
    a.assert_not_requested()
    subscriber.request(2)
    subscriber.request(3)
    a.assert_requests(2, 3)
    b.assert_requests(2, 3)
    b.next(1)
    subscriber.request(4)
    a.assert_requests(2, 3)
    b.assert_requests(2, 3, 4)
    subscriber.assert_items(1)


def test_demand_of_on_subscribe_reaches_flows_that_are_subscribed_later():
    a, b, _ = played(request=7)
    a.assert_requests(7)
    b.assert_requests(7)


def test_synchronous_flows_begin_with_the_first_request():
    subscriber = TestSubscriber(0)
    second = PublisherProbe(flow.range(10, 20).hide())
    amb(flow.range(5), second.flow).subscribe(subscriber)
    second.assert_subscribed()
    subscriber.request(2)
    subscriber.assert_items(0, 1)
    second.assert_cancelled()
    subscriber.request(9)
    subscriber.assert_result(0, 1, 2, 3, 4)


@pytest.mark.usefixtures("dropped")
def test_items_of_the_others_are_dropped():
    late = TestPublisher(violations=Violation.IGNORED_CANCEL)
    first = TestPublisher()
    subscriber = TestSubscriber()
    amb(flow.Flow(first), flow.Flow(late)).subscribe(subscriber)
    first.next(1)
    error = ValueError()
    with recorded_drops() as drops:
        late.next(2)
        late.error(error)
    subscriber.assert_items(1).assert_not_terminated()
    assert drops.items == [2]
    assert drops.errors == [error]


def test_cancel_reaches_all_or_the_first():
    a, b, subscriber = played()
    subscriber.cancel()
    a.assert_cancelled()
    b.assert_cancelled()
    a, b, subscriber = played()
    a.next(1)
    subscriber.cancel()
    assert a.cancels == b.cancels == 1
    subscriber.assert_silent_after_cancel()


def test_a_wrong_request_ends_it():
    a, b, subscriber = played(request=0)
    subscriber.subscription.request(0)
    subscriber.assert_failure(ValueError)
    a.assert_cancelled()
    b.assert_cancelled()


def test_many_flows_and_items_take_no_deep_stack():
    assert list(amb(*[flow.never()] * 5_000, flow.range(3))) == [0, 1, 2]
    made = flow.range(3)
    for _ in range(50):
        made = made.pipe(amb_with(flow.never()))
    assert list(made) == [0, 1, 2]
    subscriber = TestSubscriber(1, on_item=lambda subscriber, _: subscriber.request(1))
    amb(flow.never(), flow.range(20_000)).subscribe(subscriber)
    assert len(subscriber.items) == 20_000


def test_arguments_are_checked_when_it_is_assembled():
    with pytest.raises(TypeError, match="takes flows"):
        amb(flow.range(3), [1])
    with pytest.raises(TypeError, match="takes flows"):
        amb_with(None)
