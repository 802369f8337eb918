"""Virtual time passes when the test says so, and in one order only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flow_core import FlowError
from flow_core.executors import as_runner
from flow_testing import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_nothing_happens_before_time_passes(clock: VirtualClock) -> None:
    seen: list[int] = []
    clock.schedule(0, lambda: seen.append(0))
    clock(lambda: seen.append(1))
    assert (seen, clock.pending, clock.now()) == ([], 2, 0.0)
    clock.advance_by(0)
    assert (seen, clock.pending, clock.now()) == ([0, 1], 0, 0.0)


def test_a_task_sees_the_time_it_is_due(clock: VirtualClock) -> None:
    seen: list[float] = []
    for delay_s in (3, 1, 2.5):
        clock.schedule(delay_s, lambda: seen.append(clock.now()))
    clock.advance_by(2)
    assert (seen, clock.now(), clock.pending) == ([1.0], 2.0, 2)
    clock.advance_to(10)
    assert (seen, clock.now(), clock.pending) == ([1.0, 2.5, 3.0], 10.0, 0)


def test_tasks_at_the_same_time_run_in_the_order_of_scheduling(clock: VirtualClock) -> None:
    seen: list[str] = []

    def first() -> None:
        seen.append("first")
        clock(lambda: seen.append("scheduled by the first"))
        clock.schedule(1, lambda: seen.append("a second later"))

    clock.schedule(1, first)
    clock.schedule(1, lambda: seen.append("second"))
    clock.advance_by(1)
    assert seen == ["first", "second", "scheduled by the first"]
    clock.advance_by(1)
    assert seen[-1] == "a second later"


def test_ten_steps_of_a_tenth_are_a_second(clock: VirtualClock) -> None:
    seen: list[float] = []
    clock.schedule(1, lambda: seen.append(clock.now()))
    handle = clock.schedule_periodically(0.1, 0.1, lambda: seen.append(clock.now()))
    for _ in range(10):
        clock.advance_by(0.1)
    assert clock.now() == 1.0
    assert seen == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0]
    handle.dispose()


def test_run_continues_until_no_task_waits(clock: VirtualClock) -> None:
    seen: list[float] = []

    def task() -> None:
        seen.append(clock.now())
        if len(seen) < 3:
            clock.schedule(60, task)

    clock(task)
    clock.run()
    assert (seen, clock.now()) == ([0.0, 60.0, 120.0], 120.0)


def test_run_gives_up_on_what_never_ends(clock: VirtualClock) -> None:
    clock.schedule_periodically(1, 1, lambda: None)
    with pytest.raises(AssertionError, match=r"50 tasks have run, and 1 wait at 50\.0 s"):
        clock.run(max_tasks=50)


@pytest.mark.parametrize(
    "advance",
    [lambda clock: clock.advance_by(1), lambda clock: clock.advance_to(9), VirtualClock.run],
)
def test_a_task_may_not_advance_time(
    clock: VirtualClock, advance: Callable[[VirtualClock], object]
) -> None:
    clock.schedule(1, lambda: advance(clock))
    with pytest.raises(FlowError, match="may not advance the clock"):
        clock.run()
    clock.advance_by(1)  # which is no reason to be unusable
    assert clock.now() == 2.0


def test_an_error_of_a_task_is_raised_where_time_was_advanced(clock: VirtualClock) -> None:
    seen: list[float] = []

    def fail() -> None:
        raise ValueError("of the task")

    handle = clock.schedule_periodically(1, 1, fail)
    clock.schedule(2, lambda: seen.append(clock.now()))
    with pytest.raises(ValueError, match="of the task"):
        clock.advance_by(5)
    assert (clock.now(), clock.pending, handle.disposed) == (1.0, 1, True)
    clock.run()
    assert seen == [2.0]


def test_time_goes_forward_only(clock: VirtualClock) -> None:
    clock.advance_by(2)
    for seconds in (-1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="time goes forward"):
            clock.advance_by(seconds)
    with pytest.raises(ValueError, match="time goes forward"):
        clock.advance_to(1)
    assert VirtualClock(100).now() == 100.0


def test_it_is_an_executor(clock: VirtualClock) -> None:
    seen: list[str] = []
    runner = as_runner(clock)
    handle = runner.execute(lambda: seen.append("cancelled"))
    runner.execute(lambda: seen.append("run"))
    assert handle.cancel()
    assert seen == []
    clock.run()
    assert seen == ["run"]


def test_its_repr_says_when_it_is(clock: VirtualClock) -> None:
    clock.schedule(1, lambda: None)
    assert repr(clock) == "VirtualClock(now=0.0 s, pending=1)"
