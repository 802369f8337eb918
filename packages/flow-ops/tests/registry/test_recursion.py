"""No operator needs a stack that grows with what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Flow
from flow_testing import OperatorCase, Surroundings, TestSubscriber, VirtualClock

ENDS = 100_000
"""Flows that complete, or fail, one after the other."""
DEPTH = 10_000
"""The depth of flows within flows."""
FEW = 3_000
"""Items that are requested one by one, from within on_next: three times the stack's height."""


def inline(task: Any) -> None:
    task()


def empties(count: int = ENDS) -> Iterator[Flow[int]]:
    for _ in range(count):
        yield flow.empty()


def hidden_empties(count: int = ENDS // 5) -> Iterator[Flow[int]]:
    one: Flow[int] = flow.empty()
    for _ in range(count):
        yield one.hide()


def counted(times: int) -> Callable[..., bool]:
    left = iter(range(times))
    return lambda *_: next(left, None) is None


def retried(times: int) -> Flow[int]:
    """Fails a number of times, then gives an item."""
    ended = counted(times)

    def attempt() -> int:
        if not ended():
            raise LookupError
        return 1

    return flow.from_callable(attempt)


COMPLETIONS: dict[str, Callable[[], Flow[int]]] = {
    "concat": lambda: ops.concat(*empties(20_000), flow.just(1)),
    "concat, hidden": lambda: ops.concat(*hidden_empties(), flow.just(1)),
    "concat_map": lambda: flow.range(ENDS).pipe(ops.concat_map(lambda _: flow.empty())),
    "concat_map, hidden": lambda: flow.range(ENDS // 5).pipe(
        ops.concat_map(lambda _: flow.empty().hide())
    ),
    "concat_map_eager": lambda: flow.range(ENDS // 5).pipe(
        ops.concat_map_eager(lambda _: flow.empty().hide())
    ),
    "flat_map": lambda: flow.range(ENDS).pipe(ops.flat_map(lambda _: flow.empty())),
    "flat_map, hidden": lambda: flow.range(ENDS // 5).pipe(
        ops.flat_map(lambda _: flow.empty().hide())
    ),
    "flat_map, hidden, one at a time": lambda: flow.range(ENDS // 5).pipe(
        ops.flat_map(lambda _: flow.empty().hide(), concurrency=1)
    ),
    "merge": lambda: ops.merge(empties()),
    "merge, hidden": lambda: ops.merge(hidden_empties()),
    "merge_sequential": lambda: ops.merge_sequential(hidden_empties()),
    "switch_map": lambda: flow.range(ENDS // 5).pipe(ops.switch_map(lambda _: flow.empty().hide())),
    "repeat": lambda: flow.empty().pipe(ops.repeat(ENDS)),
    "repeat, hidden": lambda: flow.empty().hide().pipe(ops.repeat(ENDS // 5)),
    "repeat_until": lambda: flow.empty().hide().pipe(ops.repeat_until(counted(ENDS // 5))),
    "repeat_when": lambda: (
        flow.empty().hide().pipe(ops.repeat_when(lambda runs: runs.take(ENDS // 20)))
    ),
    "retry": lambda: retried(ENDS // 5).pipe(ops.retry()),
    "retry, hidden": lambda: retried(ENDS // 5).hide().pipe(ops.retry()),
    "retry_when": lambda: retried(ENDS // 20).hide().pipe(ops.retry_when(lambda errors: errors)),
    "delay_until": lambda: flow.range(ENDS // 20).pipe(
        ops.delay_until(lambda _: flow.empty().hide())
    ),
    "filter_when": lambda: flow.range(ENDS // 20).pipe(
        ops.filter_when(lambda _: flow.just(False).hide())
    ),
    "group_by": lambda: (
        flow.range(ENDS // 5)
        .pipe(ops.group_by(lambda n: n % 3))
        .pipe(ops.flat_map(lambda group: group))
    ),
    "window_with_count": lambda: (
        flow.range(ENDS // 5)
        .pipe(ops.window_with_count(1))
        .pipe(ops.concat_map(lambda window: window))
    ),
    "timeout": lambda: flow.range(ENDS // 20).pipe(
        ops.timeout(selector=lambda _: flow.never(), clock=VirtualClock())
    ),
    "debounce": lambda: flow.range(ENDS // 20).pipe(ops.debounce(lambda _: flow.empty())),
    "delay_with_mapper": lambda: flow.range(ENDS // 20).pipe(
        ops.delay_with_mapper(lambda _: flow.empty())
    ),
}


@pytest.mark.many
@pytest.mark.parametrize("name", COMPLETIONS)
def test_many_flows_that_end_at_once_need_no_recursion(name: str) -> None:
    subscriber = Counting()
    COMPLETIONS[name]().subscribe(subscriber)
    assert subscriber.error is None, repr(subscriber.error)
    assert subscriber.completed


@pytest.mark.parametrize("depth_first", [False, True])
def test_a_tree_that_is_a_line_is_walked_without_recursion(depth_first: bool) -> None:
    def below(n: int) -> Flow[int]:
        return flow.just(n + 1) if n < DEPTH else flow.empty()

    made = flow.just(0).pipe(ops.expand(below, depth_first=depth_first))
    subscriber = Counting()
    made.subscribe(subscriber)
    assert subscriber.completed
    assert subscriber.count == DEPTH + 1


@pytest.mark.usefixtures("dropped_unseen")
@pytest.mark.parametrize("hidden", [False, True], ids=["fused", "hidden"])
def test_requests_from_within_on_next_need_no_recursion(case: OperatorCase, hidden: bool) -> None:
    upstream = flow.range(FEW)
    made = case.apply(upstream.hide() if hidden else upstream, Surroundings(inline, VirtualClock()))
    subscriber = Counting(1)
    made.subscribe(subscriber)
    for _ in range(FEW):
        if subscriber.terminated:
            break
        subscriber.subscription.request(1)
    if subscriber.error is not None:
        assert not isinstance(subscriber.error, RecursionError)
    subscriber.subscription.cancel()


class Counting(TestSubscriber[Any]):
    """Counts items, and requests one more for each if it was given a first demand."""

    __slots__ = ("count", "one_by_one")

    def __init__(self, request: int = flow.UNBOUNDED) -> None:
        super().__init__(request)
        self.one_by_one = request != flow.UNBOUNDED
        self.count = 0

    def on_next(self, item: Any, /) -> None:
        self.count += 1
        if self.one_by_one:
            self.subscription.request(1)
