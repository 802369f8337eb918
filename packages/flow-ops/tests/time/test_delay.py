"""`delay`, `delay_elements`, `delay_with_mapper` and `delay_subscription`."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_ops import delay, delay_elements, delay_subscription, delay_with_mapper, timer
from flow_testing import (
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_marbles,
    assert_result,
    cold,
)

# -- delay


def test_everything_comes_later(clock):
    source = cold("a-bc--|", clock=clock).flow
    assert_marbles(source.pipe(delay(3, clock=clock)), "---a-bc--|", clock=clock)


def test_no_delay_is_a_change_of_thread_only(clock):
    source = cold("a-(bc|)", clock=clock).flow
    assert_marbles(source.pipe(delay(0, clock=clock)), "a-(bc|)", clock=clock)


def test_delay_in_every_form(hasty):
    assert_result(lambda: flow.range(6).pipe(delay(1, clock=hasty)), list(range(6)))
    assert_result(lambda: flow.range(6).map(str).pipe(delay(0, clock=hasty)), list("012345"))
    assert_result(lambda: flow.empty().pipe(delay(1, clock=hasty)), [])
    failure = ValueError("no")
    assert_result(lambda: flow.error(failure).pipe(delay(1, clock=hasty)), [], failure)


def test_a_delayed_error_in_every_form(hasty, dropped):
    assert_result(
        lambda: (
            flow.range(3).map(lambda n: 2 // (2 - n)).pipe(delay(1, delay_error=True, clock=hasty))
        ),
        [1, 2],
        ZeroDivisionError,
    )


def test_times_that_are_not_round_numbers_are_kept(clock):
    seen = TestSubscriber()
    source = TestPublisher()
    flow.Flow(source).pipe(delay(0.2, clock=clock)).map(lambda n: (n, clock.now())).subscribe(seen)
    for n in range(10):
        clock.advance_by(0.1)
        source.next(n)
    source.complete()
    clock.run()
    assert seen.items == [(n, round(0.1 * n + 0.3, 9)) for n in range(10)]
    assert seen.completed


@pytest.mark.checklist("O18")
def test_an_error_overtakes(clock):
    failure = ValueError("no")
    source = cold("a--b-#", clock=clock, error=failure).flow
    made = source.pipe(delay(4, clock=clock))
    assert_marbles(made, "----a#", clock=clock, error=failure)


@pytest.mark.checklist("O18")
def test_an_error_may_be_delayed(clock):
    failure = ValueError("no")
    source = cold("a--b-#", clock=clock, error=failure).flow
    made = source.pipe(delay(4, delay_error=True, clock=clock))
    assert_marbles(made, "----a--b-#", clock=clock, error=failure)


def test_items_on_their_way_count_against_the_demand(clock):
    source = TestPublisher()
    seen = TestSubscriber(2)
    flow.Flow(source).pipe(delay(1, clock=clock)).subscribe(seen)
    source.assert_requests(2)
    source.next(1, 2)
    clock.advance_by(1)
    seen.assert_items(1, 2)
    source.assert_requests(2)
    seen.request(3)
    source.assert_requests(2, 3)
    seen.cancel()


def test_a_rejected_item_is_requested_again(clock):
    source = TestPublisher()
    seen = ConditionalTestSubscriber(lambda n: n > 1, 1)
    flow.Flow(source).pipe(delay(1, clock=clock)).subscribe(seen)
    source.next(1)
    clock.advance_by(1)
    source.assert_requests(1, 1)
    source.next(2)
    clock.advance_by(1)
    seen.assert_items(2)
    seen.cancel()


def test_more_than_was_requested_is_an_error(clock, dropped):
    source = TestPublisher(Violation.OVERFLOW)
    seen = TestSubscriber(1)
    flow.Flow(source).pipe(delay(1, clock=clock)).subscribe(seen)
    source.next(1, 2, 3)
    source.assert_cancelled()
    clock.run()
    seen.assert_failure(MissingBackpressureError)
    assert sorted(dropped.items) == [1, 2]  # and 3 was not sent


def test_waiting_items_are_dropped_when_it_is_cancelled(clock, dropped):
    source = TestPublisher()
    seen = TestSubscriber()
    flow.Flow(source).pipe(delay(1, clock=clock)).subscribe(seen)
    source.next(1, 2)
    seen.cancel()
    source.assert_cancelled()
    assert (dropped.items, clock.pending) == ([1, 2], 0)


def test_one_timer_serves_all_items(clock):
    source = TestPublisher()
    seen = TestSubscriber()
    flow.Flow(source).pipe(delay(1, clock=clock)).subscribe(seen)
    for n in range(100):
        source.next(n)
        assert clock.pending == 1
    clock.advance_by(1)
    assert len(seen.items) == 100
    assert clock.pending == 0
    seen.cancel()


# -- delay_elements


def test_each_element_comes_after_the_one_before(clock):
    source = cold("abc---d--|", clock=clock).flow
    assert_marbles(source.pipe(delay_elements(2, clock=clock)), "--a-b-c-d|", clock=clock)


def test_delay_elements_in_every_form(hasty):
    assert_result(lambda: flow.range(5).pipe(delay_elements(1, clock=hasty)), list(range(5)))


def test_elements_wait_for_demand(clock):
    seen = TestSubscriber(1)
    flow.range(3).hide().pipe(delay_elements(1, clock=clock)).subscribe(seen)
    clock.advance_by(10)
    seen.assert_items(0)
    seen.request(1)
    clock.advance_by(10)
    seen.assert_items(0, 1)
    seen.cancel()


# -- delay_with_mapper


def test_each_item_waits_for_its_own_flow(clock):
    made = flow.just(5, 1, 3).pipe(delay_with_mapper(lambda n: timer(n, clock=clock)))
    assert_marbles(made, "-1-3-(5|)", clock=clock)


def test_a_flow_without_items_is_as_good(clock):
    made = flow.just(5, 1).pipe(delay_with_mapper(lambda n: cold("-" * n + "|", clock=clock).flow))
    assert_marbles(made, "-1---(5|)", clock=clock)


def test_delay_with_mapper_in_every_form():
    assert_result(
        lambda: flow.range(5).pipe(delay_with_mapper(lambda _: flow.just("now", "later"))),
        list(range(5)),
    )
    assert_result(
        lambda: flow.range(5).pipe(delay_with_mapper(lambda _: flow.empty().hide())),
        list(range(5)),
    )


def test_no_more_items_than_the_concurrency_are_on_their_way(clock):
    source = TestPublisher()
    seen = TestSubscriber()
    mapping = delay_with_mapper(lambda n: timer(n, clock=clock), concurrency=2)
    flow.Flow(source).pipe(mapping).subscribe(seen)
    assert source.requested == 2
    source.next(5, 1)
    clock.advance_by(1)
    assert source.requested == 3
    seen.cancel()


def test_a_mapper_that_fails_fails_the_flow():
    failure = ValueError("no")

    def fails(_):
        raise failure

    for mapper in (fails, lambda _: flow.error(failure)):
        seen = TestSubscriber()
        flow.range(3).pipe(delay_with_mapper(mapper)).subscribe(seen)
        seen.assert_failure(failure)
    assert any("delay_with_mapper" in note for note in failure.__notes__)
    seen = TestSubscriber()
    flow.range(3).pipe(delay_with_mapper(lambda _: None)).subscribe(seen)
    seen.assert_failure(NoneItemError)


# -- delay_subscription


def test_the_subscription_comes_later(clock):
    source = cold("a-b|", clock=clock)
    made = source.flow.pipe(delay_subscription(3, clock=clock))
    assert_marbles(made, "---a-b|", clock=clock)


def test_the_subscription_waits_for_an_item_of_another_flow(clock):
    source, other = cold("a-b|", clock=clock), cold("--x-y-z", clock=clock)
    made = source.flow.pipe(delay_subscription(other.flow))
    assert_marbles(made, "--a-b|", clock=clock)
    other.assert_subscriptions("^-!")


def test_the_subscription_waits_for_the_end_of_another_flow(clock):
    made = cold("a-b|", clock=clock).flow.pipe(delay_subscription(cold("---|", clock=clock).flow))
    assert_marbles(made, "---a-b|", clock=clock)


def test_the_other_flow_may_fail(clock):
    source = TestPublisher()
    made = flow.Flow(source).pipe(delay_subscription(cold("---#", clock=clock).flow))
    assert_marbles(made, "---#", clock=clock)
    source.assert_not_subscribed()


def test_delay_subscription_in_every_form(hasty):
    assert_result(lambda: flow.range(5).pipe(delay_subscription(1, clock=hasty)), list(range(5)))
    assert_result(lambda: flow.range(5).pipe(delay_subscription(flow.just("go"))), list(range(5)))
    assert_result(lambda: flow.range(5).pipe(delay_subscription(flow.empty())), list(range(5)))


def test_the_subscription_does_not_wait_for_demand(clock):
    source = TestPublisher()
    seen = TestSubscriber(0)
    flow.Flow(source).pipe(delay_subscription(1, clock=clock)).subscribe(seen)
    clock.advance_by(0.5)
    source.assert_not_subscribed()
    clock.advance_by(0.5)
    source.assert_subscribed().assert_not_requested()
    seen.request(2)
    source.assert_requests(2)
    seen.cancel()
    source.assert_cancelled()


def test_requests_before_the_subscription_are_made_then(clock):
    source = TestPublisher()
    seen = TestSubscriber(2)
    flow.Flow(source).pipe(delay_subscription(1, clock=clock)).subscribe(seen)
    seen.request(3)
    clock.advance_by(1)
    source.assert_requests(5)
    seen.cancel()


def test_a_cancel_before_leaves_nothing(clock):
    source, other = TestPublisher(), TestPublisher()
    for by in (1, flow.Flow(other)):
        seen = TestSubscriber()
        flow.Flow(source).pipe(delay_subscription(by, clock=clock)).subscribe(seen)
        seen.cancel()
        clock.run()
    source.assert_not_subscribed()
    other.assert_cancelled()


@pytest.mark.slow
def test_a_million_items_do_not_pile_up(hasty):
    total = flow.range(10**6).hide().pipe(delay_subscription(1, clock=hasty)).count().single()
    assert total == 10**6


# -- arguments


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: delay(-1), ValueError),
        (lambda: delay(float("nan")), ValueError),
        (lambda: delay("1"), TypeError),
        (lambda: delay(1, clock="noon"), TypeError),
        (lambda: delay_elements(-1), ValueError),
        (lambda: delay_elements(None), TypeError),
        (lambda: delay_with_mapper(3), TypeError),
        (lambda: delay_with_mapper(flow.just, concurrency=0), ValueError),
        (lambda: delay_subscription(-1), ValueError),
        (lambda: delay_subscription("soon"), TypeError),
    ],
)
def test_wrong_arguments_are_refused_at_once(make, error):
    with pytest.raises(error):
        make()
