"""Operators that wait, retry and run coroutines, in one virtual time."""

from __future__ import annotations

import asyncio

import pytest

import flow_core as flow
from flow_core.errors import FlowTimeoutError, MissingBackpressureError
from flow_ops import Backoff
from flow_testing import VirtualClock


def test_retries_timeouts_rates_and_coroutines_share_the_time() -> None:
    clock = VirtualClock()
    tries: list[tuple[int, float]] = []

    async def asked(n: int) -> int:
        tries.append((n, clock.now()))
        await asyncio.sleep(600)
        if n == 1 and len(tries) < 4:
            raise OSError("busy")
        return n

    async def main() -> list[int]:
        numbers = flow.interval(3600).take(3).rate_limit(1, 7200)
        answers = numbers.map_concurrent(asked, 2, retry=Backoff(1800, jitter=0), timeout=900)
        return await clock.run_async(answers)

    assert asyncio.run(main()) == [0, 1, 2]
    assert tries == [(0, 3600.0), (1, 10800.0), (1, 13200.0), (1, 17400.0), (2, 18000.0)]


def test_hours_of_back_off_take_no_time() -> None:
    clock = VirtualClock()
    tries: list[float] = []

    def failing() -> int:
        tries.append(clock.now())
        raise OSError("down")

    patient = flow.from_callable(failing).retry(3, backoff=Backoff(3600, jitter=0))
    with pytest.raises(OSError, match="down"):
        asyncio.run(clock.run_async(patient))
    assert tries == [0.0, 3600.0, 10_800.0, 25_200.0]


def test_a_timeout_comes_at_its_time() -> None:
    clock = VirtualClock()
    with pytest.raises(FlowTimeoutError):
        asyncio.run(clock.run_async(flow.never().timeout(86_400)))
    assert clock.now() == 86_400.0


def test_functions_that_block_may_run_at_once() -> None:
    clock = VirtualClock()
    squares = flow.range(3).map_concurrent(lambda n: n * n, 2, executor=lambda task: task())
    assert asyncio.run(clock.run_async(squares.timeout(1))) == [0, 1, 4]
    assert clock.now() == 0.0


def test_a_flow_that_stands_still_is_found_in_virtual_time() -> None:
    clock = VirtualClock()
    counts = flow.range(600).group_by(lambda n: n % 2).concat_map(lambda group: group.count())
    with pytest.raises(MissingBackpressureError):
        asyncio.run(clock.run_async(counts))
