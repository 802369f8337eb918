"""What type checkers make of `prepare`."""

from typing import assert_type

import flow_core as flow
from flow_core import Flow, Prepared


@flow.prepare
def total(lengths: Flow[int]) -> Flow[float]:
    return lengths.map(lambda n: n / 2).sum()


assert_type(total, Prepared[int, float])
assert_type(total.first([1, 2]), float)
assert_type(total.last(range(3)), float)
assert_type(total.single((1,)), float)
assert_type(total.list({1: "a"}), list[float])
assert_type(total([1]), Flow[float])
assert_type(total(flow.range(3)), Flow[float])
assert_type(flow.range(3).pipe(total), Flow[float])
assert_type(flow.just([1]).map(total.first), Flow[float])
assert_type(flow.just([1]).flat_map_iterable(total), Flow[float])


def letters(words: Flow[str]) -> Flow[str]:
    return words.map(str.upper)


upper = flow.prepare(letters)
assert_type(upper, Prepared[str, str])
assert_type(upper.list("abc"), list[str])

largest: Prepared[int, int] = flow.prepare(lambda numbers: numbers.map(lambda n: n + 1).max())
assert_type(largest.first([1]), int)

total.first(["a"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
flow.just("a").pipe(total)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
