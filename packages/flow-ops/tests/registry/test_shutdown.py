"""Executors that are shut down before, while and after a flow runs on them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core.errors import RejectedExecutionError
from flow_testing import (
    OperatorCase,
    Surroundings,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
)
from flow_testing.retention import PayloadError

ON_EXECUTOR = {
    "cancel_on",
    "map_concurrent, in threads",
    "observe_on",
    "observe_on, errors overtake",
    "observe_on, prefetch 1",
    "ordered_merge, on an executor",
    "parallel, one rail",
    "parallel, run_on",
    "subscribe_on",
}


def test_the_list_of_operators_on_an_executor_is_complete(cases: Any) -> None:
    assert {name for name, case in cases.items() if "executor" in case.kinds} == ON_EXECUTOR


@pytest.fixture(params=sorted(ON_EXECUTOR))
def on_executor(request: pytest.FixtureRequest, cases: Any) -> Any:
    return cases[request.param]


def test_shut_down_before_it_is_subscribed(on_executor: OperatorCase, dropped: Any) -> None:
    """It fails at once, or works if it needs no executor yet, as cancel_on does."""
    with ThreadPoolExecutor(1) as pool:
        pass
    source = TestPublisher[int](on_request=lambda one, n: one.next(*range(min(n, 9))))
    subscriber = TestSubscriber[Any](3)
    on_executor.apply(flow.Flow(source), Surroundings(pool, VirtualClock())).subscribe(subscriber)
    if on_executor.registered == "cancel_on":
        subscriber.assert_items(0, 1, 2).cancel()
        source.assert_cancelled()
    else:
        subscriber.await_terminal().assert_failure(RejectedExecutionError)
        assert source.cancelled or not source.subscribed
    del dropped


@pytest.mark.parametrize("signal", ["item", "request", "error", "complete"])
def test_shut_down_while_it_runs(
    on_executor: OperatorCase, refusing: Any, dropped: Any, signal: str
) -> None:
    """It fails once, or continues where it needs the executor no more; the source is cancelled."""
    source = TestPublisher[int]()
    subscriber = TestSubscriber[Any](1)
    made = on_executor.apply(flow.Flow(source), Surroundings(refusing, VirtualClock()))
    made.subscribe(subscriber)
    source.next(0)
    before = len(subscriber.items)
    refusing.open = False
    error = PayloadError()
    if signal == "item" and source.outstanding:
        source.next(1)
    elif signal == "request":
        subscriber.request(5)
    elif signal == "error":
        source.error(error)
    elif signal == "complete":
        source.complete()
    subscriber.assert_rules_kept()
    if subscriber.error is not None:
        assert isinstance(subscriber.error, (RejectedExecutionError, PayloadError))
        assert source.cancelled or source.terminated
    assert len(subscriber.items) >= before
    subscriber.cancel()
    assert source.cancelled or source.terminated or on_executor.registered == "cancel_on"
    del dropped


def test_shut_down_afterwards_by_a_pool_that_waits_for_its_tasks(on_executor: OperatorCase) -> None:
    with ThreadPoolExecutor(2) as pool:
        subscriber = TestSubscriber[Any]()
        made = on_executor.apply(flow.range(500), Surroundings(pool, VirtualClock()))
        made.subscribe(subscriber)
        subscriber.await_terminal()
    assert sorted(subscriber.items) == list(range(500))
    assert subscriber.completed


def test_tasks_that_a_shutdown_drops_fail_the_flow(on_executor: OperatorCase, dropped: Any) -> None:
    """``shutdown(cancel_futures=True)`` while its only thread is busy."""
    release, started = threading.Event(), threading.Event()
    pool = ThreadPoolExecutor(1)

    def block() -> None:
        started.set()
        release.wait(20)

    pool.submit(block)
    assert started.wait(20)
    subscriber = TestSubscriber[Any](5)
    made = on_executor.apply(flow.range(9), Surroundings(pool, VirtualClock()))
    made.subscribe(subscriber)
    pool.shutdown(wait=False, cancel_futures=True)
    release.set()
    if on_executor.registered == "cancel_on":
        subscriber.assert_items(*range(5)).cancel()
    else:
        subscriber.await_terminal().assert_failure(RejectedExecutionError)
    pool.shutdown()
    del dropped


def test_map_concurrent_after_its_loop_was_closed() -> None:
    import asyncio

    loop = asyncio.new_event_loop()
    loop.close()

    async def later(n: int) -> int:
        return n

    subscriber = TestSubscriber[int]()
    flow.range(3).pipe(ops.map_concurrent(later, 1, loop=loop)).subscribe(subscriber)
    subscriber.await_terminal()
    assert subscriber.error is not None
