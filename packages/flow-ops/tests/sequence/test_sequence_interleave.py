"""One flow after another under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_ops import Backoff, concat, on_error_resume, repeat_when, retry, retry_when
from flow_testing import TestPublisher, TestSubscriber, VirtualClock
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = [pytest.mark.interleave, pytest.mark.usefixtures("dropped")]

ERROR = ValueError("failed")


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core.serial", "flow_ops", __name__], expect=expect)


TWO: dict[str, tuple[Callable[[Flow[int], Flow[int]], Flow[int]], BaseException | None]] = {
    "concat": (lambda first, second: concat(first, second), None),
    "on_error_resume": (lambda first, second: first.pipe(on_error_resume(second)), ERROR),
    "retry": (lambda first, second: both(first, second).pipe(retry()), ERROR),
}
each_form = pytest.mark.parametrize("form", TWO)


def both(first: Flow[int], second: Flow[int]) -> Flow[int]:
    flows = iter((first, second))
    return flow.defer(lambda: next(flows))


def start(
    form: str, request: int
) -> tuple[TestPublisher[int], TestPublisher[int], TestSubscriber[int], Callable[[], object]]:
    make, error = TWO[form]
    first, second = TestPublisher[int](), TestPublisher[int]()
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    make(Flow(first), Flow(second)).subscribe(subscriber)

    def end() -> None:
        if error is None:
            first.complete()
        else:
            first.error(error)

    return first, second, subscriber, end


@pytest.mark.checklist("P04", "P12", "P29")
@each_form
def test_a_request_is_made_once_when_the_first_flow_ends(form: str) -> None:
    def body() -> Scenario:
        first, second, subscriber, end = start(form, 2)
        first.next(1)

        def check() -> None:
            second.assert_subscribed()
            assert second.requested == 4, second.requests

        return Scenario(end, lambda: subscriber.request(3), check=check)

    exhaust(body)


@pytest.mark.checklist("P04")
@each_form
def test_the_last_item_of_the_first_flow_counts_once(form: str) -> None:
    def body() -> Scenario:
        first, second, subscriber, end = start(form, 2)

        def run() -> None:
            first.next(1)
            end()
            second.next(*range(second.requested))

        def check() -> None:
            subscriber.assert_rules_kept()
            assert len(subscriber.items) + second.outstanding == 3

        return Scenario(run, lambda: subscriber.request(1), check=check)

    exhaust(body)


@pytest.mark.checklist("P24", "P25")
@each_form
def test_no_flow_survives_a_cancel(form: str) -> None:
    def body() -> Scenario:
        _, second, subscriber, end = start(form, 2)

        def check() -> None:
            subscriber.assert_not_terminated()
            assert not second.subscribed or second.cancelled

        return Scenario(end, subscriber.cancel, check=check)

    exhaust(body)


@each_form
def test_a_bad_request_against_the_end_of_the_first_flow(form: str) -> None:
    def body() -> Scenario:
        _, second, subscriber, end = start(form, 2)

        def check() -> None:
            subscriber.assert_failure(ValueError).assert_error_message("3.9")
            assert not second.subscribed or second.cancelled

        return Scenario(end, lambda: subscriber.subscription.request(0), check=check)

    exhaust(body)


class Runs:
    """A flow that the test plays, a publisher for each run."""

    def __init__(self) -> None:
        self.sources: list[TestPublisher[int]] = []

    def make(self) -> Flow[int]:
        self.sources.append(TestPublisher[int]())
        return Flow(self.sources[-1])

    @property
    def flow(self) -> Flow[int]:
        return flow.defer(self.make)


def test_the_other_flow_ends_while_a_run_ends() -> None:
    def body() -> Scenario:
        runs, allow = Runs(), TestPublisher[object]()
        subscriber = TestSubscriber[int](5)
        runs.flow.pipe(repeat_when(lambda _: Flow(allow))).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_result()
            assert len(runs.sources) == 1

        return Scenario(runs.sources[0].complete, allow.complete, check=check)

    exhaust(body)


def test_the_other_flow_starts_a_run_while_there_is_a_request() -> None:
    def body() -> Scenario:
        runs, allow = Runs(), TestPublisher[object]()
        subscriber = TestSubscriber[int](2)
        runs.flow.pipe(repeat_when(lambda _: Flow(allow))).subscribe(subscriber)
        runs.sources[0].next(1).complete()

        def check() -> None:
            assert len(runs.sources) == 2
            assert runs.sources[1].requested == 4

        return Scenario(lambda: allow.next("go"), lambda: subscriber.request(3), check=check)

    exhaust(body)


def test_the_other_flow_starts_a_run_while_there_is_a_cancel() -> None:
    def body() -> Scenario:
        runs, allow = Runs(), TestPublisher[object]()
        subscriber = TestSubscriber[int](2)
        runs.flow.pipe(repeat_when(lambda _: Flow(allow))).subscribe(subscriber)
        runs.sources[0].complete()

        def check() -> None:
            allow.assert_cancelled()
            assert all(source.cancelled for source in runs.sources[1:])

        return Scenario(lambda: allow.next("go"), subscriber.cancel, check=check)

    exhaust(body)


def backing_off(subscriber: TestSubscriber[int]) -> tuple[Runs, VirtualClock]:
    runs, clock = Runs(), VirtualClock()
    runs.flow.pipe(retry_when(Backoff(1, clock=clock))).subscribe(subscriber)
    return runs, clock


def test_the_timer_against_a_request() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](2)
        runs, clock = backing_off(subscriber)
        runs.sources[0].error(ERROR)

        def check() -> None:
            assert runs.sources[1].requested == 5

        return Scenario(clock.run, lambda: subscriber.request(3), check=check)

    exhaust(body)


def test_the_timer_against_a_cancel() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](2)
        runs, clock = backing_off(subscriber)
        runs.sources[0].error(ERROR)

        def check() -> None:
            assert all(source.cancelled for source in runs.sources[1:])
            assert clock.pending == 0

        return Scenario(clock.run, subscriber.cancel, check=check)

    exhaust(body)


def test_a_failure_against_a_cancel_leaves_no_timer() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](2)
        runs, clock = backing_off(subscriber)

        def check() -> None:
            subscriber.assert_not_terminated()
            assert clock.pending == 0
            subscription: Any = subscriber.subscription
            assert subscription._timer is None
            assert not subscription._later

        return Scenario(lambda: runs.sources[0].error(ERROR), subscriber.cancel, check=check)

    exhaust(body)
