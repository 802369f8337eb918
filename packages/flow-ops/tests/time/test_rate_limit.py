"""`rate_limit`: when items are due, and what happens when time, or demand, is late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_ops import rate_limit
from flow_testing import (
    TestPublisher,
    TestSubscriber,
    VirtualClock,
    assert_marbles,
    assert_result,
    cold,
)


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


class Times:
    """When items come."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.times: list[float] = []

    def __call__(self, subscriber: TestSubscriber[Any], item: Any) -> None:
        self.times.append(round(self.clock.now(), 6))


def test_there_is_the_same_time_between_any_two_items(clock: VirtualClock) -> None:
    source = cold("(abc)------d-e|", clock=clock).flow
    assert_marbles(source.rate_limit(1, 2), "a-b-c------d-e|", clock=clock)


def test_after_a_pause_a_burst_may_come_at_once(clock: VirtualClock) -> None:
    times = Times(clock)
    limited = cold("(abcd)-----------(efgh)|", clock=clock).flow.rate_limit(1, 2, burst=3)
    subscriber = TestSubscriber[str](on_item=times)
    limited.subscribe(subscriber)
    clock.run()
    subscriber.assert_result(*"abcdefgh")
    assert times.times[:4] == [0, 0, 0, 2]
    assert times.times[4:7] == [times.times[4]] * 3
    assert times.times[7] == times.times[4] + 2


@pytest.mark.parametrize("burst", [1, 2, 7])
def test_no_more_come_in_any_length_of_time_than_rate_and_burst_allow(
    clock: VirtualClock, burst: int
) -> None:
    times = Times(clock)
    subscriber = TestSubscriber[int](on_item=times)
    pauses = flow.range(300).concat_map(lambda n: flow.timer(n * 7 % 11 / 10).map(lambda _: n))
    pauses.rate_limit(5, 1, burst=burst).subscribe(subscriber)
    clock.run()
    subscriber.assert_result(*range(300))
    for first in range(300):
        for last in range(first, 300):
            elapsed = times.times[last] - times.times[first]
            assert last - first + 1 <= burst + elapsed * 5 + 1e-3


def test_the_end_waits_for_the_items_and_for_nothing_else(clock: VirtualClock) -> None:
    times = Times(clock)
    subscriber = TestSubscriber[int](on_item=times)
    flow.range(2).rate_limit(1).subscribe(subscriber)
    clock.advance_by(1)
    subscriber.assert_result(0, 1)
    failing = TestSubscriber[int]()
    flow.just(1).concat(flow.error(OSError("late"))).rate_limit(1).subscribe(failing)
    failing.assert_failure(OSError, 1)
    assert not clock.pending


class LateClock(VirtualClock):
    """Its timers are late."""

    def __init__(self, by_s: float) -> None:
        super().__init__()
        self.by_s = by_s

    def schedule(self, delay_s: float, task: Any, /) -> Any:
        return super().schedule(delay_s + self.by_s, task)


def test_a_timer_that_is_late_is_made_up_for() -> None:
    clock = LateClock(0.004)
    times = Times(clock)
    subscriber = TestSubscriber[int](on_item=times)
    flow.range(1001).rate_limit(1000, clock=clock).subscribe(subscriber)
    clock.run()
    assert 1.0 <= times.times[-1] <= 1.005
    assert times.times == sorted(times.times)


def test_a_long_standstill_is_made_up_for_a_little_only() -> None:
    clock = LateClock(0.0)
    times = Times(clock)
    subscriber = TestSubscriber[int](on_item=times)
    flow.range(1001).rate_limit(100, clock=clock).subscribe(subscriber)
    clock.by_s = 60.0  # the machine sleeps
    clock.advance_by(0.01)
    clock.by_s = 0.0
    clock.advance_by(61)
    assert 2 <= max(times.times.count(time) for time in set(times.times)) <= 12


def test_time_without_demand_is_not_made_up_for(clock: VirtualClock) -> None:
    times = Times(clock)
    subscriber = TestSubscriber[int](1, on_item=times)
    flow.range(9).rate_limit(1).subscribe(subscriber)
    clock.advance_by(10)
    subscriber.request(3)
    clock.advance_by(10)
    assert times.times == [0, 10, 11, 12]
    subscriber.cancel()


def test_few_items_are_asked_for_ahead(clock: VirtualClock) -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    flow.Flow(source).rate_limit(1, burst=3).subscribe(subscriber)
    source.assert_requests(3)
    source.next(0, 1, 2)
    subscriber.assert_items(0, 1, 2)
    assert source.outstanding == 3
    source.next(3, 4, 5)
    assert subscriber.subscription.statistics().buffered == 3
    clock.advance_by(1)
    subscriber.assert_items(0, 1, 2, 3).cancel()
    source.assert_cancelled()
    assert not clock.pending


def test_it_gives_the_same_in_every_form(clock: VirtualClock) -> None:
    operator: flow.Operator[int, flow.Flow[int]] = rate_limit(10**6, 1, burst=10**6)
    assert_result(lambda: flow.range(5).pipe(operator), list(range(5)))


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: rate_limit(0), ValueError, "n"),
        (lambda: rate_limit(1.5), TypeError, "n"),  # type: ignore[arg-type]
        (lambda: rate_limit(1, 0), ValueError, "period"),
        (lambda: rate_limit(1, "1"), TypeError, "period"),  # type: ignore[arg-type]
        (lambda: rate_limit(1, burst=0), ValueError, "burst"),
        (lambda: rate_limit(1, clock=3), TypeError, "a Clock"),  # type: ignore[arg-type]
    ],
)
def test_arguments_are_checked(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


def test_a_pause_after_the_timer_is_not_made_up_for(clock: VirtualClock) -> None:
    source, times = TestPublisher[int](), Times(clock)
    subscriber = TestSubscriber[int](on_item=times)
    flow.Flow(source).rate_limit(1, 1).subscribe(subscriber)
    source.next(1)
    clock.advance_by(5)  # the timer has rung after a second, and no item was there
    source.next(2)
    clock.advance_by(0)
    source.next(3)
    clock.advance_by(0.95)
    assert times.times == [0, 5]
    clock.advance_by(0.05)
    assert times.times == [0, 5, 6]
    subscriber.cancel()
