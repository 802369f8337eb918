"""Linearizability: histories that some order explains, and histories that none does."""

from __future__ import annotations

from collections import deque

import pytest

from flow_testing.interleave import (
    Call,
    History,
    InterleavingFailure,
    Scenario,
    assert_linearizable,
    explore,
)


class QueueModel:
    def initial(self) -> tuple[object, ...]:
        return ()

    def apply(
        self, state: tuple[object, ...], name: str, arguments: tuple[object, ...]
    ) -> tuple[tuple[object, ...], object]:
        if name == "put":
            return (*state, *arguments), None
        if not state:
            return state, IndexError("empty")
        return state[1:], state[0]


def test_operations_one_after_the_other_keep_their_order() -> None:
    history = History()
    items: deque[int] = deque()
    history.call("put", items.append, 1)
    history.call("put", items.append, 2)
    history.call("take", items.popleft)

    order = assert_linearizable(history, QueueModel())

    assert [call.name for call in order] == ["put", "put", "take"]
    assert order[2].result == 1


def test_operations_at_the_same_time_may_come_in_any_order() -> None:
    calls = [
        Call("put", (1,), None, 0, 3),
        Call("put", (2,), None, 1, 2),
        Call("take", (), 2, 4, 5),
    ]
    assert [call.arguments for call in assert_linearizable(calls, QueueModel())] == [(2,), (1,), ()]


def test_a_result_that_no_order_explains_is_refused() -> None:
    calls = [
        Call("put", (1,), None, 0, 1),
        Call("put", (2,), None, 2, 3),
        Call("take", (), 2, 4, 5),
    ]
    with pytest.raises(AssertionError, match=r"take\(\) -> 2 \[4, 5\]"):
        assert_linearizable(calls, QueueModel())


def test_an_operation_that_has_not_ended_may_have_taken_effect_or_not() -> None:
    pending = Call("put", (1,), None, 0, None)
    assert_linearizable([pending, Call("take", (), 1, 1, 2)], QueueModel())
    empty = IndexError("empty")
    assert_linearizable([pending, Call("take", (), empty, 1, 2)], QueueModel())


def test_an_exception_is_a_result_and_is_raised_on() -> None:
    class Empty:
        def take(self) -> None:
            raise IndexError("empty")

    history = History()
    with pytest.raises(IndexError):
        history.call("take", Empty().take)
    assert_linearizable(history, QueueModel())


def test_no_operations_are_linearizable() -> None:
    assert assert_linearizable(History(), QueueModel()) == []


class TwoSteps:
    """Takes in two steps: looks at the first item, then removes one."""

    def __init__(self) -> None:
        self.items: deque[int] = deque()

    def put(self, n: int) -> None:
        self.items.append(n)

    def take(self) -> int:
        first = self.items[0]
        self.items.popleft()
        return first


class OneStep(TwoSteps):
    def take(self) -> int:
        return self.items.popleft()


def taking(kind: type[TwoSteps]) -> Scenario:
    history, items = History(), kind()
    items.put(1)
    items.put(2)

    def take() -> None:
        history.call("take", items.take)

    def check() -> None:
        calls = [Call("put", (1,), None, -4, -3), Call("put", (2,), None, -2, -1), *history.calls]
        assert_linearizable(calls, QueueModel())

    return Scenario(take, take, check=check)


@pytest.mark.interleave
def test_results_that_threads_see_are_checked_under_every_schedule() -> None:
    assert explore(lambda: taking(OneStep), modules=[__name__]).exhausted
    with pytest.raises(InterleavingFailure, match="no order of these operations"):
        explore(lambda: taking(TwoSteps), modules=[__name__])
