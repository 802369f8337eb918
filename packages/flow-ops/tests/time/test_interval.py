"""`interval`, `interval_range` and `timer`."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError
from flow_core.structure import stages_of
from flow_ops import interval, interval_range, timer
from flow_testing import TestSubscriber, VirtualClock, assert_marbles, assert_result


def test_counts_one_number_each_period(clock):
    assert_marbles(interval(2, clock=clock), "--0-1-2-", clock=clock, subscription="^------!")


def test_the_first_number_may_have_a_separate_delay(clock):
    made = interval(2, initial_delay=1, clock=clock)
    assert_marbles(made, "-0-1-2", clock=clock, subscription="^-----!")
    made = interval(2, initial_delay=0, clock=clock)
    assert_marbles(made, "0-1-2", clock=clock, subscription="^----!")


def test_does_not_drift(clock):
    seen = TestSubscriber()
    interval(0.1, clock=clock).map(lambda _: clock.now()).take(100).subscribe(seen)
    clock.run()
    assert seen.items == [round(n * 0.1, 9) for n in range(1, 101)]


def test_each_subscriber_has_its_own_count(clock):
    made = interval(1, clock=clock).take(2)
    one, two = TestSubscriber(), TestSubscriber()
    made.subscribe(one)
    clock.advance_by(1)
    made.subscribe(two)
    clock.run()
    one.assert_result(0, 1)
    two.assert_result(0, 1)


def test_a_number_that_was_not_requested_is_an_error(clock):
    seen = TestSubscriber(2)
    interval(1, clock=clock).subscribe(seen)
    clock.advance_by(2)
    seen.assert_items(0, 1).assert_not_terminated()
    clock.advance_by(1)
    seen.assert_failure(MissingBackpressureError, 0, 1)
    assert "overflow=" in str(seen.error)
    assert "test_interval.py" in str(seen.error)


def test_numbers_that_were_not_requested_may_be_left_out(clock):
    seen = TestSubscriber(1)
    interval(1, overflow="drop", clock=clock).subscribe(seen)
    clock.advance_by(3)
    seen.assert_items(0)
    seen.request(2)
    seen.assert_items(0)
    clock.advance_by(5)
    seen.assert_items(0, 3, 4).assert_not_terminated()
    seen.cancel()


def test_numbers_that_were_not_requested_may_come_later(clock):
    seen = TestSubscriber(0)
    interval(1, overflow="buffer", clock=clock).subscribe(seen)
    clock.advance_by(1000)
    seen.assert_items()
    seen.request(3)
    seen.assert_items(0, 1, 2)
    seen.request(10_000)
    assert len(seen.items) == 1000
    clock.advance_by(1)
    assert seen.items[-1] == 1000
    seen.cancel()


def test_numbers_that_a_conditional_subscriber_rejects_do_not_count(clock):
    from flow_testing import ConditionalTestSubscriber

    seen = ConditionalTestSubscriber(lambda n: n % 2 == 0, 2)
    interval(1, clock=clock).subscribe(seen)
    clock.advance_by(3)
    seen.assert_items(0, 2)
    assert seen.rejected == [1]
    seen.cancel()


@pytest.mark.parametrize("overflow", ["error", "drop", "buffer"])
def test_cancel_stops_it(clock, overflow):
    seen = TestSubscriber(on_item=lambda self, n: n == 1 and self.cancel())
    interval(1, overflow=overflow, clock=clock).subscribe(seen)
    clock.run()
    seen.assert_items(0, 1).assert_not_terminated()
    assert clock.pending == 0


def test_a_cancel_in_on_subscribe_leaves_no_timer(clock):
    seen = TestSubscriber()
    seen.cancel()
    interval(1, clock=clock).subscribe(seen)
    timer(1, clock=clock).subscribe(TestSubscriber(0))
    assert clock.pending == 1
    clock.advance_by(1)


@pytest.mark.slow
def test_in_every_form(hasty):
    assert_result(lambda: interval(1, overflow="buffer", clock=hasty).take(5), [0, 1, 2, 3, 4])


@pytest.mark.slow
def test_range_in_every_form(hasty):
    assert_result(lambda: interval_range(7, 3, 1, overflow="buffer", clock=hasty), [7, 8, 9])
    assert_result(lambda: interval_range(7, 0, 1, clock=hasty), [])


def test_a_range_completes_with_its_last_number(clock):
    made = interval_range(3, 3, 2, initial_delay=1, clock=clock)
    assert_marbles(made, "-3-4-(5|)", clock=clock)


def test_a_range_fails_without_demand_too(clock):
    seen = TestSubscriber(1)
    interval_range(3, 3, 2, clock=clock).subscribe(seen)
    clock.run()
    seen.assert_failure(MissingBackpressureError, 3)


def test_a_timer_gives_one_item(clock):
    assert_marbles(timer(3, clock=clock), "---(0|)", clock=clock)
    assert_marbles(timer(0, clock=clock), "(0|)", clock=clock)


def test_the_item_of_a_timer_waits_for_demand(clock):
    seen = TestSubscriber(0)
    timer(3, clock=clock).subscribe(seen)
    clock.advance_by(10)
    seen.assert_items().assert_not_terminated()
    seen.request(1)
    seen.assert_result(0)


def test_a_timer_of_infinity_never_comes(clock):
    seen = TestSubscriber()
    timer(float("inf"), clock=clock).subscribe(seen)
    clock.advance_by(10**6)
    seen.assert_items().assert_not_terminated()
    seen.cancel()


def test_a_timer_in_every_form(hasty):
    assert_result(lambda: timer(3, clock=hasty), [0])


def test_the_clock_of_the_process_serves_by_default():
    before = flow.system_clock().pending  # other tests may have left something to do
    assert list(interval(0.001).take(2)) == [0, 1]
    assert timer(0).single() == 0
    assert flow.system_clock().pending <= before


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: interval(0), ValueError),
        (lambda: interval(-1), ValueError),
        (lambda: interval("1"), TypeError),
        (lambda: interval(float("inf")), ValueError),
        (lambda: interval(1, initial_delay=-1), ValueError),
        (lambda: interval(1, initial_delay="1"), TypeError),
        (lambda: interval(1, overflow="lose"), ValueError),
        (lambda: interval(1, clock=3), TypeError),
        (lambda: interval(1, clock=VirtualClock), TypeError),
        (lambda: interval_range("a", 1, 1), TypeError),
        (lambda: interval_range(1, -1, 1), ValueError),
        (lambda: timer(-1), ValueError),
        (lambda: timer(float("nan")), ValueError),
        (lambda: timer(None), TypeError),
        (lambda: timer(True), TypeError),
    ],
)
def test_wrong_arguments_are_refused_at_once(make, error):
    with pytest.raises(error):
        make()


def test_says_what_it_is():
    assert repr(interval(0.5)).startswith("interval(0.5 s), assembled at ")
    assert "test_interval.py" in repr(timer(3))


def test_stages_within_an_operator_say_where_the_user_has_put_it() -> None:
    made = interval_range(0, 3, 1)

    assert [stage.name for stage in stages_of(made)] == ["take", "map"]
    for stage in stages_of(made):
        assert stage.assembled_at is not None
        assert "test_interval.py:" in stage.assembled_at
