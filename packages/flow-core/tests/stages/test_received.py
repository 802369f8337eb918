"""Stages behind a source that pushes, where a function takes the items."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Stage, Template
from flow_core.introspection import Scannable
from flow_core.structure import moved
from flow_testing import STAGE_CASES, StageCase, TestPublisher, TestSubscriber, Violation
from flow_testing.interleave import Scenario, explore_all, step

each_case = pytest.mark.parametrize("case", STAGE_CASES, ids=str)

ITEMS: list[list[Any]] = [[], [1], [1, 1, 2, 3, 3, 3, 1, 7, 7]]


def pushing() -> TestPublisher[Any]:
    """A publisher that does not care how often it is asked."""
    return TestPublisher[Any](Violation.OVERFLOW)


def behind(case: StageCase, source: Flow[Any]) -> Flow[Any]:
    return moved(case.apply(flow.from_iterable([1])), lambda _: source)


def test_it_has_the_names_of_the_stages() -> None:
    seen: list[str] = []

    def caller(n: int) -> int:
        seen.append(sys._getframe(1).f_code.co_qualname)
        return n

    flow.just(1).hide().map(caller).filter(bool).subscribe(TestSubscriber[int]())
    assert seen == ["map|filter"]


@each_case
def test_everything_at_once_gives_what_comes_one_by_one(case: StageCase) -> None:
    for items in ITEMS:
        made = behind(case, flow.from_iterable(items).hide())
        at_once, in_turn = TestSubscriber[Any](), TestSubscriber[Any](0)
        made.subscribe(at_once)
        made.subscribe(in_turn)
        for _ in range(99):
            in_turn.request(1)
        assert repr(at_once.signals) == repr(in_turn.signals)
        at_once.assert_rules_kept()


@each_case
def test_an_upstream_fails_after_all_items(case: StageCase) -> None:
    for items in ITEMS:
        said: list[str] = []
        for request in (UNBOUNDED, 99):
            publisher = pushing()
            subscriber = TestSubscriber[Any](request)
            behind(case, Flow(publisher)).subscribe(subscriber)
            publisher.next(*items)
            publisher.error(LookupError("lost"))
            said.append(repr(subscriber.signals))
        assert said[0] == said[1]


@pytest.mark.parametrize("request_", [UNBOUNDED, 99])
@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(lambda n: n),
        lambda f: f.scan(lambda _, n: n),
        lambda f: f.flat_map_iterable(lambda n: [n]),
        lambda f: f.distinct(),
    ],
)
def test_signals_that_an_upstream_sends_from_within_an_item_come_after_it(
    stages: Callable[[Flow[int]], Flow[int]], request_: int
) -> None:
    publisher = pushing()
    inside = False

    def answer(subscriber: TestSubscriber[int], n: int) -> None:
        nonlocal inside
        assert not inside
        inside = True
        if n in (1, 2):
            publisher.next(10 * n, 10 * n + 1)
        if n == 3:
            publisher.complete()
            subscriber.assert_not_terminated()
        inside = False

    subscriber = TestSubscriber[int](request_, on_item=answer)
    stages(Flow(publisher)).subscribe(subscriber)
    publisher.next(0, 1, 2, 3)
    subscriber.assert_result(0, 1, 10, 11, 2, 20, 21, 3)


def test_items_dropped_of_those_sent_from_within_an_item_are_requested_again() -> None:
    publisher = pushing()

    def answer(_: TestSubscriber[int], n: int) -> None:
        if n == 1:
            publisher.next(2, 3, 4)

    subscriber = TestSubscriber[int](9, on_item=answer)
    Flow[int](publisher).filter(lambda n: n % 2 == 1).subscribe(subscriber)
    publisher.next(0, 1)
    subscriber.assert_items(1, 3)
    publisher.assert_requests(9, 1, 1, 1)


def test_the_remaining_demand_can_be_seen() -> None:
    publisher = pushing()
    subscriber = TestSubscriber[int](9)
    Flow[int](publisher).filter(lambda n: n % 2 == 1).map(lambda n: n).subscribe(subscriber)
    publisher.next(0, 1, 2, 3)
    stages = subscriber.subscription
    assert isinstance(stages, Scannable)
    assert stages.statistics().requested == 7


def test_a_cancel_from_within_ends_what_one_item_becomes() -> None:
    publisher = pushing()
    subscriber = TestSubscriber[int](on_item=lambda s, _: s.cancel())
    Flow(publisher).flat_map_iterable(lambda n: [n] * 3).subscribe(subscriber)
    publisher.next(1)
    subscriber.assert_items(1)
    publisher.assert_cancelled()


def test_a_stage_that_stops_lets_the_later_ones_emit_their_rest() -> None:
    publisher = pushing()
    subscriber = TestSubscriber[list[int]]()
    Flow[int](publisher).take_while(lambda n: n < 4).buffer_with_count(2).subscribe(subscriber)
    publisher.next(1, 2, 3, 4)
    subscriber.assert_result([1, 2], [3])
    publisher.assert_cancelled()


def test_an_error_at_the_end_is_the_error_of_its_stage() -> None:
    subscriber = TestSubscriber[int]()
    made = flow.just(1, 2).hide().take(1).end_with(0).map(lambda n: 1 // n)
    made.subscribe(subscriber)
    subscriber.assert_failure(ZeroDivisionError, 1)
    assert subscriber.error is not None
    (note,) = subscriber.error.__notes__
    assert note.startswith("in stage 3 of 3: map(")


def test_a_function_that_raises_stop_iteration_fails_the_flow() -> None:
    def stop(_: int) -> int:
        raise StopIteration

    subscriber = TestSubscriber[int]()
    flow.just(1).hide().map(stop).subscribe(subscriber)
    subscriber.assert_failure(RuntimeError)
    assert subscriber.error is not None
    assert isinstance(subscriber.error.__cause__, StopIteration)
    assert subscriber.error.__notes__[0].startswith("in stage 1 of 1: map(")


def test_a_template_keeps_assigned_values_for_the_items_that_follow() -> None:
    kept = Template(
        "kept",
        params=("left",),
        on_item="""
        twice: int = 2 * x
        if left:
            left -= 1
            seen = twice
        x = (twice, seen, left)
        EMIT
        """,
        on_end="""
        x = (twice, seen, left)
        EMIT
        """,
    )
    subscriber = TestSubscriber[Any]()
    flow.range(3).hide().pipe(Stage(kept, 2)).subscribe(subscriber)
    subscriber.assert_result((0, 0, 1), (2, 2, 0), (4, 2, 0), (4, 2, 0))


@pytest.mark.interleave
@pytest.mark.parametrize("request_", [UNBOUNDED, 99])
@pytest.mark.parametrize("stages", [lambda f: f.map(lambda n: n), lambda f: f.buffer_with_count(1)])
def test_a_bad_request_of_another_thread_never_overlaps_an_item(
    stages: Callable[[Flow[int]], Flow[Any]], request_: int
) -> None:
    def body() -> Scenario:
        publisher = pushing()
        subscriber = TestSubscriber[Any](request_, on_item=lambda *_: step())
        stages(Flow(publisher)).subscribe(subscriber)

        def check() -> object:
            subscriber.assert_failure(ValueError, *subscriber.items)
            return len(subscriber.items)

        return Scenario(
            lambda: publisher.next(1),
            lambda: subscriber.subscription.request(0),
            outcome=check,
        )

    explore_all(body, modules=["flow_core.serial", "flow_core.stages._pushed"], expect=[0, 1])


@pytest.mark.interleave
def test_an_end_and_a_cancel_at_once_end_it_once() -> None:
    def body() -> Scenario:
        publisher = pushing()
        subscriber = TestSubscriber[int](on_item=lambda *_: step())
        Flow[int](publisher).count().end_with(9).subscribe(subscriber)

        def send() -> None:
            publisher.next(1)
            publisher.complete()

        def check() -> object:
            subscriber.assert_rules_kept()
            return tuple(subscriber.items), subscriber.completed

        return Scenario(send, subscriber.cancel, outcome=check)

    explore_all(
        body,
        modules=["flow_core.serial", "flow_core.stages._pushed"],
        expect=[((), False), ((1,), False), ((1, 9), False), ((1, 9), True)],
    )
