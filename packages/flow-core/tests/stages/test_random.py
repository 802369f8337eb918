"""Random flows give what plain Python makes of the same list, in whatever form they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Fusion, structure
from flow_core.structure import source_of, stages_of
from flow_testing import (
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
    behind: Flow[Any] = Flow(source_of(made))
    for index, stage in enumerate(stages_of(made)):
        behind = (behind.hide() if index % 2 == 0 else behind).pipe(stage)
    return behind


UPSTREAMS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "as it is": lambda f: f,
    "hidden": lambda f: structure.moved(f, lambda source: source.hide()),
    "pushing": lambda f: structure.moved(f, Flow),
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


# -- failures on the way, what recovers from them, and what hears of the end


class MapperError(Exception):
    """The exception with which a function in a random flow fails."""


class Source:
    """A generator function as an iterable, that counts what it has opened and closed."""

    def __init__(self, items: list[int], failing: int | None = None) -> None:
        self._items = items
        self._failing = failing
        self.opened = 0
        self.closed = 0

    def __iter__(self) -> Iterator[int]:
        self.opened += 1
        try:
            for index, item in enumerate(self._items):
                if index == self._failing:
                    raise MapperError
                yield item
            if self._failing is not None and self._failing >= len(self._items):
                raise MapperError
        finally:
            self.closed += 1


def failing_at(count: int) -> Callable[[Flow[Any]], Flow[Any]]:
    """A mapper that fails with the item after the first `count` ones of a run."""

    def stage(made: Flow[Any]) -> Flow[Any]:
        def mapper(item: Any, index: int) -> Any:
            if index == count:
                raise MapperError
            return item

        return made.map_indexed(mapper)

    return stage


RECOVERING: list[Callable[[Flow[Any]], Flow[Any]]] = [
    lambda f: f.on_error_return(-1),
    lambda f: f.on_error_return(-1, KeyError),
    lambda f: f.on_error_complete(),
    lambda f: f.on_error_map(lambda error: ValueError()),
    lambda f: f.on_error_complete(ValueError),
    lambda f: f.do_on_error(lambda error: None),
    lambda f: f.checkpoint(),
    lambda f: f.start_with(-2, -3),
    lambda f: f.end_with(-4),
    lambda f: f.take(4),
    lambda f: f.take_while(lambda n: n != 5),
    lambda f: f.zip_with_iterable(range(6), lambda a, b: a),
    lambda f: f.flat_map_iterable(lambda n: [n, n]),
    lambda f: f.filter(lambda n: n % 3 != 0),
    lambda f: f.sum(),
    lambda f: f.take_last(2),
    lambda f: f.hide(),
    lambda f: f.materialize().dematerialize(),
    *(failing_at(count) for count in range(4)),
]
stages = st.lists(st.sampled_from(RECOVERING), max_size=8)
failings = st.none() | st.integers(0, 6)


def watched(
    chosen: list[Callable[[Flow[Any]], Flow[Any]]], source: Source, ended: list[int], upstream: str
) -> Flow[Any]:
    """The flow, with a finally_action behind the source and behind every stage."""
    made: Flow[Any] = flow.from_iterable(source)
    made = UPSTREAMS[upstream](made.finally_action(lambda: ended.append(0)))
    for index, stage in enumerate(chosen, 1):
        made = stage(made).finally_action(lambda index=index: ended.append(index))
    return made


def outcome(
    run: Callable[[Flow[Any]], tuple[list[Any], type[BaseException] | None]],
    chosen: list[Callable[[Flow[Any]], Flow[Any]]],
    source: Source,
    upstream: str,
) -> tuple[list[Any], type[BaseException] | None]:
    ended: list[int] = []
    result = run(watched(chosen, source, ended, upstream))
    assert sorted(ended) == list(range(len(chosen) + 1))
    assert source.closed == source.opened
    return result


def pulled(made: Flow[Any]) -> tuple[list[Any], type[BaseException] | None]:
    items: list[Any] = []
    try:
        items.extend(made)
    except (MapperError, ValueError) as error:
        return items, type(error)
    return items, None


def subscribed(
    fusion: Fusion = Fusion.NONE, *, conditional: bool = False, one_by_one: bool = False
) -> Callable[[Flow[Any]], tuple[list[Any], type[BaseException] | None]]:
    def run(made: Flow[Any]) -> tuple[list[Any], type[BaseException] | None]:
        request = 1 if one_by_one else UNBOUNDED
        subscriber: TestSubscriber[Any]
        if conditional:
            subscriber = ConditionalTestSubscriber[Any](request=request)
        else:
            subscriber = TestSubscriber[Any](request, fusion=fusion)
        made.subscribe(subscriber)
        while not subscriber.terminated:
            subscriber.request(1)
        subscriber.assert_rules_kept()
        return subscriber.items, None if subscriber.error is None else type(subscriber.error)

    return run


@pytest.mark.slow
@each_upstream
@several
@given(chosen=stages, items=inputs, failing=failings)
def test_failures_are_recovered_from_alike_in_all_forms_and_all_is_closed_once(
    upstream: str,
    chosen: list[Callable[[Flow[Any]], Flow[Any]]],
    items: list[int],
    failing: int | None,
) -> None:
    expected = outcome(subscribed(), chosen, Source(items, failing), upstream)
    for run in (
        pulled,
        subscribed(one_by_one=True),
        subscribed(conditional=True),
        subscribed(Fusion.SYNC),
        subscribed(Fusion.SYNC, one_by_one=True),
        subscribed(Fusion.ANY, one_by_one=True),
    ):
        assert outcome(run, chosen, Source(items, failing), upstream) == expected


@each_upstream
@several
@given(
    chosen=stages,
    items=inputs,
    failing=failings,
    count=st.integers(0, 6),
    fusion=st.sampled_from([Fusion.NONE, Fusion.SYNC, Fusion.ANY]),
    within=st.booleans(),
)
def test_a_cancelled_flow_closes_its_source_and_all_stages_once(
    upstream: str,
    chosen: list[Callable[[Flow[Any]], Flow[Any]]],
    items: list[int],
    failing: int | None,
    count: int,
    fusion: Fusion,
    within: bool,
) -> None:
    """Within on_next, or from outside after a number of items; before the first one, too."""
    source = Source(items, failing)
    ended: list[int] = []

    def on_item(subscriber: TestSubscriber[Any], _: object) -> None:
        if within and len(subscriber.items) == count:
            subscriber.cancel()

    subscriber = TestSubscriber[Any](0, fusion=fusion, on_item=on_item)
    watched(chosen, source, ended, upstream).subscribe(subscriber)
    for _ in range(count):
        subscriber.request(1)
    subscriber.cancel()
    assert sorted(ended) == list(range(len(chosen) + 1))
    assert source.closed == source.opened
    subscriber.assert_rules_kept()
    subscriber.request(5)
    assert len(subscriber.items) <= count


@each_upstream
@several
@given(chosen=stages, items=inputs, failing=failings, count=st.integers(1, 6))
def test_an_iteration_that_is_left_closes_its_source_and_all_stages_once(
    upstream: str,
    chosen: list[Callable[[Flow[Any]], Flow[Any]]],
    items: list[int],
    failing: int | None,
    count: int,
) -> None:
    source = Source(items, failing)
    ended: list[int] = []
    iterator = iter(watched(chosen, source, ended, upstream))
    try:
        for _ in range(count):
            next(iterator)
    except (StopIteration, MapperError, ValueError):
        pass
    close = getattr(iterator, "close")  # noqa: B009 - an Iterator that is a generator
    close()
    assert sorted(ended) == list(range(len(chosen) + 1))
    assert source.closed == source.opened
