"""The items of `with_latest_from`; its demand, errors and cancel."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_ops import with_latest_from
from flow_testing import TestPublisher, TestSubscriber, assert_result


def played(count=1, *, request=flow.UNBOUNDED, **more):
    """A subscription to flows that the test plays; the first one is the upstream."""
    publishers = [TestPublisher() for _ in range(count + 1)]
    main, *others = map(flow.Flow, publishers)
    subscriber = TestSubscriber(request)
    main.pipe(with_latest_from(*others, **more)).subscribe(subscriber)
    return *publishers, subscriber


def test_each_item_comes_with_the_latest_ones():
    assert_result(
        lambda: flow.range(3).pipe(with_latest_from(flow.just("a", "b"))),
        [(0, "b"), (1, "b"), (2, "b")],
    )
    assert_result(
        lambda: (
            flow.range(3)
            .pipe(with_latest_from(flow.just(10), flow.just(100)))
            .starmap(lambda a, b, c: a + b + c)
        ),
        [110, 111, 112],
    )


def test_items_before_the_others_have_one_are_dropped_and_requested_again():
    main, a, b, subscriber = played(2, request=2)
    main.assert_requests(2)
    main.next(1)
    a.next("a")
    main.next(2)
    assert main.outstanding == 2
    b.next("b", "c")
    main.next(3)
    a.next("d")
    main.next(4)
    subscriber.assert_items((3, "a", "c"), (4, "d", "c"))
    assert main.outstanding == 0
    main.complete()
    subscriber.assert_result((3, "a", "c"), (4, "d", "c"))
    a.assert_cancelled()


def test_demand_is_passed_on_and_everything_is_requested_of_the_others():
    main, other, subscriber = played(request=0)
    main.assert_not_requested()
    other.assert_requests(flow.UNBOUNDED)
    subscriber.request(3)
    subscriber.request(2)
    main.assert_requests(3, 2)


def test_an_other_that_completes_keeps_its_last_item():
    main, other, subscriber = played()
    other.next(1)
    other.complete()
    main.next("a", "b")
    subscriber.assert_items(("a", 1), ("b", 1))


def test_an_other_without_an_item_ends_it():
    main, _, b, subscriber = played(2)
    b.complete()
    subscriber.assert_result()
    main.assert_cancelled()
    assert_result(lambda: flow.range(3).pipe(with_latest_from(flow.empty())), [])


events = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=40)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(events)
def test_it_agrees_with_a_model(events):
    *publishers, subscriber = played(2, request=0)
    latest, expected = [None, None], []
    for n, (which, amount) in enumerate(events):
        if which == 3:
            subscriber.request(amount)
        elif which:
            latest[which - 1] = n
            publishers[which].next(n)
        elif publishers[0].outstanding:
            publishers[0].next(n)
            if None not in latest:
                expected.append((n, *latest))
        subscriber.assert_items(*expected)
        assert publishers[0].outstanding == subscriber.outstanding
    publishers[0].complete()
    subscriber.assert_result(*expected)


def test_errors_of_all_flows_end_it():
    for failing in range(3):
        *publishers, subscriber = played(2)
        error = ValueError()
        publishers[failing].error(error)
        subscriber.assert_failure(error)
        for n, publisher in enumerate(publishers):
            assert publisher.cancelled == (n != failing)


def test_arguments_are_checked_when_it_is_assembled():
    with pytest.raises(TypeError, match="takes flows"):
        with_latest_from([1])
    with pytest.raises(ValueError, match="at least one"):
        with_latest_from()


def test_cancel_reaches_all():
    *publishers, subscriber = played(2)
    subscriber.cancel()
    for publisher in publishers:
        publisher.assert_cancelled()
    subscriber.assert_silent_after_cancel()


def test_a_wrong_request_ends_it():
    *publishers, subscriber = played(2, request=0)
    subscriber.subscription.request(0)
    subscriber.assert_failure(ValueError)
    for publisher in publishers:
        publisher.assert_cancelled()


def test_an_other_that_sends_without_end_keeps_one_item():
    main, other, subscriber = played()
    for n in range(1_000):
        other.next(n)
    main.next("x")
    subscriber.assert_items(("x", 999))
    assert subscriber.subscription.statistics().buffered == 0
