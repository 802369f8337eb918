"""What the type checkers must infer about `do_concurrent`. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import do_concurrent

numbers = flow.range(3)


async def store(n: int) -> None:
    raise NotImplementedError(n)


assert_type(numbers.do_concurrent(store, 10), Flow[int])
assert_type(numbers.do_concurrent(print, 10, retry=3), Flow[int])
assert_type(numbers.do_concurrent(lambda n: n.bit_length(), 10).map(lambda n: n / 2), Flow[float])
assert_type(numbers.pipe(do_concurrent(store, 10)), Flow[int])


# It is an operator of its own.
def stored() -> Operator[int, Flow[int]]:
    return do_concurrent(store, 10)


assert_type(numbers.pipe(stored()), Flow[int])
numbers.for_each(lambda n: n.bit_length(), 10)

# Mistakes.
flow.just("a").do_concurrent(store, 2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
flow.just("a").for_each(store)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.do_concurrent(store)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
