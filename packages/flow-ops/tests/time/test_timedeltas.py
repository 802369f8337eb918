"""An operator that takes seconds takes a timedelta, too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Flow, Operator, Seconds


async def wait(n: int) -> int:
    return n


SOURCES: dict[str, Callable[[Seconds], Flow[Any]]] = {
    "interval": lambda time: ops.interval(time, initial_delay=time),
    "interval_range": lambda time: ops.interval_range(0, 3, time, initial_delay=time),
    "timer": lambda time: ops.timer(time),
}

OPERATORS: dict[str, Callable[[Seconds], Operator[int, Any]]] = {
    "batch": lambda time: ops.batch(3, within=time),
    "buffer_with_time": lambda time: ops.buffer_with_time(time, time),
    "buffer_with_time_or_count": lambda time: ops.buffer_with_time_or_count(time, 3),
    "debounce": lambda time: ops.debounce(time),
    "delay": lambda time: ops.delay(time),
    "delay_elements": lambda time: ops.delay_elements(time),
    "delay_subscription": lambda time: ops.delay_subscription(time),
    "do_concurrent": lambda time: ops.do_concurrent(wait, 3, timeout=time),
    "map_concurrent": lambda time: ops.map_concurrent(wait, 3, timeout=time),
    "on_backpressure_buffer": lambda time: ops.on_backpressure_buffer(3, timeout=time),
    "rate_limit": lambda time: ops.rate_limit(3, time),
    "retry": lambda time: ops.retry(3, backoff=time),
    "sample": lambda time: ops.sample(time),
    "session_buffer": lambda time: ops.session_buffer(time, limit=time),
    "session_window": lambda time: ops.session_window(time, limit=time),
    "skip_last_with_time": lambda time: ops.skip_last_with_time(time),
    "skip_with_time": lambda time: ops.skip_with_time(time),
    "take_last_with_time": lambda time: ops.take_last_with_time(time),
    "take_with_time": lambda time: ops.take_with_time(time),
    "throttle_first": lambda time: ops.throttle_first(time),
    "throttle_last": lambda time: ops.throttle_last(time),
    "throttle_latest": lambda time: ops.throttle_latest(time),
    "timeout": lambda time: ops.timeout(time, first=time),
    "window_with_time": lambda time: ops.window_with_time(time, time),
    "window_with_time_or_count": lambda time: ops.window_with_time_or_count(time, 3),
}


@pytest.mark.parametrize("name", [*SOURCES, *OPERATORS])
def test_a_timedelta_says_the_same_as_its_seconds(name: str) -> None:
    if name in SOURCES:
        told, same = (repr(SOURCES[name](time)) for time in (timedelta(milliseconds=1500), 1.5))
    else:
        made = (OPERATORS[name](time) for time in (timedelta(milliseconds=1500), 1.5))
        told, same = (repr(flow.range(3).pipe(operator)) for operator in made)

    assert told == same


def test_all_that_take_a_time_are_here() -> None:
    takes = {
        name
        for name in ops.__all__
        if inspect.isfunction(function := getattr(ops, name))
        and any("Seconds" in str(one.annotation) for one in _parameters(function))
    }

    assert takes == {*SOURCES, *OPERATORS}


def test_no_parameter_says_its_unit() -> None:
    named = {
        f"{name}({one.name}=)"
        for name in ops.__all__
        if inspect.isfunction(function := getattr(ops, name))
        for one in _parameters(function)
        if one.name.endswith("_s")
    }

    assert named == set()


def test_a_back_off_takes_timedeltas() -> None:
    backoff = ops.Backoff(timedelta(seconds=1), max=timedelta(seconds=3), jitter=0)

    assert [backoff.delay_s(retries, None) for retries in range(4)] == [1.0, 2.0, 3.0, 3.0]  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"Backoff\(max=\) must be a number of seconds or a timedelta"
    ):
        ops.Backoff(1, max="3")  # type: ignore[arg-type]


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def test_the_error_for_an_invalid_timeout_names_its_parameter() -> None:
    with pytest.raises(
        ValueError, match=r"timeout\(limit=\) must be a number of seconds, at least 0"
    ):
        flow.never().timeout(-1)
    with pytest.raises(
        ValueError, match=r"timeout\(first=\) must be a number of seconds, at least 0"
    ):
        flow.never().timeout(1, first=-1)
