"""``retry=`` says how often, ``backoff=`` after which time, for items as for flows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import flow_core as flow
from flow_core import Backoff, Flow
from flow_testing import VirtualClock


class Failing:
    """Fails a number of times, and notes when it was asked."""

    def __init__(self, clock: VirtualClock, failures: int) -> None:
        self.clock = clock
        self.failures = failures
        self.asked_at: list[float] = []

    async def __call__(self, n: int) -> int:
        self.asked_at.append(self.clock.now())
        if len(self.asked_at) <= self.failures:
            raise OSError("busy")
        return n


Run = Callable[[VirtualClock, Failing, dict[str, Any]], Any]


def _items(made: Flow[Any], clock: VirtualClock) -> Any:
    return asyncio.run(clock.run_async(made))


RUNS: dict[str, Run] = {
    "map_concurrent": lambda clock, work, more: _items(
        flow.just(1).map_concurrent(work, 2, **more), clock
    ),
    "a function that gives coroutines": lambda clock, work, more: _items(
        flow.just(1).map_concurrent(lambda n: work(n), 2, executor=lambda task: task(), **more),
        clock,
    ),
    "do_concurrent": lambda clock, work, more: _items(
        flow.just(1).do_concurrent(work, 2, **more), clock
    ),
    "for_each_async": lambda clock, work, more: asyncio.run(
        clock.run_async(flow.just(1).for_each_async(work, **more))
    ),
    "retry": lambda clock, work, more: _items(
        flow.defer(lambda: flow.from_(work(1))).retry(more["retry"], backoff=more["backoff"]), clock
    ),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    "backoff", [Backoff(60, jitter=0), Backoff(timedelta(minutes=1), jitter=0, max_attempts=9)]
)
def test_the_time_grows_from_the_first_one_on(run: Run, backoff: Backoff) -> None:
    clock = VirtualClock()
    work = Failing(clock, 2)
    run(clock, work, {"retry": 2, "backoff": backoff})
    assert work.asked_at == [0.0, 60.0, 180.0]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_number_of_seconds_is_the_first_time(run: Run) -> None:
    clock = VirtualClock()
    work = Failing(clock, 2)
    run(clock, work, {"retry": 2, "backoff": 60})
    first, second, third = work.asked_at
    assert second - first >= 60
    assert third - second >= 60


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_retry_says_how_often(run: Run) -> None:
    clock = VirtualClock()
    work = Failing(clock, 3)
    with pytest.raises(OSError, match="busy"):
        run(clock, work, {"retry": 2, "backoff": Backoff(60, jitter=0, max_attempts=9)})
    assert len(work.asked_at) == 3


def test_without_retry_a_backoff_says_how_often() -> None:
    clock = VirtualClock()
    work = Failing(clock, 9)
    with pytest.raises(OSError, match="busy"):
        RUNS["map_concurrent"](clock, work, {"backoff": Backoff(1, max_attempts=1)})
    assert len(work.asked_at) == 2
    work = Failing(clock, 30)
    assert RUNS["map_concurrent"](clock, work, {"backoff": Backoff(1, max=8)}) == [1]


def test_retry_alone_tries_again_at_once() -> None:
    clock = VirtualClock()
    work = Failing(clock, 2)
    assert RUNS["map_concurrent"](clock, work, {"retry": 2}) == [1]
    assert work.asked_at == [0.0, 0.0, 0.0]


def test_for_each_waits_too() -> None:
    seen: list[int] = []

    def work(n: int) -> None:
        seen.append(n)
        if len(seen) == 1:
            raise OSError("busy")

    flow.just(1).for_each(work, retry=1, backoff=0.001)
    assert seen == [1, 1]


def test_a_backoff_that_is_not_a_time_is_refused_at_once() -> None:
    for name in ("map_concurrent", "do_concurrent"):
        with pytest.raises(
            ValueError, match=rf"{name}\(backoff=\) must be at least 0 seconds, not -1"
        ):
            getattr(flow.just(1), name)(print, 2, backoff=-1)
        with pytest.raises(TypeError, match=rf"{name}\(backoff=\) must be a number of seconds"):
            getattr(flow.just(1), name)(print, 2, backoff="1")
    with pytest.raises(TypeError, match=r"takes a Backoff as backoff="):
        flow.just(1).map_concurrent(print, 2, retry=Backoff(1), backoff=2)
