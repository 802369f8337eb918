"""`switch_map` and `switch_on_first` under every schedule within the bound."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_ops import concat_map, switch_map, switch_on_first
from flow_testing import TestPublisher, TestSubscriber, Violation
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = [pytest.mark.interleave, pytest.mark.usefixtures("dropped")]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core.serial", "flow_ops", __name__], expect=expect)


class Switching:
    """An upstream whose items choose among inner flows, and a subscriber."""

    def __init__(self, request: int = 0, *inners: Any) -> None:
        self.outer = TestPublisher[int]()
        self.inners = inners or (
            TestPublisher[int](Violation.IGNORED_CANCEL),
            TestPublisher[int](Violation.IGNORED_CANCEL),
        )
        self.subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
        made = Flow(self.outer).pipe(switch_map(lambda n: Flow(self.inners[n])))
        made.subscribe(self.subscriber)

    def permit(self) -> bool:
        subscription: Any = self.subscriber.subscription
        return bool(subscription._permit)


@pytest.mark.checklist("P07", "P19", "P28")
def test_a_new_inner_flow_against_an_item_of_the_old_one() -> None:
    """The item is counted, or does not come: the new one is asked for exactly the rest."""

    def body() -> Scenario:
        flows = Switching(3)
        flows.outer.next(0)

        def outcome() -> Hashable:
            flows.subscriber.assert_rules_kept()
            _, second = flows.inners
            assert second.requested == 3 - len(flows.subscriber.items)
            second.next(*range(2, 2 + second.requested))
            assert len(flows.subscriber.items) == 3
            return tuple(flows.subscriber.items)

        return Scenario(
            lambda: flows.outer.next(1), lambda: flows.inners[0].next(1), outcome=outcome
        )

    exhaust(body, {(1, 2, 3), (2, 3, 4)})


@pytest.mark.checklist("P17", "P19")
def test_a_new_inner_flow_against_a_request() -> None:
    def body() -> Scenario:
        flows = Switching(1)
        flows.outer.next(0)

        def check() -> None:
            assert flows.inners[1].requested == 3

        return Scenario(
            lambda: flows.outer.next(1), lambda: flows.subscriber.request(2), check=check
        )

    exhaust(body)


def test_two_requests_at_once_add_up() -> None:
    def body() -> Scenario:
        flows = Switching(0)
        flows.outer.next(0)

        def check() -> None:
            assert flows.inners[0].requested == 2

        return Scenario(
            lambda: flows.subscriber.request(1), lambda: flows.subscriber.request(1), check=check
        )

    exhaust(body)


@pytest.mark.parametrize("fails", [False, True])
def test_a_new_inner_flow_against_the_end_of_the_old_one(fails: bool) -> None:
    def body() -> Scenario:
        flows = Switching(3)
        flows.outer.next(0)
        error = ValueError()

        def end() -> None:
            if fails:
                flows.inners[0].error(error)
            else:
                flows.inners[0].complete()

        def outcome() -> Hashable:
            if flows.subscriber.error is not None:
                flows.subscriber.assert_failure(error)
                flows.outer.assert_cancelled()
                return "failed"
            flows.subscriber.assert_not_terminated()
            flows.inners[1].next(2).complete()
            flows.outer.complete()
            flows.subscriber.assert_result(2)
            return "went on"

        return Scenario(lambda: flows.outer.next(1), end, outcome=outcome)

    exhaust(body, {"failed", "went on"} if fails else {"went on"})


def test_the_end_of_the_upstream_against_that_of_the_inner_flow() -> None:
    def body() -> Scenario:
        flows = Switching(3)
        flows.outer.next(0)
        return Scenario(
            flows.outer.complete,
            flows.inners[0].complete,
            check=lambda: flows.subscriber.assert_result(),
        )

    exhaust(body)


def test_a_new_inner_flow_against_a_cancel() -> None:
    def body() -> Scenario:
        flows = Switching(3)
        flows.outer.next(0)

        def check() -> None:
            flows.subscriber.assert_rules_kept().assert_not_terminated()
            flows.outer.assert_cancelled()
            first, second = flows.inners
            first.assert_cancelled()
            assert not second.subscribed or second.cancelled
            assert flows.permit(), "the permit is lost"

        return Scenario(lambda: flows.outer.next(1), flows.subscriber.cancel, check=check)

    exhaust(body)


def test_a_new_inner_flow_against_a_bad_request() -> None:
    def body() -> Scenario:
        flows = Switching(3)
        flows.outer.next(0)

        def check() -> None:
            flows.subscriber.assert_failure(ValueError)
            first, second = flows.inners
            first.assert_cancelled()
            assert not second.subscribed or second.cancelled

        return Scenario(
            lambda: flows.outer.next(1),
            lambda: flows.subscriber.subscription.request(0),
            check=check,
        )

    exhaust(body)


def test_a_synchronous_inner_flow_against_a_request() -> None:
    def body() -> Scenario:
        flows = Switching(1, flow.range(3).hide())
        return Scenario(
            lambda: flows.outer.next(0),
            lambda: flows.subscriber.request(1),
            check=lambda: flows.subscriber.assert_items(0, 1),
        )

    exhaust(body)


def test_an_item_that_was_called_against_a_request_and_the_next() -> None:
    def body() -> Scenario:
        flows = Switching(0, flow.just(10), flow.just(11))
        flows.outer.next(0)

        def outcome() -> Hashable:
            flows.outer.complete()
            flows.subscriber.request(9)
            flows.subscriber.assert_result(*flows.subscriber.items)
            return tuple(flows.subscriber.items)

        return Scenario(
            lambda: flows.outer.next(1), lambda: flows.subscriber.request(1), outcome=outcome
        )

    exhaust(body, {(10, 11), (11,)})


# -- switch_on_first


def first_then(source: TestPublisher[int], request: int) -> TestSubscriber[int]:
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    Flow(source).pipe(switch_on_first(lambda _, whole: whole)).subscribe(subscriber)
    return subscriber


def test_the_first_item_and_the_end_against_a_request() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = first_then(source, 0)

        def send() -> None:
            source.next(1)
            source.complete()

        return Scenario(
            send, lambda: subscriber.request(1), check=lambda: subscriber.assert_result(1)
        )

    exhaust(body)


def test_requests_while_the_first_item_is_delivered_are_passed_on() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = first_then(source, 1)

        def check() -> None:
            subscriber.assert_items(1)
            assert source.requested == 3

        return Scenario(lambda: source.next(1), lambda: subscriber.request(2), check=check)

    exhaust(body)


def test_the_first_item_against_a_cancel() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = first_then(source, 0)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()

        return Scenario(lambda: source.next(1), subscriber.cancel, check=check)

    exhaust(body)


def test_the_end_against_a_cancel() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = first_then(source, 0)
        source.next(1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert source.cancelled or source.terminated

        return Scenario(source.complete, subscriber.cancel, check=check)

    exhaust(body)


def test_the_whole_flow_is_subscribed_to_while_the_upstream_ends(dropped: Any) -> None:
    """The first item comes once, and then the end."""

    def body() -> Scenario:
        upstream, later = TestPublisher[int](), TestPublisher[object]()
        subscriber = TestSubscriber[int](9)

        def when_told(_: object, whole: Flow[int]) -> Flow[int]:
            return Flow(later).pipe(concat_map(lambda _: whole))

        Flow(upstream).pipe(switch_on_first(when_told)).subscribe(subscriber)
        upstream.next(1)

        def check() -> None:
            later.complete()
            subscriber.assert_result(1)
            assert dropped.items == []

        return Scenario(upstream.complete, lambda: later.next("now"), check=check)

    modules = ["flow_core.serial", "flow_ops.transform.switch_on_first"]
    explore_all(body, modules=modules)
