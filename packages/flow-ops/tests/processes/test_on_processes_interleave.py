"""`on_processes` under every schedule within the bound (two preemptions, or more).

Its pool starts a thread for each batch, and these threads are the explorer's.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

import flow_core as flow
from flow_ops import on_processes
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave


def exhaust(body: Body) -> Report:
    return explore_all(
        body, modules=["flow_core.serial", "flow_ops.threads.on_processes", __name__]
    )


class Played(Executor):
    """A pool whose batches run when a thread of the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def run(self) -> None:
        while self.waiting:
            future, task = self.waiting.pop(0)
            if future.set_running_or_notify_cancel():
                future.set_result(task())


def mapped(request: int) -> tuple[Played, TestPublisher[int], TestSubscriber[str]]:
    pool, source = Played(), TestPublisher[int]()
    subscriber = TestSubscriber[str](request, on_item=lambda *_: step())
    flow.Flow(source).pipe(on_processes(pool, concurrency=2)).map(str).subscribe(subscriber)
    return pool, source, subscriber


def test_two_batches_that_end_at_once_keep_their_order() -> None:
    def body() -> Scenario:
        pool, source, subscriber = mapped(9)
        source.next(1, 2)
        source.complete()
        (first, one), (second, two) = pool.waiting
        return Scenario(
            lambda: first.set_result(one()),
            lambda: second.set_result(two()),
            check=lambda: subscriber.assert_result("1", "2"),
        )

    exhaust(body)


def test_a_result_against_a_request_is_not_left_behind() -> None:
    def body() -> Scenario:
        pool, source, subscriber = mapped(0)
        source.next(1)
        source.complete()
        return Scenario(
            pool.run,
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_result("1"),
        )

    exhaust(body)


def test_a_result_against_the_end_of_the_upstream_comes_first() -> None:
    def body() -> Scenario:
        pool, source, subscriber = mapped(9)
        source.next(1)
        return Scenario(pool.run, source.complete, check=lambda: subscriber.assert_result("1"))

    exhaust(body)


def test_a_result_against_a_cancel_leaves_nothing_behind() -> None:
    def body() -> Scenario:
        pool, source, subscriber = mapped(9)
        source.next(1, 2)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            subscription: Any = subscriber.subscription
            assert not subscription._under_way
            assert not subscription._results
            assert subscription._input is None
            assert subscription._permit, "the permit is lost"

        return Scenario(pool.run, subscriber.cancel, check=check)

    exhaust(body)


def test_a_pool_that_breaks_against_an_item_is_one_error() -> None:
    def body() -> Scenario:
        pool, source, subscriber = mapped(9)
        source.next(1)
        broken = RuntimeError("died")
        future, _ = pool.waiting.pop()

        def check() -> None:
            subscriber.assert_failure(broken)
            source.assert_cancelled()
            for late, _ in pool.waiting:
                assert late.cancelled()

        return Scenario(lambda: future.set_exception(broken), lambda: source.next(2), check=check)

    exhaust(body)
