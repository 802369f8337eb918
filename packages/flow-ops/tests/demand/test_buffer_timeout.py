"""Items that have waited too long are dropped. All time is virtual."""

from __future__ import annotations

from typing import Any

import pytest

from flow_core import Flow
from flow_ops import on_backpressure_buffer
from flow_testing import TestPublisher, TestSubscriber, VirtualClock, observe

pytestmark = pytest.mark.usefixtures("dropped")


class Timed:
    """A source, a buffer whose items live for a second, and a subscriber."""

    def __init__(self, request: int = 0, **more: Any) -> None:
        self.clock = VirtualClock()
        self.lost: list[int] = []
        self.source = TestPublisher[int]()
        operator = on_backpressure_buffer(
            more.pop("capacity", 9),
            timeout=1,
            clock=self.clock,
            on_overflow=self.lost.append,
            **more,
        )
        self.subscriber: TestSubscriber[int] = observe(Flow(self.source).pipe(operator), request)


def test_an_item_that_has_waited_for_the_timeout_is_dropped() -> None:
    timed = Timed()
    timed.source.next(1)
    timed.clock.advance_by(0.6)
    timed.source.next(2)
    timed.clock.advance_by(0.399)
    assert timed.lost == []
    timed.clock.advance_by(0.001)
    assert timed.lost == [1]
    timed.clock.advance_by(0.6)
    assert timed.lost == [1, 2]
    assert timed.clock.pending == 0


def test_an_item_that_is_taken_in_time_is_not_dropped() -> None:
    timed = Timed()
    timed.source.next(1, 2)
    timed.clock.advance_by(0.9)
    timed.subscriber.request(1)
    timed.subscriber.assert_items(1)
    timed.clock.advance_by(0.1)
    assert timed.lost == [2]


def test_it_goes_to_the_hook_too(dropped: Any) -> None:
    timed = Timed()
    timed.source.next(1)
    timed.clock.advance_by(1)
    assert dropped.items == [1]


def test_it_completes_when_the_waiting_items_are_gone() -> None:
    timed = Timed()
    timed.source.next(1).complete()
    timed.subscriber.assert_not_terminated()
    timed.clock.advance_by(1)
    timed.subscriber.assert_result()


def test_there_is_one_timer_for_all_that_waits() -> None:
    timed = Timed()
    timed.source.next(*range(9))
    assert timed.clock.pending == 1


def test_no_timer_is_pending_without_waiting_items() -> None:
    timed = Timed(3)
    timed.source.next(1, 2, 3)
    assert timed.clock.pending == 0


@pytest.mark.parametrize("end", ["cancel", "bad request", "failure"])
def test_no_timer_survives_the_flow(end: str) -> None:
    timed = Timed()
    timed.source.next(1)
    assert timed.clock.pending == 1
    if end == "cancel":
        timed.subscriber.cancel()
    elif end == "bad request":
        timed.subscriber.request(-1)
    else:
        timed.source.error(ValueError())
        timed.subscriber.request(1)
        assert timed.subscriber.terminated
    assert timed.clock.pending == 0


def test_an_old_one_makes_room() -> None:
    timed = Timed(capacity=1)
    timed.source.next(1)
    timed.clock.advance_by(1)
    timed.source.next(2)
    timed.subscriber.request(1)
    timed.subscriber.assert_items(2).assert_not_terminated()


def test_an_error_that_on_overflow_raises_on_the_clock_fails_the_flow() -> None:
    error = KeyError()

    def fail(_: int) -> None:
        raise error

    clock, source = VirtualClock(), TestPublisher[int]()
    operator = on_backpressure_buffer(2, timeout=1, clock=clock, on_overflow=fail)
    subscriber = observe(Flow(source).pipe(operator), 0)
    source.next(1)
    clock.advance_by(1)
    subscriber.assert_failure(error)
    source.assert_cancelled()
