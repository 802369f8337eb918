"""`handle` and its sink: one item at most, then perhaps the end; what misuse is answered with."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, NoneItemError, ProtocolViolationError, SingleSink
from flow_testing import TestPublisher, TestSubscriber, assert_result


def test_a_sink_maps_filters_completes_and_fails() -> None:
    error = KeyError(1)

    def handler(n: int, sink: SingleSink[str]) -> None:
        if n == 3:
            sink.complete()
        elif n != 1:
            sink.next(str(n))

    assert_result(lambda: flow.range(9).handle(handler), ["0", "2"])
    assert_result(lambda: flow.range(9).handle(lambda n, sink: None), [])
    assert_result(lambda: flow.range(9).handle(lambda n, sink: sink.error(error)), [], error)

    def last(n: int, sink: SingleSink[int]) -> None:
        sink.next(n)
        if n == 1:
            sink.complete()

    assert_result(lambda: flow.range(9).handle(last), [0, 1])
    assert_result(lambda: flow.range(9).handle(last).take(2), [0, 1])
    assert_result(lambda: flow.range(9).handle(last).end_with(7), [0, 1, 7])

    def failing(n: int, sink: SingleSink[int]) -> None:
        sink.next(n)
        if n == 1:
            sink.error(error)

    assert_result(lambda: flow.range(9).handle(failing), [0, 1], error)
    assert_result(lambda: flow.range(9).handle(failing).on_error_return(7), [0, 1, 7])


def test_completing_cancels_the_upstream_at_once() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[Any]()
    Flow(publisher).handle(lambda n, sink: sink.complete()).subscribe(subscriber)
    publisher.next(1)
    subscriber.assert_result()
    publisher.assert_cancelled()


def misused(*calls: Any) -> Flow[int]:
    def handler(_: int, sink: SingleSink[int]) -> None:
        for call in calls:
            call(sink)

    return flow.range(3).handle(handler)


def test_a_second_item_in_one_call_fails_the_flow() -> None:
    made = misused(lambda sink: sink.next(1), lambda sink: sink.next(2))
    assert_result(lambda: made, [], ProtocolViolationError)
    with pytest.raises(ProtocolViolationError, match=r"handle\(\): a second item in one call"):
        list(made)


def test_an_item_after_the_end_fails_the_flow() -> None:
    for end in (lambda sink: sink.complete(), lambda sink: sink.error(KeyError())):
        assert_result(
            lambda end=end: misused(end, lambda sink: sink.next(2)), [], ProtocolViolationError
        )


def test_a_sink_refuses_none_as_an_item() -> None:
    assert_result(lambda: misused(lambda sink: sink.next(None)), [], NoneItemError)


def test_a_value_that_is_not_an_exception_is_refused() -> None:
    assert_result(lambda: misused(lambda sink: sink.error("text")), [], TypeError)
    assert_result(lambda: misused(lambda sink: sink.error(KeyError)), [], TypeError)


def test_a_second_end_fails_the_flow() -> None:
    error = KeyError(1)
    ends = ((lambda sink: sink.complete()), (lambda sink: sink.error(error)))
    for first in ends:
        for second in ends:
            made = misused(first, second)
            assert_result(lambda made=made: made, [], ProtocolViolationError)
            with pytest.raises(ProtocolViolationError) as raised:
                list(made)
            assert raised.value.__cause__ is (error if second is ends[1] else None)


def test_a_handler_that_catches_its_mistake_may_continue() -> None:
    def handler(n: int, sink: SingleSink[int]) -> None:
        sink.next(n)
        with pytest.raises(ProtocolViolationError):
            sink.next(n + 1)

    assert list(flow.range(3).handle(handler)) == [0, 1, 2]


def test_a_handler_that_raises_fails_the_flow_and_its_item_is_not_sent() -> None:
    error = KeyError(1)

    def handler(n: int, sink: SingleSink[int]) -> None:
        sink.next(n)
        if n == 1:
            raise error

    assert_result(lambda: flow.range(3).handle(handler), [0], error)


def test_each_subscriber_has_a_separate_sink() -> None:
    sinks: set[int] = set()
    kept: list[SingleSink[int]] = []

    def handler(n: int, sink: SingleSink[int]) -> None:
        sinks.add(id(sink))
        kept.append(sink)
        sink.next(n)

    made = flow.range(3).handle(handler)
    assert list(made) == [0, 1, 2]
    assert list(made) == [0, 1, 2]
    assert len(sinks) == 2


def test_an_item_whose_eq_raises_passes_a_sink() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]  # on purpose

        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

    item = Odd()
    (given,) = flow.just(item).handle(lambda x, sink: sink.next(x))
    assert given is item
