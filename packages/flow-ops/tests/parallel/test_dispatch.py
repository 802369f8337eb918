"""The next rail that has demand gets an item."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError, leave
from flow_core.protocols import Publisher
from flow_ops.parallel.dispatch import Dispatcher, RailSource
from flow_testing import (
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    Violation,
)


def dealt(
    source: Publisher[int], *requests: int, prefetch: int = 8, kind: Any = TestSubscriber
) -> list[TestSubscriber[int]]:
    """Return the subscribers of all rails, each with its own request."""
    dispatcher = Dispatcher(source, len(requests), prefetch, "parallel")
    subscribers = [kind(request) for request in requests]
    for subscriber in subscribers:
        RailSource(dispatcher).subscribe(subscriber)
    return subscribers


SOURCES: dict[str, Any] = {
    "fused": flow.range,
    "hidden": lambda *args: flow.range(*args).hide(),
    "queue": lambda *args: flow.range(*args).hide().map(lambda n: n),
}


@pytest.mark.parametrize("source", SOURCES)
def test_items_go_round(source: str) -> None:
    a, b, c = dealt(SOURCES[source](7), 9, 9, 9)
    a.assert_result(0, 3, 6)
    b.assert_result(1, 4)
    c.assert_result(2, 5)


@pytest.mark.parametrize("source", SOURCES)
def test_a_rail_without_demand_is_passed_over(source: str) -> None:
    a, b, c = dealt(SOURCES[source](7), 1, 0, 9)
    a.assert_result(0)
    b.assert_result()
    c.assert_result(1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("source", SOURCES)
def test_items_wait_when_no_rail_has_demand(source: str) -> None:
    a, b = dealt(SOURCES[source](4), 1, 0)
    a.assert_items(0).assert_not_terminated()
    b.request(1)
    b.assert_items(1)
    b.request(2)
    a.assert_result(0)
    b.assert_result(1, 2, 3)


def test_nothing_starts_before_all_rails_are_there() -> None:
    source = TestPublisher[int]()
    dispatcher = Dispatcher(source, 2, 4, "parallel")
    a, b = TestSubscriber[int](), TestSubscriber[int]()
    RailSource(dispatcher).subscribe(a)
    assert not source.subscribed
    RailSource(dispatcher).subscribe(b)
    assert source.subscribed
    assert source.outstanding == 4


@pytest.mark.parametrize("source", SOURCES)
def test_a_rail_that_is_cancelled_is_left_out(source: str) -> None:
    a, b, c = dealt(SOURCES[source](9), 1, 1, 1)
    b.cancel()
    a.request(9)
    assert a.items == [0, 3, 4, 5, 6, 7, 8]
    b.assert_items(1).assert_not_terminated()
    c.assert_result(2)


def test_when_all_are_cancelled_so_is_the_upstream(dropped: Any) -> None:
    source = TestPublisher[int]()
    a, b = dealt(source, 1, 0)
    source.next(0, 1, 2)
    a.cancel()
    assert not source.cancelled
    b.cancel()
    source.assert_cancelled()
    assert dropped.items == [1, 2]


def test_the_first_may_leave_before_the_last_one_is_there() -> None:
    source = TestPublisher[int]()
    dispatcher = Dispatcher(source, 2, 4, "parallel")
    a, b = TestSubscriber[int](), TestSubscriber[int]()
    RailSource(dispatcher).subscribe(a)
    a.cancel()
    RailSource(dispatcher).subscribe(b)
    source.next(0, 1)
    b.assert_items(0, 1)
    b.cancel()
    source.assert_cancelled()


@pytest.mark.parametrize("error", [None, ValueError("upstream")])
def test_the_end_comes_to_all_after_the_items_that_wait(error: ValueError | None) -> None:
    source = TestPublisher[int]()
    a, b = dealt(source, 0, 0)
    source.next(0, 1)
    if error is None:
        source.complete()
    else:
        source.error(error)
    a.assert_not_terminated()
    b.request(1)
    b.assert_items(0).assert_not_terminated()
    a.request(1)
    if error is None:
        a.assert_result(1)
        b.assert_result(0)
    else:
        a.assert_failure(error, 1)
        b.assert_failure(error, 0)


def test_a_bad_request_ends_its_rail_only() -> None:
    source = TestPublisher[int]()
    a, b = dealt(source, 1, 1)
    a.subscription.request(0)
    a.assert_failure(ValueError)
    source.next(0)
    b.assert_items(0)
    b.subscription.request(-1)
    b.assert_failure(ValueError, 0)
    source.assert_cancelled()


def test_a_bad_request_in_on_subscribe_fails_the_rail_afterwards() -> None:
    source = TestPublisher[int]()
    a, b = dealt(source, -1, 1)
    a.assert_rules_kept().assert_failure(ValueError)
    source.next(0)
    b.assert_items(0)


def test_items_that_a_rail_does_not_use_do_not_count() -> None:
    def kind(request: int) -> TestSubscriber[int]:
        return ConditionalTestSubscriber(_even, request)

    (even,) = dealt(flow.range(9), 3, kind=kind)
    even.assert_items(0, 2, 4).assert_not_terminated()


def _even(n: int) -> bool:
    return n % 2 == 0


def test_too_many_items_fail_all_rails(dropped: Any) -> None:
    source = TestPublisher[int](Violation.OVERFLOW)
    a, b = dealt(source, 0, 0, prefetch=2)
    source.next(0, 1, 2)
    source.assert_cancelled()
    a.request(1)
    b.request(1)
    a.assert_failure(MissingBackpressureError, 0)
    b.assert_failure(MissingBackpressureError, 1)
    assert dropped.items == [2]


def test_a_subscriber_that_raises_loses_its_rail(dropped: Any) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("refused")

    source = TestPublisher[int]()
    dispatcher = Dispatcher(source, 2, 4, "parallel")
    a, b = TestSubscriber[int](on_item=refuse), TestSubscriber[int]()
    RailSource(dispatcher).subscribe(a)
    RailSource(dispatcher).subscribe(b)
    source.next(0, 1, 2)
    assert b.items == [1, 2]
    assert [str(error) for error in dropped.errors] == ["refused"]


def test_a_source_that_cannot_be_subscribed_fails_all_rails() -> None:
    class Broken(Publisher[int]):
        def subscribe(self, subscriber: Any, /) -> None:
            raise ValueError("broken")

    a, b = dealt(Broken(), 1, 0)
    a.assert_failure(ValueError)
    b.assert_failure(ValueError)


def test_a_queue_that_raises_fails_all_rails() -> None:
    def broken() -> Any:
        yield 0
        raise ValueError("broken")

    a, b = dealt(flow.from_iterable(broken()), 9, 0)
    a.assert_failure(ValueError, 0)
    b.assert_failure(ValueError)


def test_an_end_that_met_a_full_stack_comes_when_the_recursion_error_does(
    dropped: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = TestPublisher[int](Violation.AFTER_TERMINAL)
    a, b = dealt(source, 9, 0)
    full = RecursionError("no room")
    leave(full, None, source)  # as an operator does that has met it
    with monkeypatch.context() as patched, pytest.raises(RecursionError):
        patched.setattr(Dispatcher, "drain", _raising(full))
        source.complete()
    source.error(full)
    a.assert_result()
    b.assert_result()
    assert dropped.errors == [full]


def _raising(error: BaseException) -> Any:
    def drain(_: object) -> None:
        raise error

    return drain


@pytest.mark.slow
def test_a_hundred_thousand_items_in_constant_stack() -> None:
    a, b = dealt(flow.range(100_000).hide(), 0, 0)
    a.request(50_000)
    b.request(50_000)
    assert len(a.items) == len(b.items) == 50_000
    assert a.completed
    assert b.completed
