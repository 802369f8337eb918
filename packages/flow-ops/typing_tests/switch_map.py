"""What the type checkers must infer about `switch_map` and its kin. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_core.notifications import Notification, OnNext
from flow_ops import switch_latest, switch_map, switch_on_first

numbers = flow.range(3)

assert_type(numbers.pipe(switch_map(flow.range)), Flow[int])
assert_type(numbers.pipe(switch_map(lambda n: flow.just(str(n)))), Flow[str])
assert_type(
    numbers.map(str)
    .pipe(switch_map(lambda text: flow.just(text, text), delay_error=True))
    .map(len),
    Flow[int],
)
assert_type(numbers.map(flow.range).pipe(switch_latest()), Flow[int])
assert_type(flow.just(flow.just("a"), flow.just("b")).pipe(switch_latest()), Flow[str])


def decide(first: Notification[int], whole: Flow[int]) -> Flow[str]:
    if isinstance(first, OnNext):
        assert_type(first, OnNext[int])
    return whole.map(str)


assert_type(numbers.pipe(switch_on_first(decide)), Flow[str])
assert_type(numbers.pipe(switch_on_first(lambda _, whole: whole)), Flow[int])
assert_type(numbers.pipe(switch_on_first(lambda _, whole: whole.map(str))), Flow[str])


# They are operators of their own.
def words() -> Operator[str, Flow[str]]:
    return switch_map(lambda text: flow.just(*text.split()))


assert_type(flow.just("a b").pipe(words()), Flow[str])

# Mistakes.
switch_map(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.pipe(switch_map(lambda n: n))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
numbers.pipe(switch_latest())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
