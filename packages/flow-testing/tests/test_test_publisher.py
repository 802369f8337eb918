"""The test publisher keeps the rules, unless it is set to break them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Fusion
from flow_testing import (
    ConditionalTestSubscriber,
    PublisherProbe,
    TestPublisher,
    TestSubscriber,
    Violation,
    observe,
    race,
    recorded_drops,
)


def subscribed(
    *violations: Violation, request: int = 2
) -> tuple[TestPublisher[Any], TestSubscriber[Any]]:
    allowed = Violation.NONE
    for violation in violations:
        allowed |= violation
    publisher, subscriber = TestPublisher[Any](allowed), TestSubscriber[Any](request)
    publisher.subscribe(subscriber)
    return publisher, subscriber


def test_it_sends_what_was_requested() -> None:
    publisher, subscriber = subscribed()
    assert (publisher.requests, publisher.outstanding) == ([2], 2)
    publisher.next(1).next(2)
    assert publisher.outstanding == 0
    publisher.complete()
    subscriber.assert_result(1, 2)


@pytest.mark.parametrize(
    ("act", "violation"),
    [
        (lambda p: p.next(1, 2, 3), Violation.OVERFLOW),
        (lambda p: p.next(None), Violation.NONE_ITEM),
        (lambda p: (p.complete(), p.complete()), Violation.AFTER_TERMINAL),
        (lambda p: (p.error(ValueError()), p.next(1)), Violation.AFTER_TERMINAL),
    ],
)
def test_it_breaks_a_rule_only_when_that_is_allowed(
    act: Callable[[TestPublisher[Any]], object], violation: Violation
) -> None:
    publisher, _ = subscribed()
    with pytest.raises(AssertionError, match=violation.name):
        act(publisher)
    publisher, subscriber = subscribed(violation)
    if violation is Violation.NONE_ITEM:
        with pytest.raises(TypeError):
            act(publisher)
    else:
        act(publisher)
    with pytest.raises(AssertionError, match="broke rules"):
        subscriber.assert_rules_kept()


def test_after_a_cancel_it_is_silent_unless_that_is_allowed() -> None:
    publisher, subscriber = subscribed()
    subscriber.cancel()
    publisher.next(1).complete()
    subscriber.assert_silent_after_cancel()
    publisher, subscriber = subscribed(Violation.IGNORED_CANCEL)
    subscriber.cancel()
    publisher.next(1).complete()
    assert len(subscriber.late) == 2


def test_it_answers_a_wrong_request_by_the_rule() -> None:
    _publisher, subscriber = subscribed()
    subscriber.subscription.request(0)
    subscriber.assert_failure(ValueError)


def test_it_asks_a_conditional_subscriber_when_it_is_conditional() -> None:
    for conditional, offered, outstanding in ((True, 2, 1), (False, 0, 1)):
        publisher = TestPublisher[int](conditional=conditional)
        subscriber = ConditionalTestSubscriber[int](lambda n: n > 1, 2)
        publisher.subscribe(subscriber)
        publisher.next(1, 2)
        assert (subscriber.offered, publisher.outstanding) == (offered, outstanding)


def test_its_assertions_say_what_happened() -> None:
    publisher, subscriber = subscribed()
    with pytest.raises(AssertionError, match=r"expected the requests \[3\], got \[2\]"):
        publisher.assert_requests(3)
    with pytest.raises(AssertionError, match="expected to be cancelled"):
        publisher.assert_cancelled()
    subscriber.cancel()
    subscriber.cancel()
    assert publisher.cancelled
    with pytest.raises(AssertionError, match="was, 2 times"):
        publisher.assert_not_cancelled()
    with pytest.raises(AssertionError, match="there is no subscriber yet"):
        TestPublisher[int](Violation.OVERFLOW).next(1)


def test_a_race_reports_what_is_raised_and_what_hangs() -> None:
    error = ValueError()

    def fail() -> None:
        raise error

    with pytest.raises(BaseExceptionGroup) as raised:
        race(fail, lambda: None)
    assert raised.value.exceptions == (error,)


# -- further violations


def test_after_a_terminal_its_subscription_is_dead_unless_that_is_allowed() -> None:
    for violation, requests in ((Violation.NONE, [2, 3]), (Violation.CLEANUP, [2, 3])):
        answered: list[int] = []
        publisher = TestPublisher[int](
            violation, on_request=lambda _, n, answered=answered: answered.append(n)
        )
        subscriber = TestSubscriber[int](2)
        publisher.subscribe(subscriber)
        publisher.complete()
        subscriber.request(3)
        subscriber.cancel()
        publisher.assert_requests(*requests)
        # By the rules it is deaf and was cancelled; against them it answers, and ignores that.
        assert answered == ([2] if violation is Violation.NONE else [2, 3])
        assert publisher.cancelled is (violation is Violation.NONE)


def test_without_cleaning_up_it_continues_after_a_terminal_and_a_cancel() -> None:
    publisher, subscriber = subscribed(Violation.CLEANUP, Violation.AFTER_TERMINAL)
    publisher.complete()
    subscriber.cancel()
    publisher.next(1)
    assert [str(signal) for signal in subscriber.late] == ["on_next(1)"]


def test_it_may_hand_over_two_subscriptions() -> None:
    publisher, subscriber = subscribed(Violation.SECOND_SUBSCRIPTION)
    assert publisher.second is not None
    assert publisher.second.cancelled
    publisher.assert_not_cancelled().next(1)
    with pytest.raises(AssertionError, match=r"§2\.12"):
        subscriber.assert_rules_kept()


def test_it_may_send_from_several_threads_at_once() -> None:
    publisher, subscriber = subscribed(Violation.CONCURRENCY, Violation.OVERFLOW)
    publisher.next_at_once(*range(8))
    assert sorted(subscriber.items) == list(range(8))
    assert len({signal.thread_name for signal in subscriber.signals}) > 1
    with pytest.raises(AssertionError, match="CONCURRENCY"):
        subscribed()[0].next_at_once(1, 2)


def test_it_releases_its_subscriber_after_a_terminal_or_a_cancel() -> None:
    for end in (TestPublisher.complete, lambda publisher: publisher._receiver().cancel()):
        publisher, subscriber = subscribed()
        alive = weakref.ref(subscriber)
        end(publisher)
        del subscriber
        assert alive() is None


# -- the probe


def test_a_probe_records_what_a_publisher_is_asked_for() -> None:
    probe = PublisherProbe(flow.range(10))
    probe.assert_not_subscribed().assert_not_requested().assert_not_cancelled()
    subscriber = observe(probe.flow.map(lambda n: n + 1), 2)
    subscriber.assert_items(1, 2).request(1)
    probe.assert_subscribed().assert_requests(2, 1).assert_not_cancelled()
    assert probe.requested == 3
    subscriber.cancel()
    probe.assert_cancelled()
    observe(probe).assert_result(*range(10))
    probe.assert_subscribed(2)
    assert probe.requested == UNBOUNDED
    with pytest.raises(AssertionError, match="expected 1 subscriptions, got 2"):
        probe.assert_subscribed()
    with pytest.raises(AssertionError, match="expected the requests"):
        probe.assert_not_requested()


def test_a_probe_passes_on_every_signal_and_ends_fusion() -> None:
    error = ValueError()
    observe(PublisherProbe(flow.error(error))).assert_failure(error)
    observe(PublisherProbe(flow.range(2)), fusion=Fusion.ANY).assert_fusion(Fusion.NONE)
    probe = PublisherProbe(flow.range(2))
    with recorded_drops() as drops:
        observe(probe, on_item=lambda *_: raise_(error))
        assert drops.take_errors() == [error]
    observe(PublisherProbe(flow.range(2))).cancel()  # after the end: that was no cancel
    done = PublisherProbe(flow.range(2))
    observe(done).cancel()
    done.assert_not_cancelled()


def test_a_probe_drops_what_comes_after_a_cancel() -> None:
    publisher = TestPublisher[int](Violation.IGNORED_CANCEL)
    subscriber = observe(PublisherProbe(publisher))
    subscriber.cancel()
    error = ValueError()
    with recorded_drops() as drops:
        publisher.next(1).error(error)
        assert (drops.take_items(), drops.take_errors()) == ([1], [error])
    subscriber.assert_silent_after_cancel()


def raise_(error: Exception) -> None:
    raise error


@pytest.mark.usefixtures("frequent_switches")
def test_no_demand_is_lost_where_one_thread_requests_and_another_sends() -> None:
    count = 20_000
    for _ in range(4):
        publisher, subscriber = TestPublisher[int](), TestSubscriber[int](count)
        publisher.subscribe(subscriber)
        request = subscriber.subscription.request
        race(
            lambda p=publisher: p.next(*range(count)),
            lambda request=request: [request(1) for _ in range(count)],
        )
        assert publisher.outstanding == count


@pytest.mark.usefixtures("frequent_switches")
def test_a_cancel_by_another_thread_stops_a_sending_thread() -> None:
    for _ in range(100):
        publisher, subscriber = TestPublisher[int](), TestSubscriber[int]()
        publisher.subscribe(subscriber)

        def send(publisher: TestPublisher[int] = publisher) -> None:
            while not publisher.cancelled:
                publisher.next(0)
            publisher.complete()

        race(send, lambda s=subscriber: s.await_items(3).cancel())
        subscriber.assert_not_terminated()
