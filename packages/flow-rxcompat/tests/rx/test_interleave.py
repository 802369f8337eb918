"""The bridges under every schedule of threads within the bound.

`reactivex` guards its own state by locks, which the explorer does not stop at: what is explored is
the code of this package and of the core below it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest
from reactivex import operators as ops
from reactivex.abc import DisposableBase, ObservableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

import flow_core as flow
from flow_core.sources import EmitterSubscription
from flow_rxcompat.rx import from_rx, rx
from flow_rxcompat.rx.feeding import DirectFeed, ScheduledFeed
from flow_rxcompat.rx.observables import EmittingObserver
from flow_testing import Drops, TestPublisher, TestSubscriber, recorded_drops
from flow_testing.interleave import Body, Report, Scenario, explore_all, thread_per_task

pytestmark = [pytest.mark.interleave, pytest.mark.essential]


EMITTER = "flow_core.sources._emitter"


def exhaust(body: Body, expect: Collection[Hashable] | None = None, *more: str) -> Report:
    return explore_all(
        body, modules=["flow_core.serial", "flow_rxcompat", __name__, *more], expect=expect
    )


class Seen(ObserverBase[int]):
    """An observer that keeps what it gets."""

    def __init__(self) -> None:
        self.signals: list[object] = []
        self.busy = False

    def on_next(self, value: int) -> None:
        assert not self.busy
        self.busy = True
        self.signals.append(value)
        self.busy = False

    def on_error(self, error: Exception) -> None:
        self.signals.append(error)

    def on_completed(self) -> None:
        self.signals.append("end")


class Careless(ObservableBase[int]):
    """An Observable without any guard."""

    def __init__(self) -> None:
        self.observer: ObserverBase[int] | None = None
        self.disposes = 0

    def subscribe(self, on_next: Any = None, *_: Any, **__: Any) -> DisposableBase:
        self.observer = on_next
        return Disposable(self._disposed)

    def _disposed(self) -> None:
        self.disposes += 1

    def push(self, *items: int) -> None:
        assert self.observer is not None
        for item in items:
            self.observer.on_next(item)

    def end(self) -> None:
        assert self.observer is not None
        self.observer.on_completed()


class ThreadPerAction(SchedulerBase):
    """Runs each action in a separate thread, one of the explorer's."""

    now = schedule_relative = schedule_absolute = to_seconds = to_datetime = to_timedelta = None

    def schedule(self, action: Any, state: Any = None) -> DisposableBase:
        thread_per_task(lambda: action(self, state))
        return Disposable()


# -- from_rx


def test_two_threads_push_at_once_and_each_item_comes_once() -> None:
    def body() -> Scenario:
        observable = Careless()
        subscriber = TestSubscriber[int]()
        from_rx(observable).subscribe(subscriber)
        return Scenario(
            lambda: observable.push(1, 2),
            lambda: observable.push(3),
            outcome=lambda: str(subscriber.items),
            check=lambda: (subscriber.assert_rules_kept(), _three(subscriber)),
        )

    exhaust(body, {"[1, 2, 3]", "[1, 3, 2]", "[3, 1, 2]"}, EMITTER)


def _three(subscriber: TestSubscriber[int]) -> None:
    assert sorted(subscriber.items) == [1, 2, 3]


def test_an_item_against_a_cancel_disposes_once_and_nothing_vanishes() -> None:
    def body() -> Scenario:
        observable = Careless()
        subscriber = TestSubscriber[int]()
        with recorded_drops():
            from_rx(observable).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert observable.disposes == 1

        return Scenario(lambda: observable.push(1), subscriber.cancel, check=check)

    exhaust(body, None, EMITTER)


def test_a_request_against_items_and_the_end_loses_nothing() -> None:
    def body() -> Scenario:
        observable = Careless()
        subscriber = TestSubscriber[int](0)
        from_rx(observable).subscribe(subscriber)

        def push() -> None:
            observable.push(1, 2)
            observable.end()

        return Scenario(
            push, lambda: subscriber.request(2), check=lambda: subscriber.assert_result(1, 2)
        )

    exhaust(body, None, EMITTER)


def test_an_end_against_a_cancel_disposes_once() -> None:
    def body() -> Scenario:
        observable = Careless()
        subscriber = TestSubscriber[int]()
        from_rx(observable).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert observable.disposes == 1

        return Scenario(observable.end, subscriber.cancel, check=check)

    exhaust(body, None, EMITTER)


# -- to_rx


def direct(publisher: TestPublisher[int], seen: Seen) -> DirectFeed[int]:
    feed = DirectFeed(seen, 4)
    feed.subscribe_to(publisher)
    feed.start()
    return feed


def test_disposing_against_an_end_cancels_or_ends() -> None:
    def body() -> Scenario:
        publisher, seen = TestPublisher[int](), Seen()
        feed = direct(publisher, seen)

        def check() -> None:
            # In between, neither: the source has ended, and no subscriber listens any more.
            assert (publisher.cancels, seen.signals) in [(1, []), (0, ["end"]), (0, [])]

        return Scenario(publisher.complete, feed.dispose, check=check)

    exhaust(body)


def test_two_disposes_cancel_once() -> None:
    def body() -> Scenario:
        publisher = TestPublisher[int]()
        feed = direct(publisher, Seen())

        def check() -> None:
            assert publisher.cancels == 1

        return Scenario(feed.dispose, feed.dispose, check=check)

    exhaust(body)


def test_a_late_subscription_against_a_dispose_is_cancelled_once() -> None:
    def body() -> Scenario:
        publisher = TestPublisher[int]()
        feed = DirectFeed(Seen(), 4)
        feed.start()

        def check() -> None:
            assert publisher.cancels == 1

        return Scenario(lambda: publisher.subscribe(feed), feed.dispose, check=check)

    exhaust(body)


def test_a_late_subscription_against_the_start_requests_once() -> None:
    def body() -> Scenario:
        publisher = TestPublisher[int]()
        feed = DirectFeed(Seen(), 4)

        def check() -> None:
            assert publisher.requests == [4]

        return Scenario(lambda: publisher.subscribe(feed), feed.start, check=check)

    exhaust(body)


def scheduled() -> tuple[TestPublisher[int], Seen, ScheduledFeed[int]]:
    """A feed that has been started, and both its ends."""
    publisher, seen = TestPublisher[int](), Seen()
    feed = ScheduledFeed(seen, 2, ThreadPerAction())
    feed.subscribe_to(publisher)
    feed.start()
    return publisher, seen, feed


def test_on_a_scheduler_items_and_the_end_come_in_order() -> None:
    def body() -> Scenario:
        publisher, seen, _ = scheduled()

        def send() -> None:
            publisher.next(1)
            publisher.next(2)
            publisher.complete()

        def check() -> None:
            assert seen.signals == [1, 2, "end"]

        return Scenario(send, check=check)

    exhaust(body)


def test_on_a_scheduler_a_dispose_drops_waiting_items() -> None:
    def body() -> Scenario:
        publisher, seen, feed = scheduled()

        def send() -> None:
            publisher.next(1)
            publisher.complete()

        def check() -> None:
            assert seen.signals in ([], [1], [1, "end"])
            assert publisher.cancels <= 1

        return Scenario(send, feed.dispose, check=check)

    exhaust(body)


def test_on_a_scheduler_an_error_that_races_a_dispose_is_sent_or_goes_to_the_hook(
    drops: Drops,
) -> None:
    def body() -> Scenario:
        publisher, seen, error = TestPublisher[int](), Seen(), LookupError("theirs")
        feed = ScheduledFeed(seen, 2, ThreadPerAction())
        feed.subscribe_to(publisher)
        feed.start()

        def check() -> None:
            told = [*seen.signals, *drops.take_errors()]
            assert told == [error] or (not told and publisher.cancels == 1)

        return Scenario(lambda: publisher.error(error), feed.dispose, check=check)

    exhaust(body)


# -- rx()


def test_a_request_against_a_batch_that_ends_is_not_missed() -> None:
    def body() -> Scenario:
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[int](1)
        emitter = EmitterSubscription(subscriber, "buffer", 100, "rx")
        emitter.start()
        feed = DirectFeed(EmittingObserver(emitter), 1, lambda: emitter.requested > 0)
        emitter.on_request(lambda _: feed.signal())
        feed.subscribe_to(publisher)
        feed.start()

        def check() -> None:
            assert publisher.requests == [1, 1]
            subscriber.assert_items(1)

        return Scenario(lambda: publisher.next(1), lambda: subscriber.request(1), check=check)

    exhaust(body, None, EMITTER)


def test_operators_of_reactivex_between_two_threads() -> None:
    def body() -> Scenario:
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[int](1)
        flow.Flow(publisher).pipe(rx(ops.map(lambda n: n + 1), prefetch=1)).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_items(2)
            assert publisher.requests == [1, 1]

        return Scenario(lambda: publisher.next(1), lambda: subscriber.request(5), check=check)

    exhaust(body)
