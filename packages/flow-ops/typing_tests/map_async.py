"""What the type checkers must infer about `map_async`. Never run."""

from __future__ import annotations

import asyncio
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import map_async

numbers = flow.range(3)


async def text(n: int) -> str:
    return str(n)


def future(n: int) -> asyncio.Future[float]:
    raise NotImplementedError(n)


assert_type(numbers.pipe(map_async(text)), Flow[str])
assert_type(numbers.pipe(map_async(future, concurrency=4)), Flow[float])
assert_type(numbers.pipe(map_async(lambda n: text(n + 1), ordered=False)), Flow[str])
assert_type(numbers.pipe(map_async(text)).map(lambda word: word.upper()), Flow[str])


# It is an operator of its own.
def texts() -> Operator[int, Flow[str]]:
    return map_async(text, loop=asyncio.new_event_loop())


assert_type(numbers.pipe(texts()), Flow[str])

# Mistakes.
map_async(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.pipe(map_async(lambda n: n))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
numbers.pipe(map_async(lambda n: text(n.upper())))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
flow.just("a").pipe(map_async(text))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
map_async(text, 8)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
