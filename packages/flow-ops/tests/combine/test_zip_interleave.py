"""`zip` and its kin under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import RejectedExecutionError
from flow_ops import (
    amb,
    combine_latest,
    fork_join,
    ordered_merge,
    sequence_equal,
    skip_until_other,
    take_until_other,
    with_latest_from,
)
from flow_ops import zip as zip_flows
from flow_testing import TestPublisher, TestSubscriber, Violation
from flow_testing.interleave import (
    Body,
    Report,
    Scenario,
    explore_all,
    step,
    thread_per_task,
)

pytestmark = pytest.mark.interleave


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(
        body,
        modules=[
            "flow_core.serial",
            "flow_core.executors",
            "flow_ops.coordination",
            "flow_ops.combine",
            __name__,
        ],
        expect=expect,
    )


Two = tuple[TestPublisher[int], TestPublisher[int], TestSubscriber[Any]]


def two(make: Callable[..., flow.Flow[Any]], request: int = 10) -> Two:
    """A subscription to an operator over two flows that the test plays."""
    a, b = TestPublisher[int](), TestPublisher[int]()
    subscriber = TestSubscriber[Any](request, on_item=lambda *_: step())
    make(flow.Flow(a), flow.Flow(b)).subscribe(subscriber)
    return a, b, subscriber


def ended(subscriber: TestSubscriber[Any]) -> Any:
    """The operator's subscription, which has ended and has let everything go."""
    subscription: Any = subscriber.subscription
    assert subscription.over
    assert subscription._downstream is None
    assert subscription._permit, "the permit is lost"
    assert subscription.buffered == 0
    return subscription


def sends(publisher: TestPublisher[int], *items: int) -> Callable[[], None]:
    def send() -> None:
        for item in items:
            if publisher.cancelled:
                return
            publisher.next(item)
        if not publisher.cancelled:
            publisher.complete()

    return send


def executed(*sources: flow.Flow[int]) -> flow.Flow[int]:
    return ordered_merge(*sources, executor=thread_per_task)


# -- items of both sides at once


def test_zip_pairs_items_that_come_at_once() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(zip_flows)
        return Scenario(
            lambda: a.next(1), lambda: b.next(2), check=lambda: subscriber.assert_items((1, 2))
        )

    exhaust(body)


def test_zip_ends_with_the_shorter_one() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(zip_flows)
        a.next(1)
        b.next(3)

        def check() -> None:
            subscriber.assert_result((1, 3))
            ended(subscriber)
            assert a.cancelled

        def send() -> None:
            if not a.cancelled:
                a.next(2)

        return Scenario(send, b.complete, check=check)

    exhaust(body)


def test_zip_ends_after_the_last_item_of_a_flow_that_has_ended() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(zip_flows)
        a.next(1)

        def check() -> None:
            subscriber.assert_result((1, 2))
            assert b.cancelled

        return Scenario(a.complete, lambda: b.next(2), check=check)

    exhaust(body)


def test_ordered_merge_sorts_items_that_come_at_once() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(ordered_merge)
        return Scenario(
            lambda: a.next(1), lambda: b.next(2), check=lambda: subscriber.assert_items(1)
        )

    exhaust(body)


def test_ordered_merge_continues_when_a_flow_ends() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(ordered_merge)
        a.next(1)
        return Scenario(a.complete, lambda: b.next(2), check=lambda: subscriber.assert_items(1, 2))

    exhaust(body)


def test_sequence_equal_compares_items_that_come_at_once() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(sequence_equal)
        return Scenario(
            lambda: a.next(1), lambda: b.next(2), check=lambda: subscriber.assert_result(False)
        )

    exhaust(body)


def test_sequence_equal_sees_both_ends() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(sequence_equal)
        return Scenario(a.complete, b.complete, check=lambda: subscriber.assert_result(True))

    exhaust(body)


def test_sequence_equal_finds_an_end_beside_an_item() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(sequence_equal)
        return Scenario(
            lambda: a.next(1), b.complete, check=lambda: subscriber.assert_result(False)
        )

    exhaust(body)


def test_combine_latest_gives_every_combination_once() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(combine_latest)
        a.next(0)
        b.next(0)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept().assert_not_terminated()
            return tuple(subscriber.items[1:])

        return Scenario(lambda: a.next(1), lambda: b.next(2), outcome=outcome)

    exhaust(body, {((1, 0), (1, 2)), ((0, 2), (1, 2))})


def test_fork_join_gives_the_last_items() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(fork_join)
        return Scenario(sends(a, 1), sends(b, 2), check=lambda: subscriber.assert_result((1, 2)))

    exhaust(body)


def test_with_latest_from_takes_the_one_before_or_the_one_after() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(lambda a, b: a.pipe(with_latest_from(b)))
        b.next(0)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept().assert_not_terminated()
            return tuple(subscriber.items)

        return Scenario(lambda: a.next(1), lambda: b.next(2), outcome=outcome)

    exhaust(body, {((1, 0),), ((1, 2),)})


def test_with_latest_from_loses_no_demand() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(lambda a, b: a.pipe(with_latest_from(b)), request=1)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert a.outstanding == 1 - len(subscriber.items)
            return len(subscriber.items)

        return Scenario(lambda: a.next(1), lambda: b.next(2), outcome=outcome)

    exhaust(body, {0, 1})


def test_amb_chooses_one() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(amb)

        def outcome() -> Hashable:
            subscriber.assert_result(*subscriber.items)
            assert a.cancels + b.cancels == 1
            return tuple(subscriber.items)

        return Scenario(sends(a, 1), sends(b, 2), outcome=outcome)

    exhaust(body, {(1,), (2,)})


def test_amb_loses_no_demand_when_one_begins() -> None:
    def body() -> Scenario:
        a, _, subscriber = two(amb, request=1)

        def check() -> None:
            subscriber.assert_items(1)
            assert a.requested == 3

        return Scenario(lambda: a.next(1), lambda: subscriber.request(2), check=check)

    exhaust(body)


def test_amb_that_begins_while_the_others_are_subscribed() -> None:
    def body() -> Scenario:
        a, b = TestPublisher[int](), TestPublisher[int]()
        subscriber = TestSubscriber[int](1, on_item=lambda *_: step())
        made = amb(flow.Flow(a), flow.Flow(b))

        def send() -> None:
            if a.outstanding:
                a.next(1)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept().assert_not_terminated()
            if subscriber.items:
                assert not b.subscribed or b.cancelled
            else:
                assert b.subscribed
                assert not b.cancelled
            return len(subscriber.items), b.subscribed

        return Scenario(lambda: made.subscribe(subscriber), send, outcome=outcome)

    exhaust(body, {(0, 1), (1, 0), (1, 1)})


# -- an item against a request, an error, a cancel


OPERATORS: dict[str, Callable[..., flow.Flow[Any]]] = {
    "zip": zip_flows,
    "combine_latest": combine_latest,
    "with_latest_from": lambda a, b: a.pipe(with_latest_from(b)),
    "amb": amb,
    "fork_join": fork_join,
    "sequence_equal": sequence_equal,
    "ordered_merge": ordered_merge,
    "ordered_merge on an executor": executed,
    "take_until_other": lambda a, b: a.pipe(take_until_other(b)),
    "skip_until_other": lambda a, b: a.pipe(skip_until_other(b)),
}

KEEPING = {"zip", "sequence_equal", "ordered_merge", "ordered_merge on an executor"}
"""Operators that let the item of one flow wait for the other flow."""

each = pytest.mark.parametrize("name", OPERATORS)


@each
def test_an_item_against_a_cancel_leaves_nothing(name: str, dropped: Any) -> None:
    def body() -> Scenario:
        a = TestPublisher[int](violations=Violation.IGNORED_CANCEL | Violation.OVERFLOW)
        b = TestPublisher[int]()
        subscriber = TestSubscriber[Any](10, on_item=lambda *_: step())
        OPERATORS[name](flow.Flow(a), flow.Flow(b)).subscribe(subscriber)
        dropped.items.clear()

        def check() -> None:
            subscriber.assert_rules_kept()
            ended(subscriber)
            assert a.cancelled
            assert b.cancelled
            if name in KEEPING:
                assert dropped.items == [1]

        return Scenario(lambda: a.next(1), subscriber.cancel, check=check)

    exhaust(body)


@each
def test_errors_of_both_flows_are_signalled_once(name: str, dropped: Any) -> None:
    one, other = ValueError("a"), ValueError("b")

    def body() -> Scenario:
        a, b, subscriber = two(OPERATORS[name])
        dropped.errors.clear()

        def outcome() -> Hashable:
            subscriber.assert_failure(subscriber.error)
            ended(subscriber)
            assert len(dropped.errors) == a.terminated + b.terminated - 1
            return str(subscriber.error)

        def fails(publisher: TestPublisher[int], error: BaseException) -> Callable[[], object]:
            return lambda: publisher.cancelled or publisher.error(error)

        return Scenario(fails(a, one), fails(b, other), outcome=outcome)

    exhaust(body, {"a", "b"})


@each
def test_an_error_against_a_cancel_reaches_the_subscriber_or_the_hook(
    name: str, dropped: Any
) -> None:
    error = ValueError("a")

    def body() -> Scenario:
        a, b, subscriber = two(OPERATORS[name])
        dropped.errors.clear()

        def check() -> None:
            subscriber.assert_rules_kept()
            ended(subscriber)
            assert b.cancelled
            assert len(dropped.errors) + (subscriber.error is not None) == a.terminated

        return Scenario(lambda: a.cancelled or a.error(error), subscriber.cancel, check=check)

    exhaust(body)


@each
def test_a_wrong_request_against_an_end_is_signalled_once(name: str, dropped: Any) -> None:
    def body() -> Scenario:
        a, _, subscriber = two(OPERATORS[name])

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert subscriber.terminated
            ended(subscriber)
            assert len(dropped.errors) <= 1
            dropped.errors.clear()
            return type(subscriber.error).__name__

        return Scenario(
            lambda: a.cancelled or a.error(KeyError("a")),
            lambda: subscriber.subscription.request(0),
            outcome=outcome,
        )

    exhaust(body, {"ValueError", "KeyError"})


WAITING: dict[str, tuple[Callable[..., flow.Flow[Any]], Any]] = {
    "zip": (zip_flows, (2, 1)),
    "combine_latest": (combine_latest, (2, 1)),
    "ordered_merge": (ordered_merge, 1),
    "sequence_equal": (sequence_equal, False),
}


@pytest.mark.parametrize("name", WAITING)
def test_an_item_against_the_request_for_it_comes(name: str) -> None:
    make, expected = WAITING[name]

    def body() -> Scenario:
        a, b, subscriber = two(make, request=0)
        b.next(1)
        return Scenario(
            lambda: a.next(2),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items(expected),
        )

    exhaust(body)


def test_fork_join_gives_its_item_to_a_request_against_the_last_end() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(fork_join, request=0)
        a.next(1)
        b.next(2)
        b.complete()
        return Scenario(
            a.complete,
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_result((1, 2)),
        )

    exhaust(body)


def test_waiting_items_are_sent_once_to_two_simultaneous_requests() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(zip_flows, request=0)
        a.next(1, 2, 3)
        b.next(4, 5, 6)
        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items((1, 4), (2, 5)),
        )

    exhaust(body)


# -- take_until_other and skip_until_other


def test_take_until_ends_once_between_items() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(lambda a, b: a.pipe(take_until_other(b)))

        def outcome() -> Hashable:
            subscriber.assert_result(*subscriber.items)
            assert a.cancelled or a.terminated
            return len(subscriber.items)

        return Scenario(sends(a, 1, 2), lambda: b.next(0), outcome=outcome)

    exhaust(body, {0, 1, 2})


def test_skip_until_opens_between_items() -> None:
    def body() -> Scenario:
        a, b, subscriber = two(lambda a, b: a.pipe(skip_until_other(b)), request=2)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert a.outstanding == 2 - len(subscriber.items)
            return tuple(subscriber.items)

        def send() -> None:
            a.next(1)
            a.next(2)

        return Scenario(send, lambda: b.next(0), outcome=outcome)

    exhaust(body, {(), (2,), (1, 2)})


# -- the executor


def alone(request: int) -> tuple[TestPublisher[int], TestSubscriber[int]]:
    """A subscription to `ordered_merge` of one flow, on an executor."""
    a = TestPublisher[int]()
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    executed(flow.Flow(a)).subscribe(subscriber)
    return a, subscriber


@pytest.mark.checklist("O25", "O29")
def test_a_request_against_a_cancel_leaves_no_task_and_no_handle() -> None:
    def body() -> Scenario:
        _, subscriber = alone(0)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert ended(subscriber)._handle is None

        return Scenario(lambda: subscriber.request(1), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("O22", "O24", "O28")
def test_an_item_against_a_cancel_leaves_no_task_and_no_handle() -> None:
    def body() -> Scenario:
        a, subscriber = alone(10)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert ended(subscriber)._handle is None

        return Scenario(lambda: a.next(1), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("O25", "O29")
def test_an_item_against_a_request_leaves_no_handle_of_a_task_that_has_run() -> None:
    def body() -> Scenario:
        a, subscriber = alone(0)

        def check() -> None:
            subscriber.assert_items(1)
            subscription: Any = subscriber.subscription
            assert subscription._handle is None
            assert subscription._permit, "the permit is lost"

        return Scenario(lambda: a.next(1), lambda: subscriber.request(1), check=check)

    exhaust(body)


@pytest.mark.checklist("O15")
def test_no_item_is_left_behind_by_a_task_that_ends() -> None:
    def body() -> Scenario:
        a, subscriber = alone(10)

        def send() -> None:
            a.next(1)
            a.next(2)

        return Scenario(send, check=lambda: subscriber.assert_items(1, 2))

    exhaust(body)


@pytest.mark.checklist("O30")
def test_an_executor_that_refuses_ends_the_flow_once() -> None:
    def refuse(task: object) -> None:
        raise RuntimeError("full")

    def body() -> Scenario:
        a, b, subscriber = two(lambda a, b: ordered_merge(a, b, executor=refuse), request=0)

        def check() -> None:
            subscriber.assert_failure(RejectedExecutionError)
            ended(subscriber)
            a.assert_cancelled()
            b.assert_cancelled()

        return Scenario(lambda: a.next(1), lambda: subscriber.request(1), check=check)

    exhaust(body)


@pytest.mark.checklist("O12")
def test_a_cancel_while_it_is_being_subscribed_reaches_the_sources() -> None:
    def body() -> Scenario:
        a = TestPublisher[int]()
        subscriber = TestSubscriber[int](3, on_item=lambda *_: step())
        made = executed(flow.Flow(a))

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert not a.subscribed or a.cancelled
            ended(subscriber)

        return Scenario(lambda: made.subscribe(subscriber), subscriber.cancel, check=check)

    exhaust(body)
