"""The items of `take_until_other` and `skip_until_other`; their demand, errors and cancel."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_ops import concat_with, skip_until_other, take_until_other
from flow_testing import (
    PublisherProbe,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
    recorded_drops,
)

BOTH = pytest.mark.parametrize("operator", [take_until_other, skip_until_other])


def played(operator, *, request=flow.UNBOUNDED):
    """A subscription to a flow, with another one, both of which the test plays."""
    main, other = TestPublisher(), TestPublisher()
    subscriber = TestSubscriber(request)
    flow.Flow(main).pipe(operator(flow.Flow(other))).subscribe(subscriber)
    return main, other, subscriber


# -- take_until_other


def test_items_come_until_the_other_flow_gives_one():
    assert_result(lambda: flow.range(5).pipe(take_until_other(flow.never())), [0, 1, 2, 3, 4])
    assert_result(lambda: flow.range(5).pipe(take_until_other(flow.just("stop"))), [])
    assert_result(lambda: flow.range(5).pipe(take_until_other(flow.empty())), [])
    main, other, subscriber = played(take_until_other)
    main.next(1, 2)
    other.next("stop")
    subscriber.assert_result(1, 2)
    main.assert_cancelled()
    other.assert_cancelled()


def test_a_flow_that_ends_before_it_begins_is_not_subscribed_to():
    probe = PublisherProbe(flow.range(5))
    assert list(probe.flow.pipe(take_until_other(flow.just("stop")))) == []
    probe.assert_not_subscribed()


@pytest.mark.parametrize("request_", [0, 1])
def test_completion_of_the_other_flow_ends_it_without_demand(request_):
    main, other, subscriber = played(take_until_other, request=request_)
    other.complete()
    subscriber.assert_result()
    main.assert_cancelled()
    other.assert_not_cancelled()


def test_the_end_of_the_main_flow_cancels_the_other():
    main, other, subscriber = played(take_until_other)
    main.next(1)
    main.complete()
    subscriber.assert_result(1)
    other.assert_cancelled()


# -- skip_until_other


def test_items_come_from_when_the_other_flow_gives_one():
    assert_result(lambda: flow.range(5).pipe(skip_until_other(flow.just("go"))), [0, 1, 2, 3, 4])
    assert_result(lambda: flow.range(5).pipe(skip_until_other(flow.never())), [])
    main, other, subscriber = played(skip_until_other)
    main.next(1, 2)
    other.next("go")
    main.next(3, 4)
    main.complete()
    subscriber.assert_result(3, 4)
    other.assert_cancelled()


def test_the_other_flow_is_cancelled_when_it_has_opened_this_one():
    main, other, subscriber = played(skip_until_other)
    other.next("go")
    other.assert_cancelled()
    main.next(1)
    main.complete()
    subscriber.assert_result(1)


def test_signals_of_the_other_flow_after_it_has_opened_this_one_are_ignored():
    with recorded_drops() as drops:
        opened = flow.range(2).pipe(
            skip_until_other(flow.just("go").pipe(concat_with(flow.error(ValueError()))))
        )
        assert list(opened) == [0, 1]
    assert drops.errors == []


def test_without_an_item_of_the_other_flow_only_the_end_comes():
    assert_result(lambda: flow.range(5).pipe(skip_until_other(flow.empty())), [])
    main, other, subscriber = played(skip_until_other)
    other.complete()
    main.next(1)
    subscriber.assert_not_terminated()
    main.complete()
    subscriber.assert_result()


def test_an_item_that_is_dropped_is_requested_again():
    main, other, subscriber = played(skip_until_other, request=2)
    main.assert_requests(2)
    main.next(1, 2, 3)
    assert main.outstanding == 2
    other.next("go")
    main.next(4, 5)
    assert main.outstanding == 0
    subscriber.assert_items(4, 5)


# -- both


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([take_until_other, skip_until_other]), st.lists(st.integers(0, 4), max_size=30)
)
def test_they_agree_with_a_model(operator, events):
    main, other, subscriber = played(operator, request=0)
    requested, signalled, expected = 0, False, []
    for n, event in enumerate(events):
        if subscriber.terminated:
            break
        if event == 0 and not signalled:
            signalled = True
            other.next("now")
        elif event <= 2:
            requested += event + 1
            subscriber.request(event + 1)
        elif main.outstanding:
            main.next(n)
            if signalled == (operator is skip_until_other):
                expected.append(n)
        subscriber.assert_items(*expected)
        if not subscriber.terminated:
            assert main.outstanding == requested - len(expected)
    assert subscriber.terminated == (signalled and operator is take_until_other)


@BOTH
@pytest.mark.parametrize("wrong", [None, 3, [1]])
def test_an_argument_that_is_not_a_flow_is_refused_during_assembly(operator, wrong):
    with pytest.raises(TypeError, match=f"{operator.__name__}.. takes flows"):
        operator(wrong)


@BOTH
def test_demand_is_passed_on_and_one_item_of_the_other_is_requested(operator):
    main, other, subscriber = played(operator, request=0)
    main.assert_not_requested()
    other.assert_requests(1)
    subscriber.request(3)
    subscriber.request(2)
    main.assert_requests(3, 2)
    other.assert_requests(1)


@BOTH
def test_errors_of_both_flows_end_it(operator):
    for failing in range(2):
        *publishers, subscriber = played(operator, request=0)
        error = ValueError()
        publishers[failing].error(error)
        subscriber.assert_failure(error)
        publishers[1 - failing].assert_cancelled()
        publishers[failing].assert_not_cancelled()


@BOTH
def test_cancel_reaches_both(operator):
    main, other, subscriber = played(operator)
    subscriber.cancel()
    main.assert_cancelled()
    other.assert_cancelled()
    subscriber.assert_silent_after_cancel()


@BOTH
def test_a_wrong_request_ends_it(operator):
    main, other, subscriber = played(operator, request=0)
    subscriber.subscription.request(-1)
    subscriber.assert_failure(ValueError)
    main.assert_cancelled()
    other.assert_cancelled()


@BOTH
@pytest.mark.usefixtures("dropped")
def test_signals_after_the_end_are_dropped(operator):
    main = TestPublisher(violations=Violation.IGNORED_CANCEL)
    other = TestPublisher()
    subscriber = TestSubscriber()
    flow.Flow(main).pipe(operator(flow.Flow(other))).subscribe(subscriber)
    other.error(ValueError("other"))
    late = ValueError("main")
    with recorded_drops() as drops:
        main.next(1)
        main.error(late)
    subscriber.assert_failure(ValueError)
    assert drops.items == [1]
    assert drops.errors == [late]


@BOTH
def test_many_items_take_no_deep_stack(operator):
    other = flow.never() if operator is take_until_other else flow.just("go")
    subscriber = TestSubscriber(1, on_item=lambda subscriber, _: subscriber.request(1))
    flow.range(20_000).pipe(operator(other)).subscribe(subscriber)
    assert len(subscriber.items) == 20_000
    made = flow.range(3)
    for _ in range(50):
        made = made.pipe(operator(other))
    assert list(made) == [0, 1, 2]


def test_cancel_in_on_next_stops_at_once():
    subscriber = TestSubscriber(on_item=lambda subscriber, _: subscriber.cancel())
    flow.range(5).pipe(take_until_other(flow.never())).subscribe(subscriber)
    subscriber.assert_items(0).assert_not_terminated()
