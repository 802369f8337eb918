"""The guarantees of direct, behavior, async and replay processors to a subscriber."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_core.protocols import Subscription
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
)
from flow_testing import (
    ConditionalTestSubscriber,
    Drops,
    TestPublisher,
    TestSubscriber,
    assert_result,
)

MAKERS: dict[str, Callable[[], Any]] = {
    "async": AsyncProcessor,
    "behavior": BehaviorProcessor,
    "direct": DirectProcessor,
    "replay": ReplayProcessor,
    "replay, 2": lambda: ReplayProcessor(2),
    "replay, an hour": lambda: ReplayProcessor(ttl=3600),
}
each = pytest.mark.parametrize("make", list(MAKERS.values()), ids=list(MAKERS))
SENDING = {name: make for name, make in MAKERS.items() if name != "async"}
each_that_sends = pytest.mark.parametrize("make", list(SENDING.values()), ids=list(SENDING))


def joined(processor: Any, request: int = 10, **options: Any) -> TestSubscriber[int]:
    subscriber = TestSubscriber[int](request, **options)
    processor.subscribe(subscriber)
    return subscriber


# -- results


def fed(processor: Any) -> Flow[int]:
    flow.range(4).subscribe(processor)
    return processor.flow


def test_a_late_subscriber_to_an_async_processor_gets_the_last_item() -> None:
    assert_result(lambda: fed(AsyncProcessor[int]()), [3])


def test_a_late_subscriber_to_a_replay_gets_all_or_the_last() -> None:
    assert_result(lambda: fed(ReplayProcessor[int]()), [0, 1, 2, 3])
    assert_result(lambda: fed(ReplayProcessor[int](size=2)), [2, 3])


def failed(processor: Any, error: BaseException) -> Flow[int]:
    for n in range(3):
        processor.on_next(n)
    processor.on_error(error)
    return processor.flow


def test_an_error_comes_after_what_is_replayed_and_instead_of_the_last_item() -> None:
    error = LookupError()
    assert_result(lambda: failed(ReplayProcessor[int](), error), [0, 1, 2], error)
    assert_result(lambda: failed(AsyncProcessor[int](), error), [], error)
    assert_result(lambda: failed(BehaviorProcessor[int](0), error), [], error)
    assert_result(lambda: failed(DirectProcessor[int](), error), [], error)


@each
def test_a_subscriber_that_comes_after_the_end_gets_the_end(make: Callable[[], Any]) -> None:
    processor = make()
    processor.on_complete()
    joined(processor, 0).assert_result()
    assert not processor.has_subscribers


# -- demand


def test_a_subscriber_without_demand_at_a_direct_processor_fails_alone() -> None:
    processor = DirectProcessor[int]()
    slow, quick = joined(processor, 1), joined(processor)
    processor.on_next(1)
    slow.assert_items(1).assert_not_terminated()
    processor.on_next(2)
    slow.assert_failure(MissingBackpressureError, 1)
    quick.assert_items(1, 2)
    assert processor.statistics().subscribers == 1


def test_demand_counts_from_the_subscription_on() -> None:
    processor = DirectProcessor[int]()
    for n in range(5):
        processor.on_next(n)
    late = joined(processor, 2)
    processor.on_next(5)
    processor.on_next(6)
    late.assert_items(5, 6).assert_not_terminated()
    late.request(1)
    processor.on_next(7)
    processor.on_next(8)
    late.assert_failure(MissingBackpressureError, 5, 6, 7)


def test_a_slow_subscriber_gets_the_newest_value_when_it_requests() -> None:
    processor = BehaviorProcessor(0)
    slow = joined(processor, 1)
    slow.assert_items(0)
    for n in (1, 2, 3):
        processor.on_next(n)
    slow.assert_items(0)
    slow.request(1)
    slow.assert_items(0, 3)
    slow.request(2)
    slow.assert_items(0, 3)  # never the same value twice
    processor.on_next(4)
    processor.on_next(5)
    processor.on_next(6)
    slow.assert_items(0, 3, 4, 5)
    processor.on_complete()
    slow.assert_not_terminated()
    slow.request(1)
    slow.assert_result(0, 3, 4, 5, 6)


def test_each_subscriber_replays_at_its_own_pace_and_then_continues_live() -> None:
    processor = ReplayProcessor[int]()
    for n in range(3):
        processor.on_next(n)
    slow, quick = joined(processor, 1), joined(processor)
    slow.assert_items(0)
    quick.assert_items(0, 1, 2)
    slow.request(3)
    slow.assert_items(0, 1, 2)
    processor.on_next(3)
    processor.on_next(4)
    slow.assert_items(0, 1, 2, 3)
    slow.request(1)
    slow.assert_items(0, 1, 2, 3, 4)
    quick.assert_items(0, 1, 2, 3, 4)


@each_that_sends
def test_a_filtered_item_is_not_counted(make: Callable[[], Any]) -> None:
    processor = make()
    odd = ConditionalTestSubscriber[int](lambda n: n % 2, 2)
    processor.subscribe(odd)
    for n in (2, 1, 4, 3):
        processor.on_next(n)
    odd.assert_items(1, 3).assert_not_terminated()


@each
@pytest.mark.parametrize("n", [0, -1])
def test_a_bad_request_fails_only_the_subscriber_that_made_it(
    make: Callable[[], Any], n: int
) -> None:
    processor = make()
    wrong, right = joined(processor), joined(processor)
    wrong.subscription.request(n)
    wrong.assert_failure(ValueError).assert_error_message("§3.9")
    processor.on_next(1)
    processor.on_complete()
    right.assert_result(1)
    wrong.subscription.request(1)
    wrong.subscription.cancel()


@each_that_sends
def test_a_bad_request_from_within_on_next_follows_it(make: Callable[[], Any]) -> None:
    processor = make()
    wrong = joined(processor, on_item=lambda s, _: s.subscription.request(0))
    right = joined(processor)
    processor.on_next(1)
    wrong.assert_failure(ValueError, 1)
    right.assert_items(1)


@each
def test_everything_is_requested_of_the_upstream_or_as_much_as_is_kept(
    make: Callable[[], Any],
) -> None:
    processor, source = make(), TestPublisher[int]()
    source.subscribe(processor)
    assert source.requested == (2 if "size" in repr(processor) else flow.UNBOUNDED)
    another = TestPublisher[int]()
    another.subscribe(processor)
    another.assert_cancelled()


# -- leaving, raising, coming back in


@each
def test_a_subscriber_that_cancels_in_on_subscribe_is_not_retained(make: Callable[[], Any]) -> None:
    processor = make()
    processor.on_next(1)

    class Leaving(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            self.cancel()

    leaving = Leaving()
    processor.subscribe(leaving)
    assert not processor.has_subscribers
    processor.on_next(2)
    processor.on_complete()
    leaving.assert_no_items().assert_not_terminated()


@each_that_sends
def test_one_cancels_another_in_on_next(make: Callable[[], Any]) -> None:
    processor = make()
    others: list[TestSubscriber[int]] = []
    joined(processor, on_item=lambda *_: others[0].cancel())
    others.append(joined(processor))
    last = joined(processor)
    processor.on_next(1)
    others[0].assert_no_items().assert_not_terminated()
    last.assert_items(1)
    assert processor.statistics().subscribers == 2


@each_that_sends
def test_a_subscriber_that_raises_is_removed_and_the_others_continue(
    make: Callable[[], Any], drops: Drops
) -> None:
    processor = make()
    error = ZeroDivisionError()

    def fail(*_: object) -> None:
        raise error

    raising, going_on = joined(processor, on_item=fail), joined(processor)
    seen: list[BaseException] = []
    processor.flow.subscribe(fail, seen.append)
    processor.on_next(1)
    processor.on_next(2)
    assert raising.items == [1]
    assert drops.take_errors() == [error]
    assert seen == [error]
    going_on.assert_items(1, 2)
    assert processor.statistics().subscribers == 1


@each_that_sends
def test_a_fatal_error_comes_out_when_the_others_are_served(make: Callable[[], Any]) -> None:
    processor = make()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    joined(processor, on_item=stop)
    other = joined(processor)
    with pytest.raises(KeyboardInterrupt):
        processor.on_next(1)
    processor.on_next(2)
    other.assert_items(1, 2)


@each_that_sends
def test_an_item_from_within_on_next_follows_for_all_in_the_same_order(
    make: Callable[[], Any],
) -> None:
    processor = make()

    def feed(_: object, item: int) -> None:
        if item == 1:
            processor.on_next(2)
            processor.on_next(3)
            processor.on_complete()
            processor.on_next(4)

    first, second, third = joined(processor), joined(processor, on_item=feed), joined(processor)
    processor.on_next(1)
    for subscriber in (first, second, third):
        subscriber.assert_result(1, 2, 3)


@each_that_sends
def test_too_many_items_from_within_on_next_end_it(make: Callable[[], Any], drops: Drops) -> None:
    processor = make()
    source = TestPublisher[int]()
    source.subscribe(processor)

    def feed(item: int) -> None:
        if item == 0:
            for n in range(1, 200):
                processor.on_next(n)

    seen: list[int] = []
    errors: list[BaseException] = []
    processor.flow.subscribe(seen.append, errors.append)
    processor.flow.subscribe(feed, lambda _: None)
    source.next(0)
    assert seen == list(range(129))
    assert isinstance(errors[0], MissingBackpressureError)
    source.assert_cancelled()
    assert len(drops.take_items()) == 71


@each_that_sends
def test_offer_from_within_on_next_says_when_no_more_can_wait(make: Callable[[], Any]) -> None:
    processor = make()
    taken: list[int] = []

    def feed(item: int) -> None:
        if item == 0:
            taken.extend(n for n in range(1, 200) if processor.offer(n))

    seen: list[int] = []
    processor.flow.subscribe(seen.append)
    processor.flow.subscribe(feed)
    assert processor.offer(0)
    assert seen == [0, *taken]
    assert len(taken) == (2 if "size" in repr(processor) else 128)
    assert not processor.terminated
    assert processor.offer(200)
    assert seen[-1] == 200


@each_that_sends
def test_a_subscriber_that_comes_within_on_next_gets_the_following_items(
    make: Callable[[], Any],
) -> None:
    processor = make()
    late = TestSubscriber[int](10)
    joined(processor, on_item=lambda _, n: processor.subscribe(late) if n == 1 else None)
    processor.on_next(1)
    processor.on_next(2)
    late.assert_items(*([2] if isinstance(processor, DirectProcessor) else [1, 2]))


@each
def test_none_is_not_a_signal(make: Callable[[], Any]) -> None:
    processor = make()
    for call in (processor.on_next, processor.on_error, processor.on_subscribe, processor.offer):
        with pytest.raises(NoneItemError):
            call(None)
    processor.on_next(1)
    processor.on_complete()


@each
def test_after_the_end_everything_goes_to_the_hooks(make: Callable[[], Any], drops: Drops) -> None:
    processor = make()
    processor.on_complete()
    processor.on_next(1)
    assert not processor.offer(2)
    error = ValueError()
    processor.on_error(error)
    processor.on_complete()
    assert drops.take_items() == [1]
    assert drops.take_errors() == [error]
    source = TestPublisher[int]()
    source.subscribe(processor)
    source.assert_cancelled()


# -- the error that is kept


@pytest.mark.parametrize("make", [*MAKERS.values(), MulticastProcessor], ids=[*MAKERS, "multicast"])
def test_the_error_is_one_object_and_shows_where_it_was_raised(make: Callable[[], Any]) -> None:
    processor = make()
    early = joined(processor)

    def oops() -> None:
        raise LookupError("deep down")

    try:
        oops()
    except LookupError as raised:
        processor.on_error(raised)
    late = joined(processor)
    assert late.error is early.error
    for _ in range(2):
        with pytest.raises(LookupError) as caught:
            list(processor.flow)
        shown = "".join(traceback.format_exception(caught.value))
        assert "in oops" in shown
        assert 'raise LookupError("deep down")' in shown
        assert shown.count("in list") <= 1
    again = joined(processor)
    assert again.error is not None
    assert len(traceback.extract_tb(again.error.__traceback__)) == 2


# -- coming and going


def come_and_go(processor: Any, rounds: int) -> list[int]:
    """Others come and go in another thread while items flow to one that stays."""
    stable: list[int] = []
    processor.flow.subscribe(stable.append)
    going = threading.Event()

    def churn() -> None:
        while not going.is_set():
            processor.flow.subscribe(lambda _: None).dispose()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for n in range(rounds):
            while not processor.offer(n):  # a newcomer has just joined, or sends
                time.sleep(0)
    finally:
        going.set()
        thread.join(20)
    return stable


@pytest.mark.parametrize(
    "make",
    [DirectProcessor, lambda: ReplayProcessor(4), MulticastProcessor],
    ids=["direct", "replay, 4", "multicast"],
)
def test_a_subscriber_that_stays_misses_nothing_while_others_come_and_go(
    make: Callable[[], Any],
) -> None:
    processor = make()
    assert come_and_go(processor, 3_000) == list(range(3_000))
    assert processor.statistics().subscribers == 1
    assert processor.statistics().buffered <= 4


HOT = [DirectProcessor, lambda: BehaviorProcessor(-1), lambda: ReplayProcessor(4)]


@pytest.mark.parametrize("make", HOT, ids=["direct", "behavior", "replay, 4"])
def test_a_feeding_thread_lets_another_thread_send_the_items_that_came_meanwhile(
    make: Callable[[], Any],
) -> None:
    """One that cancels, say, sends what comes while it is at that."""
    processor = make()
    seen: list[int] = []
    processor.flow.filter(lambda n: n >= 0).subscribe(seen.append, pytest.fail)
    assert processor.try_enter()  # by this thread
    feeder = threading.Thread(target=lambda: [processor.on_next(n) for n in range(200)])
    feeder.start()
    feeder.join(0.1)
    assert feeder.is_alive()  # it waits
    processor.run_entered()
    feeder.join(20)
    assert not feeder.is_alive()
    assert seen == list(range(200))
