"""Sources that others push into, under every schedule within the bound."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from concurrent.futures import Future
from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Fusion
from flow_core.sources import OVERFLOWS, Emitter, Overflow
from flow_testing import ConditionalTestSubscriber, Drops, TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core", __name__], expect=expect)


def busy(*_: object) -> None:
    """A subscriber that takes its time."""
    step()


def emitting(
    overflow: Overflow = "buffer",
    request: int = 0,
    *,
    capacity: int = 16,
    fusion: Fusion = Fusion.NONE,
) -> tuple[Emitter[int], TestSubscriber[int]]:
    """Both ends of a flow that was subscribed to."""
    made: list[Emitter[int]] = []
    subscriber = TestSubscriber[int](request, fusion=fusion, on_item=busy)
    flow.create(made.append, overflow=overflow, capacity=capacity).subscribe(subscriber)
    return made[0], subscriber


def released(subscriber: TestSubscriber[int]) -> None:
    """The subscription refers to no subscriber any more (§3.13), and nothing waits in it."""
    subscription: Any = subscriber.subscription
    assert subscription._downstream is None
    assert not subscription._queue
    assert subscription._permit, "the permit is lost"
    assert not subscription._actions


POLICIES = pytest.mark.parametrize("overflow", OVERFLOWS)


# -- create: items


@POLICIES
@pytest.mark.checklist("M29")
def test_items_of_two_threads_are_delivered_one_by_one(overflow: Overflow, drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = emitting(overflow, 2)

        def check() -> None:
            subscriber.assert_not_terminated()
            # Of those that wait for a thread that delivers, the latest is kept.
            assert overflow == "latest" or len(subscriber.items) == 2
            assert sorted([*subscriber.items, *drops.items], key=repr) == [1, 2]

        return Scenario(lambda: emitter.next(1), lambda: emitter.next(2), check=check)

    exhaust(body)


@POLICIES
def test_items_of_one_thread_keep_their_order_whatever_another_sends(
    overflow: Overflow, drops: Drops
) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = emitting(overflow, 3)

        def send() -> None:
            emitter.next(1)
            emitter.next(2)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            mine = [item for item in subscriber.items if item != 3]
            assert mine == sorted(mine)
            assert sorted([*subscriber.items, *drops.items], key=repr) == [1, 2, 3]

        return Scenario(send, lambda: emitter.next(3), check=check)

    exhaust(body)


@POLICIES
def test_an_item_against_a_request_is_dealt_with_once(overflow: Overflow, drops: Drops) -> None:
    allowed = {
        "buffer": {"delivered"},
        "latest": {"delivered"},
        "missing": {"delivered"},
        "drop": {"delivered", "dropped"},
        "error": {"delivered", "failed"},
    }

    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = emitting(overflow)

        def outcome() -> str:
            # "missing" is not held to the demand (§1.1).
            if overflow != "missing":
                subscriber.assert_rules_kept()
            assert [*subscriber.items, *drops.items] == [1]
            if subscriber.items:
                assert not subscriber.terminated
                return "delivered"
            if subscriber.error is None:
                return "dropped"
            assert "not requested" in str(subscriber.error)
            released(subscriber)
            return "failed"

        return Scenario(lambda: emitter.next(1), lambda: subscriber.request(1), outcome=outcome)

    exhaust(body, allowed[overflow])


def test_an_item_does_not_overtake_one_that_waits_for_demand() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting("buffer")
        emitter.next(1)
        return Scenario(
            lambda: emitter.next(2),
            lambda: subscriber.request(2),
            check=lambda: subscriber.assert_items(1, 2).assert_not_terminated(),
        )

    exhaust(body)


def test_the_latest_item_against_a_request_takes_the_place_of_what_waits_or_follows_it(
    drops: Drops,
) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = emitting("latest")
        emitter.next(1)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept().assert_not_terminated()
            return tuple(subscriber.items), tuple(drops.items)

        return Scenario(lambda: emitter.next(2), lambda: subscriber.request(2), outcome=outcome)

    exhaust(body, {((1, 2), ()), ((2,), (1,))})


def test_two_requests_at_once_for_what_waits_add_up() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting()
        for item in (1, 2, 3):
            emitter.next(item)
        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items(1, 2),
        )

    exhaust(body)


def test_a_full_buffer_against_a_request_has_room_or_fails_after_what_waits(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = emitting("buffer", capacity=1)
        emitter.next(1)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            return (
                tuple(subscriber.items),
                type(subscriber.error).__name__,
                tuple(drops.items),
            )

        return Scenario(lambda: emitter.next(2), lambda: subscriber.request(2), outcome=outcome)

    exhaust(body, {((1, 2), "NoneType", ()), ((1,), "MissingBackpressureError", (2,))})


@POLICIES
def test_an_item_against_a_cancel_is_delivered_or_dropped(overflow: Overflow, drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = emitting(overflow, 1)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert [*subscriber.items, *drops.items] == [1]
            released(subscriber)
            return len(subscriber.items)

        return Scenario(lambda: emitter.next(1), subscriber.cancel, outcome=outcome)

    exhaust(body, {0, 1})


@POLICIES
def test_an_item_against_the_end_comes_before_it_or_is_dropped(
    overflow: Overflow, drops: Drops
) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = emitting(overflow, 1)

        def outcome() -> Hashable:
            subscriber.assert_result(*subscriber.items)
            assert [*subscriber.items, *drops.items] == [1]
            released(subscriber)
            return len(subscriber.items)

        return Scenario(lambda: emitter.next(1), emitter.complete, outcome=outcome)

    exhaust(body, {0, 1})


def test_the_end_against_a_request_comes_after_what_waits() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting()
        emitter.next(1)

        def check() -> None:
            subscriber.assert_result(1)
            released(subscriber)

        return Scenario(emitter.complete, lambda: subscriber.request(1), check=check)

    exhaust(body)


# -- create: terminals


def test_of_an_end_and_an_error_at_once_one_is_signalled(drops: Drops) -> None:
    error = ValueError("lost")

    def body() -> Scenario:
        drops.take_errors()
        emitter, subscriber = emitting()

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert subscriber.completed == (drops.take_errors() == [error])
            assert subscriber.completed == (subscriber.error is None)
            released(subscriber)
            return subscriber.completed

        return Scenario(emitter.complete, lambda: emitter.error(error), outcome=outcome)

    exhaust(body, {True, False})


@pytest.mark.parametrize("waiting", [0, 1])
def test_an_error_against_a_cancel_is_signalled_or_dropped(waiting: int, drops: Drops) -> None:
    error = ValueError("lost")

    def body() -> Scenario:
        drops.take_errors()
        emitter, subscriber = emitting()
        for item in range(waiting):
            emitter.next(item)

        def check() -> None:
            subscriber.assert_rules_kept()
            told = [] if subscriber.error is None else [subscriber.error]
            assert [*told, *drops.take_errors()] == [error]
            released(subscriber)

        return Scenario(lambda: emitter.error(error), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.parametrize("waiting", [0, 1])
@pytest.mark.checklist("M14")
def test_an_error_against_a_bad_request_is_signalled_or_dropped(waiting: int, drops: Drops) -> None:
    error = KeyError("lost")

    def body() -> Scenario:
        drops.take_errors()
        emitter, subscriber = emitting()
        for item in range(waiting):
            emitter.next(item)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert not subscriber.completed
            told = [subscriber.error] if isinstance(subscriber.error, KeyError) else []
            assert [*told, *drops.take_errors()] == [error]
            released(subscriber)
            return type(subscriber.error).__name__

        return Scenario(
            lambda: emitter.error(error),
            lambda: subscriber.subscription.request(0),
            outcome=outcome,
        )

    # What waits for demand keeps the error back.
    exhaust(body, {"ValueError"} if waiting else {"ValueError", "KeyError"})


def test_an_error_against_an_on_next_that_raises_is_not_lost(drops: Drops) -> None:
    def body() -> Scenario:
        failure, error = KeyError("downstream"), ValueError("emitter")  # each raise adds to a trace
        drops.take_errors()
        made: list[Emitter[int]] = []
        told: list[BaseException] = []

        def fail(_: int) -> None:
            step()
            raise failure

        flow.create(made.append).subscribe(fail, told.append)
        emitter = made[0]

        def outcome() -> Hashable:
            dropped = drops.take_errors()
            assert {*told, *dropped} == ({failure, error} if failure in told else {error})
            assert len(told) == 1
            return told[0] is failure

        return Scenario(lambda: emitter.next(1), lambda: emitter.error(error), outcome=outcome)

    exhaust(body, {True, False})


@POLICIES
@pytest.mark.checklist("M14")
def test_a_bad_request_waits_for_a_running_on_next(overflow: Overflow, drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = emitting(overflow, 1)

        def check() -> None:
            subscriber.assert_failure(ValueError, *subscriber.items)
            assert [*subscriber.items, *drops.items] == [1]
            released(subscriber)

        return Scenario(
            lambda: emitter.next(1), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


def test_two_cancels_and_the_end_run_what_cleans_up_once() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting()
        ran: list[str] = []
        emitter.on_dispose(lambda: ran.append("dispose"))
        emitter.on_cancel(lambda: ran.append("cancel"))
        subscription = subscriber.subscription

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            released(subscriber)
            return tuple(ran)

        return Scenario(subscription.cancel, subscription.cancel, emitter.complete, outcome=outcome)

    exhaust(body, {("dispose",), ("cancel", "dispose")})


@pytest.mark.parametrize("how", ["cancel", "complete", "bad request"])
def test_an_action_for_dispose_runs_once_however_late_it_is_added(how: str) -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting()
        ran: list[str] = []
        end = {
            "cancel": subscriber.cancel,
            "complete": emitter.complete,
            "bad request": lambda: subscriber.subscription.request(0),
        }[how]

        def check() -> None:
            subscriber.assert_rules_kept()
            assert ran == ["dispose"]

        return Scenario(end, lambda: emitter.on_dispose(lambda: ran.append("dispose")), check=check)

    exhaust(body)


def test_an_action_for_cancel_runs_once_however_late_it_is_added() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting()
        ran: list[str] = []

        def check() -> None:
            assert ran == ["cancel"]

        return Scenario(
            subscriber.cancel,
            lambda: emitter.on_cancel(lambda: ran.append("cancel")),
            check=check,
        )

    exhaust(body)


# -- create: on_request


def test_a_request_during_the_delivery_of_an_item_is_reported() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting("buffer", 1)
        told: list[int] = []
        emitter.on_request(told.append)

        def check() -> None:
            subscriber.assert_items(1)
            assert sum(told) == 3

        return Scenario(lambda: emitter.next(1), lambda: subscriber.request(2), check=check)

    exhaust(body)


def test_two_requests_at_once_are_reported_one_by_one() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting()
        told: list[int] = []
        running: list[int] = []

        def tell(n: int) -> None:
            assert not running, "calls overlap"
            running.append(n)
            step()
            told.append(running.pop())

        emitter.on_request(tell)

        def check() -> None:
            assert sum(told) == 3

        return Scenario(lambda: subscriber.request(1), lambda: subscriber.request(2), check=check)

    exhaust(body)


def test_a_producer_that_sends_the_reported_amount_keeps_the_demand() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting("error")
        sent: list[int] = []

        def send(n: int) -> None:
            for _ in range(n):
                sent.append(len(sent))
                emitter.next(sent[-1])

        emitter.on_request(send)
        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items(0, 1).assert_not_terminated(),
        )

    exhaust(body)


def declining(overflow: Overflow, request: int) -> tuple[Emitter[int], TestSubscriber[int]]:
    """Both ends of a flow whose subscriber turns every item down."""

    def decline(_: int) -> bool:
        step()
        return False

    made: list[Emitter[int]] = []
    subscriber = ConditionalTestSubscriber[int](decline, request)
    flow.create(made.append, overflow=overflow).subscribe(subscriber)
    return made[0], subscriber


@POLICIES
def test_an_item_that_is_turned_down_against_a_request_is_requested_again(
    overflow: Overflow,
) -> None:
    def body() -> Scenario:
        emitter, subscriber = declining(overflow, 1)
        told: list[int] = []
        emitter.on_request(told.append)

        def check() -> None:
            assert sum(told) == 4
            assert emitter.requested == 3

        return Scenario(lambda: emitter.next(1), lambda: subscriber.request(2), check=check)

    exhaust(body)


# Of "latest", one of them may take the place of the other.
@pytest.mark.parametrize("overflow", ["buffer", "error", "drop", "missing"])
def test_items_of_two_threads_that_are_turned_down_are_requested_again(overflow: Overflow) -> None:
    def body() -> Scenario:
        emitter, _ = declining(overflow, 2)
        told: list[int] = []
        emitter.on_request(told.append)

        def check() -> None:
            assert sum(told) == 4
            assert emitter.requested == 2

        return Scenario(lambda: emitter.next(1), lambda: emitter.next(2), check=check)

    exhaust(body)


@POLICIES
def test_an_item_turned_down_while_the_function_is_set_is_requested_at_most_once(
    overflow: Overflow,
) -> None:
    def body() -> Scenario:
        emitter, _ = declining(overflow, 2)
        told: list[int] = []

        def outcome() -> int:
            assert emitter.requested == 2
            return sum(told)

        return Scenario(
            lambda: emitter.next(1), lambda: emitter.on_request(told.append), outcome=outcome
        )

    # Sent before the function was set, it was sent unasked: it gives nothing more to ask for.
    exhaust(body, {2, 3})


@POLICIES
def test_a_producer_with_items_that_are_turned_down_sends_until_it_is_cancelled(
    overflow: Overflow, drops: Drops
) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = declining(overflow, 0)
        sent: list[int] = []
        running: list[int] = []

        def send(n: int) -> None:
            assert not running, "calls overlap"
            running.append(n)
            for _ in range(n):
                if len(sent) < 3:
                    sent.append(len(sent))
                    emitter.next(sent[-1])
            running.pop()

        emitter.on_request(send)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept().assert_not_terminated()
            released(subscriber)
            return len(sent)

        return Scenario(lambda: subscriber.request(1), subscriber.cancel, outcome=outcome)

    exhaust(body, {0, 1, 2, 3})


def test_a_request_while_the_function_is_set_is_reported_once() -> None:
    def body() -> Scenario:
        emitter, subscriber = emitting()
        told: list[int] = []

        def check() -> None:
            assert sum(told) == 2

        return Scenario(
            lambda: emitter.on_request(told.append), lambda: subscriber.request(2), check=check
        )

    exhaust(body)


# -- create: fused


def fused(request: int = 0) -> tuple[Emitter[int], TestSubscriber[int]]:
    emitter, subscriber = emitting("buffer", request, fusion=Fusion.ASYNC)
    assert subscriber.fused is Fusion.ASYNC
    return emitter, subscriber


@pytest.mark.checklist("F26")
def test_fused_an_item_against_a_request_is_polled() -> None:
    def body() -> Scenario:
        emitter, subscriber = fused()
        return Scenario(
            lambda: emitter.next(1),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items(1).assert_not_terminated(),
        )

    exhaust(body)


@pytest.mark.checklist("F26")
def test_fused_items_of_two_threads_are_polled() -> None:
    def body() -> Scenario:
        emitter, subscriber = fused(2)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert sorted(subscriber.items) == [1, 2]

        return Scenario(lambda: emitter.next(1), lambda: emitter.next(2), check=check)

    exhaust(body)


@pytest.mark.parametrize("ends", ["complete", "error"])
@pytest.mark.checklist("F26", "F33")
def test_fused_the_terminal_comes_after_what_is_polled_meanwhile(ends: str) -> None:
    error = ValueError("lost")

    def body() -> Scenario:
        emitter, subscriber = fused()
        emitter.next(1)
        end = emitter.complete if ends == "complete" else lambda: emitter.error(error)

        def check() -> None:
            if ends == "complete":
                subscriber.assert_result(1)
            else:
                subscriber.assert_failure(error, 1)
            released(subscriber)

        return Scenario(end, lambda: subscriber.request(1), check=check)

    exhaust(body)


@pytest.mark.checklist("F26")
def test_fused_an_item_and_the_end_against_a_request() -> None:
    def body() -> Scenario:
        emitter, subscriber = fused()

        def send() -> None:
            emitter.next(1)
            emitter.complete()

        def check() -> None:
            subscriber.assert_result(1)
            released(subscriber)

        return Scenario(send, lambda: subscriber.request(2), check=check)

    exhaust(body)


@pytest.mark.checklist("F26")
def test_fused_a_cancel_while_it_is_polled_empties_the_queue(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = fused()
        emitter.next(1)
        emitter.next(2)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert [*subscriber.items, *drops.items] == [1, 2]
            released(subscriber)

        return Scenario(lambda: subscriber.request(2), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("F26")
def test_fused_a_cancel_against_an_item_leaves_nothing_behind(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = fused(1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert [*subscriber.items, *drops.items] == [1]
            released(subscriber)

        return Scenario(lambda: emitter.next(1), subscriber.cancel, check=check)

    exhaust(body)


# -- from_future


def resolve(future: Future[int]) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(1)


def test_a_result_against_the_subscribe_comes_once() -> None:
    def body() -> Scenario:
        future: Future[int] = Future()
        subscriber = TestSubscriber[int](1, on_item=busy)
        source = flow.from_future(future)
        return Scenario(
            lambda: source.subscribe(subscriber),
            lambda: resolve(future),
            check=lambda: subscriber.assert_result(1),
        )

    exhaust(body)


def test_a_result_against_a_request_comes_once() -> None:
    def body() -> Scenario:
        future: Future[int] = Future()
        subscriber = TestSubscriber[int](0, on_item=busy)
        flow.from_future(future).subscribe(subscriber)
        return Scenario(
            lambda: resolve(future),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_result(1),
        )

    exhaust(body)


@pytest.mark.parametrize("cancel", [False, True])
def test_a_result_against_a_cancel_comes_at_most_once(cancel: bool, drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        future: Future[int] = Future()
        subscriber = TestSubscriber[int](1, on_item=busy)
        flow.from_future(future, cancel=cancel).subscribe(subscriber)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert len([*subscriber.items, *drops.items]) <= 1
            assert cancel or not future.cancelled()
            assert not (future.cancelled() and subscriber.items)
            released(subscriber)
            return subscriber.completed

        return Scenario(lambda: resolve(future), subscriber.cancel, outcome=outcome)

    exhaust(body, {True, False})


def test_an_error_of_a_future_against_a_cancel_is_signalled_at_most_once(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_errors()
        error = ValueError("lost")  # anew: a traceback would be another one each time
        future: Future[int] = Future()
        subscriber = TestSubscriber[int](1)
        flow.from_future(future).subscribe(subscriber)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            dropped = drops.take_errors()
            assert dropped in ([], [error])
            released(subscriber)
            assert subscriber.error is None or not dropped
            return subscriber.error is error

        return Scenario(lambda: future.set_exception(error), subscriber.cancel, outcome=outcome)

    exhaust(body, {True, False})


def test_a_future_is_cancelled_by_one_subscriber_while_another_subscribes(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_errors()
        future: Future[int] = Future()
        source = flow.from_future(future, cancel=True)
        one, other = TestSubscriber[int](1), TestSubscriber[int](1)
        source.subscribe(one)

        def check() -> None:
            one.assert_rules_kept().assert_not_terminated()
            other.assert_rules_kept()
            assert type(other.error).__name__ == "CancelledError"

        return Scenario(one.cancel, lambda: source.subscribe(other), check=check)

    exhaust(body)
