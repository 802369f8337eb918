"""`map_concurrent` in threads under every schedule within the bound: each is the explorer's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_ops import map_concurrent
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import (
    Body,
    Report,
    Scenario,
    explore_all,
    step,
    thread_per_task,
)

pytestmark = [pytest.mark.interleave, pytest.mark.usefixtures("dropped")]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(
        body,
        modules=["flow_core.serial", "flow_core.executors", "flow_ops.concurrency", __name__],
        expect=expect,
    )


class Tasks:
    """An executor whose tasks wait until the test runs them."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []

    def __call__(self, task: Callable[[], object]) -> None:
        self.waiting.append(task)


def mapped(
    executor: Any, request: int, function: Callable[[int], int] = lambda n: 10 * n, **more: Any
) -> tuple[TestPublisher[int], TestSubscriber[int]]:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    operator = map_concurrent(function, 2, executor=executor, **more)
    flow.Flow(source).pipe(operator).subscribe(subscriber)
    return source, subscriber


def let_go(subscription: Any) -> None:
    assert not subscription.running
    assert not subscription._over
    assert subscription.items is None
    assert subscription._downstream is None
    assert subscription._permit, "the permit is lost"


@pytest.mark.parametrize("ordered", [True, False])
def test_two_that_end_at_once_are_both_given(ordered: bool) -> None:
    def body() -> Scenario:
        tasks = Tasks()
        source, subscriber = mapped(tasks, 9, ordered=ordered)
        source.next(1, 2)
        source.complete()

        def outcome() -> Hashable:
            subscriber.assert_result(*subscriber.items)
            return tuple(subscriber.items)

        return Scenario(*tasks.waiting, outcome=outcome)

    exhaust(body, expect={(10, 20)} if ordered else {(10, 20), (20, 10)})


@pytest.mark.parametrize("ordered", [True, False])
def test_items_that_come_while_threads_work_have_their_turn(ordered: bool) -> None:
    def body() -> Scenario:
        source, subscriber = mapped(thread_per_task, 9, ordered=ordered)

        def send() -> None:
            source.next(1, 2)
            source.complete()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert sorted(subscriber.items) == [10, 20]
            assert subscriber.completed

        return Scenario(send, check=check)

    exhaust(body)


def test_a_request_against_the_end_of_a_function_loses_nothing() -> None:
    def body() -> Scenario:
        tasks = Tasks()
        source, subscriber = mapped(tasks, 0)
        source.next(1)
        source.complete()
        return Scenario(
            tasks.waiting[0],
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_result(10),
        )

    exhaust(body)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_cancel_against_the_end_of_two_functions_leaves_nothing_behind(ordered: bool) -> None:
    def body() -> Scenario:
        tasks = Tasks()
        source, subscriber = mapped(tasks, 9, ordered=ordered)
        subscription: Any = subscriber.subscription
        source.next(1, 2)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            let_go(subscription)

        return Scenario(*tasks.waiting, subscriber.cancel, check=check)

    exhaust(body)


def test_a_failure_that_races_another_result_comes_in_its_order() -> None:
    def body() -> Scenario:
        tasks = Tasks()
        source, subscriber = mapped(tasks, 9, lambda n: n // (2 - n))
        subscription: Any = subscriber.subscription
        source.next(1, 2)

        def check() -> None:
            subscriber.assert_failure(ZeroDivisionError, 1)
            source.assert_cancelled()
            let_go(subscription)

        return Scenario(*tasks.waiting, check=check)

    exhaust(body)


def test_the_end_of_the_upstream_against_the_last_function() -> None:
    def body() -> Scenario:
        tasks = Tasks()
        source, subscriber = mapped(tasks, 9)
        source.next(1)
        return Scenario(
            tasks.waiting[0], source.complete, check=lambda: subscriber.assert_result(10)
        )

    exhaust(body)


def test_statistics_can_be_read_while_another_thread_works() -> None:
    def body() -> Scenario:
        tasks = Tasks()
        source, subscriber = mapped(tasks, 0)
        subscription: Any = subscriber.subscription
        source.next(1)
        told: list[int] = []
        return Scenario(
            tasks.waiting[0],
            lambda: told.append(subscription.statistics().buffered),
            outcome=lambda: told[0],
        )

    exhaust(body, expect={0, 1})
