"""The Reactive Streams rules, tried on all that this package registers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core.clocks import Clock
from flow_core.protocols import Disposable, Publisher
from flow_core.testing import VirtualClock
from flow_core.testing.tck import (
    OperatorRecipe,
    OperatorsAsSubscribersVerification,
    OperatorsVerification,
    OperatorVerification,
    SourceRecipe,
    SourcesVerification,
    without_recipe,
)
from flow_ops import (
    Backoff,
    amb,
    amb_with,
    and_then,
    buffer_boundary,
    buffer_toggle,
    buffer_when,
    buffer_with_time,
    buffer_with_time_or_count,
    cancel_on,
    combine_latest,
    concat,
    concat_map,
    concat_map_eager,
    concat_with,
    debounce,
    delay,
    delay_elements,
    delay_subscription,
    delay_until,
    delay_with_mapper,
    expand,
    filter_when,
    flat_map,
    fork_join,
    group_by,
    interval,
    interval_range,
    map_async,
    map_when,
    merge,
    merge_all,
    merge_sequential,
    merge_with,
    observe_on,
    on_backpressure_buffer,
    on_backpressure_drop,
    on_backpressure_error,
    on_backpressure_latest,
    on_backpressure_reduce,
    on_error_resume,
    on_processes,
    ordered_merge,
    parallel,
    rebatch_requests,
    repeat,
    repeat_until,
    repeat_when,
    retry,
    retry_when,
    sample,
    sequence_equal,
    skip_last_with_time,
    skip_until_other,
    skip_until_with_time,
    skip_with_time,
    start_with_flows,
    subscribe_on,
    switch_if_empty,
    switch_latest,
    switch_map,
    switch_on_first,
    take_last_with_time,
    take_until_other,
    take_until_with_time,
    take_with_time,
    throttle_first,
    throttle_last,
    throttle_latest,
    time_interval,
    timeout,
    timer,
    timestamp,
    window_boundary,
    window_toggle,
    window_when,
    window_with_count,
    window_with_time,
    window_with_time_or_count,
    with_latest_from,
    zip_with,
)
from flow_ops import zip as zip_flows

pytestmark = [pytest.mark.tck, pytest.mark.usefixtures("dropped")]


class _Haste(Clock):
    """A clock whose time has passed whenever somebody looks, and whenever somebody waits."""

    def __init__(self) -> None:
        self._passed_s = 0.0

    def now(self) -> float:
        self._passed_s += 2
        return self._passed_s

    def schedule(self, delay_s: float, task: Any, /) -> Disposable:
        self._passed_s += delay_s
        task()
        return VirtualClock().schedule(0, int)

    def schedule_periodically(self, delay_s: float, period_s: float, task: Any, /) -> Disposable:
        raise NotImplementedError


HASTE = _Haste()
CLOCK = VirtualClock()
"""Stands still."""

LOOP = asyncio.new_event_loop()
"""Runs in a thread of its own."""

RECIPES = (
    OperatorRecipe("observe_on", lambda upstream: upstream.pipe(observe_on(_inline))),
    OperatorRecipe(
        "observe_on, prefetch 1", lambda upstream: upstream.pipe(observe_on(_inline, prefetch=1))
    ),
    OperatorRecipe(
        "observe_on, errors overtake",
        lambda upstream: upstream.pipe(observe_on(_inline, delay_error=False)),
    ),
    OperatorRecipe("concat_map", lambda upstream: upstream.pipe(concat_map(flow.just))),
    OperatorRecipe(
        "concat_map of hidden flows",
        lambda upstream: upstream.pipe(concat_map(lambda n: flow.just(n).hide())),
    ),
    OperatorRecipe("flat_map", lambda upstream: upstream.pipe(flat_map(flow.just))),
    OperatorRecipe(
        "flat_map of hidden flows",
        lambda upstream: upstream.pipe(flat_map(lambda n: flow.just(n).hide())),
    ),
    OperatorRecipe("concat_map_eager", lambda upstream: upstream.pipe(concat_map_eager(flow.just))),
    OperatorRecipe(
        "concat_map_eager of hidden flows",
        lambda upstream: upstream.pipe(concat_map_eager(lambda n: flow.just(n).hide())),
    ),
    OperatorRecipe(
        "delay_until", lambda upstream: upstream.pipe(delay_until(lambda _: flow.range(2)))
    ),
    OperatorRecipe("expand", lambda upstream: upstream.pipe(expand(lambda _: flow.empty()))),
    OperatorRecipe(
        "expand, depth first",
        lambda upstream: upstream.pipe(expand(lambda _: flow.empty(), depth_first=True)),
    ),
    OperatorRecipe(
        "filter_when", lambda upstream: upstream.pipe(filter_when(lambda _: flow.just(True)))
    ),
    OperatorRecipe("map_when", lambda upstream: upstream.pipe(map_when(flow.just))),
    OperatorRecipe("merge_with", lambda upstream: upstream.pipe(merge_with(flow.empty()))),
    OperatorRecipe("merge_all", lambda upstream: upstream.map(flow.just).pipe(merge_all())),
    OperatorRecipe(
        "skip_until_other", lambda upstream: upstream.pipe(skip_until_other(flow.just("go")))
    ),
    OperatorRecipe(
        "take_until_other", lambda upstream: upstream.pipe(take_until_other(flow.never()))
    ),
    OperatorRecipe("parallel", lambda upstream: upstream.pipe(parallel(1)).sequential()),
    OperatorRecipe(
        "parallel, two rails",
        lambda upstream: upstream.pipe(parallel(2, prefetch=4)).sequential(prefetch=2),
    ),
    OperatorRecipe(
        "on_processes", lambda upstream: upstream.pipe(on_processes(_Inline())).map(int)
    ),
    OperatorRecipe(
        "map_async",
        lambda upstream: upstream.pipe(map_async(_later, concurrency=4, loop=LOOP)),
        facts={"synchronous": False, "chain": 200},
        settle=lambda: asyncio.run_coroutine_threadsafe(_turns(20), LOOP).result(),
    ),
    OperatorRecipe("amb_with", lambda upstream: upstream.pipe(amb_with(flow.never()))),
    OperatorRecipe(
        "with_latest_from", lambda upstream: upstream.pipe(with_latest_from(flow.just("x")))
    ),
    OperatorRecipe("zip_with", lambda upstream: upstream.pipe(zip_with(flow.range(10**9)))),
    OperatorRecipe(
        "zip_with a hidden flow",
        lambda upstream: upstream.pipe(zip_with(flow.range(10**9).hide(), prefetch=4)),
    ),
    OperatorRecipe("and_then", lambda upstream: flow.empty().pipe(and_then(upstream))),
    OperatorRecipe("concat_with", lambda upstream: upstream.pipe(concat_with(flow.empty()))),
    OperatorRecipe(
        "concat_with a hidden flow",
        lambda upstream: flow.empty().hide().pipe(concat_with(upstream, flow.empty())),
    ),
    OperatorRecipe(
        "on_error_resume", lambda upstream: upstream.pipe(on_error_resume(flow.never(), KeyError))
    ),
    OperatorRecipe("repeat", lambda upstream: upstream.pipe(repeat(1))),
    OperatorRecipe("repeat_until", lambda upstream: upstream.pipe(repeat_until(lambda: True))),
    OperatorRecipe(
        "repeat_when", lambda upstream: upstream.pipe(repeat_when(lambda runs: runs.take(1)))
    ),
    OperatorRecipe("retry", lambda upstream: upstream.pipe(retry(2, when=KeyError))),
    OperatorRecipe(
        "retry_when", lambda upstream: upstream.pipe(retry_when(Backoff(1, when=KeyError)))
    ),
    OperatorRecipe(
        "retry_when with a handler",
        lambda upstream: upstream.pipe(retry_when(lambda errors: errors.map(_reraised))),
    ),
    OperatorRecipe(
        "start_with_flows", lambda upstream: upstream.pipe(start_with_flows(flow.empty()))
    ),
    OperatorRecipe(
        "switch_if_empty", lambda upstream: flow.empty().pipe(switch_if_empty(upstream))
    ),
    OperatorRecipe(
        "debounce",
        lambda upstream: upstream.pipe(debounce(0, clock=CLOCK)),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "debounce by flows",
        lambda upstream: upstream.pipe(debounce(lambda _: flow.never())),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "delay",
        lambda upstream: upstream.pipe(delay(1, clock=HASTE)),
    ),
    OperatorRecipe(
        "delay_elements",
        lambda upstream: upstream.pipe(delay_elements(1, clock=HASTE)),
        facts={"chain": 5_000},
    ),
    OperatorRecipe(
        "delay_subscription", lambda upstream: upstream.pipe(delay_subscription(flow.just("go")))
    ),
    OperatorRecipe(
        "delay_with_mapper",
        lambda upstream: upstream.pipe(delay_with_mapper(lambda _: flow.empty())),
    ),
    OperatorRecipe(
        "sample",
        lambda upstream: upstream.pipe(sample(10**9, emit_last=True, clock=CLOCK)),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "skip_last_with_time",
        lambda upstream: upstream.pipe(skip_last_with_time(0, clock=CLOCK)),
    ),
    OperatorRecipe(
        "skip_until_with_time",
        lambda upstream: upstream.pipe(skip_until_with_time(10**9, clock=HASTE)),
    ),
    OperatorRecipe(
        "skip_with_time",
        lambda upstream: upstream.pipe(skip_with_time(1, clock=HASTE)),
    ),
    OperatorRecipe(
        "take_last_with_time",
        lambda upstream: upstream.pipe(take_last_with_time(10**9, clock=CLOCK)),
    ),
    OperatorRecipe(
        "take_until_with_time",
        lambda upstream: upstream.pipe(take_until_with_time(10**9, clock=CLOCK)),
    ),
    OperatorRecipe(
        "take_with_time", lambda upstream: upstream.pipe(take_with_time(10**9, clock=CLOCK))
    ),
    OperatorRecipe(
        "throttle_first", lambda upstream: upstream.pipe(throttle_first(1, clock=HASTE))
    ),
    OperatorRecipe(
        "throttle_last",
        lambda upstream: upstream.pipe(throttle_last(flow.never(), emit_last=True)),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "throttle_latest",
        lambda upstream: upstream.pipe(throttle_latest(10**9, emit_last=True, clock=CLOCK)),
        facts={"max_items": 1},
    ),
    OperatorRecipe("time_interval", lambda upstream: upstream.pipe(time_interval(clock=CLOCK))),
    OperatorRecipe("timeout", lambda upstream: upstream.pipe(timeout(10**9, clock=CLOCK))),
    OperatorRecipe(
        "timeout by flows",
        lambda upstream: upstream.pipe(timeout(selector=lambda _: flow.never(), clock=CLOCK)),
    ),
    OperatorRecipe(
        "timeout, the fallback",
        lambda upstream: flow.never().pipe(
            timeout(selector=flow.just, first=1, fallback=upstream, clock=HASTE)
        ),
    ),
    OperatorRecipe("timestamp", lambda upstream: upstream.pipe(timestamp(clock=CLOCK))),
    OperatorRecipe(
        "on_backpressure_buffer", lambda upstream: upstream.pipe(on_backpressure_buffer(100_000))
    ),
    OperatorRecipe(
        "on_backpressure_buffer, timed",
        lambda upstream: upstream.pipe(on_backpressure_buffer(100_000, timeout=60.0, clock=CLOCK)),
    ),
    OperatorRecipe("rebatch_requests", lambda upstream: upstream.pipe(rebatch_requests(4))),
    OperatorRecipe("subscribe_on", lambda upstream: upstream.pipe(subscribe_on(_inline))),
    OperatorRecipe("cancel_on", lambda upstream: upstream.pipe(cancel_on(_inline))),
    OperatorRecipe(
        "switch_on_first", lambda upstream: upstream.pipe(switch_on_first(lambda _, whole: whole))
    ),
    OperatorRecipe(
        "on_backpressure_latest",
        lambda upstream: upstream.pipe(on_backpressure_latest()),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "on_backpressure_reduce",
        lambda upstream: upstream.pipe(on_backpressure_reduce(max)),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "switch_map",
        lambda upstream: flow.just(0).hide().pipe(switch_map(lambda _: upstream)),
    ),
    OperatorRecipe(
        "switch_latest",
        lambda upstream: flow.just(flow.never(), upstream).pipe(switch_latest()),
    ),
    OperatorRecipe(  # what is not requested yet is lost: see tests/demand
        "on_backpressure_drop",
        lambda upstream: upstream.pipe(on_backpressure_drop()),
        facts={"max_items": 0},
    ),
    OperatorRecipe(
        "on_backpressure_error",
        lambda upstream: upstream.pipe(on_backpressure_error()),
        facts={"max_items": 0},
    ),
    OperatorRecipe(
        "group_by",
        lambda upstream: upstream.pipe(group_by(lambda _: 0)).pipe(flat_map(lambda one: one)),
    ),
    OperatorRecipe(
        "group_by, each item a group",
        lambda upstream: upstream.pipe(group_by(lambda n: n, prefetch=1)).pipe(
            flat_map(lambda one: one.take(1))
        ),
    ),
    OperatorRecipe(
        "group_by, the groups",
        lambda upstream: upstream.pipe(group_by(lambda n: n)),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "window_with_count",
        lambda upstream: upstream.pipe(window_with_count(3)).pipe(concat_map(lambda one: one)),
    ),
    OperatorRecipe(
        "window_with_count, overlapping",
        lambda upstream: upstream.pipe(window_with_count(2, 1)).pipe(
            flat_map(lambda one: one.take(1))
        ),
    ),
    OperatorRecipe(
        "window_with_time",
        lambda upstream: upstream.pipe(window_with_time(60, clock=CLOCK)).pipe(
            concat_map(lambda one: one)
        ),
    ),
    OperatorRecipe(
        "window_with_time_or_count",
        lambda upstream: upstream.pipe(window_with_time_or_count(60, 1, clock=CLOCK)).pipe(
            concat_map(lambda one: one)
        ),
    ),
    OperatorRecipe(
        "window_boundary",
        lambda upstream: upstream.pipe(window_boundary(flow.never())).pipe(
            concat_map(lambda one: one)
        ),
    ),
    OperatorRecipe(
        "window_toggle",
        lambda upstream: upstream.pipe(
            window_toggle(flow.just(1).pipe(concat_with(flow.never())), lambda _: flow.never())
        ).pipe(concat_map(lambda one: one)),
    ),
    OperatorRecipe(
        "window_when",
        lambda upstream: upstream.pipe(window_when(flow.never)).pipe(concat_map(lambda one: one)),
    ),
    OperatorRecipe(
        "buffer_with_time_or_count",
        lambda upstream: upstream.pipe(buffer_with_time_or_count(60, 1, clock=CLOCK)),
    ),
    OperatorRecipe(
        "buffer_with_time",
        lambda upstream: upstream.pipe(buffer_with_time(60, clock=CLOCK)),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "buffer_boundary",
        lambda upstream: upstream.pipe(buffer_boundary(flow.never())),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "buffer_toggle",
        lambda upstream: upstream.pipe(buffer_toggle(flow.just(1), lambda _: flow.never())),
        facts={"max_items": 1},
    ),
    OperatorRecipe(
        "buffer_when",
        lambda upstream: upstream.pipe(buffer_when(flow.never)),
        facts={"max_items": 1},
    ),
)
"""One line for each operator that can run in the thread of the test."""

SOURCES = (
    SourceRecipe(
        "merge",
        create=lambda count: merge(flow.range(count // 2), flow.range(count // 2, count)),
        fail=lambda error: merge(flow.never(), flow.error(error)),
    ),
    SourceRecipe(
        "merge_sequential",
        create=lambda count: merge_sequential(
            flow.range(count // 2), flow.range(count // 2, count)
        ),
        fail=lambda error: merge_sequential(flow.never(), flow.error(error)),
    ),
    SourceRecipe(
        "amb",
        create=lambda count: amb(flow.never(), flow.range(count)),
        fail=lambda error: amb(flow.never(), flow.error(error)),
    ),
    SourceRecipe(
        "combine_latest",
        create=lambda count: combine_latest(flow.just("x"), flow.range(count)),
        fail=lambda error: combine_latest(flow.never(), flow.error(error)),
    ),
    SourceRecipe(
        "fork_join",
        create=lambda count: fork_join(flow.just("x"), flow.range(count)),
        fail=lambda error: fork_join(flow.never(), flow.error(error)),
        facts={"max_items": 1},
    ),
    SourceRecipe(
        "ordered_merge",
        create=lambda count: ordered_merge(flow.range(0, count, 2), flow.range(1, count, 2)),
        fail=lambda error: ordered_merge(flow.never(), flow.error(error)),
    ),
    SourceRecipe(
        "ordered_merge on an executor",
        create=lambda count: ordered_merge(
            flow.range(0, count, 2), flow.range(1, count, 2), executor=_inline
        ),
        fail=lambda error: ordered_merge(flow.never(), flow.error(error), executor=_inline),
    ),
    SourceRecipe(
        "sequence_equal",
        create=lambda count: sequence_equal(flow.range(count), flow.range(9)),
        fail=lambda error: sequence_equal(flow.never(), flow.error(error)),
        facts={"min_items": 1, "max_items": 1},
    ),
    SourceRecipe(
        "zip",
        create=lambda count: zip_flows(flow.range(count), flow.range(count)),
        fail=lambda error: zip_flows(flow.never(), flow.error(error)),
    ),
    SourceRecipe(
        "zip of hidden flows",
        create=lambda count: zip_flows(flow.range(count).hide(), flow.range(count), prefetch=4),
    ),
    SourceRecipe(
        "concat",
        create=lambda count: concat(flow.range(count // 2), flow.range(count // 2, count)),
        fail=lambda error: concat(flow.empty(), flow.error(error)),
    ),
    SourceRecipe(
        "concat of hidden flows",
        create=lambda count: concat(
            flow.range(count // 2).hide(), flow.range(count // 2, count).hide()
        ),
    ),
    SourceRecipe(
        "interval",
        create=lambda count: interval(0.002, overflow="buffer").take(count),
        facts={"synchronous": False, "chain": 100, "quiet_s": 0.05},
    ),
    SourceRecipe(
        "interval_range",
        create=lambda count: interval_range(5, count, 0.002, overflow="buffer"),
        facts={"synchronous": False, "chain": 100, "quiet_s": 0.05},
    ),
    SourceRecipe(
        "timer",
        create=lambda _: timer(1, clock=HASTE),
        facts={"min_items": 1, "max_items": 1},
    ),
)
"""One line for each source."""

EXEMPT: dict[str, str] = {}
"""Operators and sources that need no recipe, each with the reason."""


def _inline(task: Any) -> None:
    task()


class _Inline(Executor):
    """Runs at once what it is given."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.fixture(autouse=True, scope="module")
def _loop() -> Iterator[None]:
    thread = Thread(target=LOOP.run_forever)
    thread.start()
    yield
    LOOP.call_soon_threadsafe(LOOP.stop)
    thread.join()
    LOOP.close()


async def _later(item: Any) -> Any:
    await asyncio.sleep(0)
    return item


async def _turns(count: int) -> None:
    """Let the loop turn so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


def _reraised(error: BaseException) -> object:
    raise error


class TestOperators(OperatorsVerification):
    recipes = RECIPES


class TestSources(SourcesVerification):
    recipes = SOURCES


class TestOperatorsAsSubscribers(OperatorsAsSubscribersVerification):
    recipes = RECIPES


class OnAPool(OperatorVerification[int]):
    """On one thread, which has done all that it has to when a later task has run."""

    synchronous = False
    refcounted = True
    chain = 20_000

    @pytest.fixture(autouse=True)
    def _pool(self) -> Iterator[None]:
        with ThreadPoolExecutor(1) as pool:
            self.pool = pool
            yield

    def settle(self) -> None:
        self.pool.submit(int).result(self.timeout_s)


class TestObserveOnAPool(OnAPool):
    def apply(self, upstream: flow.Flow[int]) -> flow.Flow[int]:
        return upstream.pipe(observe_on(self.pool))


class TestObserveOnAPoolBehindAHiddenSource(OnAPool):
    def apply(self, upstream: flow.Flow[int]) -> flow.Flow[int]:
        return upstream.hide().pipe(observe_on(self.pool, prefetch=4))


class TestStagesBehindAPool(OnAPool):
    def apply(self, upstream: flow.Flow[int]) -> flow.Flow[int]:
        return upstream.pipe(observe_on(self.pool)).map(lambda n: n + 1)


class TestSubscribeOnAPool(OnAPool):
    def apply(self, upstream: flow.Flow[int]) -> flow.Flow[int]:
        return upstream.pipe(subscribe_on(self.pool))


class TestTwoPools(OnAPool):
    def apply(self, upstream: flow.Flow[int]) -> flow.Flow[int]:
        pool = self.pool
        return upstream.pipe(observe_on(pool)).pipe(observe_on(pool, prefetch=2))

    def settle(self) -> None:
        for _ in range(8):  # a task of one submits one of the other
            super().settle()

    def create_publisher(self, count: int) -> Publisher[int]:
        return self.apply(flow.range(count))


def test_every_operator_and_source_is_tried_or_says_why_not() -> None:
    assert without_recipe("flow-ops", (*RECIPES, *SOURCES), EXEMPT) == [], "add a line"
