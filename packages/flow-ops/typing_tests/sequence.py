"""What the type checkers must infer about flows that follow one another. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import (
    Backoff,
    and_then,
    concat,
    concat_with,
    on_error_resume,
    repeat,
    repeat_until,
    repeat_when,
    retry,
    retry_when,
    start_with_flows,
    switch_if_empty,
)

numbers = flow.range(3)
words = flow.just("a", "b")

# Flows of one type, and of several.
assert_type(concat(numbers, numbers), Flow[int])
either: Flow[int | str] = concat(numbers, words, delay_error=True)
assert_type(numbers.pipe(concat_with(numbers)), Flow[int])
assert_type(numbers.pipe(concat_with(words)), Flow[int | str])
assert_type(numbers.pipe(start_with_flows(words, words)), Flow[int | str])
assert_type(numbers.pipe(and_then(words)), Flow[str])
assert_type(numbers.pipe(switch_if_empty(words)), Flow[int | str])
assert_type(numbers.pipe(switch_if_empty(flow.empty())), Flow[int])

# Functions are inferred.
assert_type(numbers.pipe(on_error_resume(words)), Flow[int | str])
assert_type(numbers.pipe(on_error_resume(numbers, KeyError)), Flow[int])
assert_type(
    numbers.pipe(on_error_resume(lambda error: flow.just(str(error)), (KeyError, OSError))),
    Flow[int | str],
)
assert_type(numbers.pipe(repeat(3)).map(str), Flow[str])
assert_type(numbers.pipe(repeat_until(lambda: True)), Flow[int])
assert_type(
    numbers.pipe(repeat_when(lambda counts: counts.filter(lambda n: n > 0))).map(lambda n: n / 2),
    Flow[float],
)
assert_type(words.pipe(retry(2, when=lambda error: "again" in str(error))), Flow[str])
assert_type(words.pipe(retry(2, backoff=0.1)), Flow[str])
assert_type(words.pipe(retry(backoff=Backoff(0.1), when=OSError)), Flow[str])
assert_type(
    words.pipe(retry_when(lambda errors: errors.map(lambda error: error.args).take(3))), Flow[str]
)
assert_type(words.pipe(retry_when(Backoff(0.1, max_attempts=3, when=OSError))), Flow[str])


# They are operators of their own.
def twice() -> Operator[str, Flow[str]]:
    return repeat(2)


assert_type(words.pipe(twice()), Flow[str])

# Mistakes.
concat([numbers])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
repeat("3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
retry(when=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.pipe(repeat_when(lambda counts: counts.map(lambda n: n.upper())))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType]
on_error_resume(3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
Backoff("soon")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
