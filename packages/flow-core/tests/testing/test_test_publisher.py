"""The test publisher keeps the rules, unless it is told to break them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flow_core.testing import (
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    Violation,
    race,
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


def test_it_asks_a_conditional_subscriber_when_it_is_told_to() -> None:
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
    with pytest.raises(AssertionError, match="nobody has subscribed"):
        TestPublisher[int](Violation.OVERFLOW).next(1)


def test_a_race_reports_what_is_raised_and_what_hangs() -> None:
    error = ValueError()

    def fail() -> None:
        raise error

    with pytest.raises(BaseExceptionGroup) as raised:
        race(fail, lambda: None)
    assert raised.value.exceptions == (error,)
