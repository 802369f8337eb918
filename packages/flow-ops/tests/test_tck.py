"""The Reactive Streams rules, tried on all that this package registers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Publisher
from flow_ops import interval, interval_range, observe_on, subscribe_on, timer
from flow_ops.testing import OPERATOR_CASES
from flow_testing import HastyClock, OperatorCase, Surroundings, VirtualClock
from flow_testing.tck import (
    OperatorsAsSubscribersVerification,
    OperatorsVerification,
    OperatorVerification,
    SourceRecipe,
    SourcesVerification,
    recipes_of,
    without_recipe,
)

pytestmark = [pytest.mark.tck, pytest.mark.usefixtures("dropped")]


HASTE = HastyClock()
CLOCK = VirtualClock()
"""Stands still."""

LOOP = asyncio.new_event_loop()
"""Runs in a separate thread."""


class _Inline(Executor):
    """Runs at once what it is given."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _around(case: OperatorCase) -> Surroundings:
    """Return surroundings where the times of some pass at once, and those of others never."""
    clock, period_s = (HASTE, 1) if case.kinds & {"timed", "delayed"} else (CLOCK, 10**9)
    return Surroundings(_Inline(), clock, period_s, LOOP)


RECIPES = recipes_of(
    OPERATOR_CASES,
    _around,
    lambda: asyncio.run_coroutine_threadsafe(_turns(20), LOOP).result(),
)

SOURCES = (
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
"""Those that are made of no other flow."""


@pytest.fixture(autouse=True, scope="module")
def _loop() -> Iterator[None]:
    thread = Thread(target=LOOP.run_forever)
    thread.start()
    yield
    LOOP.call_soon_threadsafe(LOOP.stop)
    thread.join()
    LOOP.close()


async def _turns(count: int) -> None:
    """Let the loop turn the given number of times."""
    for _ in range(count):
        await asyncio.sleep(0)


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
    assert without_recipe("flow-ops", (*RECIPES, *SOURCES)) == []
