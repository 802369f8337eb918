"""The answers of `sequence_equal`; its demand, errors and cancel."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core.errors import MissingBackpressureError
from flow_ops import observe_on, sequence_equal
from flow_testing import (
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
    recorded_drops,
)


def played(*, request=flow.UNBOUNDED, **more):
    """A subscription to two flows that the test plays."""
    a, b = TestPublisher(), TestPublisher()
    subscriber = TestSubscriber(request)
    sequence_equal(flow.Flow(a), flow.Flow(b), **more).subscribe(subscriber)
    return a, b, subscriber


@pytest.mark.parametrize("prefetch", [1, 2, 128])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([], []),
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2], [1, 2, 3]),
        ([1, 2, 3], [1]),
        ([1], [2]),
        ([], [1]),
    ],
)
def test_it_tells_whether_they_are_equal(left, right, prefetch):
    for first in (flow.from_iterable(left), flow.from_iterable(left).hide()):
        assert_result(
            lambda first=first: sequence_equal(first, flow.from_iterable(right), prefetch=prefetch),
            [left == right],
        )


def test_keys_and_a_function_for_equality():
    assert_result(lambda: sequence_equal(flow.just("a"), flow.just("A"), key=str.upper), [True])
    assert_result(
        lambda: sequence_equal(
            flow.just(1.0, 2.0), flow.just(1.001, 2.001), equals=lambda a, b: abs(a - b) < 0.01
        ),
        [True],
    )
    assert_result(
        lambda: sequence_equal(flow.just(1), flow.just(1), equals=lambda a, b: False), [False]
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1), max_size=5), st.lists(st.integers(0, 1), max_size=5), st.data())
def test_it_agrees_with_lists(left, right, data):
    a, b, subscriber = played(prefetch=8)
    turns = data.draw(st.lists(st.booleans(), min_size=12, max_size=12))
    rest = {a: iter(left), b: iter(right)}
    for turn in [*turns, *[False] * 6, *[True] * 6]:
        publisher = b if turn else a
        if publisher.terminated or publisher.cancelled:
            continue
        try:
            publisher.next(next(rest[publisher]))
        except StopIteration:
            publisher.complete()
    subscriber.assert_result(left == right)


def test_the_first_difference_is_the_answer():
    a, b, subscriber = played()
    a.next(1, 2, 3)
    b.next(1)
    subscriber.assert_not_terminated()
    with recorded_drops() as drops:
        b.next(5)
    subscriber.assert_result(False)
    a.assert_cancelled()
    b.assert_cancelled()
    assert drops.items == [3]


def test_an_end_before_the_others_item_is_a_difference():
    a, b, subscriber = played()
    a.complete()
    subscriber.assert_not_terminated()
    b.next(1)
    subscriber.assert_result(False)
    b.assert_cancelled()
    a, b, subscriber = played()
    a.next(1)
    b.complete()
    subscriber.assert_result(False)
    a.assert_cancelled()


def test_without_demand_nothing_is_compared():
    compared = []
    a, b, subscriber = played(request=0, equals=lambda a, b: compared.append((a, b)))
    a.assert_requests(128)
    a.next(1)
    b.next(2)
    assert compared == []
    subscriber.request(1)
    assert compared == [(1, 2)]
    subscriber.assert_result(False)


def test_an_error_overtakes_waiting_items_and_needs_no_demand():
    for request in (0, 1):
        a, b, subscriber = played(request=request)
        a.next(1, 2)
        error = ValueError()
        with recorded_drops() as drops:
            b.error(error)
        subscriber.assert_failure(error)
        a.assert_cancelled()
        assert sorted(drops.items) == [1, 2]


def test_an_error_of_a_polled_flow():
    error = LookupError()

    def items():
        yield 1
        raise error

    assert_result(
        lambda: sequence_equal(flow.from_iterable(items()), flow.range(1, 5)),
        [],
        error,
        only=lambda name: name == "source as it is, requested at once",
    )


def test_an_error_of_a_comparison_says_where_it_arose():
    class Odd:
        def __eq__(self, other):
            raise ZeroDivisionError

        __hash__ = None

    with pytest.raises(ZeroDivisionError) as caught:
        list(sequence_equal(flow.just(Odd()), flow.just(1)))
    assert any("in sequence_equal(2 flows)" in note for note in caught.value.__notes__)


def test_a_flow_that_sends_too_much_fails_it():
    a = TestPublisher(violations=Violation.OVERFLOW)
    subscriber = TestSubscriber(0)
    sequence_equal(flow.Flow(a), flow.never(), prefetch=1).subscribe(subscriber)
    with recorded_drops() as drops:
        a.next(1, 2)
    subscriber.assert_failure(MissingBackpressureError)
    assert sorted(drops.items) == [1, 2]


def test_cancel_reaches_both_and_drops_waiting_items():
    a, b, subscriber = played()
    a.next(1, 2)
    with recorded_drops() as drops:
        subscriber.cancel()
    a.assert_cancelled()
    b.assert_cancelled()
    assert sorted(drops.items) == [1, 2]
    subscriber.assert_silent_after_cancel()


def test_flows_on_other_threads(pool):
    made = sequence_equal(flow.range(2_000).pipe(observe_on(pool)), flow.range(2_000), prefetch=8)
    assert made.single() is True


def test_a_long_comparison_takes_no_deep_stack():
    assert sequence_equal(flow.range(20_000), flow.range(20_000).hide(), prefetch=2).single()


def test_a_stage_behind_it_may_drop_the_answer():
    assert list(sequence_equal(flow.just(1), flow.just(1)).filter(lambda same: not same)) == []


def test_arguments_are_checked_when_it_is_assembled():
    with pytest.raises(TypeError, match="takes flows"):
        sequence_equal(flow.range(3), [1])
    for name in ("key", "equals"):
        with pytest.raises(TypeError, match=f"'{name}'"):
            sequence_equal(flow.range(3), flow.range(3), **{name: 3})
    with pytest.raises(ValueError, match="key= or equals="):
        sequence_equal(flow.range(3), flow.range(3), key=abs, equals=max)
    with pytest.raises(ValueError, match="prefetch"):
        sequence_equal(flow.range(3), flow.range(3), prefetch=0)
