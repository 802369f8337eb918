"""The items of `combine_latest`; its demand, errors and cancel."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import Fusion
from flow_core.errors import MissingBackpressureError
from flow_ops import combine_latest
from flow_testing import (
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
    recorded_drops,
)


def played(count=2, *, request=flow.UNBOUNDED, **more):
    """A subscription to flows that the test plays."""
    publishers = [TestPublisher() for _ in range(count)]
    subscriber = TestSubscriber(request)
    combine_latest(*map(flow.Flow, publishers), **more).subscribe(subscriber)
    return *publishers, subscriber


def test_synchronous_flows_are_run_one_after_the_other():
    assert_result(
        lambda: combine_latest(flow.range(3), flow.range(10, 13)), [(2, 10), (2, 11), (2, 12)]
    )
    assert_result(
        lambda: combine_latest(flow.range(3), flow.range(10, 13)).starmap(lambda a, b: a * b),
        [20, 22, 24],
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_any_number_of_flows(count):
    def sources():
        return [flow.just(n) for n in range(count)]

    assert_result(lambda: combine_latest(*sources()), [tuple(range(count))])
    assert_result(
        lambda: combine_latest(*sources()).starmap(lambda *row: sum(row)), [sum(range(count))]
    )


def test_without_flows_and_with_empty_ones():
    assert_result(lambda: combine_latest(), [])
    assert_result(lambda: combine_latest(flow.empty(), flow.never()), [])
    assert_result(lambda: combine_latest(flow.never(), flow.empty()), [])


@pytest.mark.parametrize("prefetch", [1, 2, 3, 128])
def test_every_prefetch_gives_all_items(prefetch):
    assert_result(
        lambda: combine_latest(flow.just("x"), flow.range(30).hide(), prefetch=prefetch),
        [("x", n) for n in range(30)],
    )


def test_each_item_comes_with_the_latest_of_the_others():
    a, b, c, subscriber = played(3)
    a.next(1)
    b.next(2)
    a.next(3)
    subscriber.assert_no_items()
    c.next(4)
    subscriber.assert_items((3, 2, 4))
    b.next(5)
    a.next(6)
    subscriber.assert_items((3, 2, 4), (3, 5, 4), (6, 5, 4))
    a.complete()
    c.complete()
    b.next(7)
    subscriber.assert_not_terminated()
    b.complete()
    subscriber.assert_result((3, 2, 4), (3, 5, 4), (6, 5, 4), (6, 7, 4))


def test_a_flow_that_completes_without_an_item_ends_it():
    a, b, subscriber = played()
    a.next(1)
    b.complete()
    subscriber.assert_result()
    a.assert_cancelled()


events = st.lists(
    st.tuples(st.sampled_from(["item", "item", "item", "request", "end"]), st.integers(0, 2)),
    max_size=40,
)


@pytest.mark.slow
@pytest.mark.checklist("F50")
@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.ASYNC])
@settings(max_examples=150, deadline=None)
@given(events=events, prefetch=st.integers(1, 3))
def test_it_agrees_with_a_model(fusion, events, prefetch):
    publishers = [TestPublisher() for _ in range(3)]
    subscriber = TestSubscriber(0, fusion=fusion)
    combine_latest(*map(flow.Flow, publishers), prefetch=prefetch).subscribe(subscriber)
    latest, rows, requested, done, n = [None] * 3, [], 0, False, 0
    for event, which in events:
        if done:
            break
        publisher = publishers[which]
        if event == "request":
            requested += which + 1
            subscriber.request(which + 1)
        elif publisher.terminated:
            continue
        elif event == "end":
            publisher.complete()
            done = latest[which] is None
        elif publisher.outstanding:
            n += 1
            latest[which] = n
            publisher.next(n)
            if None not in latest:
                rows.append(tuple(latest))
        done = done or (all(each.terminated for each in publishers) and len(rows) <= requested)
        subscriber.assert_items(*rows[:requested])
        assert subscriber.terminated == done
    subscriber.assert_rules_kept()


# -- demand


@pytest.mark.parametrize("prefetch", [1, 4, 128])
def test_it_requests_the_prefetch_and_then_three_quarters_of_it(prefetch):
    a, b, _ = played(prefetch=prefetch)
    limit = max(1, prefetch - prefetch // 4)
    b.next("x")
    a.assert_requests(prefetch)
    for n in range(limit):
        a.next(n)
    a.assert_requests(prefetch, limit)


def test_an_item_that_is_replaced_before_it_is_combined_is_requested_again():
    a, b, subscriber = played(prefetch=2)
    a.next(1, 2, 3, 4)
    assert a.outstanding == 2
    b.next("x")
    subscriber.assert_items((4, "x"))


def test_combinations_wait_for_demand():
    a, b, subscriber = played(request=0)
    a.next(1)
    b.next(10, 20)
    a.next(2)
    a.complete()
    b.complete()
    subscriber.request(2)
    subscriber.assert_items((1, 10), (1, 20)).assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_result((1, 10), (1, 20), (2, 20))


def test_a_conditional_downstream_gets_the_next_item_at_once():
    seen = []
    combine_latest(flow.just(0), flow.range(10)).starmap(lambda _, b: b).filter(
        lambda n: n % 3 == 0
    ).subscribe(seen.append, prefetch=2)
    assert seen == [0, 3, 6, 9]


@pytest.mark.slow
def test_many_flows_and_items_take_no_deep_stack():
    assert list(combine_latest(*[flow.just(1)] * 2_000).starmap(lambda *row: sum(row))) == [2_000]
    subscriber = TestSubscriber(1, on_item=lambda subscriber, _: subscriber.request(1))
    combine_latest(flow.just(0), flow.range(20_000).hide()).subscribe(subscriber)
    assert len(subscriber.items) == 20_000


# -- errors


def test_an_error_overtakes_waiting_items():
    a, b, subscriber = played(request=1)
    a.next(1)
    b.next(1, 2)
    error = ValueError("a")
    with recorded_drops() as drops:
        a.error(error)
    subscriber.assert_failure(error, (1, 1))
    b.assert_cancelled()
    assert drops.items == [(1, 2)]


def test_delayed_errors_come_together_at_the_end():
    a, b, subscriber = played(delay_error=True)
    a.next(1)
    a.error(ValueError("a"))
    b.next(2, 3)
    subscriber.assert_items((1, 2), (1, 3))
    b.error(KeyError("b"))
    subscriber.assert_failure(ExceptionGroup, (1, 2), (1, 3))
    assert {type(error) for error in subscriber.error.exceptions} == {ValueError, KeyError}


def test_a_delayed_error_of_a_flow_without_an_item_does_not_wait():
    a, b, subscriber = played(delay_error=True)
    error = ValueError("a")
    a.error(error)
    subscriber.assert_failure(error)
    b.assert_cancelled()


def test_a_flow_that_sends_too_much_fails_it():
    a, b = TestPublisher(violations=Violation.OVERFLOW), TestPublisher()
    subscriber = TestSubscriber(0)
    combine_latest(flow.Flow(b), flow.Flow(a), prefetch=2).subscribe(subscriber)
    b.next(0)
    with recorded_drops() as drops:
        a.next(1, 2, 3)
    subscriber.assert_failure(MissingBackpressureError)
    a.assert_cancelled()
    b.assert_cancelled()
    assert sorted(drops.items) == [(0, 1), (0, 2), (0, 3)]


def test_arguments_are_checked_when_it_is_assembled():
    with pytest.raises(TypeError, match="takes flows"):
        combine_latest(flow.range(3), [1])
    with pytest.raises(ValueError, match="prefetch"):
        combine_latest(flow.range(3), prefetch=0)


# -- cancel


def test_cancel_reaches_all_and_drops_waiting_items():
    a, b, subscriber = played(request=1)
    a.next(1)
    b.next(1, 2)
    with recorded_drops() as drops:
        subscriber.cancel()
    a.assert_cancelled()
    b.assert_cancelled()
    assert drops.items == [(1, 2)]
    subscriber.assert_silent_after_cancel()
