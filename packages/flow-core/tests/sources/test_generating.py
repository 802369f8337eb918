"""Sources that ask a function for each item."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Fusion, SingleSink
from flow_core.errors import NoneItemError, ProtocolViolationError
from flow_testing import Drops, TestSubscriber, assert_result, race


class FailureError(Exception):
    pass


def up_to(end: int) -> Callable[[int, SingleSink[int]], int]:
    def step(n: int, sink: SingleSink[int]) -> int:
        if n < end:
            sink.next(n)
        else:
            sink.complete()
        return n + 1

    return step


def zero() -> int:
    return 0


# -- generate


def test_generate_gives_what_each_call_of_the_step_gives() -> None:
    assert_result(lambda: flow.generate(zero, up_to(5)), [0, 1, 2, 3, 4])
    assert_result(lambda: flow.generate(zero, up_to(0)), [])
    assert_result(lambda: flow.generate(zero, up_to(9)).filter(lambda n: n % 2).take(2), [1, 3])
    assert_result(lambda: flow.generate(zero, up_to(5)).hide().map(str), ["0", "1", "2", "3", "4"])


def test_generate_may_give_an_item_and_the_end_in_one_call() -> None:
    def step(n: int, sink: SingleSink[int]) -> int:
        sink.next(n)
        if n == 2:
            sink.complete()
        return n + 1

    assert_result(lambda: flow.generate(zero, step), [0, 1, 2])


def test_generate_fails_with_the_error_that_the_step_gives_or_raises() -> None:
    error = FailureError()

    def give(n: int, sink: SingleSink[int]) -> int:
        sink.next(n)
        if n == 1:
            sink.error(error)
        return n + 1

    def throw(n: int, sink: SingleSink[int]) -> int:
        if n == 2:
            raise error
        sink.next(n)
        return n + 1

    assert_result(lambda: flow.generate(zero, give), [0, 1], error)
    assert_result(lambda: flow.generate(zero, throw), [0, 1], error)


def test_generate_fails_with_the_error_of_the_first_state() -> None:
    error = FailureError()

    def fail() -> int:
        raise error

    assert_result(lambda: flow.generate(fail, up_to(3)), [], error)


def says(*calls: str) -> Callable[[int, SingleSink[int]], int]:
    actions: dict[str, Callable[[SingleSink[int]], object]] = {
        "next": lambda sink: sink.next(1),
        "none": lambda sink: sink.next(None),  # type: ignore[arg-type]  # the mistake
        "complete": lambda sink: sink.complete(),
        "error": lambda sink: sink.error(FailureError()),
        "wrong": lambda sink: sink.error("text"),  # type: ignore[arg-type]  # the mistake
    }

    def step(n: int, sink: SingleSink[int]) -> int:
        for call in calls:
            actions[call](sink)
        return n

    return step


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (["next", "next"], "second item"),
        ([], "neither an item nor an end"),
        (["complete", "next"], r"next\(\) after the flow was ended"),
        (["complete", "complete"], r"complete\(\) after the flow was ended"),
        (["error", "complete"], r"complete\(\) after the flow was ended"),
        (["complete", "error"], r"error\(\) after the flow was ended"),
    ],
)
def test_a_step_that_signals_too_much_or_nothing_fails_the_flow(
    calls: list[str], message: str
) -> None:
    assert_result(lambda: flow.generate(zero, says(*calls)), [], ProtocolViolationError)
    with pytest.raises(ProtocolViolationError, match=message):
        list(flow.generate(zero, says(*calls)))


def test_an_error_that_comes_too_late_is_the_cause_of_the_protocol_violation() -> None:
    with pytest.raises(ProtocolViolationError) as caught:
        list(flow.generate(zero, says("complete", "error")))
    assert isinstance(caught.value.__cause__, FailureError)


def test_generate_refuses_none_and_an_error_that_is_not_an_exception() -> None:
    assert_result(lambda: flow.generate(zero, says("none")), [], NoneItemError)
    assert_result(lambda: flow.generate(zero, says("wrong")), [], TypeError)


def test_the_step_is_called_once_for_each_item_that_can_be_delivered() -> None:
    calls: list[int] = []

    def step(n: int, sink: SingleSink[int]) -> int:
        calls.append(n)
        sink.next(n)
        return n + 1

    subscriber = TestSubscriber[int](0)
    flow.generate(zero, step).subscribe(subscriber)
    assert calls == []
    subscriber.request(2)
    assert calls == [0, 1]
    race(lambda: subscriber.request(1), lambda: subscriber.request(1))
    assert calls == [0, 1, 2, 3]
    subscriber.cancel()
    subscriber.request(1)
    assert calls == [0, 1, 2, 3]


def test_each_subscriber_has_a_separate_state() -> None:
    made = flow.generate(lambda: [0], grow)
    assert list(made.take(3)) == [0, 1, 2]
    assert list(made.take(2)) == [0, 1]


def grow(items: list[int], sink: SingleSink[int]) -> list[int]:
    sink.next(items[-1])
    items.append(items[-1] + 1)
    return items


def test_on_end_gets_the_last_state_once_however_the_flow_ends() -> None:
    states: list[int] = []
    error = FailureError()

    def failing(n: int, sink: SingleSink[int]) -> int:
        if n == 2:
            raise error
        sink.next(n)
        return n + 1

    assert list(flow.generate(zero, up_to(3), on_end=states.append)) == [0, 1, 2]
    assert states == [4]
    with pytest.raises(FailureError):
        list(flow.generate(zero, failing, on_end=states.append))
    assert states == [4, 2]
    assert list(flow.generate(zero, up_to(9), on_end=states.append).take(2)) == [0, 1]
    assert states == [4, 2, 2]


@pytest.mark.checklist("X09")
@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.SYNC])
def test_on_end_is_called_when_the_flow_is_cancelled(fusion: Fusion) -> None:
    states: list[int] = []
    subscriber = TestSubscriber[int](2, fusion=fusion)
    flow.generate(zero, up_to(9), on_end=states.append).subscribe(subscriber)
    assert states == []
    subscriber.assert_items(0, 1).cancel()
    subscriber.cancel()
    assert states == [2]


def test_on_end_is_not_called_without_a_first_state() -> None:
    states: list[int] = []
    subscriber = TestSubscriber[int](0)
    flow.generate(zero, up_to(9), on_end=states.append).subscribe(subscriber)
    subscriber.cancel()
    assert states == []


def test_an_error_of_on_end_goes_to_the_hook(drops: Drops) -> None:
    error = FailureError()

    def on_end(_: int) -> None:
        raise error

    assert list(flow.generate(zero, up_to(2), on_end=on_end)) == [0, 1]
    assert drops.take_errors() == [error]


def test_generate_keeps_no_item_that_it_has_given() -> None:
    class Item:
        pass

    def step(state: int, sink: SingleSink[Item]) -> int:
        sink.next(Item())
        return state

    items = iter(flow.generate(zero, step))
    given = weakref.ref(next(items))
    del_item = next(items)
    gc.collect()
    assert given() is None
    assert del_item is not None


# -- repetition


def test_repeat_value() -> None:
    assert_result(lambda: flow.repeat_value("a", 3), ["a", "a", "a"])
    assert_result(lambda: flow.repeat_value("a", 0), [])
    assert_result(lambda: flow.repeat_value([1]).take(2), [[1], [1]])
    assert repr(flow.repeat_value(1)) == "repeat_value(1)"
    assert repr(flow.repeat_value(1, 2)) == "repeat_value(1, 2)"


def test_repeat_callable_calls_for_each_item() -> None:
    assert_result(lambda: flow.repeat_callable(count(1).__next__, 3), [1, 2, 3])
    assert_result(lambda: flow.repeat_callable(count(1).__next__).take(3), [1, 2, 3])
    calls = count()
    subscriber = TestSubscriber[int](2)
    flow.repeat_callable(calls.__next__).subscribe(subscriber)
    assert next(calls) == 2
    subscriber.cancel()


def test_repeat_callable_fails_with_what_the_function_raises() -> None:
    error = FailureError()

    def fail() -> int:
        raise error

    assert_result(lambda: flow.repeat_callable(fail), [], error)
    assert_result(lambda: flow.repeat_callable(lambda: None), [], NoneItemError)
    # PEP 479: no silent end.
    assert_result(lambda: flow.repeat_callable(iter([1]).__next__), [1], RuntimeError)


@pytest.mark.parametrize("make", [flow.repeat_value, flow.repeat_callable])
def test_a_count_is_an_int_of_at_least_0(make: Callable[..., Flow[Any]]) -> None:
    with pytest.raises(ValueError, match="0 or more items, not -1"):
        make(print, -1)
    for wrong in (1.0, True, "2"):
        with pytest.raises(TypeError, match="takes an int"):
            make(print, wrong)


def test_repeat_value_refuses_none() -> None:
    with pytest.raises(NoneItemError):
        flow.repeat_value(None)


# -- fusion


@pytest.mark.checklist("F23", "F29")
@pytest.mark.parametrize("mode", [Fusion(mask) for mask in range(8)])
def test_generating_sources_grant_sync_when_asked(mode: Fusion) -> None:
    for made in (flow.generate(zero, up_to(3)), flow.repeat_callable(zero, 3)):
        subscriber = TestSubscriber[int](0, fusion=mode)
        made.subscribe(subscriber)
        across = mode & Fusion.THREAD_BOUNDARY
        assert subscriber.fused == (Fusion.NONE if across else mode & Fusion.SYNC)
        subscriber.assert_rules_kept().cancel()
    subscriber = TestSubscriber[int](0, fusion=mode)
    flow.repeat_value(1, 3).subscribe(subscriber)
    assert subscriber.fused == mode & Fusion.SYNC
    subscriber.cancel()


@pytest.mark.checklist("F39")
def test_user_code_does_not_move_to_another_thread() -> None:
    for made in (flow.generate(zero, up_to(3)), flow.repeat_callable(zero, 3)):
        subscriber = TestSubscriber[int](0, fusion=Fusion.SYNC | Fusion.THREAD_BOUNDARY)
        made.subscribe(subscriber)
        assert subscriber.fused is Fusion.NONE
        subscriber.cancel()
