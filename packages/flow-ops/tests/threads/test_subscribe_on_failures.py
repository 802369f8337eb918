"""`subscribe_on` and executors that refuse, drop, or come too late."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.errors import RejectedExecutionError
from flow_ops import cancel_on, subscribe_on
from flow_testing import ENDINGS, Ending, TestPublisher, assert_released, observe


def elsewhere(action: Any) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


@pytest.mark.checklist("O30")
def test_shut_down_before() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(pool)))
    subscriber.assert_failure(RejectedExecutionError)
    source.assert_not_subscribed()


@pytest.mark.checklist("O30", "O31")
def test_shut_down_while_it_runs(dropped: Any) -> None:
    pool = ThreadPoolExecutor(1)
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(pool)), 1)
    pool.submit(int).result()
    source.next(1)
    pool.shutdown()
    subscriber.request(1)
    subscriber.assert_failure(RejectedExecutionError, 1)
    source.assert_cancelled()
    subscription: Any = subscriber.subscription
    assert subscription.statistics().buffered == 0
    assert subscription._handle is None
    assert dropped.errors == []


def test_shut_down_while_it_runs_matters_not_to_requests_from_its_own_thread() -> None:
    pool = ThreadPoolExecutor(1)
    subscriber = observe(
        flow.range(50)
        .hide()
        .do_on_next(lambda _: pool.shutdown(wait=False))
        .pipe(subscribe_on(pool)),
        1,
        on_item=lambda self, _: self.request(1),
    )
    subscriber.await_terminal().assert_result(*range(50))


def test_shut_down_after_the_end() -> None:
    pool = ThreadPoolExecutor(1)
    subscriber = observe(flow.range(3).pipe(subscribe_on(pool))).await_terminal()
    pool.shutdown()
    subscriber.request(1)
    subscriber.cancel()
    subscriber.assert_result(0, 1, 2)


def test_a_task_that_is_dropped_fails_the_flow(pool: Any, blocker: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(pool)))
    pool.shutdown(wait=False, cancel_futures=True)
    subscriber.await_terminal(20).assert_failure(RejectedExecutionError)
    source.assert_not_subscribed()


def test_a_request_that_is_dropped_fails_the_flow(pool: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(pool)), 1)
    pool.submit(int).result()
    go_on = threading.Event()
    pool.submit(go_on.wait, 20)
    subscriber.request(1)
    pool.shutdown(wait=False, cancel_futures=True)
    subscriber.await_terminal(20).assert_failure(RejectedExecutionError)
    go_on.set()
    source.assert_cancelled()
    source.assert_requests(1)


def test_an_executor_that_refuses_a_request_while_an_item_is_delivered(steps: Any) -> None:
    """The error waits until on_next has returned (§1.3); the upstream is cancelled at once."""
    source = TestPublisher[int]()

    def ask(self: Any, _: int) -> None:
        steps.refuses = RuntimeError("closed")
        elsewhere(lambda: self.request(1))
        source.assert_cancelled()
        self.assert_not_terminated()

    subscriber = observe(Flow(source).pipe(subscribe_on(steps)), 2, on_item=ask)
    steps.run()
    source.next(1)
    subscriber.assert_failure(RejectedExecutionError, 1)


# -- cancel


@pytest.mark.checklist("O22", "O24")
def test_a_cancel_before_the_subscription_keeps_it_from_happening(steps: Any) -> None:
    source = TestPublisher[int]()
    observe(Flow(source).pipe(subscribe_on(steps))).cancel()
    steps.run()
    source.assert_not_subscribed()


@pytest.mark.checklist("O24", "O26")
def test_a_cancel_cancels_the_future(pool: Any, blocker: Any, counting: Any) -> None:
    observe(flow.never().pipe(subscribe_on(counting))).cancel()
    assert counting.futures[0].cancelled()


def test_a_cancel_keeps_a_request_from_happening(steps: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(steps)), 1)
    steps.run()
    elsewhere(lambda: subscriber.request(1))
    subscriber.cancel()
    source.assert_cancelled()
    steps.run()
    source.assert_requests(1)


def test_a_cancel_reaches_a_source_that_works(pool: ThreadPoolExecutor) -> None:
    reached = threading.Event()
    made = flow.range(10**9)
    handle = made.do_on_next(lambda _: reached.set()).pipe(subscribe_on(pool)).subscribe(int)
    assert reached.wait(20)
    handle.dispose()
    pool.submit(int).result(20)


def test_a_bad_request_fails_the_subscriber_and_cancels(steps: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(steps)), 0)
    steps.run()
    subscriber.request(-1)
    subscriber.assert_failure(ValueError)
    source.assert_cancelled()


# -- what is kept


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize("make", [subscribe_on, cancel_on])
def test_it_lets_go_of_everything(make: Any, ending: Ending) -> None:
    assert_released(
        lambda payloads: payloads.pushed().pipe(make(lambda task: task())),
        only=lambda name: name == ending.name,
    )


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize("make", [subscribe_on, cancel_on])
def test_on_a_pool_it_lets_go_of_everything(make: Any, ending: Ending) -> None:
    with ThreadPoolExecutor(1) as pool:

        def settle() -> None:
            for _ in range(3):
                pool.submit(int).result()

        assert_released(
            lambda payloads: payloads.pushed().pipe(make(pool)),
            settle=settle,
            only=lambda name: name == ending.name,
        )


def test_a_task_that_was_cancelled_keeps_nothing(steps: Any) -> None:
    assert_released(
        lambda payloads: payloads.pushed().pipe(subscribe_on(steps)),
        only=lambda name: name == "cancelled at once",
    )
    assert len(steps.tasks) == 1
