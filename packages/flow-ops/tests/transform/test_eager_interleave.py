"""`concat_map_eager` and `expand` under every schedule within the bound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_ops import concat_map_eager, expand
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Scenario, explore_all, step

pytestmark = pytest.mark.interleave

MODULES = [
    "flow_core.serial",
    "flow_ops.coordination",
    "flow_ops.transform.concat_map_eager",
    "flow_ops.transform._mapping",
    "flow_ops.transform.expand",
    __name__,
]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> None:
    explore_all(body, modules=MODULES, expect=expect)


class Running:
    """A subscription to the flows that items 0, 1, … become."""

    def __init__(self, inners: int, request: int, started: int | None = None, **more: Any) -> None:
        self.source = TestPublisher[int]()
        self.inners = [TestPublisher[int]() for _ in range(inners)]
        self.seen = TestSubscriber[int](request, on_item=lambda *_: step())
        mapper: Callable[[int], flow.Flow[int]] = lambda n: flow.Flow(self.inners[n])  # noqa: E731
        flow.Flow(self.source).pipe(concat_map_eager(mapper, **more)).subscribe(self.seen)
        self.source.next(*range(inners if started is None else started))

    def check_over(self) -> None:
        """Nothing is held, and the permit is there."""
        self.seen.assert_rules_kept()
        subscription: Any = self.seen.subscription
        assert subscription._permit, "the permit is lost"
        assert not subscription._line
        assert not subscription._inputs
        assert subscription.slots.outer is None


def test_items_of_two_inner_flows_come_in_order() -> None:
    def body() -> Scenario:
        run = Running(2, 10)

        def first() -> None:
            run.inners[0].next(1)
            run.inners[0].complete()

        def check() -> None:
            run.seen.assert_items(1, 11).assert_not_terminated()

        return Scenario(first, lambda: run.inners[1].next(11), check=check)

    exhaust(body)


def test_an_item_against_a_request_is_neither_lost_nor_too_many() -> None:
    def body() -> Scenario:
        run = Running(1, 0, prefetch=2)

        def check() -> None:
            run.seen.assert_items(1)
            run.seen.request(5)
            run.seen.assert_items(1, 2).assert_not_terminated()
            run.inners[0].assert_requests(2, 2)

        return Scenario(lambda: run.inners[0].next(1, 2), lambda: run.seen.request(1), check=check)

    exhaust(body)


def test_the_end_of_the_inner_flow_against_that_of_the_upstream_completes_once() -> None:
    def body() -> Scenario:
        run = Running(1, 10)

        def check() -> None:
            run.seen.assert_result()
            run.check_over()

        return Scenario(run.inners[0].complete, run.source.complete, check=check)

    exhaust(body)


def test_the_end_of_an_inner_flow_against_the_next_item_of_the_upstream() -> None:
    def body() -> Scenario:
        run = Running(2, 10, started=1, concurrency=2)

        def check() -> None:
            run.inners[1].next(1).complete()
            run.source.complete()
            run.seen.assert_result(1)

        return Scenario(run.inners[0].complete, lambda: run.source.next(1), check=check)

    exhaust(body)


def test_an_error_against_an_item_is_signalled_once_and_last() -> None:
    error = ValueError("inner")

    def body() -> Scenario:
        run = Running(2, 10)

        def outcome() -> Hashable:
            run.seen.assert_failure(error, *run.seen.items)
            run.inners[0].assert_cancelled()
            run.source.assert_cancelled()
            run.check_over()
            return tuple(run.seen.items)

        return Scenario(
            lambda: run.inners[0].next(1), lambda: run.inners[1].error(error), outcome=outcome
        )

    exhaust(body, {(), (1,)})


def test_a_cancel_against_items_leaves_nothing() -> None:
    def body() -> Scenario:
        run = Running(2, 1)

        def check() -> None:
            run.seen.assert_not_terminated()
            run.source.assert_cancelled()
            for inner in run.inners:
                inner.assert_cancelled()
            run.check_over()

        return Scenario(lambda: run.inners[0].next(1, 2), run.seen.cancel, check=check)

    exhaust(body)


def test_a_cancel_against_the_subscription_of_an_inner_flow() -> None:
    def body() -> Scenario:
        run = Running(1, 10, started=0)

        def check() -> None:
            run.seen.assert_not_terminated()
            run.source.assert_cancelled()
            assert not run.inners[0].subscribed or run.inners[0].cancelled
            run.check_over()

        return Scenario(lambda: run.source.next(0), run.seen.cancel, check=check)

    exhaust(body)


def test_a_cancel_against_a_called_item_leaves_nothing() -> None:
    def body() -> Scenario:
        source, seen = TestPublisher[int](), TestSubscriber[int](1, on_item=lambda *_: step())
        flow.Flow(source).pipe(concat_map_eager(flow.just)).subscribe(seen)

        def check() -> None:
            seen.assert_rules_kept().assert_not_terminated()
            subscription: Any = seen.subscription
            assert not subscription._line
            assert subscription._permit, "the permit is lost"

        return Scenario(lambda: source.next(0, 1), seen.cancel, check=check)

    exhaust(body)


def expanded(request: int, inner: TestPublisher[int]) -> tuple[TestPublisher[int], Any]:
    source, seen = TestPublisher[int](), TestSubscriber[int](request, on_item=lambda *_: step())
    flow.Flow(source).pipe(
        expand(lambda n: flow.Flow(inner) if n == 0 else flow.empty(), depth_first=True)
    ).subscribe(seen)
    return source, seen


def test_depth_first_an_item_against_a_request() -> None:
    def body() -> Scenario:
        inner = TestPublisher[int]()
        source, seen = expanded(0, inner)

        def check() -> None:
            seen.assert_items(0)
            inner.assert_requests(1)

        return Scenario(
            lambda: source.next(0), lambda: (seen.request(1), seen.request(1)), check=check
        )

    exhaust(body)


def test_depth_first_the_end_of_a_flow_against_a_sibling() -> None:
    def body() -> Scenario:
        inner = TestPublisher[int]()
        source, seen = expanded(10, inner)
        source.next(0)

        def check() -> None:
            seen.assert_items(0, 7, 8).assert_not_terminated()
            source.complete()
            seen.assert_result(0, 7, 8)

        def below() -> None:
            inner.next(7)
            inner.complete()

        return Scenario(below, lambda: source.next(8), check=check)

    exhaust(body)


def test_depth_first_a_cancel_against_an_item_leaves_nothing() -> None:
    def body() -> Scenario:
        inner = TestPublisher[int]()
        source, seen = expanded(10, inner)

        def check() -> None:
            seen.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            assert not inner.subscribed or inner.cancelled
            assert not seen.subscription._stack
            assert not seen.subscription._inputs
            assert seen.subscription._permit, "the permit is lost"

        return Scenario(lambda: source.next(0), seen.cancel, check=check)

    exhaust(body)
