"""`switch_on_first`: the items that each subscriber gets, and when they are requested."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.errors import MissingBackpressureError, NoneItemError, ProtocolViolationError
from flow_core.notifications import Notification, OnComplete, OnError, OnNext
from flow_ops import switch_on_first
from flow_testing import (
    BAD_SOURCES,
    ENDINGS,
    BadSource,
    Ending,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_released,
    assert_result,
    check_bad_source,
    observe,
)


def whole(_: object, flowing: Flow[Any]) -> Flow[Any]:
    return flowing


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_the_whole_flow_is_the_whole_flow(count: int) -> None:
    assert_result(lambda: flow.range(count).pipe(switch_on_first(whole)), list(range(count)))


def test_an_error_after_items(dropped: Any) -> None:
    assert_result(
        lambda: flow.range(3).map(lambda n: 6 // (2 - n)).pipe(switch_on_first(whole)),
        [3, 6],
        ZeroDivisionError,
    )


def test_an_error_at_once() -> None:
    assert_result(lambda: flow.error(ValueError()).pipe(switch_on_first(whole)), [], ValueError)


def test_stages_on_the_whole_flow() -> None:
    def odd(_: object, numbers: Flow[int]) -> Flow[int]:
        return numbers.filter(lambda n: n % 2 == 1).hide()

    assert_result(lambda: flow.range(8).pipe(switch_on_first(odd)), [1, 3, 5, 7])


@pytest.mark.parametrize(
    ("source", "signal"),
    [
        (flow.just(1, 2), OnNext(1)),
        (flow.empty(), OnComplete()),
        (flow.never(), None),
    ],
)
def test_the_transformer_gets_the_first_signal_once(source: Any, signal: Any) -> None:
    seen: list[Notification[int]] = []

    def look(first: Notification[int], numbers: Flow[int]) -> Flow[int]:
        seen.append(first)
        return numbers

    observe(source.pipe(switch_on_first(look)))
    assert seen == ([] if signal is None else [signal])


def test_an_error_is_a_first_signal_too() -> None:
    error = ValueError()

    def recover(first: Notification[int], numbers: Flow[int]) -> Flow[int]:
        return flow.just(-1) if first == OnError(error) else numbers

    assert_result(lambda: flow.error(error).pipe(switch_on_first(recover)), [-1])


def test_another_flow_may_be_returned_and_the_source_is_cancelled() -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(lambda *_: flow.just("a", "b"))))
    source.next(1)
    subscriber.assert_result("a", "b")
    source.assert_cancelled()
    source.assert_requests(1)


def test_the_source_is_cancelled_when_the_returned_flow_has_had_enough() -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(lambda _, all_: all_.take(2))))
    source.next(1, 2)
    subscriber.assert_result(1, 2)
    source.assert_cancelled()


def test_demand_is_passed_on_but_for_the_first_item() -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(whole)), 0)
    source.assert_requests(1)
    source.next(1)
    subscriber.assert_items().request(3)
    subscriber.assert_items(1)
    source.assert_requests(1, 2)
    subscriber.request(flow.UNBOUNDED)
    assert source.requests == [1, 2, flow.UNBOUNDED]


def test_unbounded_demand_stays_unbounded() -> None:
    source = TestPublisher[int]()
    observe(Flow(source).pipe(switch_on_first(whole)))
    source.next(1)
    source.assert_requests(1, flow.UNBOUNDED)


def test_a_rejected_first_item_is_replaced() -> None:
    def later(_: object, numbers: Flow[int]) -> Flow[int]:
        return numbers.filter(lambda n: n > 1)

    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(later)), 1)
    source.next(1, 2)
    subscriber.assert_items(2)


def test_the_end_waits_for_the_first_item() -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(whole)), 0)
    source.next(1).complete()
    subscriber.assert_not_terminated().request(1)
    subscriber.assert_result(1)


def test_the_whole_flow_is_for_one_subscriber() -> None:
    def twice(_: object, numbers: Flow[int]) -> Flow[int]:
        numbers.subscribe(second)
        return numbers

    second = TestSubscriber[int]()
    subscriber = observe(flow.range(3).hide().pipe(switch_on_first(twice)))
    second.assert_items(0)
    subscriber.assert_failure(ProtocolViolationError)
    assert "can be subscribed to once" in str(subscriber.error)


def test_the_whole_flow_cannot_be_subscribed_to_after_the_end() -> None:
    kept: list[Flow[int]] = []

    def keep(_: object, numbers: Flow[int]) -> Flow[int]:
        kept.append(numbers)
        return flow.empty()

    observe(flow.range(3).pipe(switch_on_first(keep))).assert_result()
    observe(kept[0]).assert_failure(ProtocolViolationError)


def test_an_error_without_a_listener_goes_to_the_hook(dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(lambda *_: flow.never())))
    error = ValueError()
    source.next(1).error(error)
    subscriber.cancel()
    assert dropped.errors == [error]


@pytest.mark.parametrize("made", [None, 5])
def test_the_transformer_has_to_give_a_flow(made: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(lambda *_: made)))
    source.next(1)
    subscriber.assert_failure(NoneItemError if made is None else TypeError)
    source.assert_cancelled()


def test_an_error_that_the_transformer_raises_fails_the_flow() -> None:
    error = KeyError()

    def fail(*_: object) -> Flow[int]:
        raise error

    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(fail)))
    source.next(1)
    subscriber.assert_failure(error)
    assert error.__notes__[0].startswith("in switch_on_first(")
    source.assert_cancelled()


def test_a_fatal_error_of_the_transformer_propagates() -> None:
    def interrupt(*_: object) -> Flow[int]:
        raise KeyboardInterrupt

    source = TestPublisher[int]()
    observe(Flow(source).pipe(switch_on_first(interrupt)))
    with pytest.raises(KeyboardInterrupt):
        source.next(1)
    source.assert_cancelled()


def test_a_source_that_overflows_is_cancelled(dropped: Any) -> None:
    source = TestPublisher[int](Violation.OVERFLOW)
    subscriber = observe(Flow(source).pipe(switch_on_first(whole)), 0)
    source.next(1, 2)
    source.assert_cancelled()
    subscriber.request(5)
    subscriber.assert_failure(MissingBackpressureError, 1)
    assert dropped.items == [2]


def test_requests_within_on_next_do_not_nest() -> None:
    subscriber = observe(
        flow.range(20_000).hide().pipe(switch_on_first(whole)),
        1,
        on_item=lambda self, _: self.request(1),
    )
    subscriber.assert_result(*range(20_000))


@pytest.mark.parametrize("request_", [0, 1, flow.UNBOUNDED])
def test_a_cancel_reaches_the_source(request_: int) -> None:
    source = TestPublisher[int]()
    subscriber = observe(Flow(source).pipe(switch_on_first(whole)), request_)
    source.next(1)
    subscriber.cancel()
    source.assert_cancelled()
    early = TestPublisher[int]()
    observe(Flow(early).pipe(switch_on_first(whole))).cancel()
    early.assert_cancelled()


@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
def test_it_keeps_the_rules_behind_a_bad_source(bad: BadSource, dropped: Any) -> None:
    check_bad_source(
        lambda source: source.pipe(switch_on_first(whole)), only=lambda name: name == bad.name
    )


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize(
    "transformer",
    [whole, lambda _, all_: all_.filter(bool), lambda *_: flow.range(9)],
    ids=["whole", "stage", "other"],
)
def test_it_lets_go_of_everything(transformer: Any, ending: Ending) -> None:
    assert_released(
        lambda payloads: payloads.pushed().pipe(switch_on_first(transformer)),
        only=lambda name: name == ending.name,
    )


def test_a_function_is_needed() -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match="switch_on_first"):
        switch_on_first(wrong)
