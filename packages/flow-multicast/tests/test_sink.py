"""The answers of a `Sink`."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from flow_core.errors import NoneItemError
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    EmitError,
    EmitResult,
    MulticastProcessor,
    ReplayProcessor,
    Sink,
    UnicastProcessor,
)
from flow_testing import TestSubscriber

PROCESSORS: dict[str, Any] = {
    "async": AsyncProcessor,
    "behavior": BehaviorProcessor,
    "direct": DirectProcessor,
    "multicast": MulticastProcessor,
    "replay": ReplayProcessor,
    "unicast": UnicastProcessor,
}


@pytest.fixture(params=list(PROCESSORS))
def processor(request: pytest.FixtureRequest) -> Any:
    return PROCESSORS[request.param]()


def test_taken_items_arrive_and_nothing_is_taken_after_the_end(processor: Any) -> None:
    sink = Sink[int](processor)
    subscriber = TestSubscriber[int](10)
    processor.subscribe(subscriber)
    assert sink.try_next(1) is EmitResult.OK
    assert sink.try_complete() is EmitResult.OK
    subscriber.assert_result(1)
    assert sink.try_next(2) is EmitResult.TERMINATED
    assert sink.try_complete() is EmitResult.TERMINATED
    assert sink.try_error(ValueError()) is EmitResult.TERMINATED
    with pytest.raises(EmitError, match="has ended") as raised:
        sink.next(2)
    assert raised.value.result is EmitResult.TERMINATED


def test_an_error_is_a_terminal_too(processor: Any) -> None:
    sink = Sink[int](processor)
    subscriber = TestSubscriber[int](10)
    processor.subscribe(subscriber)
    error = LookupError()
    sink.error(error)
    subscriber.assert_failure(error)
    assert sink.try_next(1) is EmitResult.TERMINATED


def test_none_is_not_an_item(processor: Any) -> None:
    with pytest.raises(NoneItemError):
        Sink[Any](processor).try_next(None)
    with pytest.raises(NoneItemError):
        Sink[Any](processor).try_error(None)  # type: ignore[arg-type]  # the mistake to be found


def test_an_item_that_no_subscriber_has_requested_is_not_taken() -> None:
    processor = DirectProcessor[int]()
    sink = Sink(processor)
    assert sink.try_next(1) is EmitResult.ZERO_SUBSCRIBER
    eager, slow = TestSubscriber[int](10), TestSubscriber[int](1)
    processor.subscribe(eager)
    processor.subscribe(slow)
    assert sink.try_next(1) is EmitResult.OK
    assert sink.try_next(2) is EmitResult.OVERFLOW
    eager.assert_items(1)
    slow.assert_items(1)


@pytest.mark.parametrize(
    "processor",
    [MulticastProcessor[int](1), UnicastProcessor[int](1), ReplayProcessor[int](size=1)],
    ids=["multicast", "unicast", "replay"],
)
def test_an_item_without_room_is_not_taken(processor: Any) -> None:
    sink = Sink[int](processor)
    subscriber = TestSubscriber[int](0)
    processor.subscribe(subscriber)
    assert sink.try_next(1) is EmitResult.OK
    assert sink.try_next(2) is EmitResult.OVERFLOW
    subscriber.request(5)
    assert sink.try_next(3) is EmitResult.OK
    subscriber.assert_items(1, 3)


@pytest.mark.parametrize(
    "processor",
    [UnicastProcessor[int](), MulticastProcessor[int](ref_count=True)],
    ids=["unicast", "multicast"],
)
def test_a_subscriber_that_has_left_is_named(processor: Any) -> None:
    if isinstance(processor, MulticastProcessor):
        processor.start()
    sink = Sink[int](processor)
    subscriber = TestSubscriber[int](5)
    processor.subscribe(subscriber)
    subscriber.cancel()
    assert sink.try_next(1) is EmitResult.CANCELLED
    assert sink.try_complete() is EmitResult.CANCELLED


def test_of_two_simultaneous_threads_one_gets_non_serialized() -> None:
    processor = DirectProcessor[int]()
    sink = Sink(processor)
    inside, go = threading.Event(), threading.Event()
    seen: list[int] = []

    def slowly(item: int) -> None:
        seen.append(item)
        if item == 1:
            inside.set()
            assert go.wait(20)

    processor.flow.subscribe(slowly)
    thread = threading.Thread(target=lambda: sink.next(1))
    thread.start()
    assert inside.wait(20)
    assert sink.try_next(2) is EmitResult.NON_SERIALIZED
    with pytest.raises(EmitError, match="another thread"):
        sink.next(2)
    again = threading.Thread(target=lambda: sink.next(3, spin=20))
    again.start()
    go.set()
    thread.join(20)
    again.join(20)
    assert seen == [1, 3]


def test_from_within_its_own_subscriber_it_says_so() -> None:
    processor = DirectProcessor[int]()
    sink = Sink(processor)
    answers: list[EmitResult] = []
    processor.flow.subscribe(lambda n: answers.append(sink.try_next(n + 1)))
    sink.next(1)
    assert answers == [EmitResult.NON_SERIALIZED]


@pytest.mark.parametrize("error", [None, ValueError("over")], ids=["complete", "error"])
def test_nothing_is_taken_after_the_end_though_items_wait_that_come_before_it(
    error: ValueError | None,
) -> None:
    processor = MulticastProcessor[int](4)
    sink = Sink(processor)
    slow = TestSubscriber[int](0)
    processor.subscribe(slow)
    assert sink.try_next(1) is EmitResult.OK
    end = sink.try_complete if error is None else lambda: sink.try_error(error)
    assert not processor.terminated
    assert end() is EmitResult.OK
    assert processor.terminated
    assert sink.try_next(2) is EmitResult.TERMINATED
    assert sink.try_complete() is EmitResult.TERMINATED
    assert sink.try_error(LookupError()) is EmitResult.TERMINATED
    slow.request(5)
    if error is None:
        slow.assert_result(1)
    else:
        slow.assert_failure(error, 1)
