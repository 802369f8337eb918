"""A prepared flow gives the same items as its operators when they are assembled again."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

import flow_core as flow
from flow_core import Flow, FlowError
from flow_core.structure import boundary_of, source_of
from flow_testing import OperatorCase, Surroundings, TestSubscriber, VirtualClock

ITEMS = [3, 1, 2, 2, 5, 0, 4, 4]
ELSEWHERE = "which does not begin at its argument"
"""The error of functions of several flows, and of cases that replace the input."""


def inline(task: Any) -> None:
    task()


def given(made: Flow[Any], clock: VirtualClock) -> tuple[object, ...]:
    subscriber = TestSubscriber[Any]()
    made.subscribe(subscriber)
    for _ in range(20):
        clock.advance_by(1)
    subscriber.cancel()
    return repr(subscriber.items), repr(subscriber.error), subscriber.completed


def test_each_operator(case: OperatorCase) -> None:
    clock = VirtualClock()

    def made(numbers: Flow[int]) -> Flow[Any]:
        return case.apply(numbers.map(abs), Surroundings(inline, clock))

    assembled = made(flow.from_iterable(ITEMS))
    first = assembled
    while (before := boundary_of(first)) is not None:
        first = before[0]
    if repr(source_of(first)) != "from_iterable(list)":
        with pytest.raises(FlowError, match=ELSEWHERE):
            flow.prepare(made)
        return
    prepared, expected = flow.prepare(made), given(assembled, clock)
    assert given(prepared(ITEMS), clock) == expected
    assert given(prepared(flow.from_iterable(ITEMS)), clock) == expected


def test_an_input_that_is_used_twice_is_refused_when_it_is_prepared(joined: Any) -> None:
    def made(numbers: Flow[int]) -> Flow[Any]:
        return cast("Flow[Any]", joined(numbers.map(abs), numbers.skip(1)))

    place = rf"second time at {re.escape(__file__)}:\d+; publish\("
    behind = joined.__name__ == "<lambda>"  # the others are functions of several flows
    with pytest.raises(FlowError, match=place if behind else ELSEWHERE):
        flow.prepare(made)


def test_one_that_is_prepared_is_what_others_are_made_with() -> None:
    total = flow.prepare(lambda numbers: numbers.sum())
    words = flow.just([1, 2], [3], [])
    assert list(words.flat_map(total)) == [3, 3, 0]
    assert list(words.concat_map(total)) == [3, 3, 0]
    assert list(words.switch_map(total)) == [3, 3, 0]
    assert list(flow.range(5).group_by(lambda n: n % 2).flat_map(total)) == [6, 4]
    assert list(flow.range(5).window_with_count(2).concat_map(total)) == [1, 5, 4]
    assert list(flow.just("ab", "c").flat_map(flow.prepare(lambda word: word.map(str.upper)))) == [
        *"ABC"
    ]
