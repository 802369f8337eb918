"""What the type checkers must infer about sources and operators with a clock. Never run."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import (
    TimeInterval,
    Timestamped,
    debounce,
    delay,
    delay_elements,
    delay_subscription,
    delay_with_mapper,
    interval,
    interval_range,
    rate_limit,
    sample,
    skip_last_with_time,
    skip_until_with_time,
    skip_with_time,
    take_last_with_time,
    take_until_with_time,
    take_with_time,
    throttle_first,
    throttle_last,
    throttle_latest,
    time_interval,
    timeout,
    timer,
    timestamp,
)
from flow_testing import VirtualClock

clock = VirtualClock()
numbers = flow.range(3)
words = numbers.map(str)

# Sources.
assert_type(interval(1), Flow[int])
assert_type(interval(0.5, initial_delay=0, overflow="drop", clock=clock), Flow[int])
assert_type(interval_range(5, 3, 0.5, overflow="buffer"), Flow[int])
assert_type(timer(1).map(lambda n: n / 2), Flow[float])
interval("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
interval(1, overflow="lose")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
interval(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
timer(1, clock=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# The type of the items goes through.
assert_type(words.pipe(delay(1)), Flow[str])
assert_type(words.pipe(delay(1, delay_error=True, clock=clock)).map(lambda w: len(w)), Flow[int])
assert_type(words.pipe(delay_elements(1)), Flow[str])
assert_type(words.pipe(rate_limit(10)), Flow[str])
assert_type(words.pipe(rate_limit(10, timedelta(minutes=1), burst=3)), Flow[str])
assert_type(words.pipe(delay_subscription(1)), Flow[str])
assert_type(words.pipe(delay_subscription(numbers)), Flow[str])
assert_type(words.pipe(sample(1)), Flow[str])
assert_type(words.pipe(sample(numbers, emit_last=True)), Flow[str])
assert_type(words.pipe(throttle_last(1)), Flow[str])
assert_type(words.pipe(throttle_first(1)), Flow[str])
assert_type(words.pipe(throttle_latest(1, emit_last=True)), Flow[str])
assert_type(words.pipe(debounce(1)), Flow[str])
assert_type(words.pipe(take_with_time(1)), Flow[str])
assert_type(words.pipe(skip_with_time(1)), Flow[str])
assert_type(words.pipe(take_until_with_time(1)), Flow[str])
assert_type(words.pipe(skip_until_with_time(1)), Flow[str])
assert_type(words.pipe(take_last_with_time(1, max_items=3)), Flow[str])
assert_type(words.pipe(skip_last_with_time(1)), Flow[str])
assert_type(words.pipe(timeout(1)), Flow[str])
assert_type(words.pipe(timeout(first=1)), Flow[str])
assert_type(words.pipe(timeout(1, fallback=flow.just("late"))), Flow[str])
words.pipe(timeout(1, fallback=numbers))  # type: ignore[arg-type]

# Lambdas are inferred.
assert_type(words.pipe(debounce(lambda word: timer(len(word)))), Flow[str])
assert_type(words.pipe(delay_with_mapper(lambda word: timer(len(word)))), Flow[str])
assert_type(
    words.pipe(timeout(first=1, selector=lambda word: timer(len(word)), fallback=flow.just("x"))),
    Flow[str],
)


def after(n: int) -> Flow[object]:
    return flow.just(n)


assert_type(numbers.pipe(debounce(after)), Flow[int])
assert_type(numbers.pipe(delay_with_mapper(after)), Flow[int])
assert_type(numbers.pipe(timeout(selector=after)), Flow[int])
debounce("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.pipe(delay_with_mapper(lambda n: n))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
words.pipe(debounce(after))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Items with times.
assert_type(words.pipe(timestamp()), Flow[Timestamped[str]])
assert_type(words.pipe(timestamp()).map(lambda at: at.item), Flow[str])
assert_type(words.pipe(timestamp(clock=clock)).map(lambda at: at.time_s), Flow[float])
assert_type(words.pipe(time_interval()), Flow[TimeInterval[str]])
assert_type(
    words.pipe(time_interval()).map(lambda at: (at.interval_s, at.item)), Flow[tuple[float, str]]
)


# They are operators of their own.
def calm() -> Operator[str, Flow[str]]:
    return debounce(0.5)


assert_type(words.pipe(calm()), Flow[str])
