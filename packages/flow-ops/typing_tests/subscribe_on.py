"""What the type checkers must infer about `subscribe_on` and `cancel_on`. Never run."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import cancel_on, subscribe_on

pool = ThreadPoolExecutor()
numbers = flow.range(3)

assert_type(numbers.pipe(subscribe_on(pool)), Flow[int])
assert_type(numbers.map(str).pipe(subscribe_on(pool, request_on=False)), Flow[str])
assert_type(numbers.pipe(subscribe_on(lambda task: task())).map(str), Flow[str])
assert_type(numbers.pipe(cancel_on(pool)), Flow[int])
assert_type(numbers.pipe(cancel_on(lambda task: task())).map(lambda n: n / 2), Flow[float])


def on_loop(loop: asyncio.AbstractEventLoop) -> Operator[str, Flow[str]]:
    return subscribe_on(loop.call_soon_threadsafe)


# Mistakes.
subscribe_on(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
subscribe_on(pool, False)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
cancel_on()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
