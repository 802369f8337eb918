"""`merge` under every schedule within the bound: what it adds to `flat_map`."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_ops import merge
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Scenario, explore_all, step

pytestmark = pytest.mark.interleave

MODULES = ["flow_core.serial", "flow_ops.coordination", "flow_ops.transform", __name__]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> None:
    explore_all(body, modules=MODULES, expect=expect)


def merged(count: int, request: int, **more: Any) -> tuple[list[TestPublisher[int]], Any]:
    sources = [TestPublisher[int]() for _ in range(count)]
    seen = TestSubscriber[int](request, on_item=lambda *_: step())
    merge(map(flow.Flow, sources), **more).subscribe(seen)
    return sources, seen


def test_two_sources_that_end_at_once_make_room_for_two_others() -> None:
    def body() -> Scenario:
        sources, seen = merged(4, 10, concurrency=2)

        def check() -> None:
            for number in (3, 2):
                sources[number].assert_subscribed()
                sources[number].next(number).complete()
            seen.assert_result(3, 2)

        return Scenario(sources[0].complete, sources[1].complete, check=check)

    exhaust(body)


def test_a_cancel_against_the_source_that_follows() -> None:
    def body() -> Scenario:
        sources, seen = merged(2, 10, concurrency=1)

        def check() -> None:
            seen.assert_rules_kept().assert_not_terminated()
            assert not sources[1].subscribed or sources[1].cancelled
            assert not seen.subscription._inputs
            assert seen.subscription._permit, "the permit is lost"

        return Scenario(sources[0].complete, seen.cancel, check=check)

    exhaust(body)


def test_items_that_wait_against_a_request_and_each_other() -> None:
    def body() -> Scenario:
        sources, seen = merged(2, 0, prefetch=1)

        def check() -> None:
            seen.request(5)
            assert sorted(seen.items) == [0, 1]
            seen.assert_rules_kept()
            for source in sources:
                source.assert_requests(1, 1)

        return Scenario(
            lambda: sources[0].next(0),
            lambda: sources[1].next(1),
            lambda: seen.request(1),
            check=check,
        )

    exhaust(body)
