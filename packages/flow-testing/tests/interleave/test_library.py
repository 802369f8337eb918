"""The primitives of the core under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

import flow_core as flow
from flow_core import Fusion
from flow_core.demand import UNBOUNDED
from flow_core.errors import RejectedExecutionError
from flow_core.executors import ScheduledTask, as_runner
from flow_core.serial import BUSY, SerialDrain
from flow_core.subscribers import CallbackSubscriber
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, search, step

pytestmark = [pytest.mark.interleave, pytest.mark.essential]


def exhaust(body: Body, **more: Any) -> Report:
    return explore_all(body, modules=["flow_core", __name__], **more)


# -- SerialDrain


class Adder(SerialDrain):
    def __init__(self) -> None:
        super().__init__()
        self.work: deque[int] = deque()
        self.done: list[int] = []
        self.draining = False
        self.failure: Exception | None = None

    def publish(self, n: int) -> None:
        self.work.append(n)
        self.signal()

    def drain(self) -> None:
        assert not self.draining, "drains overlap"
        self.draining = True
        step()
        try:
            while self.work:
                self.done.append(self.work.popleft())
            if self.failure is not None:
                failure, self.failure = self.failure, None
                raise failure
        finally:
            self.draining = False

    def send(self, n: int) -> None:
        assert not self.draining, "a drain overlaps what is done alone"
        self.draining = True
        step()
        self.done.append(n)
        self.draining = False

    def check(self, *expected: int) -> None:
        assert sorted(self.done) == list(expected)
        assert self._permit, "the permit is lost"


@pytest.mark.checklist("X02")
def test_a_thread_that_works_alone_loses_nothing_that_is_published_meanwhile() -> None:
    def body() -> Scenario:
        adder = Adder()

        def send(n: int) -> None:
            if adder.alone(adder.send, n) is BUSY:
                adder.publish(n)

        return Scenario(lambda: send(1), lambda: adder.publish(2), check=lambda: adder.check(1, 2))

    exhaust(body)


@pytest.mark.checklist("X02", "M29")
def test_signals_of_two_signallers_are_drained_by_one_at_a_time() -> None:
    def body() -> Scenario:
        adder = Adder()
        return Scenario(
            lambda: adder.publish(1), lambda: adder.publish(2), check=lambda: adder.check(1, 2)
        )

    exhaust(body)


@pytest.mark.checklist("X02")
def test_signals_of_three_signallers_are_drained_by_one_at_a_time() -> None:
    def body() -> Scenario:
        adder = Adder()
        return Scenario(
            lambda: adder.publish(1),
            lambda: adder.publish(2),
            lambda: adder.publish(3),
            check=lambda: adder.check(1, 2, 3),
        )

    exhaust(body)


@pytest.mark.checklist("X02")
def test_a_drain_that_was_entered_before_sees_what_is_signalled_meanwhile() -> None:
    def body() -> Scenario:
        adder = Adder()

        def enter() -> None:
            adder.work.append(1)
            if adder.try_enter():
                adder.run_entered()

        return Scenario(enter, lambda: adder.publish(2), check=lambda: adder.check(1, 2))

    exhaust(body)


@pytest.mark.checklist("X02")
def test_a_drain_that_is_handed_to_another_thread_sees_what_is_signalled_meanwhile() -> None:
    def body() -> Scenario:
        adder = Adder()
        adder.work.append(1)
        assert adder.try_enter()
        return Scenario(
            adder.run_entered, lambda: adder.publish(2), check=lambda: adder.check(1, 2)
        )

    exhaust(body)


@pytest.mark.checklist("X02")
def test_leaving_without_draining_keeps_pending_work_for_the_next_signal() -> None:
    def body() -> Scenario:
        adder = Adder()

        def enter_and_leave() -> None:
            if adder.try_enter():
                adder.leave()

        def check() -> None:
            adder.signal()
            adder.check(1)

        return Scenario(enter_and_leave, lambda: adder.publish(1), check=check)

    exhaust(body)


@pytest.mark.checklist("X02")
def test_a_drain_that_raises_gives_the_permit_back() -> None:
    def body() -> Scenario:
        adder = Adder()
        failure = adder.failure = ValueError("drain")
        raised: list[Exception] = []

        def publish(n: int) -> None:
            try:
                adder.publish(n)
            except ValueError as error:
                raised.append(error)

        def check() -> None:
            assert raised == [failure]
            adder.signal()  # what the failed drain has missed waits for this
            adder.check(1, 2)

        return Scenario(lambda: publish(1), lambda: publish(2), check=check)

    exhaust(body)


class NoSecondLook(Adder):
    """Gives the permit back and leaves."""

    def signal(self) -> None:
        self._missed = True
        if self._permit.pop(0, False):
            self._missed = False
            self.drain()
            self._permit[0] = True


class ForgetsAfterTheDrain(Adder):
    """Clears the flag when the drain has ended, and not before it starts."""

    def signal(self) -> None:
        self._missed = True
        while self._missed and self._permit.pop(0, False):
            self.drain()
            self._missed = False
            self._permit[0] = True


class LooksBeforeItGivesBack(Adder):
    """Looks for missed signals while it still holds the permit."""

    def signal(self) -> None:
        self._missed = True
        if self._permit.pop(0, False):
            while self._missed:
                self._missed = False
                self.drain()
            self._permit[0] = True


class TakesThePermitInTwoSteps(Adder):
    """Looks whether the permit is there, then takes it."""

    def signal(self) -> None:
        self._missed = True
        while self._missed and self._permit:
            self._permit.pop(0, False)
            self._missed = False
            self.drain()
            self._permit[0] = True


@pytest.mark.parametrize(
    "wrong",
    [NoSecondLook, ForgetsAfterTheDrain, LooksBeforeItGivesBack, TakesThePermitInTwoSteps],
)
def test_a_drain_that_is_nearly_right_is_found_out(wrong: type[Adder]) -> None:
    def body() -> Scenario:
        adder = wrong()
        return Scenario(
            lambda: adder.publish(1), lambda: adder.publish(2), check=lambda: adder.check(1, 2)
        )

    assert search(body, modules=["flow_core.serial", __name__]).failure is not None


# -- IteratorSubscription


def busy(*_: object) -> None:
    """A subscriber that takes its time."""
    step()


def subscribed(
    source: flow.Flow[int], request: int = 0, on_item: Callable[..., object] = busy
) -> TestSubscriber[int]:
    subscriber = TestSubscriber[int](request, on_item=on_item)
    source.subscribe(subscriber)
    return subscriber


@pytest.mark.checklist("M29", "X03")
def test_two_requests_at_once_add_up() -> None:
    def body() -> Scenario:
        subscriber = subscribed(flow.range(5).map(abs))
        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(2),
            check=lambda: subscriber.assert_items(0, 1, 2).assert_not_terminated(),
        )

    exhaust(body)


def test_two_requests_at_once_that_cover_all_complete_it_once() -> None:
    def body() -> Scenario:
        subscriber = subscribed(flow.range(2))
        return Scenario(
            lambda: subscriber.request(1),
            lambda: subscriber.request(UNBOUNDED),
            check=lambda: subscriber.assert_result(0, 1),
        )

    exhaust(body)


def test_a_cancel_during_a_request_ends_the_loop_and_closes_the_source() -> None:
    def body() -> Scenario:
        closed: list[str] = []
        began: list[str] = []

        def items() -> Any:
            began.append("closed")
            try:
                yield from (0, 1)
            finally:
                closed.append("closed")

        subscriber = subscribed(flow.from_iterable(items()))

        def check() -> None:
            subscriber.assert_rules_kept()
            assert closed == began  # a generator that has not begun has nothing to close
            assert subscriber.items == [0, 1][: len(subscriber.items)]
            assert subscriber.error is None
            subscription: Any = subscriber.subscription
            assert subscription._downstream is None

        return Scenario(lambda: subscriber.request(5), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("M14")
def test_a_bad_request_waits_for_a_running_on_next() -> None:
    def body() -> Scenario:
        subscriber = subscribed(flow.range(5))

        def check() -> None:
            subscriber.assert_failure(ValueError, *range(len(subscriber.items)))
            assert len(subscriber.items) <= 2

        return Scenario(
            lambda: subscriber.request(2), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


def test_a_bad_request_against_a_cancel_signals_at_most_the_error() -> None:
    def body() -> Scenario:
        subscriber = subscribed(flow.range(5))

        def outcome() -> str:
            subscriber.assert_rules_kept().assert_items()
            return type(subscriber.error).__name__

        return Scenario(
            lambda: subscriber.subscription.request(0), subscriber.cancel, outcome=outcome
        )

    exhaust(body, expect={"ValueError", "NoneType"})


# -- StageSubscriber


def staged(
    source: TestPublisher[int], stages: Callable[[flow.Flow[int]], flow.Flow[int]], request: int
) -> TestSubscriber[int]:
    return subscribed(stages(flow.Flow(source)), request)


def one_to_one(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.map(abs)


def one_to_two(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.flat_map_iterable(lambda n: (n, n))


STAGES = pytest.mark.parametrize("stages", [one_to_one, one_to_two])


@STAGES
def test_an_item_of_the_upstream_against_a_request(
    stages: Callable[[flow.Flow[int]], flow.Flow[int]],
) -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = staged(source, stages, 1)
        expected = [1] if stages is one_to_one else [1, 1]

        def send() -> None:
            source.next(1)
            source.complete()

        return Scenario(
            send,
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_result(*expected),
        )

    exhaust(body)


@STAGES
def test_an_item_of_the_upstream_against_a_cancel(
    stages: Callable[[flow.Flow[int]], flow.Flow[int]],
) -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = staged(source, stages, 2)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            subscription: Any = subscriber.subscription
            assert subscription._downstream is None
            assert subscription._loop is None
            assert not subscription._inbox

        return Scenario(lambda: source.next(1), subscriber.cancel, check=check)

    exhaust(body)


@STAGES
@pytest.mark.checklist("M14")
def test_an_item_of_the_upstream_against_a_bad_request(
    stages: Callable[[flow.Flow[int]], flow.Flow[int]],
) -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = staged(source, stages, 2)

        def check() -> None:
            subscriber.assert_failure(ValueError, *subscriber.items)
            source.assert_cancelled()

        return Scenario(
            lambda: source.next(1), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


@STAGES
def test_the_end_of_the_upstream_against_a_cancel(
    stages: Callable[[flow.Flow[int]], flow.Flow[int]],
) -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = staged(source, stages, 1)

        def check() -> None:
            subscriber.assert_rules_kept()
            subscription: Any = subscriber.subscription
            assert subscription._downstream is None

        return Scenario(source.complete, subscriber.cancel, check=check)

    exhaust(body)


# -- ScheduledTask


@pytest.mark.checklist("X06")
def test_a_task_is_run_or_cancelled_never_both() -> None:
    def body() -> Scenario:
        ran: list[str] = []
        task = ScheduledTask(lambda: ran.append("ran"))
        cancelled: list[bool] = []
        return Scenario(
            task,
            lambda: cancelled.append(task.cancel()),
            outcome=lambda: (*ran, *cancelled),
        )

    exhaust(body, expect={("ran", False), (True,)})


def test_a_task_that_is_cancelled_while_it_is_submitted_cancels_its_future() -> None:
    def body() -> Scenario:
        scheduled = ScheduledTask(lambda: None)
        future: Future[None] = Future()
        outcome: list[bool] = []

        def check() -> None:
            assert outcome == [True]
            assert future.cancelled()

        return Scenario(
            lambda: scheduled.attach(future, "pool"),
            lambda: outcome.append(scheduled.cancel()),
            check=check,
        )

    exhaust(body)


@pytest.mark.checklist("O30")
def test_a_task_that_its_executor_drops_or_that_is_cancelled_is_notified_once() -> None:
    def body() -> Scenario:
        future: Future[None] = Future()
        dropped: list[RejectedExecutionError] = []
        cancelled: list[bool] = []

        class Pool:
            def submit(self, fn: Callable[[], object], /) -> Future[None]:
                return future

        task = as_runner(Pool()).execute(lambda: None, dropped.append)

        def check() -> None:
            assert [len(dropped) == 1] != cancelled
            assert len(dropped) <= 1

        return Scenario(future.cancel, lambda: cancelled.append(task.cancel()), check=check)

    exhaust(body)


# -- blocking iteration


def test_an_iterating_thread_is_woken_for_each_item_and_for_the_end() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        iterator = flow.Flow(source).__iter__()
        seen: list[int] = []
        ready = flow_ready(source)

        def send() -> None:
            ready()
            source.next(1, 2)
            source.complete()

        def check() -> None:
            assert seen == [1, 2]

        return Scenario(lambda: seen.extend(iterator), send, check=check)

    exhaust(body)


def flow_ready(source: TestPublisher[int]) -> Callable[[], None]:
    """Wait until `source` has a subscriber, virtual second after virtual second."""
    import time

    def wait() -> None:
        while not source.outstanding:
            time.sleep(1)

    return wait


def test_an_iterating_thread_is_woken_for_an_error() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        iterator = flow.Flow(source).__iter__()
        error = ValueError("lost")
        raised: list[Exception] = []
        ready = flow_ready(source)

        def iterate() -> None:
            try:
                next(iterator)
            except ValueError as caught:
                raised.append(caught)

        def fail() -> None:
            ready()
            source.error(error)

        def check() -> None:
            assert raised == [error]

        return Scenario(iterate, fail, check=check)

    exhaust(body)


# -- CallbackSubscriber


def test_disposing_against_the_end_runs_the_callback_at_most_once() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        ends: list[str] = []
        handle = flow.Flow(source).subscribe(
            on_complete=lambda: ends.append("complete"), prefetch=1
        )

        def check() -> None:
            assert len(ends) <= 1
            assert handle.disposed
            assert ends or source.cancelled

        return Scenario(source.complete, handle.dispose, check=check)

    exhaust(body)


def test_a_thread_that_waits_for_the_end_is_woken_by_it() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        handle = flow.Flow(source).subscribe()
        ended: list[bool] = []

        def check() -> None:
            assert ended == [True]

        return Scenario(lambda: ended.append(handle.wait()), source.complete, check=check)

    exhaust(body)


def test_a_thread_that_waits_for_the_end_is_woken_by_dispose() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = CallbackSubscriber[int]()
        source.subscribe(subscriber)
        ended: list[bool] = []

        def wait() -> None:
            ended.append(subscriber.wait())

        def check() -> None:
            assert ended == [True, True]

        return Scenario(wait, wait, subscriber.dispose, check=check)

    exhaust(body)


def test_disposing_while_it_is_being_subscribed_cancels() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = CallbackSubscriber[int]()
        return Scenario(
            lambda: source.subscribe(subscriber),
            subscriber.dispose,
            check=source.assert_cancelled,
        )

    exhaust(body)


# -- TestSubscriber


@pytest.mark.checklist("F25")
def test_a_test_that_requests_from_two_threads_polls_in_one_at_a_time() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](1, fusion=Fusion.SYNC)

        def check() -> None:
            assert subscriber.fused is Fusion.SYNC
            subscriber.assert_items(0, 1, 2).assert_not_terminated()

        return Scenario(
            lambda: flow.range(9).subscribe(subscriber), lambda: subscriber.request(2), check=check
        )

    exhaust(body)
