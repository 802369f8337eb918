"""Random flows give what plain Python makes of the same list, in whatever form they run."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Fusion
from flow_core.testing import (
    STAGE_CASES,
    ConditionalTestSubscriber,
    StageCase,
    TestSubscriber,
)

pipelines = st.lists(st.sampled_from(STAGE_CASES), max_size=7).map(
    lambda cases: reduce(StageCase.then, cases, StageCase("|", lambda f: f, lambda s: s))
)
inputs = st.lists(st.integers(-3, 12), max_size=30)
steps = st.lists(st.integers(1, 9), min_size=1, max_size=40)


def with_boundaries(made: Flow[Any]) -> Flow[Any]:
    """A hide() before every second stage."""
    behind: Flow[Any] = Flow(made.source)
    for index, stage in enumerate(made.stages):
        behind = (behind.hide() if index % 2 == 0 else behind).then(stage)
    return behind


UPSTREAMS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "as it is": lambda f: f,
    "hidden": lambda f: f.moved(lambda source: source.hide()),
    "pushing": lambda f: f.moved(Flow),
    "boundaries": with_boundaries,
}
each_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)
several = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def prepared(case: StageCase, items: list[int], upstream: str) -> Flow[Any]:
    return UPSTREAMS[upstream](case.apply(flow.from_iterable(items)))


@each_upstream
@several
@given(case=pipelines, items=inputs)
def test_pulled_pushed_conditional_and_fused_agree_with_lists(
    upstream: str, case: StageCase, items: list[int]
) -> None:
    expected = case.model(items)
    assert list(prepared(case, items, upstream)) == expected
    for subscriber in (
        TestSubscriber[Any](),
        ConditionalTestSubscriber[Any](),
        TestSubscriber[Any](fusion=Fusion.SYNC),
    ):
        prepared(case, items, upstream).subscribe(subscriber)
        subscriber.assert_result(*expected)


@each_upstream
@several
@given(case=pipelines, items=inputs, steps=steps)
def test_demand_in_any_steps_is_met_exactly(
    upstream: str, case: StageCase, items: list[int], steps: list[int]
) -> None:
    expected = case.model(items)
    subscriber = TestSubscriber[Any](0)
    prepared(case, items, upstream).subscribe(subscriber)
    requested = 0
    for step in steps:
        requested += step
        subscriber.request(step)
        subscriber.assert_items(*expected[:requested])
    subscriber.request(UNBOUNDED)
    subscriber.assert_result(*expected)


@each_upstream
@several
@given(case=pipelines, items=inputs, steps=steps)
def test_demand_from_within_on_next_is_met_exactly(
    upstream: str, case: StageCase, items: list[int], steps: list[int]
) -> None:
    expected = case.model(items)
    rest = iter(steps)
    subscriber = TestSubscriber[Any](2, on_item=lambda self, _: self.request(next(rest, 1)))
    prepared(case, items, upstream).subscribe(subscriber)
    subscriber.assert_result(*expected)


@each_upstream
@several
@given(case=pipelines, items=inputs, accepted=st.lists(st.booleans(), max_size=20))
def test_a_conditional_subscriber_gets_what_it_accepts_for_its_demand(
    upstream: str, case: StageCase, items: list[int], accepted: list[bool]
) -> None:
    expected = case.model(items)
    answers = iter(accepted)
    subscriber = ConditionalTestSubscriber[Any](lambda _: next(answers, True), 0)
    prepared(case, items, upstream).subscribe(subscriber)
    kept = [item for i, item in enumerate(expected) if i >= len(accepted) or accepted[i]]
    for count in range(1, len(kept) + 1):
        subscriber.request(1)
        subscriber.assert_items(*kept[:count])
    subscriber.request(1)
    subscriber.assert_result(*kept)
    assert len(subscriber.rejected) == len(expected) - len(kept)


@each_upstream
@several
@given(case=pipelines, items=inputs, count=st.integers(1, 12), steps=steps)
def test_cancel_after_any_item_ends_there(
    upstream: str, case: StageCase, items: list[int], count: int, steps: list[int]
) -> None:
    expected = case.model(items)

    def cancel(subscriber: TestSubscriber[Any], _: object) -> None:
        if len(subscriber.items) == count:
            subscriber.cancel()

    subscriber = TestSubscriber[Any](on_item=cancel)
    prepared(case, items, upstream).subscribe(subscriber)
    subscriber.assert_items(*expected[:count])
    if len(expected) >= count:
        subscriber.assert_silent_after_cancel()
        assert not subscriber.terminated


@each_upstream
@several
@given(case=pipelines, items=inputs, failing=st.integers(0, 30))
def test_an_error_of_the_source_comes_after_the_same_items_in_all_forms(
    upstream: str, case: StageCase, items: list[int], failing: int
) -> None:
    class FailureError(Exception):
        pass

    error = FailureError()

    def source() -> Any:
        for index, item in enumerate(items):
            if index == failing:
                raise error
            yield item

    seen: list[Any] = []
    failure: BaseException | None = None
    try:
        seen.extend(case.apply(flow.from_iterable(source())))
    except FailureError as raised:
        failure = raised
    for fusion in (Fusion.NONE, Fusion.SYNC):
        for request in (UNBOUNDED, 1):
            subscriber = TestSubscriber[Any](
                request,
                fusion=fusion,
                on_item=None if request > 1 or fusion else lambda self, _: self.request(1),
            )
            UPSTREAMS[upstream](case.apply(flow.from_iterable(source()))).subscribe(subscriber)
            while fusion and not subscriber.terminated:
                subscriber.request(1)
            if not subscriber.terminated:
                subscriber.request(1)
            if failure is None:
                subscriber.assert_result(*seen)
            else:
                subscriber.assert_failure(error, *seen)
