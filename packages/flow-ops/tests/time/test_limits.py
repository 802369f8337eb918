"""Items up to a time or from a time on, those at the end, and times of items."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flow_core as flow
from flow_core.clocks import Clock
from flow_ops import (
    TimeInterval,
    Timestamped,
    interval,
    skip_last_with_time,
    skip_until_with_time,
    skip_with_time,
    take_last_with_time,
    take_until_with_time,
    take_with_time,
    time_interval,
    timestamp,
)
from flow_testing import (
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
    assert_marbles,
    assert_result,
    cold,
)

SOURCE = "-a-b-c-d|"


def test_items_of_the_first_while(clock):
    source = cold(SOURCE, clock=clock)
    assert_marbles(source.flow.pipe(take_with_time(4, clock=clock)), "-a-b|", clock=clock)
    source.assert_subscriptions("^---!")
    assert_marbles(source.flow.pipe(take_with_time(40, clock=clock)), SOURCE, clock=clock)
    assert_marbles(source.flow.pipe(take_with_time(0, clock=clock)), "|", clock=clock)


def test_items_after_the_first_while(clock):
    source = cold(SOURCE, clock=clock).flow
    assert_marbles(source.pipe(skip_with_time(4, clock=clock)), "-----c-d|", clock=clock)
    assert_marbles(source.pipe(skip_with_time(40, clock=clock)), "--------|", clock=clock)


def test_items_up_to_a_time(clock):
    clock.advance_by(10)
    made = cold(SOURCE, clock=clock).flow.pipe(take_until_with_time(14, clock=clock))
    assert_marbles(made, "-a-b|", clock=clock)  # which ends at 14
    assert_marbles(made, "|", clock=clock)


class Stopped(Clock):
    """A clock that does not know the time, and says so by raising."""

    def __init__(self):
        self.error = OSError("no time")

    def now(self):
        raise self.error

    def schedule(self, delay_s, task, /):
        raise AssertionError

    def schedule_periodically(self, delay_s, period_s, task, /):
        raise AssertionError


@pytest.mark.parametrize("operator", [take_until_with_time, skip_until_with_time])
def test_a_clock_that_fails_is_an_error_of_the_flow(operator):
    clock, source, seen = Stopped(), TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(operator(1, clock=clock)).subscribe(seen)
    seen.assert_failure(clock.error)
    assert not source.subscribed or source.cancelled


def test_items_from_a_time_on(clock):
    clock.advance_by(10)
    made = cold(SOURCE, clock=clock).flow.pipe(skip_until_with_time(14, clock=clock))
    assert_marbles(made, "-----c-d|", clock=clock)
    assert_marbles(made, SOURCE, clock=clock)


def test_items_of_the_last_while(clock):
    source = cold(SOURCE, clock=clock).flow
    assert_marbles(source.pipe(take_last_with_time(4, clock=clock)), "--------(cd|)", clock=clock)
    assert_marbles(source.pipe(take_last_with_time(0, clock=clock)), "--------|", clock=clock)
    made = source.pipe(take_last_with_time(9, max_items=3, clock=clock))
    assert_marbles(made, "--------(bcd|)", clock=clock)


def test_all_items_but_those_of_the_last_while(clock):
    source = cold(SOURCE, clock=clock).flow
    assert_marbles(source.pipe(skip_last_with_time(3, clock=clock)), "-----a-b(c|)", clock=clock)
    assert_marbles(source.pipe(skip_last_with_time(30, clock=clock)), "--------|", clock=clock)
    assert_marbles(source.pipe(skip_last_with_time(0, clock=clock)), SOURCE, clock=clock)


def test_errors_come_at_once(clock):
    failure = ValueError("no")
    source = cold("-a-b-#", clock=clock, error=failure).flow
    for made, expected in (
        (take_last_with_time(9, clock=clock), "-----#"),
        (skip_last_with_time(2, clock=clock), "---a-#"),
        (take_with_time(9, clock=clock), "-a-b-#"),
        (skip_with_time(2, clock=clock), "---b-#"),
    ):
        assert_marbles(source.pipe(made), expected, clock=clock, error=failure)


def test_in_every_form():
    clock = VirtualClock()
    every = list(range(6))
    for made in (
        take_with_time(1, clock=clock),
        take_until_with_time(1, clock=clock),
        take_last_with_time(1, clock=clock),
        skip_last_with_time(0, clock=clock),
    ):
        assert_result(lambda made=made: flow.range(6).pipe(made), every)
    # Iteration that stops half-way cancels.
    assert clock.pending == 0
    assert_result(lambda: flow.range(6).pipe(skip_last_with_time(1, clock=clock)), [])
    assert_result(lambda: flow.range(6).pipe(take_last_with_time(1, max_items=2)), [4, 5])


def test_forms_with_a_clock_that_hurries(hasty):
    assert_result(
        lambda: interval(1, overflow="buffer", clock=hasty).pipe(take_with_time(0.5, clock=hasty)),
        [],
    )


def test_the_last_items_wait_for_demand(clock):
    seen = TestSubscriber(0)
    source = TestPublisher()
    flow.Flow(source).pipe(take_last_with_time(10, clock=clock)).subscribe(seen)
    source.assert_requests(flow.UNBOUNDED)
    source.next(1, 2, 3)
    source.complete()
    seen.assert_items().request(2)
    seen.assert_items(1, 2).assert_not_terminated().request(1)
    seen.assert_result(1, 2, 3)


def test_old_items_are_let_go_of(clock):
    source = TestPublisher()
    seen = TestSubscriber()
    flow.Flow(source).pipe(take_last_with_time(3, clock=clock)).subscribe(seen)
    for n in range(100):
        source.next(n)
        clock.advance_by(1)
        assert seen.subscription.statistics().buffered <= 4
    source.complete()
    seen.assert_result(97, 98, 99)


def test_skip_last_requests_what_it_needs_and_no_more(clock):
    source = TestPublisher()
    seen = TestSubscriber(1)
    flow.Flow(source).pipe(skip_last_with_time(2, clock=clock)).subscribe(seen)
    source.assert_requests(1)
    for n in range(3):
        source.next(n)
        clock.advance_by(1)
    # 0 is given when 2 comes.
    seen.assert_items(0)
    assert (source.requested, source.outstanding) == (3, 0)
    clock.advance_by(5)
    seen.request(1)
    seen.assert_items(0, 1)
    assert source.outstanding == 1
    seen.cancel()


def test_skip_last_with_a_subscriber_that_turns_items_down(clock):
    source = TestPublisher()
    seen = ConditionalTestSubscriber(lambda n: n >= 5, 1)
    flow.Flow(source).pipe(skip_last_with_time(2, clock=clock)).subscribe(seen)
    sent = 0
    while not seen.items:
        assert source.outstanding == 1
        source.next(sent)
        sent += 1
        clock.advance_by(1)
    seen.assert_items(5)
    assert source.outstanding == 0
    seen.cancel()


def test_skip_last_never_requests_more_and_more(clock):
    source = TestPublisher()
    seen = TestSubscriber(1, on_item=lambda self, _: self.request(1))
    flow.Flow(source).pipe(skip_last_with_time(2, clock=clock)).subscribe(seen)
    for n in range(100):
        source.next(n)
        assert 1 <= source.outstanding <= 3
        clock.advance_by(1)
    assert len(seen.items) == 98
    seen.cancel()


@given(
    gaps=st.lists(st.integers(0, 3), max_size=10),
    duration=st.integers(0, 5),
    step=st.sampled_from([1, 2, flow.UNBOUNDED]),
)
def test_last_ones_against_a_model(gaps, duration, step):
    clock = VirtualClock()
    source = TestPublisher()
    taking, skipping = TestSubscriber(1), TestSubscriber(1)
    flow.Flow(source).pipe(take_last_with_time(duration, clock=clock)).subscribe(taking)
    second = TestPublisher()
    flow.Flow(second).pipe(skip_last_with_time(duration, clock=clock)).subscribe(skipping)
    time_s, times = 0, []
    for number, gap in enumerate(gaps):
        clock.advance_by(gap)
        time_s += gap
        times.append(time_s)
        source.next(number)
        if not second.outstanding:
            skipping.request(step)
        second.next(number)
    clock.advance_by(1)
    time_s += 1
    source.complete()
    second.complete()
    for seen in (taking, skipping):
        while not seen.terminated:
            seen.request(step)
    taking.assert_result(*[n for n, at in enumerate(times) if time_s - at <= duration])
    skipping.assert_result(*[n for n, at in enumerate(times) if time_s - at >= duration])


# -- times of items


def test_each_item_gets_its_time(clock):
    seen = TestSubscriber()
    clock.advance_by(10)
    cold("-a--b|", clock=clock).flow.pipe(timestamp(clock=clock)).subscribe(seen)
    clock.run()
    seen.assert_result(Timestamped("a", 11.0), Timestamped("b", 14.0))
    assert seen.items[0].item == "a"
    assert seen.items[0].time_s == 11


def test_each_item_gets_the_time_since_the_one_before(clock):
    made = cold("-a--bc|", clock=clock).flow.pipe(time_interval(clock=clock))
    for _ in range(2):  # each subscription counts for itself
        seen = TestSubscriber()
        made.subscribe(seen)
        clock.run()
        seen.assert_result(TimeInterval("a", 1.0), TimeInterval("b", 3.0), TimeInterval("c", 1.0))
    assert seen.items[0].interval_s == 1


def test_times_in_every_form():
    clock = VirtualClock(5)
    assert_result(
        lambda: flow.range(3).pipe(timestamp(clock=clock)), [(0, 5.0), (1, 5.0), (2, 5.0)]
    )
    assert_result(
        lambda: flow.range(3).pipe(time_interval(clock=clock)), [(0, 0.0), (1, 0.0), (2, 0.0)]
    )


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: take_with_time(-1), ValueError),
        (lambda: skip_with_time("1"), TypeError),
        (lambda: take_until_with_time(-1), ValueError),
        (lambda: skip_until_with_time(None), TypeError),
        (lambda: take_last_with_time(-1), ValueError),
        (lambda: take_last_with_time(1, max_items=0), ValueError),
        (lambda: skip_last_with_time(-1), ValueError),
        (lambda: skip_last_with_time(1, clock=1), TypeError),
        (lambda: timestamp(clock="noon"), TypeError),
        (lambda: time_interval(clock="noon"), TypeError),
    ],
)
def test_wrong_arguments_are_refused_at_once(make, error):
    with pytest.raises(error):
        make()
