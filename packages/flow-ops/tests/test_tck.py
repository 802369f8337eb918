"""The Reactive Streams rules, tried on all that this package registers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Publisher
from flow_core.testing.tck import (
    OperatorRecipe,
    OperatorsAsSubscribersVerification,
    OperatorsVerification,
    OperatorVerification,
    SourceRecipe,
    SourcesVerification,
    without_recipe,
)
from flow_ops import concat_map, merge, observe_on, skip_until, take_until

pytestmark = [pytest.mark.tck, pytest.mark.usefixtures("dropped")]

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
    OperatorRecipe("skip_until", lambda upstream: upstream.pipe(skip_until(flow.just("go")))),
    OperatorRecipe("take_until", lambda upstream: upstream.pipe(take_until(flow.never()))),
)
"""One line for each operator that can run in the thread of the test."""

SOURCES = (
    SourceRecipe(
        "merge",
        create=lambda count: merge(flow.range(count // 2), flow.range(count // 2, count)),
        fail=lambda error: merge(flow.never(), flow.error(error)),
    ),
)
"""One line for each source."""

EXEMPT: dict[str, str] = {}
"""Operators and sources that need no recipe, each with the reason."""


def _inline(task: Any) -> None:
    task()


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
