"""What the type checkers must infer about `flat_map` and its relatives. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import (
    concat_map_eager,
    delay_until,
    expand,
    filter_when,
    flat_map,
    map_when,
    merge,
    merge_all,
    merge_sequential,
    merge_with,
)

numbers = flow.range(3)
words = flow.just("a", "b")

# Lambdas are inferred, and so is what they make.
assert_type(numbers.pipe(flat_map(flow.range)), Flow[int])
assert_type(numbers.pipe(flat_map(lambda n: flow.just(str(n)))), Flow[str])
assert_type(
    words.pipe(flat_map(lambda text: flow.just(text.upper()), concurrency=2, prefetch=4)).map(
        lambda text: (text, len(text))
    ),
    Flow[tuple[str, int]],
)
assert_type(numbers.pipe(concat_map_eager(lambda n: flow.just(n / 2))), Flow[float])
assert_type(numbers.pipe(expand(lambda n: flow.range(n))), Flow[int])
assert_type(words.pipe(expand(lambda text: flow.just(text[1:]), depth_first=True)), Flow[str])

# What another flow decides.
assert_type(numbers.pipe(map_when(lambda n: flow.just(str(n)))), Flow[str])

assert_type(
    numbers.pipe(map_when(lambda n: flow.just("x").map(lambda text: (n, text)))),
    Flow[tuple[int, str]],
)
assert_type(numbers.pipe(filter_when(lambda n: flow.just(n > 1))), Flow[int])
assert_type(words.pipe(delay_until(lambda text: flow.range(len(text)))), Flow[str])

# Several sources.
assert_type(merge(numbers, flow.range(4)), Flow[int])
assert_type(merge([numbers, flow.range(4)], concurrency=2), Flow[int])
assert_type(merge(flow.range(n) for n in range(3)), Flow[int])
assert_type(merge(numbers), Flow[int])
assert_type(merge_sequential(words, words), Flow[str])
assert_type(merge_sequential([words], prefetch=2), Flow[str])
assert_type(numbers.pipe(merge_with(flow.range(4), numbers)), Flow[int])
assert_type(numbers.map(flow.range).pipe(merge_all()), Flow[int])
assert_type(flow.just(words, words).pipe(merge_all(delay_error=True)), Flow[str])


# They are operators of their own.
def twice() -> Operator[str, Flow[str]]:
    return flat_map(lambda text: flow.just(text, text))


def together() -> Operator[Flow[int], Flow[int]]:
    return merge_all()


assert_type(words.pipe(twice()), Flow[str])
assert_type(numbers.map(flow.range).pipe(together()), Flow[int])

# Mistakes.
flat_map(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
flat_map(flow.range, 8)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
numbers.pipe(merge_all())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
words.pipe(flat_map(flow.range))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
