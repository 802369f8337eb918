"""`sample`, `throttle_last`, `debounce`, `throttle_first` and `throttle_latest`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flow_core as flow
from flow_core.errors import NoneItemError
from flow_ops import (
    debounce,
    sample,
    throttle_first,
    throttle_last,
    throttle_latest,
    timer,
)
from flow_testing import (
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
    assert_marbles,
    assert_result,
    cold,
    to_marbles,
)

# -- sample


def test_samples_the_newest_item_of_each_period(clock):
    source = cold("ab--c---d-e--|", clock=clock).flow
    assert_marbles(source.pipe(sample(3, clock=clock)), "---b--c--d--e|", clock=clock)


def test_a_period_without_an_item_has_no_sample(clock):
    source = cold("-a-------b-|", clock=clock).flow
    assert_marbles(source.pipe(sample(2, clock=clock)), "--a-------b|", clock=clock)


@pytest.mark.parametrize(("emit_last", "expected"), [(False, "----b--|"), (True, "----b--(d|)")])
def test_the_end_may_take_a_sample(clock, emit_last, expected):
    source = cold("a-b--cd|", clock=clock).flow
    made = source.pipe(sample(4, emit_last=emit_last, clock=clock))
    assert_marbles(made, expected, clock=clock)


def test_a_flow_may_take_the_samples(clock):
    source = cold("ab-cd---e---|", clock=clock).flow
    sampler = cold("--x---yz-----", clock=clock)
    assert_marbles(source.pipe(sample(sampler.flow)), "--b---d-----|", clock=clock)
    sampler.assert_subscriptions("^-----------!")


@pytest.mark.parametrize(("emit_last", "expected"), [(False, "--b--|"), (True, "--b--(d|)")])
def test_the_end_of_the_sampler_is_the_end(clock, emit_last, expected):
    source = cold("ab-cd---e---|", clock=clock)
    sampler = cold("--x--|", clock=clock).flow
    made = source.flow.pipe(throttle_last(sampler, emit_last=emit_last))
    assert_marbles(made, expected, clock=clock)
    source.assert_subscriptions("^----!")


def test_an_error_of_the_sampler_is_an_error(clock):
    failure = ValueError("no")
    source = cold("ab-cd---e---|", clock=clock)
    sampler = cold("--x--#", clock=clock, error=failure).flow
    assert_marbles(source.flow.pipe(sample(sampler)), "--b--#", clock=clock, error=failure)
    source.assert_subscriptions("^----!")


def test_an_error_overtakes_the_sample(clock):
    failure = ValueError("no")
    source = cold("ab-#", clock=clock, error=failure).flow
    made = source.pipe(sample(2, emit_last=True, clock=clock))
    assert_marbles(made, "--b#", clock=clock, error=failure)


def test_sampling_does_not_drift(clock):
    seen = TestSubscriber()
    source = TestPublisher()
    made = flow.Flow(source).pipe(sample(0.1, clock=clock)).map(lambda _: clock.now())
    made.subscribe(seen)
    for n in range(50):
        source.next(n)
        clock.advance_by(0.1)
    assert seen.items == [round(0.1 * n, 9) for n in range(1, 51)]
    seen.cancel()


# -- debounce


def test_an_item_counts_when_nothing_follows(clock):
    source = cold("ab-cd-----e--|", clock=clock).flow
    assert_marbles(source.pipe(debounce(3, clock=clock)), "-------d-----(e|)", clock=clock)


def test_the_last_item_comes_with_the_end(clock):
    source = cold("ab-c|", clock=clock).flow
    assert_marbles(source.pipe(debounce(3, clock=clock)), "----(c|)", clock=clock)


def test_an_error_overtakes_the_last_item(clock):
    source = cold("ab-c#", clock=clock).flow
    assert_marbles(source.pipe(debounce(3, clock=clock)), "----#", clock=clock)


def test_a_function_may_say_how_long_it_is_quiet(clock):
    source = cold("1-3-5------|", clock=clock).flow
    made = source.pipe(debounce(lambda n: cold("-" * n + "|", clock=clock).flow))
    assert_marbles(made, "-1-------5-|", clock=clock)


def test_a_flow_that_is_superseded_is_cancelled(clock):
    quiet = [cold("-----x", clock=clock) for _ in range(2)]
    flows = iter(quiet)
    source = cold("a--b------|", clock=clock).flow
    assert_marbles(source.pipe(debounce(lambda _: next(flows).flow)), "--------b-|", clock=clock)
    quiet[0].assert_subscriptions("^--!")


def test_debounce_by_flows_that_end_at_once_lets_all_items_through():
    seen = TestSubscriber()
    flow.range(100).hide().pipe(debounce(lambda _: flow.empty())).subscribe(seen)
    seen.assert_result(*range(100))


@pytest.mark.parametrize("mapper", [lambda _: flow.error(FAILURE), lambda _: _fails()])
def test_an_error_that_the_function_raises_fails_the_flow(clock, mapper):
    source = TestPublisher()
    seen = TestSubscriber()
    flow.Flow(source).pipe(debounce(mapper)).subscribe(seen)
    source.next(1)
    seen.assert_failure(FAILURE)
    source.assert_cancelled()


FAILURE = ValueError("no")


def _fails():
    raise FAILURE


def test_a_function_that_gives_no_flow_fails_the_flow():
    for gives, error in ((None, NoneItemError), (3, TypeError)):
        seen = TestSubscriber()
        flow.just(1).hide().pipe(debounce(lambda _, gives=gives: gives)).subscribe(seen)
        seen.assert_failure(error)


def test_one_timer_serves_all_items_of_a_burst(clock):
    source = TestPublisher()
    seen = TestSubscriber()
    flow.Flow(source).pipe(debounce(1, clock=clock)).subscribe(seen)
    for n in range(20):
        source.next(n)
        clock.advance_by(0.1)
        assert clock.pending == 1
    seen.assert_items()
    clock.advance_by(0.9)
    seen.assert_items(19)
    assert clock.pending == 0
    seen.cancel()


# -- throttle


def test_the_first_item_of_a_period_counts(clock):
    source = cold("abc-de-fgh-----i|", clock=clock).flow
    made = source.pipe(throttle_first(3, clock=clock))
    assert_marbles(made, "a---d--f-------i|", clock=clock)


def test_throttle_first_passes_demand_on(clock):
    source = TestPublisher()
    seen = TestSubscriber(2)
    flow.Flow(source).hide().pipe(throttle_first(1, clock=clock)).subscribe(seen)
    source.assert_requests(2)
    source.next(1, 2)
    source.assert_requests(2, 1)
    clock.advance_by(1)
    source.next(3)
    seen.assert_items(1, 3)
    source.assert_requests(2, 1)
    seen.cancel()


def test_throttle_first_in_every_form(clock):
    assert_result(lambda: flow.range(10).pipe(throttle_first(1, clock=clock)), [0])
    ticking = iter(range(10**9))
    passing = VirtualClock()
    made = lambda: (  # noqa: E731
        flow.range(10)
        .do_on_next(lambda _: passing.advance_by(1 + 0 * next(ticking)))
        .pipe(throttle_first(3, clock=passing))
    )
    assert list(made()) == [0, 3, 6, 9]
    assert list(made()) == [0, 3, 6, 9]


def test_the_newest_item_of_a_period_counts(clock):
    source = cold("abc-de-----f--|", clock=clock).flow
    made = source.pipe(throttle_latest(3, clock=clock))
    assert_marbles(made, "a--c--e----f--|", clock=clock)


@pytest.mark.parametrize(("emit_last", "expected"), [(False, "a---|"), (True, "a---(c|)")])
def test_the_last_item_of_a_period_may_come_with_the_end(clock, emit_last, expected):
    source = cold("abc-|", clock=clock).flow
    made = source.pipe(throttle_latest(9, emit_last=emit_last, clock=clock))
    assert_marbles(made, expected, clock=clock)


def test_throttle_latest_fails_at_once(clock):
    source = cold("abc-#", clock=clock).flow
    made = source.pipe(throttle_latest(9, emit_last=True, clock=clock))
    assert_marbles(made, "a---#", clock=clock)


# -- all that give items at their own times: demand, cancel, overload


LOSSY = {
    "sample": lambda clock: sample(1, emit_last=True, clock=clock),
    "sample by a flow": lambda clock: sample(
        cold("-" + "x" * 50, clock=clock).flow, emit_last=True
    ),
    "debounce": lambda clock: debounce(0.5, clock=clock),
    "debounce by flows": lambda clock: debounce(lambda _: timer(0.5, clock=clock)),
    "throttle_latest": lambda clock: throttle_latest(0.5, emit_last=True, clock=clock),
}

each = pytest.mark.parametrize("name", LOSSY)


@each
def test_requests_everything(clock, name):
    source = TestPublisher()
    seen = TestSubscriber(0)
    flow.Flow(source).pipe(LOSSY[name](clock)).subscribe(seen)
    source.assert_requests(flow.UNBOUNDED)
    seen.cancel()
    source.assert_cancelled()


@each
def test_without_demand_the_newest_one_waits(clock, name, dropped):
    source = TestPublisher()
    seen = TestSubscriber(0)
    flow.Flow(source).pipe(LOSSY[name](clock)).subscribe(seen)
    for n in range(4):
        source.next(n)
        clock.advance_by(1)
    seen.assert_items().assert_not_terminated()
    assert dropped.items == [0, 1, 2]
    source.complete()
    seen.assert_not_terminated()
    seen.request(1)
    seen.assert_result(3)
    assert dropped.items == [0, 1, 2]


@each
def test_with_demand_again_it_continues(clock, name, dropped):
    source = TestPublisher()
    seen = TestSubscriber(1)
    flow.Flow(source).pipe(LOSSY[name](clock)).subscribe(seen)
    for n in range(4):
        source.next(n)
        clock.advance_by(1)
    seen.assert_items(0)
    seen.request(2)
    seen.assert_items(0, 3)
    source.next(4)
    clock.advance_by(1)
    seen.assert_items(0, 3, 4)
    assert dropped.items == [1, 2]
    seen.cancel()


@each
def test_waiting_items_are_dropped_when_it_is_cancelled(clock, name, dropped):
    source = TestPublisher()
    seen = TestSubscriber(0)
    flow.Flow(source).pipe(LOSSY[name](clock)).subscribe(seen)
    source.next(1)
    clock.advance_by(1)
    seen.cancel()
    source.assert_cancelled()
    assert dropped.items == [1]
    assert clock.pending == 0


@each
def test_an_error_overtakes_waiting_items(clock, name, dropped):
    source = TestPublisher()
    seen = TestSubscriber(0)
    flow.Flow(source).pipe(LOSSY[name](clock)).subscribe(seen)
    source.next(1)
    clock.advance_by(1)
    source.error(FAILURE)
    seen.assert_failure(FAILURE)
    assert dropped.items == [1]
    assert clock.pending == 0


@each
def test_a_rejected_item_costs_no_demand(clock, name):
    source = TestPublisher()
    seen = ConditionalTestSubscriber(lambda n: n % 2 == 1, 1)
    flow.Flow(source).pipe(LOSSY[name](clock)).subscribe(seen)
    for n in range(2):
        source.next(n)
        clock.advance_by(1)
    seen.assert_items(1)
    seen.cancel()


@each
def test_the_last_item_of_a_fast_source_comes(clock, name):
    seen = TestSubscriber()
    flow.range(1000).hide().pipe(LOSSY[name](clock)).subscribe(seen)
    assert seen.items[-1] == 999
    assert len(seen.items) <= 2
    assert seen.completed
    assert clock.pending == 0


@each
def test_a_slow_downstream_makes_nothing_pile_up(name):
    """An item that comes while the downstream is at work is as good as dropped, and not queued."""
    clock = VirtualClock()
    source = TestPublisher()
    alive = []

    def slow(_, item):
        if not alive:
            import weakref

            for _n in range(1000):
                one = Item()
                alive.append(weakref.ref(one))
                source.next(one)
            del one

    seen = TestSubscriber(on_item=slow)
    flow.Flow(source).pipe(LOSSY[name](clock)).subscribe(seen)
    source.next(Item())
    clock.advance_by(1)
    assert alive
    assert sum(ref() is not None for ref in alive) <= 2
    seen.cancel()


class Item:
    pass


@given(
    gaps=st.lists(st.integers(0, 4), max_size=12),
    operator=st.sampled_from(["debounce", "throttle_first", "throttle_latest", "sample"]),
    period=st.integers(1, 4),
)
def test_against_a_model(gaps, operator, period):
    clock = VirtualClock()
    source = TestPublisher()
    seen = TestSubscriber()
    # Half a second apart from ticks, so that nothing happens at the same time.
    made = {
        "debounce": lambda: debounce(period - 0.5, clock=clock),
        "throttle_first": lambda: throttle_first(period - 0.5, clock=clock),
        "throttle_latest": lambda: throttle_latest(period - 0.5, emit_last=True, clock=clock),
        "sample": lambda: sample(period - 0.5, emit_last=True, clock=clock),
    }[operator]()
    flow.Flow(source).pipe(made).subscribe(seen)
    times, time_s = [], 0.25
    clock.advance_by(0.25)
    for number, gap in enumerate(gaps):
        clock.advance_by(gap)
        time_s += gap
        times.append(time_s)
        source.next(number)
    source.complete()
    seen.assert_result(*_model(operator, times, period - 0.5))
    assert clock.pending == 0


def _model(operator, times, period):
    count = len(times)
    if operator == "debounce":
        return [n for n in range(count) if n == count - 1 or times[n + 1] - times[n] > period]
    if operator == "throttle_first":
        kept, opens = [], 0
        for n, time_s in enumerate(times):
            if time_s >= opens:
                kept.append(n)
                opens = time_s + period
        return kept
    if operator == "sample":
        periods = [int(time_s // period) for time_s in times]
        return [n for n in range(count) if n == count - 1 or periods[n + 1] > periods[n]]
    kept, opens, newest = [], None, None
    for n, time_s in enumerate(times):
        while opens is not None and opens <= time_s:
            if newest is None:
                opens = None
            else:
                kept.append(newest)
                newest, opens = None, opens + period
        if opens is None:
            kept.append(n)
            opens = time_s + period
        else:
            newest = n
    return kept if newest is None else [*kept, newest]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: sample(0), ValueError),
        (lambda: sample("1"), TypeError),
        (lambda: sample(1, clock=1), TypeError),
        (lambda: debounce(-1), ValueError),
        (lambda: debounce(None), TypeError),
        (lambda: throttle_first(0), ValueError),
        (lambda: throttle_latest(0), ValueError),
        (lambda: throttle_latest(None), TypeError),
    ],
)
def test_wrong_arguments_are_refused_at_once(make, error):
    with pytest.raises(error):
        make()


def test_another_name(clock):
    source = cold("ab-c|", clock=clock).flow
    assert to_marbles(source.pipe(sample(2, clock=clock)), clock=clock) == "--b-|"
    assert to_marbles(source.pipe(throttle_last(2, clock=clock)), clock=clock) == "--b-|"
