"""What the type checkers must infer about groups, windows and buffers. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import (
    GroupedFlow,
    batch,
    buffer_boundary,
    buffer_toggle,
    buffer_when,
    buffer_with_time,
    buffer_with_time_or_count,
    concat_map,
    flat_map,
    group_by,
    group_by_until,
    session_buffer,
    session_window,
    window_boundary,
    window_toggle,
    window_when,
    window_with_count,
    window_with_time,
    window_with_time_or_count,
)
from flow_testing import VirtualClock

clock = VirtualClock()
numbers = flow.range(3)

# Lambdas are inferred, and so is what they make.
assert_type(numbers.pipe(group_by(lambda n: n % 2 == 0)), Flow[GroupedFlow[bool, int]])
assert_type(numbers.pipe(group_by(str)), Flow[GroupedFlow[str, int]])
assert_type(
    numbers.pipe(group_by_until(str, lambda group: flow.timer(1))), Flow[GroupedFlow[str, int]]
)
assert_type(
    numbers.pipe(group_by_until(str, lambda group: group.skip(3), value=float)),
    Flow[GroupedFlow[str, float]],
)
assert_type(
    numbers.pipe(group_by(lambda n: n % 3, value=lambda n: n / 2, max_groups=4)),
    Flow[GroupedFlow[int, float]],
)
assert_type(
    numbers.pipe(group_by(lambda n: str(n))).pipe(
        flat_map(lambda group: group.map(lambda n: (group.key, n)))
    ),
    Flow[tuple[str, int]],
)
assert_type(
    numbers.pipe(group_by(lambda n: n > 1)).map(lambda group: (group.key, group)),
    Flow[tuple[bool, GroupedFlow[bool, int]]],
)


def tagged(group: GroupedFlow[str, int]) -> Flow[str]:
    assert_type(group.pipe(concat_map(lambda n: flow.just(n / 2))), Flow[float])
    return group.map(lambda n: f"{group.key}{n}")


assert_type(numbers.pipe(group_by(str)).pipe(flat_map(tagged)), Flow[str])


# It is an operator of its own.
def by_length() -> Operator[str, Flow[GroupedFlow[int, str]]]:
    return group_by(len)


assert_type(flow.just("a").pipe(by_length()), Flow[GroupedFlow[int, str]])

# Windows are flows.
assert_type(numbers.pipe(window_with_count(2, 1)), Flow[Flow[int]])
assert_type(numbers.pipe(window_with_time(2.0, clock=clock)), Flow[Flow[int]])
assert_type(numbers.pipe(window_with_time_or_count(2, 3)), Flow[Flow[int]])
assert_type(numbers.pipe(window_boundary(flow.just("now"))), Flow[Flow[int]])
assert_type(
    numbers.pipe(window_toggle(flow.just("now"), lambda word: flow.just(word.upper()))),
    Flow[Flow[int]],
)
assert_type(numbers.pipe(window_when(lambda: flow.just("end"))), Flow[Flow[int]])
assert_type(
    numbers.pipe(window_with_count(2)).pipe(concat_map(lambda window: window.to_list())),
    Flow[list[int]],
)

# Buffers are lists.
assert_type(numbers.pipe(buffer_with_time(2.0, 1, empty=True, clock=clock)), Flow[list[int]])
assert_type(numbers.pipe(batch(100)), Flow[list[int]])
assert_type(numbers.pipe(batch(100, within=1, clock=clock)).map(len), Flow[int])
assert_type(numbers.pipe(session_buffer(2, limit=60)), Flow[list[int]])
assert_type(numbers.pipe(session_window(2)), Flow[Flow[int]])
assert_type(numbers.pipe(buffer_with_time_or_count(2, 3)).map(len), Flow[int])
assert_type(numbers.pipe(buffer_boundary(flow.never())), Flow[list[int]])
assert_type(
    numbers.pipe(buffer_toggle(flow.just("now"), lambda word: flow.just(len(word)))),
    Flow[list[int]],
)
assert_type(numbers.pipe(buffer_when(lambda: flow.just("end"))), Flow[list[int]])

# Mistakes.
group_by(None)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
group_by(str, 3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
window_with_count("2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
buffer_when(flow.never())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
window_boundary(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# A group is a flow.
assert_type(numbers.pipe(group_by(str)).pipe(flat_map(lambda group: group)), Flow[int])
assert_type(numbers.pipe(group_by(str)).pipe(flat_map(lambda group: group.map(str))), Flow[str])
