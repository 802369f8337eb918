"""`subscribe_on` and `cancel_on`: where things happen."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_ops import cancel_on, observe_on, subscribe_on
from flow_testing import (
    BAD_SOURCES,
    BadSource,
    PublisherProbe,
    TestPublisher,
    Violation,
    assert_result,
    check_bad_source,
    observe,
)


def here() -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("request_on", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.checklist("O33")
def test_items_are_the_same_inline(request_on: bool, count: int) -> None:
    assert_result(
        lambda: flow.range(count).pipe(subscribe_on(lambda t: t(), request_on=request_on)),
        list(range(count)),
    )


@pytest.mark.parametrize("request_on", [True, False])
def test_items_are_the_same_on_each_kind_of_executor(place: Any, request_on: bool) -> None:
    if request_on:
        assert_result(lambda: flow.range(5).pipe(subscribe_on(place.executor)), list(range(5)))
    made = flow.range(500).hide().pipe(subscribe_on(place.executor, request_on=request_on))
    assert list(made.iterate(prefetch=3)) == list(range(500))


def test_errors_are_the_same(pool: ThreadPoolExecutor, dropped: Any) -> None:
    assert_result(
        lambda: flow.range(3).map(lambda n: 6 // (2 - n)).pipe(subscribe_on(pool)),
        [3, 6],
        ZeroDivisionError,
    )


def test_the_source_is_subscribed_to_and_works_there(pool: ThreadPoolExecutor) -> None:
    subscriptions: list[str] = []

    def source() -> Flow[str]:
        subscriptions.append(here())
        return flow.just("item").map(lambda _: here())

    assert list(flow.defer(source).pipe(subscribe_on(pool))) == ["pool_0"]
    assert subscriptions == ["pool_0"]


def test_on_subscribe_comes_at_once(steps: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(steps)), 0)
    assert subscriber.subscription
    source.assert_not_subscribed()
    steps.run()
    source.assert_subscribed()


def test_demand_from_before_the_task_runs_is_requested_with_it(steps: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(steps)), 2)
    subscriber.request(3)
    assert steps.submitted == 1
    steps.run()
    source.assert_requests(5)


def test_requests_happen_there(pool: ThreadPoolExecutor) -> None:
    places: list[str] = []
    asked = flow.range(9).hide().do_on_request(lambda _: places.append(here()))
    subscriber = observe(asked.pipe(subscribe_on(pool)), 1)
    subscriber.await_items(1)
    subscriber.request(1)
    subscriber.await_items(2)
    assert set(places) == {"pool_0"}
    assert subscriber.threads == {signal.thread for signal in subscriber.signals[1:]}
    subscriber.assert_on_thread("pool")


def test_requests_happen_where_they_are_made_if_that_is_wished(pool: ThreadPoolExecutor) -> None:
    places: list[str] = []
    asked = flow.range(9).hide().do_on_request(lambda _: places.append(here()))
    subscriber = observe(asked.pipe(subscribe_on(pool, request_on=False)), 1)
    subscriber.await_items(1)
    pool.submit(int).result()
    subscriber.request(1)
    assert places == ["pool_0", here()]


def test_a_request_from_the_executors_own_thread_needs_no_task(counting: Any) -> None:
    subscriber = observe(
        flow.range(100).hide().pipe(subscribe_on(counting)),
        1,
        on_item=lambda self, _: self.request(1),
    )
    subscriber.await_terminal().assert_result(*range(100))
    assert len(counting.futures) == 1


def test_requests_that_wait_become_one(steps: Any) -> None:
    """The stepping executor has the test's own thread: so the requests come from another one."""
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(subscribe_on(steps)), 1)
    steps.run()

    def request() -> None:
        subscriber.request(2)
        subscriber.request(3)

    other = threading.Thread(target=request)
    other.start()
    other.join()
    assert len(steps.tasks) == 1
    steps.run()
    source.assert_requests(1, 5)


def test_an_event_loop_is_an_executor() -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        made = flow.range(3).map(lambda _: here()).pipe(subscribe_on(loop.call_soon_threadsafe))
        return [item async for item in made]

    assert asyncio.run(main()) == [here()] * 3


def test_a_million_requests_within_on_next_do_not_nest() -> None:
    subscriber = observe(
        flow.range(20_000).hide().pipe(subscribe_on(lambda task: task())),
        1,
        on_item=lambda self, _: self.request(1),
    )
    subscriber.assert_result(*range(20_000))


def test_with_observe_on_each_side_has_its_thread(pool: ThreadPoolExecutor) -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="other") as other:
        made = (
            flow.range(3)
            .map(lambda n: (n, here()))
            .pipe(subscribe_on(pool))
            .pipe(observe_on(other))
            .map(lambda pair: (*pair, here()))
        )
        assert list(made) == [(n, "pool_0", "other_0") for n in range(3)]


@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
@pytest.mark.parametrize("make", [subscribe_on, cancel_on])
def test_it_keeps_the_rules_behind_a_bad_source(make: Any, bad: BadSource, dropped: Any) -> None:
    check_bad_source(
        lambda source: source.pipe(make(lambda task: task())),
        only=lambda name: name == bad.name,
    )


@pytest.mark.parametrize("make", [subscribe_on, cancel_on])
def test_an_executor_is_needed(make: Any) -> None:
    with pytest.raises(TypeError, match="executor"):
        make(5)
    with pytest.raises(TypeError, match="not its class"):
        make(ThreadPoolExecutor)


# -- cancel_on


def test_cancel_on_passes_everything_else_on(pool: ThreadPoolExecutor) -> None:
    assert_result(lambda: flow.range(5).pipe(cancel_on(pool)), list(range(5)))
    probe = PublisherProbe(flow.range(5).hide())
    subscriber = observe(probe.flow.pipe(cancel_on(pool)), 2)
    subscriber.request(9)
    subscriber.assert_result(*range(5)).assert_on_thread(threading.current_thread())
    probe.assert_requests(2, 9).assert_not_cancelled()


def test_cancel_on_cancels_there(pool: ThreadPoolExecutor) -> None:
    places: list[str] = []
    source = flow.never().do_on_cancel(lambda: places.append(here()))
    observe(source.pipe(cancel_on(pool))).cancel()
    pool.submit(int).result()
    assert places == ["pool_0"]


def test_cancel_on_drops_what_comes_until_then(steps: Any, dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(cancel_on(steps)))
    source.next(1)
    subscriber.cancel()
    source.assert_not_cancelled()
    source.next(2)
    steps.run()
    source.assert_cancelled()
    subscriber.assert_items(1).assert_silent_after_cancel()
    assert dropped.items == [2]


def test_cancel_on_cancels_a_second_subscription_too(steps: Any) -> None:
    source = TestPublisher[int](Violation.SECOND_SUBSCRIPTION)
    subscriber = observe(Flow(source).pipe(cancel_on(steps)), 1)
    steps.run()
    source.assert_requests(1).assert_not_cancelled()
    assert source.second is not None
    assert source.second.cancelled
    source.next(1)
    subscriber.assert_items(1)


@pytest.mark.checklist("O30")
def test_cancel_on_cancels_inline_if_the_executor_refuses(steps: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(cancel_on(steps)))
    steps.refuses = RuntimeError("closed")
    subscriber.cancel()
    source.assert_cancelled()


def test_cancel_on_cancels_if_the_executor_drops_the_task(blocker: Any, pool: Any) -> None:
    cancelled = threading.Event()
    source = flow.never().do_on_cancel(cancelled.set)
    observe(source.pipe(cancel_on(pool))).cancel()
    assert not cancelled.is_set()
    pool.shutdown(wait=False, cancel_futures=True)
    assert cancelled.wait(20)


def test_a_flow_that_ends_by_itself_is_not_cancelled(steps: Any) -> None:
    source = TestPublisher[int]()
    observe(Flow(source).pipe(cancel_on(steps)))
    source.complete()
    assert steps.submitted == 0
    source.assert_not_cancelled()
