"""Rails under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core import hooks
from flow_ops import parallel
from flow_ops.parallel.dispatch import Dispatcher, RailSource
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(
        body, modules=["flow_core.serial", "flow_ops.parallel", __name__], expect=expect
    )


class Dealt:
    """Two rails, and what they have got."""

    def __init__(self, *requests: int) -> None:
        self.source = TestPublisher[int]()
        self.dispatcher = Dispatcher(self.source, 2, 4, "parallel")
        self.rails = [TestSubscriber[int](n, on_item=lambda *_: step()) for n in requests]
        for rail in self.rails:
            self.join(rail)

    def join(self, rail: TestSubscriber[int]) -> None:
        RailSource(self.dispatcher).subscribe(rail)

    @property
    def items(self) -> list[int]:
        return sorted(item for rail in self.rails for item in rail.items)

    def check(self) -> None:
        for rail in self.rails:
            rail.assert_rules_kept()
        assert self.dispatcher._permit, "the permit is lost"


def test_an_item_goes_to_one_rail_however_both_request() -> None:
    def body() -> Scenario:
        dealt = Dealt(0, 0)
        a, b = dealt.rails
        dealt.source.next(1, 2, 3)

        def check() -> None:
            dealt.check()
            assert dealt.items == [1, 2]
            assert len(a.items) == len(b.items) == 1

        return Scenario(lambda: a.request(1), lambda: b.request(1), check=check)

    exhaust(body)


def test_no_item_is_left_behind_by_a_request() -> None:
    def body() -> Scenario:
        dealt = Dealt(0, 0)
        a, _ = dealt.rails

        def send() -> None:
            dealt.source.next(1)
            dealt.source.complete()

        def check() -> None:
            dealt.check()
            a.assert_result(1)
            dealt.rails[1].assert_result()

        return Scenario(send, lambda: a.request(2), check=check)

    exhaust(body)


def test_an_item_that_races_a_cancel_goes_to_the_other_rail_or_to_the_hook() -> None:
    def body() -> Scenario:
        dealt = Dealt(2, 0)
        a, b = dealt.rails
        lost: list[Any] = []
        scope = hooks.dropped_items.scoped("interleave", lost.append)
        scope.__enter__()

        def send() -> None:
            dealt.source.next(1)
            dealt.source.next(2)

        def check() -> None:
            b.request(9)
            dealt.source.complete()
            scope.__exit__(None, None, None)
            dealt.check()
            a.assert_not_terminated()
            assert b.completed
            assert sorted(dealt.items + lost) == [1, 2]

        return Scenario(send, a.cancel, check=check)

    exhaust(body)


def test_the_last_two_rails_that_leave_cancel_the_upstream() -> None:
    def body() -> Scenario:
        dealt = Dealt(0, 0)
        a, b = dealt.rails

        def check() -> None:
            dealt.check()
            dealt.source.assert_cancelled()
            assert not dealt.dispatcher._rails
            assert dealt.dispatcher.upstream is None

        return Scenario(a.cancel, b.cancel, check=check)

    exhaust(body)


def test_the_end_against_a_cancel_comes_to_the_other_rail() -> None:
    def body() -> Scenario:
        dealt = Dealt(1, 1)
        a, b = dealt.rails

        def check() -> None:
            dealt.check()
            b.assert_result()
            assert a.items == []
            assert not dealt.dispatcher._rails

        return Scenario(dealt.source.complete, a.cancel, check=check)

    exhaust(body)


def test_an_error_against_a_request_comes_after_the_item() -> None:
    error = ValueError("upstream")

    def body() -> Scenario:
        dealt = Dealt(0, 0)
        a, b = dealt.rails
        dealt.source.next(1)

        def check() -> None:
            dealt.check()
            a.assert_failure(error)
            b.assert_failure(error, 1)

        return Scenario(lambda: dealt.source.error(error), lambda: b.request(1), check=check)

    exhaust(body)


def test_a_bad_request_that_races_an_item_fails_only_its_own_rail_once() -> None:
    def body() -> Scenario:
        dealt = Dealt(1, 1)
        a, b = dealt.rails
        lost: list[Any] = []
        scope = hooks.dropped_items.scoped("interleave", lost.append)
        scope.__enter__()

        def check() -> None:
            scope.__exit__(None, None, None)
            dealt.check()
            a.assert_failure(ValueError, *a.items)
            assert sorted(dealt.items + lost) == [1]
            b.assert_not_terminated()

        return Scenario(
            lambda: dealt.source.next(1), lambda: a.subscription.request(0), check=check
        )

    exhaust(body)


def test_a_rail_that_leaves_while_the_last_one_comes_does_not_keep_it_from_starting() -> None:
    def body() -> Scenario:
        dealt = Dealt(1)
        (a,) = dealt.rails
        b = TestSubscriber[int](1)
        dealt.rails.append(b)

        def check() -> None:
            dealt.source.next(1)
            dealt.source.complete()
            dealt.check()
            b.assert_result(1)
            a.assert_not_terminated()

        return Scenario(lambda: dealt.join(b), a.cancel, check=check)

    exhaust(body)


def test_rails_that_leave_while_they_come_leave_no_upstream_behind() -> None:
    def body() -> Scenario:
        dealt = Dealt(1)
        (a,) = dealt.rails
        b = TestSubscriber[int](1, on_item=lambda *_: step())
        dealt.rails.append(b)
        a.cancel()

        def check() -> None:
            dealt.check()
            assert not dealt.source.subscribed or dealt.source.cancelled
            assert dealt.dispatcher.upstream is None

        return Scenario(lambda: dealt.join(b), b.cancel, check=check)

    exhaust(body)


def test_the_whole_of_it_against_a_cancel() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = TestSubscriber[int](9, on_item=lambda *_: step())
        flow.Flow(source).pipe(parallel(2, prefetch=2)).sequential(prefetch=1).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()

        return Scenario(lambda: source.next(1), subscriber.cancel, check=check)

    exhaust(body)


def test_the_whole_of_it_against_a_request() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = TestSubscriber[int](0, on_item=lambda *_: step())
        flow.Flow(source).pipe(parallel(2, prefetch=2)).sequential(prefetch=1).subscribe(subscriber)

        def send() -> None:
            source.next(1)
            source.complete()

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert subscriber.completed
            return tuple(sorted(subscriber.items))

        return Scenario(send, lambda: subscriber.request(2), outcome=outcome)

    exhaust(body, {(1,)})
