"""`subscribe_on` and `cancel_on` under every schedule within the bound.

The executor starts a thread for each task, and these threads are the explorer's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import pytest

from flow_core import Flow
from flow_core.errors import RejectedExecutionError
from flow_ops import cancel_on, subscribe_on
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import (
    Body,
    Report,
    Scenario,
    explore_all,
    step,
    thread_per_task,
)

pytestmark = [
    pytest.mark.interleave,
    pytest.mark.essential,
    pytest.mark.usefixtures("dropped"),
]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(
        body,
        modules=["flow_core.serial", "flow_core.executors", "flow_ops", __name__],
        expect=expect,
    )


class Tasks:
    """An executor: inline first, then whatever the test says."""

    def __init__(self) -> None:
        self.execute: Callable[[Callable[[], object]], object] = lambda task: task()

    def __call__(self, task: Callable[[], object]) -> None:
        self.execute(task)


def refuse(_: Callable[[], object]) -> None:
    raise RuntimeError("closed")


def running(source: TestPublisher[int], request: int, execute: Any) -> TestSubscriber[int]:
    """A flow that was subscribed to inline, with an executor that does otherwise from now on.

    The thread that has subscribed is the executor's: so requests come from other threads.
    """
    tasks = Tasks()
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    Flow(source).pipe(subscribe_on(tasks)).subscribe(subscriber)
    tasks.execute = execute
    return subscriber


@pytest.mark.checklist("O24", "O28")
def test_a_cancel_against_the_subscription() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = TestSubscriber[int](1)
        flowing = Flow(source).pipe(subscribe_on(thread_per_task))

        def outcome() -> Hashable:
            subscriber.assert_rules_kept().assert_not_terminated()
            subscription: Any = subscriber.subscription
            assert subscription._handle is None
            assert not source.subscribed or source.cancelled
            return source.subscribed

        return Scenario(lambda: flowing.subscribe(subscriber), subscriber.cancel, outcome=outcome)

    exhaust(body, {0, 1})


def test_a_request_against_the_subscription() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = TestSubscriber[int](1)
        flowing = Flow(source).pipe(subscribe_on(thread_per_task))

        def check() -> None:
            assert source.requested == 3
            subscription: Any = subscriber.subscription
            assert subscription._handle is None
            assert not subscription._is_pending

        return Scenario(
            lambda: flowing.subscribe(subscriber), lambda: subscriber.request(2), check=check
        )

    exhaust(body)


@pytest.mark.checklist("O25", "O29")
def test_two_requests_at_once_add_up() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = running(source, 0, thread_per_task)

        def check() -> None:
            assert source.requested == 3
            subscription: Any = subscriber.subscription
            assert subscription._handle is None

        return Scenario(lambda: subscriber.request(1), lambda: subscriber.request(2), check=check)

    exhaust(body)


@pytest.mark.checklist("O25", "O27")
def test_a_request_against_a_cancel_leaves_no_handle() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = running(source, 0, thread_per_task)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            subscription: Any = subscriber.subscription
            assert subscription._handle is None
            assert subscription._main is None
            assert subscription._permit, "the permit is lost"

        return Scenario(lambda: subscriber.request(1), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("O30", "O31")
def test_a_rejection_against_items_and_the_end() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = running(source, 5, refuse)

        def send() -> None:
            source.next(1)
            source.complete()

        def outcome() -> Hashable:
            if not subscriber.completed:
                subscriber.assert_failure(RejectedExecutionError, *subscriber.items)
                assert source.cancelled or source.terminated
            subscriber.assert_rules_kept()
            return tuple(subscriber.items), subscriber.completed

        return Scenario(send, lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, {((), False), ((1,), False), ((1,), True)})


def test_two_rejections_are_one_error() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = running(source, 1, refuse)

        def check() -> None:
            subscriber.assert_failure(RejectedExecutionError)
            source.assert_cancelled()

        return Scenario(lambda: subscriber.request(1), lambda: subscriber.request(1), check=check)

    exhaust(body)


def test_a_rejection_against_a_cancel() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = running(source, 1, refuse)

        def check() -> None:
            subscriber.assert_rules_kept()
            source.assert_cancelled()
            assert source.cancels == 1

        return Scenario(lambda: subscriber.request(1), subscriber.cancel, check=check)

    exhaust(body)


def test_cancel_on_cancels_once_whatever_happens_meanwhile() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = TestSubscriber[int](5, on_item=lambda *_: step())
        Flow(source).pipe(cancel_on(thread_per_task)).subscribe(subscriber)

        def send() -> None:
            source.next(1)
            source.complete()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert source.terminated or source.cancels == 1

        return Scenario(send, subscriber.cancel, check=check)

    exhaust(body)
