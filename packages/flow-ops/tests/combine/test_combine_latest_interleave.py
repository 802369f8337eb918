"""`combine_latest` that is polled, under every schedule within the bound (two preemptions)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import pytest

from flow_core import EMPTY, Flow, Fusion, QueueSubscription
from flow_core.protocols import CoreSubscriber, Subscription
from flow_ops import combine_latest, observe_on
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import (
    Body,
    Report,
    Scenario,
    explore_all,
    step,
    thread_per_task,
)

pytestmark = [pytest.mark.interleave, pytest.mark.checklist("F50")]


def exhaust(body: Body, expect: Collection[Hashable] | None = None, *, threads: int = 2) -> Report:
    """Every schedule; of more threads, those that differ in what they do to the operator itself."""
    modules = ["flow_core.serial", "flow_ops.combine", __name__]
    if threads == 2:
        modules += ["flow_core.executors", "flow_ops.coordination"]
    return explore_all(body, modules=modules, expect=expect)


class Polling(CoreSubscriber[Any]):
    """Polls when the scenario says so, and looks that signals do not overlap."""

    def __init__(self) -> None:
        self.queue: QueueSubscription[Any]
        self.items: list[Any] = []
        self.signals: list[object] = []
        self.running = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        assert isinstance(subscription, QueueSubscription)
        self.queue = subscription
        assert subscription.request_fusion(Fusion.ASYNC) is Fusion.ASYNC

    def on_next(self, item: Any, /) -> None:
        assert item is EMPTY
        self._signalled("woken")

    def on_error(self, error: BaseException, /) -> None:
        self._signalled(error)

    def on_complete(self) -> None:
        self._signalled("complete")

    def _signalled(self, what: object) -> None:
        self.running += 1
        assert self.running == 1, "signals overlap"
        step()
        self.signals.append(what)
        self.running -= 1

    def poll(self) -> None:
        item = self.queue.poll()
        if item is not EMPTY:
            self.items.append(item)

    @property
    def ends(self) -> list[object]:
        return [signal for signal in self.signals if signal != "woken"]


Two = tuple[TestPublisher[int], TestPublisher[int], Any]


def played(subscriber: CoreSubscriber[Any] | None = None, **more: Any) -> Two:
    a, b = TestPublisher[int](), TestPublisher[int]()
    if subscriber is None:
        subscriber = Polling()
    combine_latest(Flow(a), Flow(b), **more).subscribe(subscriber)
    return a, b, subscriber


def serially(request: int, **more: Any) -> Two:
    """With a subscriber that polls when it is woken or requests, one thread at a time."""
    subscriber = TestSubscriber[Any](request, fusion=Fusion.ASYNC, on_item=lambda *_: step())
    return played(subscriber, **more)


def over(subscription: Any) -> None:
    """The subscription has ended and has let everything go."""
    assert subscription.over
    assert subscription._downstream is None
    assert subscription._permit, "the permit is lost"
    assert subscription.buffered == 0
    assert subscription.poll() is EMPTY


def unless_cancelled(publisher: TestPublisher[int], act: Callable[[], object]) -> Any:
    def run() -> None:
        if not publisher.cancelled:
            act()

    return run


# -- an item


def test_an_item_against_a_poll_is_given_now_or_later() -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)

        def outcome() -> Hashable:
            seen = len(polling.items)
            polling.poll()
            assert polling.items == [(1, 2)]
            assert polling.signals == ["woken"]
            return seen

        return Scenario(lambda: b.next(2), polling.poll, outcome=outcome)

    exhaust(body, {0, 1})


def test_items_of_both_flows_and_a_poll_make_every_combination_once() -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(0)
        b.next(0)

        def outcome() -> Hashable:
            for _ in range(3):
                polling.poll()
            assert polling.signals == ["woken"] * 3
            return tuple(polling.items)

        return Scenario(lambda: a.next(1), lambda: b.next(2), polling.poll, outcome=outcome)

    exhaust(body, {((0, 0), (1, 0), (1, 2)), ((0, 0), (0, 2), (1, 2))}, threads=3)


def test_no_wake_up_is_lost_during_a_request() -> None:
    def body() -> Scenario:
        a, b, subscriber = serially(0)
        a.next(1)
        return Scenario(
            lambda: b.next(2),
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_items((1, 2)),
        )

    exhaust(body)


def test_an_item_that_a_poll_requests_may_come_beside_one_of_the_other_flow() -> None:
    """With a prefetch of one, the poll has its flow send the next item, within the poll."""

    def body() -> Scenario:
        left: list[int] = []

        def answer(publisher: TestPublisher[int], _: int) -> None:
            if left:
                publisher.next(left.pop())

        a, b = TestPublisher[int](), TestPublisher[int](on_request=answer)
        polling = Polling()
        combine_latest(Flow(a), Flow(b), prefetch=1).subscribe(polling)
        a.next(0)
        b.next(1)
        left.append(2)

        def outcome() -> Hashable:
            while not polling.queue.is_empty():
                polling.poll()
            assert polling.signals == ["woken"] * 3
            return tuple(polling.items)

        return Scenario(lambda: a.next(3), polling.poll, outcome=outcome)

    exhaust(body, {((0, 1), (3, 1), (3, 2)), ((0, 1), (0, 2), (3, 2))})


# -- the end


def test_the_end_comes_once_beside_the_last_poll() -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)
        b.next(2)
        a.complete()

        def check() -> None:
            assert polling.items == [(1, 2)]
            assert polling.signals == ["woken", "complete"]
            over(polling.queue)

        return Scenario(b.complete, polling.poll, check=check)

    exhaust(body)


def test_an_item_and_the_end_against_a_poll() -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)
        a.complete()

        def send() -> None:
            b.next(2)
            b.complete()

        def check() -> None:
            polling.poll()
            assert polling.items == [(1, 2)]
            assert polling.signals == ["woken", "complete"]
            over(polling.queue)

        return Scenario(send, polling.poll, check=check)

    exhaust(body)


def test_the_ends_of_both_flows_against_the_last_poll() -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)
        b.next(2)

        def check() -> None:
            assert polling.items == [(1, 2)]
            assert polling.signals == ["woken", "complete"]
            over(polling.queue)

        return Scenario(a.complete, b.complete, polling.poll, check=check)

    exhaust(body, threads=3)


def test_a_subscriber_that_polls_when_woken_sees_an_item_the_end_and_a_request() -> None:
    def body() -> Scenario:
        a, b, subscriber = serially(0)
        a.next(1)
        a.complete()

        def send() -> None:
            b.next(2)
            b.complete()

        return Scenario(
            send,
            lambda: subscriber.request(1),
            check=lambda: subscriber.assert_result((1, 2)),
        )

    exhaust(body)


@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_against_a_poll_loses_no_combination(delay_error: bool, dropped: Any) -> None:
    error = ValueError("b")

    def body() -> Scenario:
        a, b, polling = played(delay_error=delay_error)
        a.next(1)
        b.next(2)
        a.complete()
        dropped.items.clear()

        def outcome() -> Hashable:
            given = len(polling.items)
            polling.poll()
            assert polling.ends == [error]
            assert polling.items + dropped.items == [(1, 2)]
            over(polling.queue)
            return given

        return Scenario(lambda: b.error(error), polling.poll, outcome=outcome)

    exhaust(body, {1} if delay_error else {0, 1})
    assert not dropped.errors


# -- failures


def test_a_wrong_request_never_overlaps_a_wake_up(dropped: Any) -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)
        dropped.items.clear()

        def check() -> None:
            assert [type(each) for each in polling.ends] == [ValueError]
            over(polling.queue)
            assert len(dropped.items) <= 1

        return Scenario(
            unless_cancelled(b, lambda: b.next(2)),
            lambda: polling.queue.request(0),
            check=check,
        )

    exhaust(body)


# -- cancel and clear


@pytest.mark.parametrize("prefetch", [1, 9])
def test_a_cancel_against_a_poll_gives_the_combination_or_drops_it(
    prefetch: int, dropped: Any
) -> None:
    def body() -> Scenario:
        a, b, polling = played(prefetch=prefetch)  # with 1, the poll requests, too
        a.next(1)
        b.next(2)
        dropped.items.clear()

        def outcome() -> Hashable:
            over(polling.queue)
            assert polling.items + dropped.items == [(1, 2)]
            return len(polling.items)

        return Scenario(lambda: polling.queue.cancel(), polling.poll, outcome=outcome)

    exhaust(body, {0, 1})


def test_a_cancel_against_an_item_and_a_poll_leaves_nothing(dropped: Any) -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)
        dropped.items.clear()

        def check() -> None:
            over(polling.queue)
            assert polling.ends == []
            rows = polling.items + [each for each in dropped.items if each != 2]
            assert rows in ([], [(1, 2)])

        return Scenario(
            unless_cancelled(b, lambda: b.next(2)),
            lambda: polling.queue.cancel(),
            polling.poll,
            check=check,
        )

    exhaust(body, threads=3)


def test_a_cancel_against_the_last_poll_and_the_end(dropped: Any) -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)
        b.next(2)
        a.complete()
        dropped.items.clear()

        def outcome() -> Hashable:
            over(polling.queue)
            assert polling.items + dropped.items == [(1, 2)]
            assert polling.ends in ([], ["complete"])
            return len(polling.items), len(polling.ends)

        def poll_and_cancel() -> None:
            polling.poll()
            polling.queue.cancel()

        return Scenario(unless_cancelled(b, b.complete), poll_and_cancel, outcome=outcome)

    exhaust(body, {(1, 0), (1, 1)})


def test_a_clear_against_an_item_drops_each_combination_once(dropped: Any) -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)
        b.next(2)
        dropped.items.clear()

        def outcome() -> Hashable:
            left = not polling.queue.is_empty()
            polling.queue.clear()
            assert dropped.items == [(1, 2), (3, 2)]
            assert polling.queue.is_empty()
            return left

        return Scenario(lambda: a.next(3), lambda: polling.queue.clear(), outcome=outcome)

    exhaust(body, {False, True})


def test_a_clear_against_a_cancel_drops_each_combination_once(dropped: Any) -> None:
    def body() -> Scenario:
        a, b, polling = played()
        a.next(1)
        b.next(2, 3)
        dropped.items.clear()

        def check() -> None:
            over(polling.queue)
            assert sorted(dropped.items) == [(1, 2), (1, 3)]

        return Scenario(lambda: polling.queue.cancel(), lambda: polling.queue.clear(), check=check)

    exhaust(body)


# -- across a boundary


def behind_observe_on() -> Two:
    a, b = TestPublisher[int](), TestPublisher[int]()
    subscriber = TestSubscriber[Any](9, on_item=lambda *_: step())
    combine_latest(Flow(a), Flow(b)).pipe(observe_on(thread_per_task)).subscribe(subscriber)
    b.next(0)
    return a, b, subscriber


def test_behind_observe_on_an_item_and_the_end_arrive() -> None:
    def body() -> Scenario:
        a, b, subscriber = behind_observe_on()
        b.complete()

        def send() -> None:
            a.next(1)
            a.complete()

        return Scenario(send, check=lambda: subscriber.assert_result((1, 0)))

    exhaust(body)


def test_behind_observe_on_a_cancel_leaves_nothing(dropped: Any) -> None:
    def body() -> Scenario:
        a, b, subscriber = behind_observe_on()
        dropped.items.clear()

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            a.assert_cancelled()
            b.assert_cancelled()
            rows = [*subscriber.items, *(each for each in dropped.items if each != 1)]
            assert rows in ([], [(1, 0)])
            return len(subscriber.items)

        return Scenario(unless_cancelled(a, lambda: a.next(1)), subscriber.cancel, outcome=outcome)

    exhaust(body, {0, 1})
