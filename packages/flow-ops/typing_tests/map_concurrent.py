"""What the type checkers must infer about `map_concurrent`. Never run."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import Backoff, map_concurrent

numbers = flow.range(3)
pool = ThreadPoolExecutor()


async def text(n: int) -> str:
    return str(n)


def half(n: int) -> float:
    return n / 2


# Functions and coroutine functions, and lambdas of both.
assert_type(numbers.map_concurrent(text, 10), Flow[str])
assert_type(numbers.map_concurrent(half, 10), Flow[float])
assert_type(numbers.map_concurrent(lambda n: text(n + 1), 10), Flow[str])
assert_type(numbers.map_concurrent(lambda n: half(n + 1), 10), Flow[float])
assert_type(numbers.map_concurrent(lambda n: n / 2, 10).map(lambda n: n.hex()), Flow[str])
assert_type(numbers.pipe(map_concurrent(text, 10)), Flow[str])
assert_type(numbers.pipe(map_concurrent(half, 10)), Flow[float])
assert_type(numbers.pipe(map_concurrent(lambda n: half(n + 1), 10)), Flow[float])

# With a fallback, it may be one or the other.
assert_type(numbers.map_concurrent(text, 10, fallback=lambda n, error: n), Flow[str | int])
assert_type(
    numbers.map_concurrent(half, 10, fallback=lambda n, error: str(error)), Flow[float | str]
)
assert_type(numbers.map_concurrent(half, 10, fallback=lambda n, error: 0.5 * n), Flow[float])
assert_type(
    numbers.map_concurrent(lambda n: text(n), 10, fallback=lambda n, error: n + 1), Flow[str | int]
)
assert_type(
    numbers.map_concurrent(lambda n: n / 2, 10, fallback=lambda n, error: str(n)), Flow[float | str]
)

# What else may be said.
assert_type(
    numbers.map_concurrent(
        text,
        10,
        ordered=False,
        retry=3,
        timeout=timedelta(seconds=1),
        loop=asyncio.new_event_loop(),
    ),
    Flow[str],
)
assert_type(numbers.map_concurrent(half, 10, executor=pool, retry=Backoff(0.1)), Flow[float])


# It is an operator of its own.
def texts() -> Operator[int, Flow[str]]:
    return map_concurrent(text, 10)


assert_type(numbers.pipe(texts()), Flow[str])

# Mistakes.
numbers.map_concurrent(text)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
numbers.map_concurrent(half, 2, timeout=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.map_concurrent(text, 2, retry=0.5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
flow.just("a").map_concurrent(half, 2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
