"""What the type checkers must infer about back-pressure operators. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import (
    on_backpressure_buffer,
    on_backpressure_drop,
    on_backpressure_error,
    on_backpressure_latest,
    on_backpressure_reduce,
    rebatch_requests,
)
from flow_testing import VirtualClock

numbers = flow.range(3)

# They change no type.
assert_type(numbers.pipe(on_backpressure_buffer(8)), Flow[int])
assert_type(
    numbers.map(str).pipe(
        on_backpressure_buffer(
            8,
            overflow="drop_oldest",
            on_overflow=lambda text: print(text.upper()),
            timeout=1.5,
            clock=VirtualClock(),
        )
    ),
    Flow[str],
)
assert_type(numbers.pipe(on_backpressure_drop()), Flow[int])
assert_type(numbers.map(str).pipe(on_backpressure_drop(lambda text: text.upper())), Flow[str])
assert_type(numbers.pipe(on_backpressure_error()), Flow[int])
assert_type(numbers.pipe(on_backpressure_latest()).map(str), Flow[str])
assert_type(numbers.pipe(on_backpressure_reduce(lambda a, b: a + b)), Flow[int])
assert_type(numbers.pipe(on_backpressure_reduce(max)), Flow[int])
assert_type(numbers.pipe(rebatch_requests(8)), Flow[int])


# They are operators of their own.
def newest() -> Operator[str, Flow[str]]:
    return on_backpressure_buffer(1, overflow="drop_oldest")


assert_type(flow.just("a").pipe(newest()), Flow[str])


# Mistakes.
def added(a: int, b: int) -> int:
    return a + b


on_backpressure_buffer()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
on_backpressure_buffer(8, "error")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
on_backpressure_buffer(8, overflow="drop")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.pipe(on_backpressure_drop(lambda n: n.upper()))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownLambdaType]
numbers.map(str).pipe(on_backpressure_reduce(added))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
rebatch_requests("8")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
