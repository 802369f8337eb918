"""Each operator under every schedule, within one preemption fewer than other tests have.

The parts of operators are proved under every interleaving. These tests are for the state
that each operator adds: no test can forget to look whether it is touched too early.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError
from flow_testing import (
    OperatorCase,
    Surroundings,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
)
from flow_testing.interleave import (
    Body,
    Exhaustive,
    Scenario,
    bound,
    explore_all,
    thread_per_task,
)

pytestmark = pytest.mark.interleave

UNCERTAIN = frozenset(("endless", "selective", "closing"))
"""Kinds of operators of which it depends on threads and time what they give."""
CUT_BY_TIME = frozenset(("take_with_time", "take_until_with_time"))
ITEMS = 2


def exhaust(body: Body) -> None:
    modules = ["flow_core.serial", "flow_core.executors", "flow_ops"]
    explore_all(body, strategy=Exhaustive(max(1, bound() - 1)), modules=modules)


class Run:
    """An operator behind a source that sends what the test says."""

    def __init__(self, case: OperatorCase, request: int = 0) -> None:
        self.clock = VirtualClock()
        self.source = TestPublisher[int]()
        self.subscriber = TestSubscriber[Any](request)
        self.flow = case.apply(flow.Flow(self.source), Surroundings(self._execute, self.clock))
        self._sent = 0
        self._explored = True

    def _execute(self, task: Callable[[], object]) -> None:
        thread_per_task(task) if self._explored else task()

    def subscribe(self) -> None:
        self.flow.subscribe(self.subscriber)

    def send(self) -> None:
        """Send as much as was requested, and the end after the last item."""
        source = self.source
        while self._sent < ITEMS and source.subscribed and source.outstanding > 0:
            self._sent += 1
            source.next(self._sent - 1)
        if self._sent == ITEMS and not (source.cancelled or source.terminated):
            source.complete()

    def fail(self, error: BaseException) -> None:
        """Send `error`, unless all has ended or there is no subscriber yet."""
        if self.source.subscribed and not self.source.terminated:
            self.source.error(error)

    def ask_badly(self) -> None:
        """Request no item, as soon as there is a subscription."""
        while (subscription := self.subscriber._subscription) is None:
            time.sleep(1)  # virtual: until no other thread can continue
        subscription.request(0)

    def send_the_rest(self) -> None:
        self._explored = False  # no thread continues when the check has ended
        for _ in range(ITEMS + 1):
            self.clock.advance_by(9)
            if not self.source.cancelled:
                self.send()
        self.clock.advance_by(9)


def certain(case: OperatorCase) -> bool:
    """Return whether it gives the same items each time."""
    return UNCERTAIN.isdisjoint(case.kinds) and case.registered not in CUT_BY_TIME


def alone(case: OperatorCase) -> list[Any]:
    """Return the items that it gives in one thread."""
    clock = VirtualClock()
    subscriber = TestSubscriber[Any]()
    made = case.apply(flow.range(ITEMS), Surroundings(lambda task: task(), clock))
    made.subscribe(subscriber)
    clock.advance_by(9)
    return subscriber.items


@pytest.mark.checklist("X06")
def test_items_requested_during_subscribe_arrive(case: OperatorCase) -> None:
    expected = alone(case)

    def body() -> Scenario:
        clock = VirtualClock()
        made = case.apply(flow.range(ITEMS).hide(), Surroundings(thread_per_task, clock))
        subscriber = TestSubscriber[Any](0)

        def check() -> None:
            clock.advance_by(9)
            check_result(case, subscriber, expected)

        return Scenario(
            lambda: made.subscribe(subscriber), lambda: subscriber.request(9), check=check
        )

    exhaust(body)


@pytest.mark.checklist("X06")
def test_items_requested_while_others_come_arrive(case: OperatorCase) -> None:
    expected = alone(case)

    def body() -> Scenario:
        run = Run(case, 1)
        run.subscribe()

        def check() -> None:
            run.send_the_rest()
            check_result(case, run.subscriber, expected)

        return Scenario(run.send, lambda: run.subscriber.request(9), check=check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_an_error_while_demand_comes_is_sent_once(case: OperatorCase, dropped: Any) -> None:
    def body() -> Scenario:
        run = Run(case, 1)
        run.subscribe()
        error = ValueError("upstream")

        def check() -> None:
            if not run.source.subscribed:  # before its time
                run.clock.advance_by(1)
            run.fail(error)  # an executor may have subscribed late
            run.clock.advance_by(9)
            run.subscriber.assert_rules_kept()
            assert run.subscriber.error is error

        return Scenario(lambda: run.fail(error), lambda: run.subscriber.request(9), check=check)

    exhaust(body)
    # A window and the flow of windows fail with the same error, and one subscriber gets it once.
    assert {repr(error) for error in dropped.errors} <= {repr(ValueError("upstream"))}


@pytest.mark.checklist("X06")
def test_a_cancel_during_subscribe_cancels_the_upstream(case: OperatorCase) -> None:
    def body() -> Scenario:
        run = Run(case, 9)

        def check() -> None:
            run.clock.advance_by(9)
            run.subscriber.assert_rules_kept().assert_not_terminated()
            assert run.source.cancelled or not run.source.subscribed

        return Scenario(run.subscribe, run.subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_a_cancel_while_items_come_cancels_the_upstream(case: OperatorCase, dropped: Any) -> None:
    expected = alone(case)

    def body() -> Scenario:
        run = Run(case, 9)
        run.subscribe()

        def check() -> None:
            run.clock.advance_by(9)
            run.subscriber.assert_rules_kept()
            if certain(case):
                assert run.subscriber.items == expected[: len(run.subscriber.items)]
            assert run.source.cancelled or run.source.terminated or not run.source.subscribed

        return Scenario(run.send, run.subscriber.cancel, check=check)

    exhaust(body)
    due = MissingBackpressureError if "closing" in case.kinds else ()
    assert [error for error in dropped.errors if not isinstance(error, due)] == []


@pytest.mark.checklist("X06")
def test_a_bad_request_while_it_is_being_subscribed_ends_it(
    case: OperatorCase, dropped: Any
) -> None:
    del dropped  # the error may be too late

    def body() -> Scenario:
        run = Run(case, 9)

        def check() -> None:
            run.clock.advance_by(9)
            run.subscriber.assert_failure(ValueError, *run.subscriber.items)
            assert run.source.cancelled or not run.source.subscribed

        return Scenario(run.subscribe, run.ask_badly, check=check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_a_bad_request_while_items_come_ends_it(case: OperatorCase, dropped: Any) -> None:
    del dropped  # see above

    def body() -> Scenario:
        run = Run(case, 9)
        run.subscribe()

        def check() -> None:
            run.send_the_rest()
            run.subscriber.assert_rules_kept()
            assert run.subscriber.terminated
            if not run.subscriber.completed:
                assert run.source.cancelled or run.source.terminated or not run.source.subscribed

        return Scenario(run.send, run.ask_badly, check=check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_a_cancel_while_demand_comes_cancels_the_upstream(case: OperatorCase) -> None:
    def body() -> Scenario:
        run = Run(case, 1)
        run.subscribe()

        def check() -> None:
            run.clock.advance_by(9)
            run.subscriber.assert_rules_kept().assert_not_terminated()
            assert run.source.cancelled or not run.source.subscribed

        return Scenario(lambda: run.subscriber.request(5), run.subscriber.cancel, check=check)

    exhaust(body)


def check_result(case: OperatorCase, subscriber: TestSubscriber[Any], expected: list[Any]) -> None:
    if certain(case):
        subscriber.assert_result(*expected)
    else:
        subscriber.assert_rules_kept()
        assert subscriber.terminated, "it did not end"
