"""`flat_map` under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_ops import flat_map
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Scenario, explore_all, step

pytestmark = pytest.mark.interleave

MODULES = [
    "flow_core.serial",
    "flow_ops.coordination",
    "flow_ops.transform._flat",
    "flow_ops.transform._mapping",
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
        flow.Flow(self.source).pipe(flat_map(mapper, **more)).subscribe(self.seen)
        self.source.next(*range(inners if started is None else started))

    def check_over(self) -> None:
        """Nothing is held, and the permit is there."""
        self.seen.assert_rules_kept()
        subscription: Any = self.seen.subscription
        assert subscription._permit, "the permit is lost"
        assert not subscription._waiting
        assert not subscription._inputs
        assert subscription._outer is None
        assert subscription.slots.outer is None


def test_items_of_two_inner_flows_all_come_each_flow_in_order() -> None:
    def body() -> Scenario:
        run = Running(2, 10)

        def outcome() -> Hashable:
            run.seen.assert_rules_kept().assert_not_terminated()
            assert [n for n in run.seen.items if n < 10] == [1, 2]
            assert [n for n in run.seen.items if n > 10] == [11]
            return tuple(run.seen.items)

        return Scenario(
            lambda: run.inners[0].next(1, 2), lambda: run.inners[1].next(11), outcome=outcome
        )

    exhaust(body, {(1, 2, 11), (1, 11, 2), (11, 1, 2)})


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


def test_an_item_against_the_end_of_another_flow() -> None:
    def body() -> Scenario:
        run = Running(2, 10)
        run.source.complete()

        def check() -> None:
            run.seen.assert_items(1).assert_not_terminated()
            run.inners[0].complete()
            run.seen.assert_result(1)
            run.check_over()

        return Scenario(lambda: run.inners[0].next(1), run.inners[1].complete, check=check)

    exhaust(body)


def test_the_end_of_an_inner_flow_against_that_of_the_upstream_completes_once() -> None:
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
            assert run.source.requested == 4

        return Scenario(run.inners[0].complete, lambda: run.source.next(1), check=check)

    exhaust(body)


def test_the_end_of_an_inner_flow_while_it_is_subscribed_to_frees_its_slot_once() -> None:
    def body() -> Scenario:
        run = Running(1, 10, started=0, concurrency=1)
        inner = run.inners[0]

        def end() -> None:
            if inner.subscribed:
                inner.complete()

        def outcome() -> Hashable:
            ended = run.source.outstanding
            if not ended:
                inner.complete()
            assert run.source.outstanding == 1
            run.source.complete()
            run.seen.assert_result()
            return ended

        return Scenario(lambda: run.source.next(0), end, outcome=outcome)

    exhaust(body, {0, 1})


@pytest.mark.parametrize("concurrency", [1, 2])
def test_slots_that_two_threads_free_are_all_asked_for(concurrency: int) -> None:
    """One by an inner flow, the other by the upstream's thread."""

    def body() -> Scenario:
        source, inner = TestPublisher[int](), TestPublisher[int]()
        seen = TestSubscriber[int](10)
        made = [flow.Flow(inner), flow.just(1), flow.just(2)]
        flow.Flow(source).pipe(flat_map(lambda n: made[n], concurrency=concurrency + 1)).subscribe(
            seen
        )
        source.next(0)
        return Scenario(
            inner.complete,
            lambda: source.next(*range(1, concurrency + 1)),
            check=lambda: _asked(source, concurrency + 1),
        )

    def _asked(source: TestPublisher[int], slots: int) -> None:
        # What is owed is at most what 75 % leaves, and never all of it.
        assert source.outstanding >= 1
        assert source.outstanding <= slots

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


def test_a_cancel_against_an_item_leaves_nothing() -> None:
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
        flow.Flow(source).pipe(flat_map(flow.just)).subscribe(seen)

        def check() -> None:
            seen.assert_rules_kept().assert_not_terminated()
            subscription: Any = seen.subscription
            assert not subscription._waiting
            assert subscription._permit, "the permit is lost"

        return Scenario(lambda: source.next(0, 1), seen.cancel, check=check)

    exhaust(body)


def test_a_called_item_against_an_item_and_a_request() -> None:
    def body() -> Scenario:
        source, inner = TestPublisher[int](), TestPublisher[int]()
        seen = TestSubscriber[int](1, on_item=lambda *_: step())
        made = [flow.Flow(inner), flow.just(7)]
        flow.Flow(source).pipe(flat_map(lambda n: made[n], concurrency=2)).subscribe(seen)
        source.next(0)

        def check() -> None:
            seen.assert_rules_kept()
            assert len(seen.items) == 1
            seen.request(1)
            assert sorted(seen.items) == [1, 7]
            assert source.outstanding == 1

        return Scenario(lambda: source.next(1), lambda: inner.next(1), check=check)

    exhaust(body)


def test_a_bad_request_against_an_item_comes_after_it() -> None:
    def body() -> Scenario:
        run = Running(1, 2)

        def check() -> None:
            run.seen.assert_failure(ValueError, *run.seen.items)
            run.check_over()

        return Scenario(
            lambda: run.inners[0].next(1), lambda: run.seen.subscription.request(0), check=check
        )

    exhaust(body)


class InPlace:
    """A subscription to flows of iterators, which run where their item comes."""

    def __init__(self, items: int, request: int) -> None:
        self.source = TestPublisher[int]()
        self.seen = TestSubscriber[int](request, on_item=lambda *_: step())
        self.begun: list[int] = []
        self.closed: list[int] = []
        made = flow.Flow(self.source).pipe(flat_map(lambda n: flow.from_iterable(self.run(n))))
        made.subscribe(self.seen)
        self.items = items

    def run(self, n: int) -> Iterator[int]:
        self.begun.append(n)
        try:
            for k in range(self.items):
                step()
                yield 10 * n + k
        finally:
            self.closed.append(n)

    def check_over(self) -> None:
        self.seen.assert_rules_kept()
        subscription: Any = self.seen.subscription
        assert subscription._permit, "the permit is lost"
        assert not subscription._waiting
        assert not subscription._inputs


def test_items_of_a_flow_in_place_and_a_request_from_elsewhere_all_come_in_order() -> None:
    def body() -> Scenario:
        run = InPlace(3, 1)

        def check() -> None:
            run.seen.assert_items(0, 1, 2, 10, 11, 12).assert_not_terminated()
            assert run.closed == [0, 1]
            run.source.complete()
            run.seen.assert_result(0, 1, 2, 10, 11, 12)
            run.check_over()

        return Scenario(lambda: run.source.next(0, 1), lambda: run.seen.request(9), check=check)

    exhaust(body)


def test_a_cancel_while_a_flow_runs_in_place_ends_and_closes_it() -> None:
    def body() -> Scenario:
        run = InPlace(2, 9)

        def outcome() -> Hashable:
            run.check_over()
            run.source.assert_cancelled()
            assert run.closed == run.begun
            return tuple(run.seen.items)

        return Scenario(lambda: run.source.next(0), run.seen.cancel, outcome=outcome)

    exhaust(body)


def test_a_bad_request_while_a_flow_runs_in_place_fails_it_once() -> None:
    def body() -> Scenario:
        run = InPlace(2, 9)

        def outcome() -> Hashable:
            run.check_over()
            run.seen.assert_failure(ValueError, *run.seen.items)
            run.source.assert_cancelled()
            return tuple(run.seen.items)

        return Scenario(lambda: run.source.next(0), lambda: run.seen.request(0), outcome=outcome)

    exhaust(body)
