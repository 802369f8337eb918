"""One bounded queue, one subscriber: pushed, or polled by a subscriber that fuses with it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import flow_core as flow
from flow_core import (
    EMPTY,
    UNBOUNDED,
    Flow,
    Fusion,
    MissingBackpressureError,
    NoneItemError,
    ProtocolViolationError,
    QueueSubscription,
)
from flow_core.protocols import CoreSubscriber, Subscription
from flow_multicast import MulticastProcessor, UnicastProcessor
from flow_multicast.processors import unicast
from flow_testing import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    Drops,
    TestPublisher,
    TestSubscriber,
    Violation,
    race,
)

MODES = [Fusion(mode) for mode in range(8)]


class Woken(CoreSubscriber[Any]):
    """Asks for a mode in on_subscribe, writes down signals, and leaves polling to the test."""

    def __init__(self, mode: Fusion = Fusion.ASYNC, request: int = 0) -> None:
        self.mode = mode
        self.request = request
        self.granted = Fusion.NONE
        self.signals: list[object] = []
        self.queue: QueueSubscription[Any]

    def on_subscribe(self, subscription: Subscription, /) -> None:
        assert isinstance(subscription, QueueSubscription)
        self.queue = subscription
        self.granted = subscription.request_fusion(self.mode)
        if self.request:
            subscription.request(self.request)

    def on_next(self, item: Any, /) -> None:
        self.signals.append(item)

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(error)

    def on_complete(self) -> None:
        self.signals.append("complete")

    def polled(self) -> list[Any]:
        items = []
        while (item := self.queue.poll()) is not EMPTY:
            items.append(item)
        return items


def filled(*items: int, capacity: int = 8, **options: Any) -> UnicastProcessor[int]:
    processor = UnicastProcessor[int](capacity, **options)
    for item in items:
        assert processor.offer(item)
    return processor


def woken(processor: UnicastProcessor[int], mode: Fusion = Fusion.ASYNC) -> Woken:
    processor.subscribe(subscriber := Woken(mode))
    return subscriber


# -- pushed


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_one_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match="capacity must be at least 1"):
        UnicastProcessor(capacity)


@pytest.mark.parametrize("capacity", [1.5, None, True])
def test_a_capacity_that_is_not_an_int_is_refused(capacity: Any) -> None:
    with pytest.raises(TypeError, match="capacity"):
        UnicastProcessor(capacity)


@pytest.mark.checklist("F30")
def test_items_that_come_before_the_subscriber_wait_for_it() -> None:
    processor = filled(1, 2)
    processor.subscribe(subscriber := TestSubscriber[int]())
    subscriber.assert_items(1, 2).assert_not_terminated()
    processor.on_next(3)
    processor.on_complete()
    subscriber.assert_result(1, 2, 3)


@pytest.mark.checklist("F30")
def test_items_are_pushed_as_far_as_they_are_requested() -> None:
    processor = filled(1, 2, 3)
    processor.subscribe(subscriber := TestSubscriber[int](0))
    processor.on_complete()
    subscriber.assert_items().request(2)
    subscriber.assert_items(1, 2).assert_not_terminated().request(1)
    subscriber.assert_result(1, 2, 3)  # the end needs no demand


def test_an_item_that_is_dropped_by_a_conditional_subscriber_costs_no_demand() -> None:
    processor = filled(1, 2, 3, 4, 5)
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2 == 0, 2)
    processor.subscribe(subscriber)
    subscriber.assert_items(2, 4)
    assert subscriber.rejected == [1, 3]
    assert processor.statistics().buffered == 1


def test_a_failure_comes_after_the_items_that_wait() -> None:
    error = ValueError("identical")
    processor = filled(1, 2)
    processor.on_error(error)
    processor.subscribe(subscriber := TestSubscriber[int](1))
    subscriber.assert_items(1).assert_not_terminated().request(1)
    subscriber.assert_failure(error, 1, 2)


def test_a_failure_overtakes_the_items_when_it_is_not_to_be_delayed(drops: Drops) -> None:
    error = ValueError("identical")
    processor = filled(1, 2, 3, delay_error=False)
    processor.subscribe(subscriber := TestSubscriber[int](1))
    processor.on_error(error)
    subscriber.assert_failure(error, 1)
    assert drops.take_items() == [2, 3]


def test_it_is_a_flow() -> None:
    processor = filled(1, 2, 3)
    processor.on_complete()
    assert list(processor.flow.filter(lambda n: n != 2).map(str)) == ["1", "3"]


def test_signals_after_the_end_go_to_the_hooks(drops: Drops) -> None:
    processor = UnicastProcessor[int]()
    processor.subscribe(subscriber := TestSubscriber[int]())
    processor.on_complete()
    processor.on_next(1)
    processor.on_complete()
    assert not processor.offer(2)
    processor.on_error(error := ValueError())
    subscriber.assert_result()
    assert drops.take_items() == [1]
    assert drops.take_errors() == [error]


@pytest.mark.parametrize("method", ["offer", "on_next", "on_error", "on_subscribe", "subscribe"])
def test_none_is_not_a_signal(method: str) -> None:
    with pytest.raises(NoneItemError, match=f"{method}"):
        getattr(UnicastProcessor[int](), method)(None)


@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_a_wrong_amount_fails_the_flow_and_cancels_the_upstream(mode: Fusion, drops: Drops) -> None:
    publisher = TestPublisher[int]()
    publisher.subscribe(processor := UnicastProcessor[int](4))
    publisher.next(1)
    processor.subscribe(subscriber := TestSubscriber[int](0, fusion=mode))
    subscriber.subscription.request(0)
    subscriber.assert_failure(ValueError)
    assert "3.9" in str(subscriber.error)
    publisher.assert_cancelled()
    assert drops.take_items() == [1]


def test_a_request_in_on_next_does_not_recurse() -> None:
    processor = UnicastProcessor[int](UNBOUNDED)
    for n in range(5000):
        processor.on_next(n)
    processor.on_complete()
    subscriber = TestSubscriber[int](1, on_item=lambda self, _: self.request(1))
    processor.subscribe(subscriber)
    subscriber.assert_result(*range(5000))


def test_a_subscriber_that_raises_is_cancelled(drops: Drops) -> None:
    error = ValueError("in on_next")

    def fail(*_: object) -> None:
        raise error

    publisher = TestPublisher[int]()
    publisher.subscribe(processor := UnicastProcessor[int](4))
    processor.subscribe(subscriber := TestSubscriber[int](on_item=fail))
    publisher.next(1)
    subscriber.assert_items(1).assert_not_terminated()
    publisher.assert_cancelled()
    assert drops.take_errors() == [error]


def test_a_fatal_error_propagates_and_leaves_nothing_behind(drops: Drops) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    processor = filled(1, 2)
    with pytest.raises(KeyboardInterrupt):
        processor.subscribe(TestSubscriber[int](on_item=interrupt))
    assert processor.statistics().terminated
    assert drops.take_items() == [2]


# -- the bound


def test_offer_says_no_when_the_queue_is_full() -> None:
    processor = filled(1, 2, capacity=2)
    assert not processor.offer(3)
    processor.subscribe(subscriber := TestSubscriber[int](1))
    assert processor.offer(4)
    assert not processor.offer(5)
    processor.on_complete()
    subscriber.request(UNBOUNDED)
    subscriber.assert_result(1, 2, 4)


@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_on_next_beyond_the_capacity_fails_after_the_items_that_wait(
    mode: Fusion, drops: Drops
) -> None:
    publisher = TestPublisher[int](Violation.OVERFLOW)
    publisher.subscribe(processor := UnicastProcessor[int](2))
    processor.subscribe(subscriber := TestSubscriber[int](0, fusion=mode))
    publisher.next(1, 2, 3)
    publisher.assert_cancelled()
    assert drops.take_items() == [3]
    subscriber.request(UNBOUNDED)
    subscriber.assert_failure(MissingBackpressureError, 1, 2)


@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
@pytest.mark.parametrize(
    ("capacity", "requests"), [(1, [1] * 11), (2, [2] * 6), (4, [4, 3, 3, 3]), (8, [8, 6])]
)
def test_the_upstream_is_asked_for_the_capacity_and_for_what_was_consumed(
    mode: Fusion, capacity: int, requests: list[int]
) -> None:
    publisher = TestPublisher[int]()
    publisher.subscribe(processor := UnicastProcessor[int](capacity))
    processor.subscribe(subscriber := TestSubscriber[int](fusion=mode))
    assert subscriber.fused is mode
    publisher.next(*range(10))
    publisher.assert_requests(*requests)
    publisher.complete()
    subscriber.assert_result(*range(10))


@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_nothing_more_is_requested_while_nothing_is_taken(mode: Fusion) -> None:
    publisher = TestPublisher[int]()
    publisher.subscribe(processor := UnicastProcessor[int](4))
    publisher.next(1, 2, 3, 4)
    processor.subscribe(subscriber := TestSubscriber[int](2, fusion=mode))
    publisher.assert_requests(4)
    subscriber.request(1)
    publisher.assert_requests(4, 3)
    assert processor.statistics().buffered == 1


def test_without_a_bound_everything_is_requested_once() -> None:
    publisher = TestPublisher[int]()
    publisher.subscribe(processor := UnicastProcessor[int](UNBOUNDED))
    processor.subscribe(subscriber := TestSubscriber[int]())
    publisher.next(*range(1000))
    publisher.assert_requests(UNBOUNDED)
    assert processor.offer(1000)
    subscriber.assert_items(*range(1001))


def test_an_upstream_has_all_the_room() -> None:
    processor = filled(1, capacity=4)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    publisher.assert_requests(3)
    assert not processor.offer(9)
    publisher.next(2, 3, 4)
    processor.subscribe(subscriber := TestSubscriber[int](2))
    assert not processor.offer(9)
    assert processor.room() == 0
    subscriber.request(1)
    publisher.assert_requests(3, 3)
    publisher.next(5)
    publisher.complete()
    subscriber.request(UNBOUNDED)
    subscriber.assert_result(1, 2, 3, 4, 5)


def test_a_full_processor_requests_when_there_is_room() -> None:
    processor = filled(1, 2, 3, 4, capacity=4)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    publisher.assert_requests()
    processor.subscribe(TestSubscriber[int](3))
    publisher.assert_requests(3)


def test_a_second_upstream_is_cancelled_and_the_first_stays() -> None:
    processor = UnicastProcessor[int](4)
    first, second = TestPublisher[int](), TestPublisher[int]()
    first.subscribe(processor)
    second.subscribe(processor)
    second.assert_cancelled().assert_requests()
    first.assert_not_cancelled().assert_requests(4)


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_an_upstream_that_comes_after_the_end_is_cancelled(end: str) -> None:
    processor = UnicastProcessor[int](4)
    if end == "complete":
        processor.on_complete()
    else:
        processor.cancel()
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    publisher.assert_cancelled().assert_requests()


@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_an_upstream_that_fails_to_be_requested_fails_the_flow(mode: Fusion, drops: Drops) -> None:
    error = ValueError("in request")

    class Broken:
        cancelled = False

        def request(self, n: int, /) -> None:
            if n == 3:
                raise error

        def cancel(self) -> None:
            self.cancelled = True

    processor = UnicastProcessor[int](4)
    processor.on_subscribe(upstream := Broken())
    processor.subscribe(subscriber := TestSubscriber[int](fusion=mode))
    for n in range(3):
        processor.on_next(n)
    subscriber.assert_failure(error, 0, 1, 2)
    assert upstream.cancelled
    assert drops.take_items() == []


# -- one subscriber


@pytest.mark.checklist("F32")
def test_a_second_subscriber_gets_an_error_and_the_first_continues() -> None:
    processor = filled(1)
    processor.subscribe(first := TestSubscriber[int]())
    processor.subscribe(second := TestSubscriber[int]())
    second.assert_failure(ProtocolViolationError)
    processor.on_next(2)
    processor.on_complete()
    first.assert_result(1, 2)
    processor.subscribe(third := TestSubscriber[int]())
    third.assert_failure(ProtocolViolationError)


@pytest.mark.checklist("F32")
def test_of_two_that_subscribe_at_once_one_is_served() -> None:
    for _ in range(200):
        processor = filled(1)
        both = [TestSubscriber[int](), TestSubscriber[int]()]
        race(*(partial(processor.subscribe, one) for one in both))
        processor.on_complete()
        served = [one for one in both if one.completed]
        refused = [one for one in both if one.error is not None]
        assert len(served) == len(refused) == 1
        served[0].assert_result(1)
        refused[0].assert_failure(ProtocolViolationError)


@pytest.mark.checklist("F32")
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC, Fusion.ANY])
def test_a_subscriber_that_cancels_in_on_subscribe_gets_nothing(mode: Fusion, drops: Drops) -> None:
    processor = filled(1, 2)
    subscriber = TestSubscriber[int](fusion=mode)
    subscriber.cancel()
    processor.subscribe(subscriber)
    processor.on_next(3)
    subscriber.assert_items().assert_silent_after_cancel()
    assert drops.take_items() == [1, 2, 3]


def test_a_subscriber_that_comes_after_a_cancel_fails() -> None:
    processor = UnicastProcessor[int]()
    processor.cancel()
    processor.subscribe(subscriber := TestSubscriber[int]())
    subscriber.assert_failure(ProtocolViolationError)


@pytest.mark.checklist("F32")
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC, Fusion.ANY])
def test_items_that_are_sent_during_on_subscribe_arrive(mode: Fusion) -> None:
    """The signal for it found no subscriber; the last act of subscribe is to signal again."""
    processor = UnicastProcessor[int]()

    class Slow(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            race(lambda: processor.on_next(1), lambda: processor.offer(1))
            self.assert_items().assert_rules_kept()
            processor.on_complete()

    processor.subscribe(subscriber := Slow(fusion=mode))
    subscriber.assert_result(1, 1)


@pytest.mark.checklist("F32")
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC, Fusion.ANY])
@pytest.mark.parametrize("prefetch", [1, 3, 64])
def test_no_item_is_lost_in_a_race_of_subscribing_and_sending(mode: Fusion, prefetch: int) -> None:
    for _ in range(60):
        processor = UnicastProcessor[int](prefetch)
        subscriber = TestSubscriber[int](fusion=mode)

        race(
            partial(flow.range(50).hide().subscribe, processor),
            partial(processor.subscribe, subscriber),
        )
        subscriber.await_terminal().assert_result(*range(50))


def test_a_subscriber_that_raises_in_on_subscribe_leaves_a_cancelled_processor() -> None:
    class Raising(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            raise ValueError("no")

    publisher = TestPublisher[int]()
    publisher.subscribe(processor := UnicastProcessor[int]())
    with pytest.raises(ValueError, match="no"):
        processor.subscribe(Raising())
    publisher.assert_cancelled()


# -- what is asked and granted


@pytest.mark.checklist("F23", "F30", "F34", "F56")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ended", [False, True])
def test_sync_is_granted_after_the_end_and_async_at_any_time(mode: Fusion, ended: bool) -> None:
    processor = filled(1)
    if ended:
        processor.on_complete()
    expected = mode & Fusion.ASYNC
    if ended and mode & Fusion.SYNC:
        expected = Fusion.SYNC
    subscriber = woken(processor, mode)
    assert subscriber.granted is expected
    assert processor.statistics().fusion is expected


@pytest.mark.checklist("F24", "F47")
@pytest.mark.parametrize("mode", MODES)
def test_fusion_is_asked_for_once(mode: Fusion) -> None:
    class Twice(Woken):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
                self.queue.request_fusion(Fusion.ANY)

    filled().subscribe(subscriber := Twice(mode))
    with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
        subscriber.queue.request_fusion(Fusion.ANY)


@pytest.mark.checklist("F24")
@pytest.mark.parametrize("when", ["after a request", "after on_subscribe", "without a subscriber"])
def test_fusion_is_asked_for_in_time(when: str) -> None:
    processor = filled()
    if when == "without a subscriber":
        with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
            processor.request_fusion(Fusion.ASYNC)
        return

    class Late(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            if self._requested:
                with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
                    processor.request_fusion(Fusion.ASYNC)

    processor.subscribe(Late(1 if when == "after a request" else 0))
    with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
        processor.request_fusion(Fusion.ASYNC)


# -- ASYNC


@pytest.mark.checklist("F26", "F30", "F31")
def test_a_fused_item_is_queued_and_then_only_a_wake_up_is_sent() -> None:
    processor = filled(1)
    subscriber = woken(processor)
    assert subscriber.signals == [EMPTY]
    processor.on_next(2)
    assert processor.offer(3)
    assert subscriber.signals == [EMPTY] * 3
    assert subscriber.polled() == [1, 2, 3]
    assert subscriber.queue.poll() is EMPTY
    processor.on_complete()
    assert subscriber.signals[-1] == "complete"


@pytest.mark.checklist("F26")
def test_a_wake_up_needs_no_demand_and_a_valid_request_brings_none() -> None:
    processor = filled(1)
    subscriber = woken(processor)
    subscriber.queue.request(5)
    assert subscriber.signals == [EMPTY]
    assert not subscriber.queue.is_empty()
    assert subscriber.polled() == [1]
    assert subscriber.queue.is_empty()


@pytest.mark.checklist("F31")
def test_the_item_is_there_when_the_wake_up_comes() -> None:
    seen: list[object] = []

    class Polling(Woken):
        def on_next(self, item: Any, /) -> None:
            seen.append(self.queue.poll())

    processor = UnicastProcessor[int]()
    processor.subscribe(Polling())
    processor.on_next(1)
    processor.on_next(2)
    assert seen == [1, 2]


@pytest.mark.checklist("F33")
@pytest.mark.parametrize("error", [None, ValueError("identical")])
def test_items_that_wait_at_the_end_can_be_polled_after_it(error: BaseException | None) -> None:
    processor = filled(1, 2, 3)
    subscriber = woken(processor)
    if error is None:
        processor.on_complete()
    else:
        processor.on_error(error)
    assert subscriber.signals == [EMPTY, EMPTY, error or "complete"]
    assert subscriber.polled() == [1, 2, 3]
    assert len(subscriber.signals) == 3


@pytest.mark.checklist("F32", "F33")
def test_a_subscriber_that_comes_after_the_end_is_woken_and_gets_the_end() -> None:
    processor = filled(1, 2)
    processor.on_complete()
    subscriber = woken(processor)
    assert subscriber.granted is Fusion.ASYNC
    assert subscriber.signals == [EMPTY, "complete"]
    assert subscriber.polled() == [1, 2]


@pytest.mark.checklist("F33")
def test_a_fused_failure_that_does_not_wait_drops_the_items(drops: Drops) -> None:
    error = ValueError()
    processor = filled(1, 2, delay_error=False)
    subscriber = woken(processor)
    processor.on_error(error)
    assert subscriber.polled() == []
    assert subscriber.signals == [EMPTY, error]
    assert drops.take_items() == [1, 2]


def test_clear_drops_the_items_that_wait_and_the_flow_continues(drops: Drops) -> None:
    processor = filled(1, 2)
    subscriber = woken(processor)
    subscriber.queue.clear()
    assert subscriber.queue.poll() is EMPTY
    assert drops.take_items() == [1, 2]
    processor.on_next(3)
    assert subscriber.polled() == [3]


@pytest.mark.parametrize("when", ["before the end", "after the end"])
def test_cancel_drops_what_could_be_polled(when: str, drops: Drops) -> None:
    processor = filled(1, 2)
    subscriber = woken(processor)
    if when == "after the end":
        processor.on_complete()
    subscriber.queue.cancel()
    subscriber.queue.cancel()
    assert subscriber.queue.poll() is EMPTY
    assert subscriber.queue.is_empty()
    assert drops.take_items() == [1, 2]


def test_a_fused_subscriber_that_raises_when_woken_is_cancelled(drops: Drops) -> None:
    error = ValueError("in on_next")

    class Raising(Woken):
        def on_next(self, item: Any, /) -> None:
            raise error

    processor = filled(1)
    processor.subscribe(Raising())
    assert processor.statistics().terminated
    assert drops.take_errors() == [error]
    assert drops.take_items() == [1]


@pytest.mark.checklist("F26", "F33")
@pytest.mark.parametrize("capacity", [1, 3, 128])
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_producers_and_a_requesting_subscriber_run_on_separate_threads(
    mode: Fusion, capacity: int
) -> None:
    room = threading.Semaphore(capacity)
    processor = UnicastProcessor[int](capacity)
    subscriber = TestSubscriber[int](0, fusion=mode, on_item=lambda *_: room.release())
    processor.subscribe(subscriber)
    count = 500

    def request() -> None:
        for taken in range(0, 2 * count, 4):
            subscriber.request(4)
            subscriber.await_items(min(taken, 2 * count))

    def offer(start: int) -> Callable[[], None]:
        def run() -> None:
            for n in range(start, start + count):
                assert room.acquire(timeout=TIMEOUT_S)
                assert processor.offer(n), "what was taken has left room"

        return run

    race(offer(0), offer(count), request, timeout_s=60)
    processor.on_complete()
    subscriber.await_terminal()
    assert [n for n in subscriber.items if n < count] == list(range(count))
    assert [n for n in subscriber.items if n >= count] == list(range(count, 2 * count))
    subscriber.assert_rules_kept()


@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_sending_ending_and_cancelling_at_once_leaves_nothing_behind(
    mode: Fusion, drops: Drops
) -> None:
    for _ in range(300):
        processor = UnicastProcessor[int](4)
        subscriber = TestSubscriber[int](fusion=mode)
        processor.subscribe(subscriber)

        def send(processor: UnicastProcessor[int] = processor) -> None:
            for n in range(3):
                processor.on_next(n)
            processor.on_complete()

        race(send, subscriber.cancel)
        assert subscriber.items == [0, 1, 2][: len(subscriber.items)]
        subscriber.assert_rules_kept()
        dropped = drops.take_items()
        assert {*subscriber.items, *dropped} == {0, 1, 2}
        assert len(subscriber.items) + len(dropped) == 3
        assert processor.is_empty()


# -- SYNC


@pytest.mark.checklist("F34")
def test_a_processor_that_has_ended_is_polled_like_any_synchronous_source() -> None:
    processor = filled(1, 2, 3)
    processor.on_complete()
    subscriber = woken(processor, Fusion.ANY)
    assert subscriber.granted is Fusion.SYNC
    assert not subscriber.queue.is_empty()
    assert subscriber.polled() == [1, 2, 3]
    assert subscriber.queue.is_empty()
    assert subscriber.queue.poll() is EMPTY
    assert subscriber.signals == []


@pytest.mark.checklist("F34", "F25")
@pytest.mark.parametrize("delay_error", [True, False])
def test_its_error_is_raised_by_poll_at_the_end(delay_error: bool, drops: Drops) -> None:
    error = ValueError("identical")
    processor = filled(1, 2, delay_error=delay_error)
    processor.on_error(error)
    subscriber = woken(processor, Fusion.SYNC)
    assert subscriber.granted is Fusion.SYNC
    if delay_error:
        assert [subscriber.queue.poll(), subscriber.queue.poll()] == [1, 2]
    else:
        assert drops.take_items() == [1, 2]
    assert not subscriber.queue.is_empty()
    with pytest.raises(ValueError) as raised:
        subscriber.queue.poll()
    assert raised.value is error
    assert error.__cause__ is None
    assert error.__context__ is None
    assert subscriber.queue.is_empty()
    assert subscriber.queue.poll() is EMPTY
    assert subscriber.signals == []


@pytest.mark.checklist("F34")
def test_before_the_end_sync_is_refused_since_empty_would_mean_the_end() -> None:
    processor = filled(1)
    subscriber = woken(processor, Fusion.SYNC)
    assert subscriber.granted is Fusion.NONE
    subscriber.queue.request(1)
    processor.on_complete()
    assert subscriber.signals == [1, "complete"]


@pytest.mark.checklist("F34")
def test_cancel_and_clear_of_a_synchronous_one_drop_the_rest_and_its_error(drops: Drops) -> None:
    for leave in ("cancel", "clear"):
        processor = filled(1, 2)
        processor.on_error(ValueError())
        subscriber = woken(processor, Fusion.SYNC)
        getattr(subscriber.queue, leave)()
        assert subscriber.queue.is_empty()
        assert subscriber.queue.poll() is EMPTY
        assert drops.take_items() == [1, 2]


@pytest.mark.checklist("F34")
def test_the_answer_fits_what_is_polled_when_the_end_comes_meanwhile() -> None:
    for _ in range(200):
        processor = filled(1, 2)
        subscriber = TestSubscriber[int](fusion=Fusion.ANY)

        def end(processor: UnicastProcessor[int] = processor) -> None:
            processor.offer(3)
            processor.on_complete()

        race(end, partial(processor.subscribe, subscriber))
        subscriber.await_terminal().assert_result(1, 2, 3)


# -- fused with a consumer


@pytest.mark.checklist("F57", "F58")
def test_a_consumer_that_fuses_shares_the_one_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[deque[Any]] = []

    def spy(*args: Any) -> deque[Any]:
        made.append(deque(*args))
        return made[-1]

    monkeypatch.setattr(unicast, "deque", spy)
    processor = UnicastProcessor[int](4)
    processor.subscribe(subscriber := TestSubscriber[int](0, fusion=Fusion.ANY))
    processor.on_next(1)
    assert [list(queue) for queue in made] == [[1]]
    subscriber.request(1)
    assert [list(queue) for queue in made] == [[]]


@pytest.mark.checklist("F30", "F33")
@pytest.mark.parametrize("ended", [False, True])
def test_a_multicast_of_a_unicast_polls_it(ended: bool) -> None:
    processor = filled(1, 2)
    if ended:
        processor.on_complete()
    many = MulticastProcessor[int](2)
    first, second = TestSubscriber[int](), TestSubscriber[int](0)
    many.subscribe(first)
    many.subscribe(second)
    processor.subscribe(many)
    assert processor.statistics().fusion is (Fusion.SYNC if ended else Fusion.ASYNC)
    if not ended:
        processor.on_complete()
    assert processor.statistics().buffered == 2
    second.request(UNBOUNDED)
    first.assert_result(1, 2)
    second.assert_result(1, 2)


@pytest.mark.checklist("F30", "F57")
def test_a_polling_subscriber_on_another_thread_gets_everything() -> None:
    """A consumer that drains on an executor, as a boundary does."""
    count = 3000
    done = threading.Event()
    items: list[int] = []
    processor = UnicastProcessor[int](16)

    with ThreadPoolExecutor(1) as pool:

        class Elsewhere(CoreSubscriber[int]):
            ended = False

            def on_subscribe(self, subscription: Subscription, /) -> None:
                assert isinstance(subscription, QueueSubscription)
                self.queue: QueueSubscription[int] = subscription
                mode = subscription.request_fusion(Fusion.ANY | Fusion.THREAD_BOUNDARY)
                assert mode is Fusion.ASYNC
                subscription.request(16)

            def on_next(self, item: int, /) -> None:
                pool.submit(self.drain)

            def on_complete(self) -> None:
                self.ended = True
                pool.submit(self.drain)

            def on_error(self, error: BaseException, /) -> None:
                raise AssertionError(error)

            def drain(self) -> None:
                ended = self.ended
                while not isinstance(item := self.queue.poll(), flow.Empty):
                    items.append(item)
                if ended:
                    done.set()

        processor.subscribe(Elsewhere())
        flow.range(count).hide().subscribe(processor)
        assert done.wait(20)
    assert items == list(range(count))


# -- what it lets go of, and says


@pytest.mark.parametrize("end", ["complete", "error", "cancel", "bad request", "overflow"])
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_on_terminate_is_called_once(mode: Fusion, end: str, drops: Drops) -> None:
    calls: list[bool] = []
    subscriber = TestSubscriber[int](0, fusion=mode)
    processor = UnicastProcessor[int](1, on_terminate=lambda: calls.append(subscriber.terminated))
    processor.subscribe(subscriber)
    processor.on_next(1)
    assert calls == []
    actions: dict[str, Callable[[], object]] = {
        "complete": processor.on_complete,
        "error": lambda: processor.on_error(ValueError()),
        "cancel": subscriber.cancel,
        "bad request": lambda: subscriber.subscription.request(-1),
        "overflow": lambda: processor.on_next(2),
    }
    actions[end]()
    assert calls == [False], "before the subscriber hears of it"
    processor.on_complete()
    subscriber.cancel()
    assert len(calls) == 1
    drops.take_items()


def test_an_error_that_on_terminate_raises_is_dropped(drops: Drops) -> None:
    error = ValueError()

    def fail() -> None:
        raise error

    processor = UnicastProcessor[int](on_terminate=fail)
    processor.subscribe(subscriber := TestSubscriber[int]())
    processor.on_complete()
    subscriber.assert_result()
    assert drops.take_errors() == [error]


@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC, Fusion.ANY])
@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_the_subscriber_is_let_go_of(mode: Fusion, end: str) -> None:
    """§3.13"""
    processor = UnicastProcessor[int]()
    subscriber = TestSubscriber[int](fusion=mode)
    processor.subscribe(subscriber)
    if end == "cancel":
        subscriber.cancel()
    else:
        processor.on_complete()
    gone = weakref.ref(subscriber)
    del subscriber
    gc.collect()
    assert gone() is None


def test_statistics_count_the_waiting_items() -> None:
    processor = filled(1, 2, 3, capacity=4)
    before = processor.statistics()
    assert (before.connected, before.buffered, before.capacity) == (False, 3, 4)
    processor.subscribe(subscriber := TestSubscriber[int](1))
    subscriber.request(1)
    now = processor.statistics()
    assert (now.connected, now.buffered, now.requested, now.terminated) == (True, 1, 0, False)
    subscriber.request(UNBOUNDED)
    assert processor.statistics().requested == UNBOUNDED
    processor.on_complete()
    assert processor.statistics().terminated


def test_it_says_how_it_was_made() -> None:
    assert repr(UnicastProcessor()) == "UnicastProcessor(capacity=128)"
    assert repr(UnicastProcessor(2, delay_error=False)) == (
        "UnicastProcessor(capacity=2, delay_error=False)"
    )


@pytest.mark.checklist("F36")
def test_hide_shows_no_queue() -> None:
    seen: list[Subscription] = []

    class Looking(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            seen.append(subscription)
            super().on_subscribe(subscription)

    processor = filled(1)
    Flow(processor).hide().subscribe(subscriber := Looking(fusion=Fusion.ANY))
    assert not isinstance(seen[0], QueueSubscription)
    processor.on_complete()
    subscriber.assert_result(1)
