"""`retry_when(Backoff(...))`: how long it waits, how often, and when it gives up."""

from __future__ import annotations

import math
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flow_core as flow
from flow_core import Flow
from flow_ops import Backoff, RetryExhaustedError, retry, retry_when
from flow_testing import Payloads, TestPublisher, TestSubscriber, VirtualClock, assert_released

ERROR = ValueError("failed")


class Attempts:
    """A flow that notes when it is tried; each time a publisher that the test plays."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.times: list[float] = []
        self.sources: list[TestPublisher[int]] = []

    def _make(self) -> Flow[int]:
        self.times.append(self.clock.now())
        self.sources.append(TestPublisher[int]())
        return Flow(self.sources[-1])

    def subscribe(self, backoff: Backoff, request: int = flow.UNBOUNDED) -> TestSubscriber[int]:
        subscriber = TestSubscriber[int](request)
        flow.defer(self._make).pipe(retry_when(backoff)).subscribe(subscriber)
        return subscriber

    def fail(self, error: BaseException = ERROR) -> None:
        self.sources[-1].error(error)
        self.clock.run()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_the_time_grows_up_to_the_most(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    attempts.subscribe(Backoff(1, factor=3, max=5, jitter=0, clock=clock))
    for _ in range(4):
        attempts.fail()
    assert attempts.times == [0, 1, 4, 9, 14]


def test_nothing_happens_before_the_time_has_passed(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    attempts.subscribe(Backoff(2, jitter=0, clock=clock))
    attempts.sources[0].error(ERROR)
    clock.advance_by(1.999)
    assert attempts.times == [0]
    clock.advance_by(0.001)
    assert attempts.times == [0, 2]


def test_it_gives_up_with_the_last_failure_as_the_cause(clock: VirtualClock) -> None:
    attempts, last = Attempts(clock), KeyError("last")
    subscriber = attempts.subscribe(Backoff(1, max_attempts=2, clock=clock))
    attempts.fail()
    attempts.fail()
    attempts.fail(last)
    subscriber.assert_failure(RetryExhaustedError)
    error = subscriber.error
    assert isinstance(error, RetryExhaustedError)
    assert error.__cause__ is last
    assert error.retries == 2
    assert "test_backoff.py" in error.__notes__[0]


def test_no_retry_at_all_is_possible(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    subscriber = attempts.subscribe(Backoff(1, max_attempts=0, clock=clock))
    attempts.fail()
    subscriber.assert_failure(RetryExhaustedError)


def test_errors_that_are_not_meant_pass(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    subscriber = attempts.subscribe(Backoff(1, when=OSError, max_attempts=5, clock=clock))
    attempts.fail(OSError())
    attempts.fail()
    subscriber.assert_failure(ERROR)
    assert len(attempts.times) == 2


@pytest.mark.parametrize("transient", [True, False])
def test_transient_failures_are_forgotten_when_an_item_gets_through(
    clock: VirtualClock, transient: bool
) -> None:
    attempts = Attempts(clock)
    backoff = Backoff(1, jitter=0, max_attempts=2, transient=transient, clock=clock)
    subscriber = attempts.subscribe(backoff)
    attempts.fail()
    attempts.fail()
    attempts.sources[-1].next(1)
    attempts.fail()
    if transient:
        attempts.fail()
        subscriber.assert_items(1).assert_not_terminated()
        assert attempts.times == [0, 1, 3, 4, 6]
    else:
        subscriber.assert_failure(RetryExhaustedError, 1)


@pytest.mark.checklist("P29")
def test_the_demand_that_is_left_waits_with_it(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    subscriber = attempts.subscribe(Backoff(1, clock=clock), 5)
    attempts.sources[-1].next(1, 2).error(ERROR)
    subscriber.request(1)
    clock.run()
    attempts.sources[-1].assert_requests(4).next(3).complete()
    subscriber.assert_result(1, 2, 3)


def test_a_cancel_stops_the_timer(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    subscriber = attempts.subscribe(Backoff(1, clock=clock))
    attempts.sources[-1].error(ERROR)
    assert clock.pending == 1
    subscriber.cancel()
    assert clock.pending == 0


def test_a_bad_request_stops_the_timer(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    subscriber = attempts.subscribe(Backoff(1, clock=clock))
    attempts.sources[-1].error(ERROR)
    subscriber.subscription.request(-1)
    subscriber.assert_failure(ValueError).assert_error_message("3.9")
    assert clock.pending == 0


def test_chance_is_the_same_for_the_same_seed_and_for_each_subscriber(clock: VirtualClock) -> None:
    def times(seed: int | None) -> list[float]:
        attempts = Attempts(VirtualClock())
        attempts.subscribe(Backoff(1, jitter=1, seed=seed, clock=attempts.clock))
        for _ in range(5):
            attempts.fail()
        return attempts.times

    assert times(7) == times(7)
    assert times(7) != times(8)


@given(
    st.floats(0, 10),
    st.floats(1, 5),
    st.floats(10, 100),
    st.floats(0, 1),
    st.integers(0, 3000),
    st.integers(),
)
def test_the_time_is_never_out_of_its_bounds(
    first_s: float, factor: float, max_s: float, jitter: float, retries: int, seed: int
) -> None:
    backoff = Backoff(first_s, factor=factor, max=max_s, jitter=jitter)
    delay_s = backoff.delay_s(retries, Random(seed))
    assert first_s <= delay_s <= max_s + 1e-9
    try:
        plain = min(first_s * factor**retries, max_s)
    except OverflowError:
        plain = max_s if first_s else 0
    assert plain * (1 - jitter) - 1e-9 <= delay_s <= plain * (1 + jitter) + 1e-9


def test_without_a_maximum_the_time_grows_for_ever() -> None:
    assert Backoff(1).delay_s(10_000, Random(0)) == math.inf
    assert Backoff(1, factor=2).delay_s(10_000, Random(0)) == math.inf


@pytest.mark.parametrize("jitter", [0, 0.5])
def test_no_time_does_not_grow_however_often_it_is_tried(jitter: float) -> None:
    backoff = Backoff(0, jitter=jitter)
    assert [backoff.delay_s(retries, Random(0)) for retries in (0, 1023, 1024, 10**6)] == [0] * 4


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"first": -1}, ValueError),
        ({"first": math.inf}, ValueError),
        ({"first": "1"}, TypeError),
        ({"first": True}, TypeError),
        ({"first": 1, "factor": 0.5}, ValueError),
        ({"first": 2, "max": 1}, ValueError),
        ({"first": 1, "jitter": 1.1}, ValueError),
        ({"first": 1, "jitter": -0.1}, ValueError),
        ({"first": 1, "max_attempts": -1}, ValueError),
        ({"first": 1, "max_attempts": 1.0}, TypeError),
        ({"first": 1, "when": 3}, TypeError),
        ({"first": 1, "seed": [1]}, TypeError),
        ({"first": 1, "clock": 3}, TypeError),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="Backoff"):
        Backoff(**arguments)


@pytest.mark.parametrize("pushed", [False, True])
def test_a_flow_that_waits_lets_go_of_everything(pushed: bool) -> None:
    clock = VirtualClock()

    def make(payloads: Payloads) -> Flow[Any]:
        source = payloads.pushed() if pushed else flow.from_iterable(payloads)
        return source.pipe(retry_when(Backoff(1, max_attempts=0, clock=clock)))

    assert_released(make, settle=clock.run, only=lambda name: "failed" not in name)


# -- retry(backoff=)


def test_retry_waits_before_each_attempt_and_fails_with_the_last_error_itself(
    clock: VirtualClock,
) -> None:
    attempts = Attempts(clock)
    subscriber = TestSubscriber[int]()
    again = retry(2, backoff=Backoff(1, factor=3, jitter=0, clock=clock))
    flow.defer(attempts._make).pipe(again).subscribe(subscriber)
    for n in range(3):
        attempts.sources[-1].next(n)
        attempts.fail(OSError(n))
    assert attempts.times == [0, 1, 4]
    subscriber.assert_failure(OSError, 0, 1, 2).assert_error_message("2")


def test_a_time_of_retry_grows_as_that_of_a_back_off() -> None:
    with VirtualClock() as clock:
        attempts = Attempts(clock)
        flow.defer(attempts._make).pipe(retry(backoff=timedelta(seconds=1))).subscribe()
        for _ in range(3):
            attempts.fail()
    first, second, third = (b - a for a, b in pairwise(attempts.times))
    assert 1 <= first <= 1.5
    assert 1 <= second <= 3
    assert 2 <= third <= 6


def test_arguments_of_retry_take_precedence_over_those_of_its_back_off(clock: VirtualClock) -> None:
    attempts = Attempts(clock)
    subscriber = TestSubscriber[int]()
    backoff = Backoff(1, max_attempts=9, when=OSError, clock=clock)
    flow.defer(attempts._make).pipe(retry(1, backoff=backoff, when=KeyError)).subscribe(subscriber)
    attempts.fail(KeyError(1))
    attempts.fail(KeyError(2))
    subscriber.assert_failure(KeyError)
    assert len(attempts.times) == 2
    other = TestSubscriber[int]()
    flow.defer(attempts._make).pipe(retry(backoff=backoff)).subscribe(other)
    attempts.fail(KeyError(3))
    other.assert_failure(KeyError)


@pytest.mark.parametrize("backoff", ["1", object(), True])
def test_retry_refuses_a_value_that_is_not_a_back_off(backoff: Any) -> None:
    with pytest.raises(TypeError, match=r"retry\(backoff=\)"):
        retry(3, backoff=backoff)


def test_retry_refuses_a_time_below_zero() -> None:
    with pytest.raises(ValueError, match=r"retry\(backoff=\)"):
        retry(3, backoff=-1)
