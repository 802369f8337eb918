"""What the type checkers must infer about `concat_map`. Never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import concat_map, observe_on

pool = ThreadPoolExecutor()
numbers = flow.range(3)

# Lambdas are inferred, and so is what they make.
assert_type(numbers.pipe(concat_map(flow.range)), Flow[int])
assert_type(numbers.pipe(concat_map(lambda n: flow.just(str(n)))), Flow[str])
assert_type(numbers.pipe(concat_map(lambda n: flow.range(n).map(lambda m: m / n))), Flow[float])
assert_type(
    numbers.map(str)
    .pipe(concat_map(lambda text: flow.just(text.upper(), text), prefetch=4, delay_error=True))
    .map(lambda text: (text, len(text))),
    Flow[tuple[str, int]],
)
assert_type(
    numbers.pipe(concat_map(lambda n: flow.just(n).pipe(observe_on(pool)))).map(lambda n: n + 0.5),
    Flow[float],
)
assert_type(
    numbers.pipe(concat_map(lambda n: flow.range(n).pipe(concat_map(lambda m: flow.just((n, m)))))),
    Flow[tuple[int, int]],
)


# Functions and methods, too.
def words(n: int) -> Flow[str]:
    return flow.just("word" * n)


assert_type(numbers.pipe(concat_map(words)), Flow[str])


# It is an operator of its own.
def twice() -> Operator[str, Flow[str]]:
    return concat_map(lambda text: flow.just(text, text))


assert_type(flow.just("a").pipe(twice()), Flow[str])

# What a flow can be made of.


async def fetched(n: int) -> str:
    return str(n)


async def ticks(n: int) -> AsyncIterator[float]:
    yield float(n)


assert_type(numbers.flat_map(lambda n: [n, n]), Flow[int])
assert_type(numbers.flat_map(range), Flow[int])
assert_type(numbers.flat_map(fetched), Flow[str])
assert_type(numbers.flat_map(ticks), Flow[float])
assert_type(numbers.concat_map(lambda n: fetched(n)), Flow[str])
assert_type(numbers.switch_map(lambda n: {n: "a"}), Flow[int])
assert_type(numbers.concat_map_eager(lambda n: flow.just(n) if n else flow.empty()), Flow[int])

# Mistakes.
concat_map(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.pipe(concat_map(lambda n: n))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
numbers.pipe(concat_map(lambda n: flow.just(n.upper())))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownLambdaType, reportUnknownMemberType]
concat_map(words, 8)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
concat_map(words, prefetch="8")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
flow.just("a").pipe(concat_map(words))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
