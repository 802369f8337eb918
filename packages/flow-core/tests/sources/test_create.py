"""`create`: what a function pushes, under each policy."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import EMPTY, UNBOUNDED, CoreSubscriber, Emitter, Flow, Fusion, Subscription
from flow_core.errors import (
    FlowError,
    MissingBackpressureError,
    NoneItemError,
    ProtocolViolationError,
)
from flow_core.protocols import QueueSubscription
from flow_core.sources._emitter import OVERFLOWS, Overflow
from flow_testing import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    Drops,
    TestSubscriber,
    assert_result,
    race,
)


class FailureError(Exception):
    pass


each_policy = pytest.mark.parametrize("overflow", OVERFLOWS)


def pushing(*items: int) -> Callable[[Emitter[int]], None]:
    def push(emitter: Emitter[int]) -> None:
        for item in items:
            emitter.next(item)
        emitter.complete()

    return push


def kept(
    request: int = UNBOUNDED, **options: Any
) -> tuple[Emitter[int], TestSubscriber[int], Flow[int]]:
    """An emitter that was kept, and its subscriber."""
    emitters: list[Emitter[int]] = []
    made = flow.create(emitters.append, **options)
    subscriber = TestSubscriber[int](request)
    made.subscribe(subscriber)
    return emitters[0], subscriber, made


# -- what every policy does


def test_create_gives_what_the_function_pushes() -> None:
    assert_result(lambda: flow.create(pushing(1, 2, 3)), [1, 2, 3])
    assert_result(lambda: flow.create(pushing()), [])
    assert_result(lambda: flow.create(pushing(*range(9))).map(str).skip(6), ["6", "7", "8"])
    assert_result(lambda: flow.create(pushing(*range(9))).take(2), [0, 1])


@each_policy
def test_create_gives_what_is_requested(overflow: Overflow) -> None:
    emitter, subscriber, _ = kept(overflow=overflow)
    for item in range(5):
        emitter.next(item)
        subscriber.assert_items(*range(item + 1))
    emitter.complete()
    subscriber.assert_result(0, 1, 2, 3, 4)


@each_policy
def test_an_error_of_the_function_fails_the_flow(overflow: Overflow) -> None:
    error = FailureError()

    def push(emitter: Emitter[int]) -> None:
        emitter.next(1)
        raise error

    subscriber = TestSubscriber[int]()
    flow.create(push, overflow=overflow).subscribe(subscriber)
    subscriber.assert_failure(error, 1)
    if overflow == "buffer":
        assert_result(lambda: flow.create(push), [1], error)


@pytest.mark.checklist("X10")
@each_policy
def test_a_fatal_error_of_the_function_propagates(overflow: Overflow) -> None:
    closed: list[str] = []

    def push(emitter: Emitter[int]) -> None:
        emitter.on_dispose(lambda: closed.append("closed"))
        raise KeyboardInterrupt

    subscriber = TestSubscriber[int]()
    with pytest.raises(KeyboardInterrupt):
        flow.create(push, overflow=overflow).subscribe(subscriber)
    assert not subscriber.terminated
    assert closed == ["closed"]


def test_a_fatal_error_is_raised_and_fails_the_flow_with_a_flow_error() -> None:
    emitter, subscriber, _ = kept()
    error = SystemExit()
    with pytest.raises(SystemExit):
        emitter.error(error)
    subscriber.assert_failure(FlowError)
    assert subscriber.error is not None
    assert subscriber.error.__cause__ is error
    assert "was ended by SystemExit" in str(subscriber.error)


@each_policy
def test_the_function_is_called_for_each_subscriber_once_it_has_its_subscription(
    overflow: Overflow,
) -> None:
    events: list[str] = []

    class Noting(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            events.append("subscribed")

    def push(emitter: Emitter[int]) -> None:
        events.append(f"called, {emitter.requested} requested")
        emitter.complete()

    made = flow.create(push, overflow=overflow)
    made.subscribe(Noting(2))
    made.subscribe(Noting(3))
    assert events == ["subscribed", "called, 2 requested", "subscribed", "called, 3 requested"]


def test_the_function_is_not_called_for_a_subscriber_that_has_cancelled() -> None:
    called: list[object] = []
    subscriber = TestSubscriber[int]()
    subscriber.cancel()
    flow.create(called.append).subscribe(subscriber)
    assert called == []


def test_an_async_function_is_refused_with_a_hint() -> None:
    async def push(emitter: Emitter[int]) -> None: ...

    with pytest.raises(TypeError, match="from_async_iterable"):
        flow.create(push)
    subscriber = TestSubscriber[int]()
    flow.create(lambda emitter: push(emitter)).subscribe(subscriber)
    subscriber.assert_failure(TypeError)
    assert "from_async_iterable" in str(subscriber.error)


def test_create_checks_what_it_is_given() -> None:
    with pytest.raises(ValueError, match="one of buffer, error, drop, latest, missing"):
        flow.create(pushing(), overflow="none")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match="capacity must be at least 1"):
        flow.create(pushing(), capacity=0)
    emitter, subscriber, made = kept()
    with pytest.raises(NoneItemError):
        emitter.next(None)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="takes an exception"):
        emitter.error("text")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="takes a function or something with dispose"):
        emitter.on_dispose(5)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="takes a function"):
        emitter.on_request(5)  # type: ignore[arg-type]  # the mistake
    subscriber.assert_not_terminated().cancel()
    assert repr(made) == "create(append)"


@each_policy
def test_signals_after_the_end_go_to_the_hooks(overflow: Overflow, drops: Drops) -> None:
    emitter, subscriber, _ = kept(overflow=overflow)
    emitter.complete()
    emitter.next(1)
    emitter.error(error := FailureError())
    emitter.complete()
    subscriber.assert_result()
    assert drops.take_items() == [1]
    assert drops.take_errors() == [error]
    assert emitter.cancelled
    assert emitter.requested == 0


@each_policy
def test_signals_after_a_cancel_go_to_the_hooks(overflow: Overflow, drops: Drops) -> None:
    emitter, subscriber, _ = kept(overflow=overflow)
    emitter.next(1)
    assert not emitter.cancelled
    subscriber.cancel()
    assert emitter.cancelled
    emitter.next(2)
    emitter.error(error := FailureError())
    subscriber.assert_items(1).assert_silent_after_cancel()
    assert drops.take_items() == [2]
    assert drops.take_errors() == [error]


@each_policy
def test_a_bad_request_ends_the_flow(overflow: Overflow) -> None:
    closed: list[str] = []
    emitter, subscriber, _ = kept(0, overflow=overflow)
    emitter.on_cancel(lambda: closed.append("cancelled"))
    emitter.on_dispose(lambda: closed.append("disposed"))
    subscriber.request(-1)
    subscriber.assert_failure(ValueError)
    assert "§3.9" in str(subscriber.error)
    assert closed == ["cancelled", "disposed"]
    assert emitter.cancelled


@each_policy
def test_a_subscriber_that_raises_ends_the_flow(overflow: Overflow, drops: Drops) -> None:
    error = FailureError()

    def fail(_: TestSubscriber[int], item: int) -> None:
        raise error

    emitters: list[Emitter[int]] = []
    subscriber = TestSubscriber[int](on_item=fail)
    flow.create(emitters.append, overflow=overflow).subscribe(subscriber)
    closed: list[str] = []
    emitters[0].on_dispose(lambda: closed.append("closed"))
    emitters[0].next(1)
    emitters[0].next(2)
    assert subscriber.items == [1]
    assert emitters[0].cancelled
    assert closed == ["closed"]
    assert drops.take_errors() == [error]
    assert drops.take_items() == [2]


@pytest.mark.checklist("F12")
@pytest.mark.parametrize("overflow", ["buffer", "error", "drop"])
def test_an_item_that_is_turned_down_costs_no_demand(overflow: Overflow) -> None:
    emitters: list[Emitter[int]] = []
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2, 2)
    flow.create(emitters.append, overflow=overflow).subscribe(subscriber)
    for item in range(4):
        emitters[0].next(item)
    assert emitters[0].requested == 0
    subscriber.assert_items(1, 3)
    assert subscriber.rejected == [0, 2]
    emitters[0].complete()


# -- overflow


def test_a_buffer_keeps_what_is_not_requested() -> None:
    emitter, subscriber, _ = kept(1, capacity=3)
    for item in range(4):
        emitter.next(item)
    emitter.complete()
    subscriber.assert_items(0).assert_not_terminated().request(2)
    subscriber.assert_items(0, 1, 2).assert_not_terminated().request(1)
    subscriber.assert_result(0, 1, 2, 3)


def test_a_full_buffer_fails_the_flow_after_what_waits(drops: Drops) -> None:
    emitter, subscriber, _ = kept(1, capacity=2)
    closed: list[str] = []
    emitter.on_dispose(lambda: closed.append("closed"))
    for item in range(5):
        emitter.next(item)
    assert emitter.cancelled
    assert closed == ["closed"]
    subscriber.assert_items(0).assert_not_terminated().request(5)
    subscriber.assert_failure(MissingBackpressureError, 0, 1, 2)
    assert "2 wait" in str(subscriber.error)
    assert drops.take_items() == [3, 4]


def test_a_buffer_without_a_bound_has_to_be_asked_for() -> None:
    emitter, subscriber, _ = kept(0, capacity=UNBOUNDED)
    for item in range(10_000):
        emitter.next(item)
    emitter.complete()
    subscriber.request(UNBOUNDED)
    subscriber.assert_result(*range(10_000))


def test_policy_error_fails_with_the_first_item_that_is_not_requested(drops: Drops) -> None:
    emitter, subscriber, _ = kept(2, overflow="error")
    for item in range(4):
        emitter.next(item)
    subscriber.assert_failure(MissingBackpressureError, 0, 1)
    assert "not requested" in str(subscriber.error)
    assert drops.take_items() == [2, 3]


def test_policy_drop_drops_what_is_not_requested(drops: Drops) -> None:
    emitter, subscriber, _ = kept(2, overflow="drop")
    for item in range(4):
        emitter.next(item)
    subscriber.request(1)
    emitter.next(4)
    emitter.complete()
    subscriber.assert_result(0, 1, 4)
    assert drops.take_items() == [2, 3]


def test_policy_latest_keeps_the_last_item(drops: Drops) -> None:
    emitter, subscriber, _ = kept(1, overflow="latest")
    for item in range(4):
        emitter.next(item)
    subscriber.request(2)
    subscriber.assert_items(0, 3)
    emitter.next(4)
    emitter.next(5)
    emitter.complete()
    subscriber.assert_items(0, 3, 4).assert_not_terminated().request(1)
    subscriber.assert_result(0, 3, 4, 5)
    assert drops.take_items() == [1, 2]


def test_policy_missing_delivers_without_demand() -> None:
    emitters: list[Emitter[int]] = []
    seen: list[int] = []

    class Careless(CoreSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None: ...
        def on_next(self, item: int, /) -> None:
            seen.append(item)

        def on_error(self, error: BaseException, /) -> None: ...
        def on_complete(self) -> None:
            seen.append(-1)

    flow.create(emitters.append, overflow="missing").subscribe(Careless())
    for item in range(3):
        emitters[0].next(item)
    emitters[0].complete()
    assert seen == [0, 1, 2, -1]


@each_policy
def test_items_wait_while_another_thread_delivers_as_far_as_there_is_room(
    overflow: Overflow, drops: Drops
) -> None:
    entered, leave = Event(), Event()

    def block(_: TestSubscriber[int], item: int) -> None:
        if item == 0:
            entered.set()
            assert leave.wait(TIMEOUT_S)

    emitters: list[Emitter[int]] = []
    subscriber = TestSubscriber[int](on_item=block)
    flow.create(emitters.append, overflow=overflow, capacity=2).subscribe(subscriber)
    thread = Thread(target=emitters[0].next, args=(0,))
    thread.start()
    assert entered.wait(TIMEOUT_S)
    for item in (1, 2, 3):
        emitters[0].next(item)
    leave.set()
    thread.join(TIMEOUT_S)
    emitters[0].complete()
    if overflow == "latest":
        subscriber.assert_result(0, 3)
        assert drops.take_items() == [1, 2]
    elif overflow == "drop":
        subscriber.assert_result(0, 1, 2)
        assert drops.take_items() == [3]
    else:
        subscriber.assert_failure(MissingBackpressureError, 0, 1, 2)
        assert drops.take_items() == [3]


def test_waiting_signals_go_to_the_hook_when_the_flow_is_cancelled(drops: Drops) -> None:
    emitter, subscriber, _ = kept(1)
    for item in range(3):
        emitter.next(item)
    emitter.error(error := FailureError())
    subscriber.cancel()
    subscriber.assert_items(0).assert_silent_after_cancel()
    assert drops.take_items() == [1, 2]
    assert drops.take_errors() == [error]


# -- many threads


@pytest.mark.checklist("X02")
@each_policy
def test_threads_that_emit_at_once_are_put_in_some_order(overflow: Overflow) -> None:
    for _ in range(50):
        emitter, subscriber, _ = kept(overflow=overflow, capacity=UNBOUNDED)

        def push(
            first: int, emitter: Emitter[int] = emitter, *, count: int = 20
        ) -> Callable[[], None]:
            def run() -> None:
                for item in range(first, first + count):
                    emitter.next(item)

            return run

        race(push(0), push(100), push(200))
        emitter.complete()
        subscriber.assert_rules_kept()
        assert subscriber.completed
        if overflow != "latest":
            assert sorted(subscriber.items) == [*range(20), *range(100, 120), *range(200, 220)]
        for first in (0, 100, 200):
            mine = [item for item in subscriber.items if first <= item < first + 100]
            assert mine == sorted(mine)


@pytest.mark.parametrize("overflow", ["buffer", "error", "drop"])
def test_no_wake_up_is_lost_between_requests_and_items(overflow: Overflow) -> None:
    for _ in range(100):
        # Only a buffer keeps what comes before it is requested, and keeps it in order.
        emitter, subscriber, _ = kept(0 if overflow == "buffer" else 10, overflow=overflow)

        def push(emitter: Emitter[int] = emitter) -> None:
            for item in range(10):
                emitter.next(item)
            emitter.complete()

        def request(subscriber: TestSubscriber[int] = subscriber) -> None:
            for _ in range(10):
                subscriber.request(1)

        race(push, request)
        subscriber.assert_result(*range(10))


@each_policy
def test_a_cancel_that_races_with_items_ends_them(overflow: Overflow, drops: Drops) -> None:
    for _ in range(100):
        emitter, subscriber, _ = kept(overflow=overflow)
        closed: list[str] = []
        emitter.on_dispose(lambda closed=closed: closed.append("closed"))

        def push(emitter: Emitter[int] = emitter) -> None:
            for item in range(10):
                emitter.next(item)

        race(push, subscriber.cancel)
        subscriber.assert_rules_kept()
        assert sorted(subscriber.items + drops.take_items()) == list(range(10))
        assert closed == ["closed"]


@each_policy
def test_ends_that_race_end_the_flow_once(overflow: Overflow, drops: Drops) -> None:
    error = FailureError()
    for _ in range(100):
        emitter, subscriber, _ = kept(overflow=overflow)
        closed: list[str] = []
        emitter.on_dispose(lambda closed=closed: closed.append("closed"))
        race(
            emitter.complete,
            lambda emitter=emitter: emitter.error(error),
            lambda emitter=emitter: emitter.next(1),
        )
        subscriber.assert_rules_kept()
        assert subscriber.terminated
        assert closed == ["closed"]
        assert len(subscriber.items) + len(drops.take_items()) == 1
        assert drops.take_errors() == ([error] if subscriber.completed else [])


# -- the emitter's actions


def test_actions_run_once_when_the_flow_was_ended() -> None:
    emitter, subscriber, _ = kept()
    events: list[str] = []
    emitter.on_cancel(lambda: events.append("cancel"))
    emitter.on_dispose(lambda: events.append("first"))
    emitter.on_dispose(lambda: events.append("second"))
    emitter.complete()
    assert events == ["first", "second"]
    emitter.on_dispose(lambda: events.append("late"))
    emitter.on_cancel(lambda: events.append("never"))
    subscriber.cancel()
    assert events == ["first", "second", "late"]


def test_actions_run_once_when_the_flow_is_cancelled() -> None:
    emitter, subscriber, _ = kept()
    events: list[str] = []
    emitter.on_dispose(lambda: events.append("dispose"))
    emitter.on_cancel(lambda: events.append("cancel"))
    subscriber.cancel()
    subscriber.cancel()
    assert events == ["cancel", "dispose"]
    emitter.on_cancel(lambda: events.append("late"))
    assert events == ["cancel", "dispose", "late"]


def test_an_action_may_be_a_disposable() -> None:
    inner = flow.never().subscribe()
    emitter, subscriber, _ = kept()
    emitter.on_dispose(inner)
    assert not inner.disposed
    subscriber.cancel()
    assert inner.disposed


def test_an_error_of_an_action_goes_to_the_hook(drops: Drops) -> None:
    emitter, _, _ = kept()
    events: list[str] = []
    error = FailureError()

    def fail() -> None:
        raise error

    emitter.on_dispose(fail)
    emitter.on_dispose(lambda: events.append("second"))
    emitter.complete()
    assert events == ["second"]
    assert drops.take_errors() == [error]


def test_on_request_receives_the_demand_that_is_open_and_each_later_request() -> None:
    emitter, subscriber, _ = kept(3)
    emitter.next(1)
    amounts: list[int] = []
    emitter.on_request(amounts.append)
    assert amounts == [2]
    subscriber.request(4)
    subscriber.request(UNBOUNDED)
    assert amounts == [2, 4, UNBOUNDED]
    emitter.complete()
    subscriber.request(1)
    assert amounts == [2, 4, UNBOUNDED]


def test_on_request_is_not_called_before_something_is_requested() -> None:
    emitter, subscriber, _ = kept(0)
    amounts: list[int] = []
    emitter.on_request(amounts.append)
    assert amounts == []
    subscriber.request(1)
    assert amounts == [1]


@pytest.mark.slow
@each_policy
def test_items_that_on_request_sends_need_no_room(overflow: Overflow) -> None:
    def push(emitter: Emitter[int]) -> None:
        numbers = iter(range(10_000))

        def answer(n: int) -> None:
            for _, item in zip(range(n), numbers, strict=False):
                emitter.next(item)
                if item == 9_999:
                    emitter.complete()

        emitter.on_request(answer)

    for request, more in ((UNBOUNDED, 0), (1, 1), (2, 3), (10_000, 0)):

        def on_item(subscriber: TestSubscriber[int], _: int, more: int = more) -> None:
            if more:
                subscriber.request(more)

        # Also from within on_next, and in constant stack.
        subscriber = TestSubscriber[int](request, on_item=on_item)
        flow.create(push, overflow=overflow, capacity=1).subscribe(subscriber)
        subscriber.assert_result(*range(10_000))


@pytest.mark.checklist("F12")
@each_policy
def test_on_request_is_called_again_for_items_that_are_turned_down(overflow: Overflow) -> None:
    for request, total in ((1, 10_000), (128, 1_000), (1_000, 1_000), (UNBOUNDED, 1_000)):

        def push(emitter: Emitter[int], total: int = total) -> None:
            numbers = iter(range(total))

            def answer(n: int) -> None:
                for _, item in zip(range(n), numbers, strict=False):
                    emitter.next(item)
                    if item == total - 1:
                        emitter.complete()

            emitter.on_request(answer)

        # All but the last one are turned down, in constant stack.
        subscriber = ConditionalTestSubscriber[int](lambda n, last=total - 1: n == last, request)
        flow.create(push, overflow=overflow, capacity=1).subscribe(subscriber)
        subscriber.assert_result(total - 1)
        filtered = TestSubscriber[int](request)
        made = flow.create(push, overflow=overflow, capacity=1)
        made.filter(lambda n, last=total - 1: n == last).subscribe(filtered)
        filtered.assert_result(total - 1)


@pytest.mark.parametrize("overflow", ["buffer", "error", "drop", "missing"])
def test_on_request_is_called_again_for_items_that_wait_and_are_turned_down(
    overflow: Overflow,
) -> None:
    emitters: list[Emitter[int]] = []

    def turn_down(item: int) -> bool:
        if item == 0:
            emitters[0].next(1)  # waits until this one was dealt with
        return False

    amounts: list[int] = []
    subscriber = ConditionalTestSubscriber[int](turn_down, 2)
    flow.create(emitters.append, overflow=overflow).subscribe(subscriber)
    emitters[0].on_request(amounts.append)
    assert amounts == [2]
    emitters[0].next(0)
    assert subscriber.rejected == [0, 1]
    assert sum(amounts) == 4
    assert emitters[0].requested == 2
    subscriber.cancel()


def test_on_request_is_not_called_from_within_on_next() -> None:
    inside = 0

    class Nested(TestSubscriber[int]):
        def on_next(self, item: int, /) -> None:
            nonlocal inside
            inside += 1
            super().on_next(item)
            inside -= 1

    def answer(n: int) -> None:
        assert inside == 0
        if n == 3:
            for item in (1, 2, 3):
                emitters[0].next(item)
            emitters[0].complete()

    emitters: list[Emitter[int]] = []
    subscriber = Nested(1, on_item=lambda self, item: None if item else self.request(3))
    flow.create(emitters.append, capacity=1).subscribe(subscriber)
    emitters[0].on_request(answer)
    emitters[0].next(0)
    subscriber.assert_result(0, 1, 2, 3)


def test_on_request_is_called_one_at_a_time_and_misses_nothing() -> None:
    for _ in range(50):
        emitter, subscriber, _ = kept(0)
        inside = 0
        total = 0

        def answer(n: int) -> None:
            nonlocal inside, total
            inside += 1
            assert inside == 1
            total += n
            inside -= 1

        emitter.on_request(answer)
        request = subscriber.request
        race(*[lambda request=request: [request(1) for _ in range(10)]] * 3)
        assert total == 30
        subscriber.assert_not_terminated().cancel()


def test_an_error_of_on_request_fails_the_flow() -> None:
    emitter, subscriber, _ = kept(0)
    error = FailureError()

    def fail(_: int) -> None:
        raise error

    emitter.on_request(fail)
    subscriber.request(1)
    subscriber.assert_failure(error)


def test_requested_says_what_would_be_delivered() -> None:
    emitter, subscriber, _ = kept(2)
    assert emitter.requested == 2
    emitter.next(1)
    assert emitter.requested == 1
    emitter.next(2)
    emitter.next(3)
    assert emitter.requested == 0
    subscriber.request(3)
    assert emitter.requested == 2
    subscriber.request(UNBOUNDED)
    assert emitter.requested == UNBOUNDED
    subscriber.cancel()


# -- fusion


@pytest.mark.checklist("F23")
@pytest.mark.parametrize("mode", [Fusion(mask) for mask in range(8)])
@each_policy
def test_a_buffer_grants_async_when_asked(overflow: Overflow, mode: Fusion) -> None:
    subscriber = TestSubscriber[int](0, fusion=mode)
    flow.create(lambda _: None, overflow=overflow).subscribe(subscriber)
    assert subscriber.fused == (mode & Fusion.ASYNC if overflow == "buffer" else Fusion.NONE)
    subscriber.assert_rules_kept().cancel()


class Polling(CoreSubscriber[int]):
    """Is woken, and polls when the test says so, as a drain on another thread would."""

    def __init__(self) -> None:
        self.queue: QueueSubscription[int] | None = None
        self.signals: list[object] = []

    def on_subscribe(self, subscription: Subscription, /) -> None:
        assert isinstance(subscription, QueueSubscription)
        self.queue = subscription
        assert subscription.request_fusion(Fusion.ANY | Fusion.THREAD_BOUNDARY) is Fusion.ASYNC

    def on_next(self, item: int, /) -> None:
        self.signals.append(item)

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(error)

    def on_complete(self) -> None:
        self.signals.append("|")


def polled(**options: Any) -> tuple[Emitter[int], Polling, QueueSubscription[int]]:
    emitters: list[Emitter[int]] = []
    subscriber = Polling()
    flow.create(emitters.append, **options).subscribe(subscriber)
    assert subscriber.queue is not None
    return emitters[0], subscriber, subscriber.queue


@pytest.mark.checklist("F26", "F31")
def test_a_fused_subscriber_is_woken_and_polls() -> None:
    emitter, subscriber, queue = polled()
    emitter.next(1)
    assert subscriber.signals == []
    assert queue.is_empty()
    assert queue.poll() is EMPTY
    queue.request(2)
    assert subscriber.signals == [EMPTY]
    assert not queue.is_empty()
    assert queue.poll() == 1
    assert queue.poll() is EMPTY
    emitter.next(2)
    assert subscriber.signals == [EMPTY, EMPTY]
    assert (queue.poll(), queue.poll()) == (2, EMPTY)


@pytest.mark.checklist("F26", "F33")
@pytest.mark.parametrize("error", [None, FailureError()])
def test_a_fused_subscriber_hears_of_the_end_once_everything_was_polled(
    error: FailureError | None,
) -> None:
    emitter, subscriber, queue = polled()
    queue.request(5)
    emitter.next(1)
    emitter.next(2)
    if error is None:
        emitter.complete()
    else:
        emitter.error(error)
    end = "|" if error is None else error
    assert end not in subscriber.signals
    assert queue.poll() == 1
    assert end not in subscriber.signals
    assert queue.poll() == 2
    assert subscriber.signals[-1] is end
    assert subscriber.signals.count(end) == 1
    assert queue.poll() is EMPTY


def test_fused_items_are_bounded_by_the_capacity(drops: Drops) -> None:
    emitter, subscriber, queue = polled(capacity=2)
    queue.request(UNBOUNDED)
    for item in range(3):
        emitter.next(item)
    assert (queue.poll(), queue.poll()) == (0, 1)
    assert isinstance(subscriber.signals[-1], MissingBackpressureError)
    assert drops.take_items() == [2]


def test_clear_and_cancel_discard_what_a_fused_subscriber_has_not_polled(drops: Drops) -> None:
    emitter, _, queue = polled()
    queue.request(5)
    emitter.next(1)
    queue.clear()
    assert queue.is_empty()
    emitter.next(2)
    queue.cancel()
    assert queue.poll() is EMPTY
    assert drops.take_items() == [1, 2]


@pytest.mark.checklist("F24", "F47")
def test_fusion_is_negotiated_once_and_first() -> None:
    emitter, _, queue = polled()
    with pytest.raises(ProtocolViolationError):
        queue.request_fusion(Fusion.ANY)
    emitter.complete()


def test_a_fused_race_loses_nothing() -> None:
    for _ in range(50):
        emitters: list[Emitter[int]] = []
        subscriber = TestSubscriber[int](0, fusion=Fusion.ASYNC)
        flow.create(emitters.append, capacity=100).subscribe(subscriber)

        def push(emitter: Emitter[int] = emitters[0]) -> None:
            for item in range(20):
                emitter.next(item)
            emitter.complete()

        def request(subscriber: TestSubscriber[int] = subscriber) -> None:
            for _ in range(20):
                subscriber.request(1)

        race(push, request)
        subscriber.assert_result(*range(20))


# -- retention


@pytest.mark.parametrize("end", ["complete", "cancel", "error"])
def test_an_emitter_that_is_kept_does_not_keep_its_subscriber(end: str) -> None:
    emitter, subscriber, _ = kept()
    emitter.on_request(print)
    seen = weakref.ref(subscriber)
    if end == "complete":
        emitter.complete()
    elif end == "cancel":
        subscriber.cancel()
    else:
        emitter.error(FailureError())
    del subscriber
    gc.collect()
    assert seen() is None


# -- the latest item, for who is slow


def pushed(overflow: Overflow = "latest") -> tuple[flow.Flow[int], list[Emitter[int]]]:
    """A flow that begins with 0, and its emitter."""
    emitters: list[Emitter[int]] = []

    def begin(emitter: Emitter[int]) -> None:
        emitters.append(emitter)
        emitter.next(0)

    return flow.create(begin, overflow=overflow), emitters


def send(emitter: Emitter[int], *items: int) -> None:
    for item in items:
        emitter.next(item)


def test_a_for_loop_gets_the_latest_item() -> None:
    made, emitters = pushed()
    items = iter(made.map(lambda n: n * 10))
    assert next(items) == 0
    send(emitters[0], 1, 2, 3)
    assert next(items) == 30
    send(emitters[0], 4, 5)
    emitters[0].complete()
    assert list(items) == [50]


def test_a_for_loop_that_says_how_much_to_request_ahead_gets_that() -> None:
    made, emitters = pushed()
    items = made.iterate(prefetch=2)
    assert next(items) == 0
    send(emitters[0], 1, 2, 3)
    emitters[0].complete()
    assert list(items) == [1, 3]


def test_a_for_loop_waits_for_the_item_it_asks_for() -> None:
    made, emitters = pushed()
    taken = Event()
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit(lambda: [(taken.set(), n)[1] for n in made])
        assert taken.wait(TIMEOUT_S)
        while not emitters[0].requested:  # until it waits
            pass
        send(emitters[0], 1)
        emitters[0].complete()
        assert got.result(TIMEOUT_S) == [0, 1]


@pytest.mark.parametrize("form", ["async for", "aiterate"])
def test_an_async_for_loop_gets_the_latest_item(form: str) -> None:
    async def main() -> None:
        made, emitters = pushed()
        items = aiter(made) if form == "async for" else made.aiterate()
        assert await anext(items) == 0
        send(emitters[0], 1, 2, 3)
        assert await anext(items) == 3
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        send(emitters[0], 4, 5)
        emitters[0].complete()
        assert await waiting == 4
        assert [n async for n in items] == [5]

    asyncio.run(main())


def test_a_function_that_is_called_in_the_loop_gets_the_latest_item() -> None:
    async def main() -> None:
        made, emitters = pushed()
        seen: list[int] = []
        handle = made.subscribe(seen.append)
        assert seen == [0]
        with ThreadPoolExecutor(1) as pool:
            pool.submit(send, emitters[0], 1, 2, 3).result(TIMEOUT_S)
        await asyncio.sleep(0)
        assert seen == [0, 1, 3]
        handle.dispose()

    asyncio.run(main())


def test_other_policies_are_requested_ahead() -> None:
    made, emitters = pushed("buffer")
    items = iter(made)
    assert next(items) == 0
    send(emitters[0], 1, 2, 3)
    emitters[0].complete()
    assert list(items) == [1, 2, 3]
