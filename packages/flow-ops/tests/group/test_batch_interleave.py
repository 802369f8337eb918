"""`batch`, sessions and `group_by_until` under every schedule within the bound."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_ops import batch, group_by_until, session_buffer
from flow_testing import TestPublisher, TestSubscriber, VirtualClock
from flow_testing.interleave import Body, Report, Scenario, explore_all

pytestmark = [pytest.mark.interleave, pytest.mark.usefixtures("dropped")]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(
        body, modules=["flow_core.serial", "flow_ops.group", __name__], expect=expect
    )


def batched(
    operator: Any, request: int = flow.UNBOUNDED
) -> tuple[TestPublisher[int], TestSubscriber[Any]]:
    source, subscriber = TestPublisher[int](), TestSubscriber[Any](request)
    flow.Flow(source).pipe(operator).subscribe(subscriber)
    return source, subscriber


def test_the_time_of_a_list_against_the_item_that_fills_it() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source, seen = batched(batch(2, within=1, clock=clock))
        source.next(0)

        def outcome() -> Hashable:
            source.complete()
            assert clock.pending == 0
            seen.assert_result(*seen.items)
            return tuple(map(tuple, seen.items))

        return Scenario(lambda: source.next(1), lambda: clock.advance_to(1), outcome=outcome)

    exhaust(body, {((0, 1),), ((0,), (1,))})


def test_the_time_of_a_list_against_a_cancel_leaves_no_timer() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source, seen = batched(batch(2, within=1, clock=clock))
        source.next(0)

        def check() -> None:
            assert clock.pending == 0
            source.assert_cancelled()
            assert seen.items in ([], [[0]])

        return Scenario(lambda: clock.advance_to(1), seen.cancel, check=check)

    exhaust(body)


def test_the_gap_of_a_session_against_an_item_and_the_end() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source, seen = batched(session_buffer(1, clock=clock))
        source.next(0)

        def send() -> None:
            source.next(1)
            source.complete()

        def outcome() -> Hashable:
            seen.assert_result(*seen.items)
            assert clock.pending == 0
            return tuple(map(tuple, seen.items))

        return Scenario(send, lambda: clock.advance_to(1), outcome=outcome)

    exhaust(body, {((0, 1),), ((0,), (1,))})


def test_a_list_that_waits_against_a_request() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source, seen = batched(batch(2, within=1, clock=clock), 0)

        def check() -> None:
            seen.assert_items([0, 1])
            assert source.outstanding == 2

        return Scenario(lambda: source.next(0, 1), lambda: seen.request(1), check=check)

    exhaust(body)


def lists(ends: TestPublisher[int]) -> Any:
    grouped = group_by_until(lambda _: "all", lambda _: flow.Flow(ends))
    return lambda up: up.pipe(grouped).flat_map(lambda group: group.to_list())


def test_the_end_of_a_group_against_its_next_item() -> None:
    def body() -> Scenario:
        ends = TestPublisher[int]()
        source, seen = batched(lists(ends))
        source.next(0)

        def outcome() -> Hashable:
            source.complete()
            seen.assert_result(*seen.items)
            return tuple(map(tuple, seen.items))

        return Scenario(lambda: source.next(1), lambda: ends.next(9), outcome=outcome)

    exhaust(body, {((0, 1),), ((0,), (1,))})


def test_the_end_of_a_group_against_a_cancel() -> None:
    def body() -> Scenario:
        ends = TestPublisher[int]()
        source, seen = batched(lists(ends))
        source.next(0)

        def check() -> None:
            seen.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            ends.assert_cancelled()

        return Scenario(lambda: ends.next(9), seen.cancel, check=check)

    exhaust(body)


def test_the_end_of_a_group_against_that_of_the_upstream() -> None:
    def body() -> Scenario:
        ends = TestPublisher[int]()
        source, seen = batched(lists(ends))
        source.next(0)
        return Scenario(ends.complete, source.complete, check=lambda: seen.assert_result([0]))

    exhaust(body)
