"""`timeout`."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_core.errors import FlowError, FlowTimeoutError, NoneItemError
from flow_ops import timeout, timer
from flow_testing import (
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_marbles,
    assert_result,
    cold,
)

pytestmark = pytest.mark.checklist("O34")

FAILURE = ValueError("no")


def test_items_in_time_pass(clock):
    source = cold("-a-b--c-|", clock=clock).flow
    assert_marbles(source.pipe(timeout(4, clock=clock)), "-a-b--c-|", clock=clock)


def test_a_late_item_is_an_error(clock):
    source = cold("-a-b-----c-|", clock=clock)
    made = source.flow.pipe(timeout(3, clock=clock))
    assert_marbles(made, "-a-b--#", clock=clock, error=FlowTimeoutError)
    source.assert_subscriptions("^-----!")


def test_a_late_first_item_is_an_error(clock):
    made = flow.never().pipe(timeout(3, clock=clock))
    assert_marbles(made, "---#", clock=clock, error=TimeoutError)


def test_a_late_end_is_an_error(clock):
    source = cold("ab----|", clock=clock).flow
    assert_marbles(source.pipe(timeout(3, clock=clock)), "ab--#", clock=clock)


def test_the_error_says_what_was_late(clock):
    seen = TestSubscriber()
    flow.never().pipe(timeout(3, clock=clock)).subscribe(seen)
    clock.run()
    seen.assert_failure(FlowTimeoutError)
    assert isinstance(seen.error, FlowError)
    assert isinstance(seen.error, TimeoutError)
    text = str(seen.error)
    assert "timeout(3 s), assembled at " in text
    assert "test_timeout.py" in text
    assert text.endswith("no item came within 3 s")
    seen = TestSubscriber()
    cold("a", clock=clock).flow.pipe(timeout(0.5, first=1, clock=clock)).subscribe(seen)
    clock.run()
    assert str(seen.error).endswith("no other item came within 0.5 s")


def test_the_first_item_may_have_a_separate_limit(clock):
    source = cold("-----a-b----c", clock=clock).flow
    made = source.pipe(timeout(3, first=6, clock=clock))
    assert_marbles(made, "-----a-b--#", clock=clock)
    source = cold("---a", clock=clock).flow
    assert_marbles(source.pipe(timeout(9, first=2, clock=clock)), "--#", clock=clock)


def test_only_the_first_item_may_have_a_limit(clock):
    source = cold("-a-------b|", clock=clock).flow
    made = source.pipe(timeout(first=2, clock=clock))
    assert_marbles(made, "-a-------b|", clock=clock)
    source = cold("---a|", clock=clock).flow
    assert_marbles(source.pipe(timeout(first=2, clock=clock)), "--#", clock=clock)


def test_an_infinite_limit_never_expires(clock):
    source = cold("-a-------b|", clock=clock).flow
    assert_marbles(source.pipe(timeout(float("inf"), clock=clock)), "-a-------b|", clock=clock)


def test_a_limit_that_gets_shorter_moves_the_timer(clock):
    source = cold("a-----b", clock=clock).flow
    assert_marbles(source.pipe(timeout(1, first=100, clock=clock)), "a#", clock=clock)


def test_one_timer_serves_all_items(clock):
    source = TestPublisher()
    seen = TestSubscriber()
    flow.Flow(source).pipe(timeout(1, clock=clock)).subscribe(seen)
    for n in range(50):
        source.next(n)
        clock.advance_by(0.25)
        assert clock.pending == 1
    source.complete()
    seen.assert_result(*range(50))
    assert clock.pending == 0


# -- the selector


def test_a_flow_may_be_the_limit(clock):
    source = cold("1-3--1----5", clock=clock).flow
    made = source.pipe(timeout(selector=lambda n: timer(n + 1, clock=clock), clock=clock))
    assert_marbles(made, "1-3--1-#", clock=clock, error=FlowTimeoutError)


def test_the_end_of_that_flow_is_the_limit_too(clock):
    limit = cold("--|", clock=clock)
    source = cold("a---b", clock=clock)
    made = source.flow.pipe(timeout(selector=lambda _: limit.flow, clock=clock))
    assert_marbles(made, "a-#", clock=clock)
    source.assert_subscriptions("^-!")


def test_that_flow_is_left_when_the_item_comes(clock):
    limits = [cold("----x", clock=clock), cold("----x", clock=clock)]
    flows = iter(limits)
    source = cold("a--b--|", clock=clock).flow
    made = source.pipe(timeout(selector=lambda _: next(flows).flow, clock=clock))
    assert_marbles(made, "a--b--|", clock=clock)
    limits[0].assert_subscriptions("^--!")
    limits[1].assert_subscriptions("---^--!")


def test_before_the_first_item_the_selector_has_no_say(clock):
    source = cold("-----a|", clock=clock).flow
    made = source.pipe(timeout(first=3, selector=lambda _: flow.never(), clock=clock))
    assert_marbles(made, "---#", clock=clock)


def test_a_limit_that_passes_at_once_is_an_error(clock):
    seen = TestSubscriber()
    flow.range(3).hide().pipe(timeout(selector=flow.just, clock=clock)).subscribe(seen)
    seen.assert_failure(FlowTimeoutError, 0)


@pytest.mark.parametrize("selector", [lambda _: flow.error(FAILURE), lambda _: _fails()])
def test_a_selector_that_fails_fails_the_flow(clock, selector):
    source = TestPublisher()
    seen = TestSubscriber()
    flow.Flow(source).pipe(timeout(selector=selector, clock=clock)).subscribe(seen)
    source.next(1)
    seen.assert_failure(FAILURE, *seen.items)
    source.assert_cancelled()


def test_a_selector_that_gives_no_flow_fails_the_flow(clock):
    for gives, error in ((None, NoneItemError), (3, TypeError)):
        seen = TestSubscriber()
        made = flow.just(1).hide().pipe(timeout(selector=lambda _, g=gives: g, clock=clock))
        made.subscribe(seen)
        seen.assert_failure(error)


def _fails():
    raise FAILURE


# -- the fallback


def test_the_fallback_flow_continues_after_a_timeout(clock):
    source = cold("-a-b-----c-|", clock=clock)
    other = cold("--x---y|", clock=clock)
    made = source.flow.pipe(timeout(3, fallback=other.flow, clock=clock))
    assert_marbles(made, "-a-b----x---y|", clock=clock)
    source.assert_subscriptions("^-----!")


def test_the_fallback_has_no_limit(clock):
    made = flow.never().pipe(
        timeout(1, fallback=cold("-----x-------#", clock=clock).flow, clock=clock)
    )
    assert_marbles(made, "------x-------#", clock=clock)


def test_the_fallback_gets_what_is_left_of_the_demand(clock):
    source, other = TestPublisher(), TestPublisher()
    seen = TestSubscriber(5)
    made = flow.Flow(source).pipe(timeout(1, fallback=flow.Flow(other), clock=clock))
    made.subscribe(seen)
    source.next(1, 2)
    clock.advance_by(1)
    source.assert_requests(5).assert_cancelled()
    other.assert_requests(3)
    other.next(3)
    seen.request(4)
    other.assert_requests(3, 4)
    source.assert_requests(5)
    other.complete()
    seen.assert_result(1, 2, 3)


def test_without_demand_the_fallback_is_not_requested(clock):
    source, other = TestPublisher(), TestPublisher()
    seen = TestSubscriber(0)
    made = flow.Flow(source).pipe(timeout(1, fallback=flow.Flow(other), clock=clock))
    made.subscribe(seen)
    clock.advance_by(1)
    other.assert_subscribed().assert_not_requested()
    seen.request(2)
    other.assert_requests(2)
    seen.cancel()
    other.assert_cancelled()


def test_the_demand_of_a_rejected_item_is_left_for_the_fallback(clock):
    source, other = TestPublisher(), TestPublisher()
    seen = ConditionalTestSubscriber(lambda n: n > 1, 2)
    made = flow.Flow(source).pipe(timeout(1, fallback=flow.Flow(other), clock=clock))
    made.subscribe(seen)
    source.next(1, 2)
    clock.advance_by(1)
    assert source.requests == [2, 1]
    other.assert_requests(1)
    seen.cancel()


@pytest.mark.slow
def test_a_million_items_of_a_fallback_do_not_pile_up(hasty):
    made = flow.never().pipe(timeout(1, fallback=flow.range(10**6).hide(), clock=hasty))
    assert made.count().single() == 10**6


# -- forms, ends


def test_in_every_form(clock, hasty):
    assert_result(lambda: flow.range(5).pipe(timeout(1, clock=clock)), list(range(5)))
    assert_result(
        lambda: flow.range(5).pipe(timeout(selector=lambda _: flow.never(), clock=clock)),
        list(range(5)),
    )
    assert_result(
        lambda: flow.error(FAILURE).pipe(timeout(1, fallback=flow.just(1), clock=clock)),
        [],
        FAILURE,
    )
    fallback = flow.range(3)
    assert_result(lambda: flow.never().pipe(timeout(1, fallback=fallback, clock=hasty)), [0, 1, 2])
    assert_result(lambda: flow.never().pipe(timeout(1, clock=hasty)), [], FlowTimeoutError)


def test_demand_is_passed_on(clock):
    source = TestPublisher()
    seen = TestSubscriber(0)
    flow.Flow(source).pipe(timeout(1, clock=clock)).subscribe(seen)
    source.assert_not_requested()
    seen.request(2)
    seen.request(3)
    source.assert_requests(2, 3)
    seen.cancel()
    source.assert_cancelled()


def test_time_runs_without_demand_too(clock):
    seen = TestSubscriber(0)
    flow.range(3).pipe(timeout(1, clock=clock)).subscribe(seen)
    clock.run()
    seen.assert_failure(FlowTimeoutError)


def test_an_item_that_comes_too_late_is_dropped(clock, dropped):
    source = TestPublisher(Violation.IGNORED_CANCEL | Violation.OVERFLOW)
    seen = TestSubscriber()
    flow.Flow(source).pipe(timeout(1, clock=clock)).subscribe(seen)
    clock.advance_by(1)
    source.next(7)
    seen.assert_failure(FlowTimeoutError)
    assert dropped.items == [7]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: timeout(), TypeError),
        (lambda: timeout(-1), ValueError),
        (lambda: timeout("1"), TypeError),
        (lambda: timeout(1, first=float("nan")), ValueError),
        (lambda: timeout(1, selector=flow.just), TypeError),
        (lambda: timeout(selector=3), TypeError),
        (lambda: timeout(1, fallback=[1]), TypeError),
        (lambda: timeout(1, clock=1), TypeError),
    ],
)
def test_wrong_arguments_are_refused_at_once(make, error):
    with pytest.raises(error):
        make()


def test_says_what_it_is():
    made = flow.range(3).pipe(timeout(1, first=2, fallback=flow.never()))
    assert "timeout(1 s, first=2 s, fallback=never())" in repr(made)
