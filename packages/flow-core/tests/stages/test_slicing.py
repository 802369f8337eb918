"""``flow[start:stop:step]`` gives what a list gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import Flow, Fusion
from flow_testing import TestPublisher, TestSubscriber, assert_result

bounds = st.none() | st.integers(-12, 12)
each_upstream = pytest.mark.parametrize("hidden", [False, True])


@pytest.mark.slow
@each_upstream
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    size=st.integers(0, 14),
    start=bounds,
    stop=bounds,
    step=st.none() | st.integers(1, 12),
    steps=st.lists(st.integers(1, 4), max_size=6),
)
def test_a_slice_is_that_of_a_list_in_every_form(
    hidden: bool,
    size: int,
    start: int | None,
    stop: int | None,
    step: int | None,
    steps: list[int],
) -> None:
    expected = list(range(size))[start:stop:step]
    source = flow.range(size).hide() if hidden else flow.range(size)
    made = source[start:stop:step]
    assert list(made) == expected
    for fusion in (Fusion.NONE, Fusion.SYNC):
        subscriber = TestSubscriber[int](fusion=fusion)
        made.subscribe(subscriber)
        subscriber.assert_result(*expected)
    subscriber = TestSubscriber[int](0)
    made.subscribe(subscriber)
    requested = 0
    for step_by in steps:
        subscriber.request(step_by)
        requested += step_by
        subscriber.assert_items(*expected[:requested])
    subscriber.request(99)
    subscriber.assert_result(*expected)


def test_each_bound_from_minus_four_to_four() -> None:
    items = [0, 1, 2]
    for start in (None, *range(-4, 5)):
        for stop in (None, *range(-4, 5)):
            for step in (1, 2, 3):
                assert list(flow.from_iterable(items)[start:stop:step]) == items[start:stop:step]


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [(1, 4, None, [1, 2, 3]), (-3, None, 2, [5, 7]), (None, -6, None, [0, 1]), (-4, 6, 1, [4, 5])],
)
def test_some_slices_in_every_form_there_is(
    start: int | None, stop: int | None, step: int | None, expected: list[int]
) -> None:
    assert_result(lambda: flow.range(8).slice(start, stop, step), expected)


def test_an_invalid_slice_is_refused_when_the_flow_is_made() -> None:
    made = flow.range(3)
    for step in (0, -1):
        with pytest.raises(ValueError, match=r"slice\(step\)"):
            made.slice(step=step)
    wrong: Any
    for wrong in ("1", 1.0, [1]):
        with pytest.raises(TypeError, match=r"slice\(start\)"):
            made.slice(wrong)
        with pytest.raises(TypeError, match=r"slice\(stop\)"):
            made.slice(None, wrong)
        with pytest.raises(TypeError, match=r"slice\(step\)"):
            made.slice(None, None, wrong)
        with pytest.raises(TypeError):
            made[wrong]
    with pytest.raises(ValueError, match=r"element_at\(-1\)"):
        made[-1]


def test_huge_bounds() -> None:
    huge = 2**80
    for start, stop in ((None, huge), (huge, None), (-huge, None), (None, -huge), (-huge, huge)):
        assert list(flow.range(3)[start:stop]) == [0, 1, 2][start:stop]
    assert list(flow.range(3)[::huge]) == [0]


def test_a_leading_stop_asks_for_no_more_items_than_it_uses() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    Flow(publisher)[1:3].subscribe(subscriber)
    publisher.assert_requests(3)
    publisher.next(0, 1, 2)
    subscriber.assert_result(1, 2)
    publisher.assert_cancelled()
    publisher = TestPublisher[int]()
    Flow(publisher)[3:3].subscribe(TestSubscriber[int]())
    publisher.assert_not_subscribed()


def test_a_single_index_is_element_at() -> None:
    assert_result(lambda: flow.range(5)[3], [3])
