"""Subscribers that join, leave, make bad requests and raise."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import flow_core as flow
from flow_core import NoneItemError, Subscription
from flow_core.protocols import CoreSubscriber
from flow_multicast import MulticastProcessor
from flow_testing import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    Drops,
    TestPublisher,
    TestSubscriber,
)


class LeavesAtOnce(TestSubscriber[int]):
    """Cancels within on_subscribe."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        self.cancel()


class AsksWrongly(TestSubscriber[int]):
    """Requests nothing, within on_subscribe, and notes whether it fails in there."""

    told_within = False

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        subscription.request(0)
        self.told_within = self.terminated


@pytest.mark.checklist("M19")
def test_none_is_refused_as_a_subscriber() -> None:
    processor = MulticastProcessor[int]()
    with pytest.raises(TypeError, match="a subscriber is needed"):
        processor.subscribe(None)
    with pytest.raises(TypeError, match="no on_subscribe"):
        processor.subscribe(object())
    assert not processor.has_subscribers


@pytest.mark.checklist("M15")
def test_cancel_counts_once() -> None:
    processor = MulticastProcessor[int](ref_count=True)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    leaving, staying = TestSubscriber[int](), TestSubscriber[int]()
    processor.subscribe(leaving)
    processor.subscribe(staying)
    for _ in range(3):
        leaving.subscription.cancel()
    assert processor.statistics().subscribers == 1
    assert publisher.cancels == 0
    publisher.next(1)
    staying.assert_items(1)


@pytest.mark.checklist("M21")
@pytest.mark.parametrize("ref_count", [False, True])
def test_a_subscriber_that_cancels_within_on_subscribe_is_not_retained(ref_count: bool) -> None:
    processor = MulticastProcessor[int](ref_count=ref_count)
    processor.on_next(1)
    subscriber = LeavesAtOnce()
    processor.subscribe(subscriber)
    assert not processor.has_subscribers
    subscriber.assert_items().assert_silent_after_cancel()
    subscription = subscriber.subscription
    gone = weakref.ref(subscriber)
    del subscriber
    gc.collect()
    assert gone() is None
    subscription.request(1)
    subscription.cancel()
    other = TestSubscriber[int]()
    processor.subscribe(other)
    other.assert_items(1)


@pytest.mark.checklist("M21")
def test_a_subscriber_that_cancels_within_on_subscribe_unblocks_the_others() -> None:
    processor = MulticastProcessor[int]()
    waiting = TestSubscriber[int]()
    processor.subscribe(waiting)
    processor.subscribe(LeavesAtOnce())
    processor.on_next(1)
    waiting.assert_items(1)


@pytest.mark.checklist("M21", "M15")
@pytest.mark.parametrize("served", [False, True])
def test_a_cancelled_subscription_lets_go_of_its_subscriber(served: bool) -> None:
    processor = MulticastProcessor[int]()
    staying = TestSubscriber[int]()
    processor.subscribe(staying)
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    if served:
        processor.on_next(1)
    subscription = subscriber.subscription
    subscriber.cancel()
    gone = weakref.ref(subscriber)
    del subscriber
    gc.collect()
    assert gone() is None
    subscription.request(1)
    processor.on_next(2)
    assert staying.items[-1] == 2


def test_an_ended_processor_lets_go_of_its_subscribers() -> None:
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    flow.range(3).subscribe(processor)
    subscriber.assert_result(0, 1, 2)
    gone = weakref.ref(subscriber)
    del subscriber
    gc.collect()
    assert gone() is None


@pytest.mark.checklist("M22")
@pytest.mark.parametrize("error", [None, ValueError("failed")])
def test_a_subscriber_that_cancels_within_on_subscribe_gets_no_end(error: Exception | None) -> None:
    processor = MulticastProcessor[int]()
    if error is None:
        processor.on_complete()
    else:
        processor.on_error(error)
    subscriber = LeavesAtOnce()
    processor.subscribe(subscriber)
    subscriber.assert_not_terminated().assert_silent_after_cancel()


@pytest.mark.checklist("M20")
def test_nothing_is_signalled_before_on_subscribe_has_returned() -> None:
    processor = MulticastProcessor[int]()
    processor.on_next(1)
    processor.on_complete()
    within: list[int] = []

    class Looks(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            within.append(len(self.signals))

    subscriber = Looks()
    processor.subscribe(subscriber)
    subscriber.assert_result(1)
    assert within == [1]


@pytest.mark.checklist("M20")
def test_a_subscriber_that_raises_in_on_subscribe_does_not_join() -> None:
    processor = MulticastProcessor[int]()

    class Raises(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            subscription.request(1)
            raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        processor.subscribe(Raises())
    assert not processor.has_subscribers
    other = TestSubscriber[int]()
    processor.subscribe(other)
    processor.on_next(1)
    other.assert_items(1)


# -- §3.9


@pytest.mark.checklist("M14")
@pytest.mark.parametrize("amount", [0, -1, -(2**63)])
def test_a_non_positive_request_cancels_and_fails_once(amount: int) -> None:
    processor = MulticastProcessor[int]()
    wrong, other = TestSubscriber[int](0), TestSubscriber[int]()
    processor.subscribe(wrong)
    processor.subscribe(other)
    processor.on_next(1)
    other.assert_items()
    wrong.subscription.request(amount)
    wrong.subscription.request(amount)
    wrong.subscription.request(5)
    processor.on_next(2)
    wrong.assert_failure(ValueError)
    assert "3.9" in str(wrong.error)
    assert "non-positive subscription request" in str(wrong.error)
    other.assert_items(1, 2)
    assert processor.statistics().subscribers == 1


@pytest.mark.checklist("M14")
@pytest.mark.parametrize("ended", [False, True])
def test_a_non_positive_request_within_on_subscribe_fails_after_it_returns(ended: bool) -> None:
    processor = MulticastProcessor[int]()
    if ended:
        processor.on_complete()
    subscriber = AsksWrongly()
    processor.subscribe(subscriber)
    subscriber.assert_failure(ValueError)
    assert not subscriber.told_within
    assert not processor.has_subscribers


@pytest.mark.checklist("M14")
def test_a_non_positive_request_within_on_next_fails_after_it_returns() -> None:
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int](on_item=lambda self, _: self.subscription.request(0))
    processor.subscribe(subscriber)
    processor.on_next(1)
    processor.on_next(2)
    subscriber.assert_failure(ValueError, 1)


@pytest.mark.checklist("M14")
def test_a_cancel_after_a_non_positive_request_takes_effect() -> None:
    processor = MulticastProcessor[int]()

    def leave(self: TestSubscriber[int], _: int) -> None:
        self.subscription.request(0)
        self.cancel()

    subscriber = TestSubscriber[int](on_item=leave)
    processor.subscribe(subscriber)
    processor.on_next(1)
    subscriber.assert_items(1).assert_not_terminated().assert_silent_after_cancel()


@pytest.mark.checklist("M14")
def test_a_request_of_nothing_from_another_thread_waits_for_the_running_on_next() -> None:
    processor = MulticastProcessor[int]()
    entered, go_on = threading.Event(), threading.Event()

    def block(_: object, __: int) -> None:
        entered.set()
        assert go_on.wait(TIMEOUT_S)

    subscriber = TestSubscriber[int](on_item=block)
    processor.subscribe(subscriber)
    feeding = threading.Thread(target=processor.on_next, args=(1,))
    feeding.start()
    assert entered.wait(TIMEOUT_S)
    subscriber.subscription.request(-1)
    assert not subscriber.terminated
    go_on.set()
    feeding.join(TIMEOUT_S)
    subscriber.await_terminal().assert_failure(ValueError, 1)


@pytest.mark.checklist("M14")
@pytest.mark.parametrize("amount", [1.0, "1", None, True])
def test_a_request_that_is_not_an_int_is_refused_at_once(amount: object) -> None:
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int](0)
    processor.subscribe(subscriber)
    with pytest.raises(TypeError):
        subscriber.subscription.request(amount)
    subscriber.assert_not_terminated()


# -- §2.13


@pytest.mark.checklist("M39")
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("waiting", [False, True], ids=["fed one by one", "from the queue"])
@pytest.mark.parametrize("conditional", [False, True])
def test_a_subscriber_that_raises_is_cancelled_and_the_others_are_served_on(
    drops: Drops, place: int, waiting: bool, conditional: bool
) -> None:
    processor = MulticastProcessor[int]()
    error = ValueError("my fault")

    def fail(_: object, item: int) -> None:
        if item == 1:
            raise error

    bad = TestSubscriber[int](on_item=fail)
    make = ConditionalTestSubscriber[int] if conditional else TestSubscriber[int]
    good: list[TestSubscriber[int]] = [make(), make()]
    if waiting:
        for item in range(4):
            processor.on_next(item)
        hold = TestSubscriber[int](0)
        processor.subscribe(hold)
    for subscriber in [*good[:place], bad, *good[place:]]:
        processor.subscribe(subscriber)
    if waiting:
        hold.cancel()
    else:
        for item in range(4):
            processor.on_next(item)
    processor.on_complete()
    for subscriber in good:
        subscriber.assert_result(0, 1, 2, 3)
    bad.assert_items(0, 1).assert_not_terminated()
    assert drops.take_errors() == [error]


@pytest.mark.checklist("M39")
def test_one_function_that_serves_several_subscribers_fails_for_each_of_them() -> None:
    processor = MulticastProcessor[int]()
    good = TestSubscriber[int]()
    errors: list[BaseException] = []

    def fail(item: int) -> None:
        raise ValueError(item)

    first = processor.flow.subscribe(fail, errors.append)
    processor.subscribe(good)
    second = processor.flow.subscribe(fail, errors.append)
    processor.on_next(1)
    assert [str(error) for error in errors] == ["1", "1"]
    assert first.disposed
    assert second.disposed
    assert processor.statistics().subscribers == 1
    processor.on_next(2)
    good.assert_items(1, 2)


@pytest.mark.checklist("M39")
def test_a_failing_function_ends_its_own_subscription_only() -> None:
    processor = MulticastProcessor[int]()
    errors: list[BaseException] = []
    handle = processor.flow.subscribe(lambda n: 1 // n, errors.append)
    other = TestSubscriber[int]()
    processor.subscribe(other)
    flow.range(3).subscribe(processor)
    assert [type(error) for error in errors] == [ZeroDivisionError]
    assert handle.disposed
    other.assert_result(0, 1, 2)


@pytest.mark.checklist("M39")
def test_a_foreign_subscriber_that_raises_does_not_hurt_the_others(drops: Drops) -> None:
    class Foreign:
        def on_subscribe(self, subscription: Subscription) -> None:
            subscription.request(10)

        def on_next(self, item: int) -> None:
            raise ValueError("foreign")

        def on_error(self, error: BaseException) -> None:
            raise AssertionError("it has cancelled")

        def on_complete(self) -> None:
            raise AssertionError("it has cancelled")

    processor = MulticastProcessor[int]()
    other = TestSubscriber[int]()
    processor.subscribe(Foreign())
    processor.subscribe(other)
    flow.range(3).subscribe(processor)
    other.assert_result(0, 1, 2)
    assert [str(error) for error in drops.take_errors()] == ["foreign"]


@pytest.mark.checklist("M39")
@pytest.mark.parametrize("failed", [False, True])
def test_a_subscriber_that_raises_at_the_end_does_not_keep_it_from_the_others(
    drops: Drops, failed: bool
) -> None:
    class Raises(TestSubscriber[int]):
        def on_complete(self) -> None:
            raise ValueError("at the end")

        def on_error(self, error: BaseException, /) -> None:
            raise ValueError("at the end")

    processor = MulticastProcessor[int]()
    other = TestSubscriber[int]()
    processor.subscribe(Raises())
    processor.subscribe(other)
    processor.subscribe(Raises())
    if failed:
        processor.on_error(KeyError("why"))
        other.assert_failure(KeyError)
    else:
        processor.on_complete()
        other.assert_result()
    assert [str(error) for error in drops.take_errors()] == ["at the end"] * 2


@pytest.mark.checklist("M39")
def test_a_subscriber_that_raises_while_it_says_so_is_its_own_affair(drops: Drops) -> None:
    class Worse(CoreSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            subscription.request(1)

        def on_next(self, item: int, /) -> None:
            raise ValueError("bad")

        def on_next_raised(self, error: BaseException, /) -> bool:
            raise ValueError("worse")

    processor = MulticastProcessor[int]()
    other = TestSubscriber[int]()
    processor.subscribe(Worse())
    processor.subscribe(other)
    processor.on_next(1)
    other.assert_items(1)
    assert sorted(str(error) for error in drops.take_errors()) == ["bad", "worse"]


@pytest.mark.checklist("M39")
@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
@pytest.mark.parametrize("fed", ["by hand", "pushed", "polled"])
def test_a_fatal_error_passes_through_and_leaves_no_permit_taken(
    drops: Drops, fatal: type[BaseException], fed: str
) -> None:
    processor = MulticastProcessor[int]()
    error = fatal("now")

    def stop(_: object, item: int) -> None:
        if item == 1:
            raise error

    before, after = TestSubscriber[int](), TestSubscriber[int]()
    stopping = TestSubscriber[int](on_item=stop)
    for subscriber in (before, stopping, after):
        processor.subscribe(subscriber)
    publisher = TestPublisher[int]()

    def run() -> None:
        if fed == "polled":
            flow.range(5).subscribe(processor)
        elif fed == "pushed":
            publisher.subscribe(processor)
            publisher.next(*range(5))
        else:
            for item in range(5):
                processor.on_next(item)

    with pytest.raises(fatal) as raised:
        run()
    assert raised.value is error
    if fed == "pushed":
        publisher.assert_cancelled()
    for subscriber in (before, stopping, after):
        subscriber.assert_not_terminated()
    # It still works, and says what has happened when it is signalled next.
    late = TestSubscriber[int]()
    processor.subscribe(late)
    for subscriber in (before, after, late):
        subscriber.assert_failure(flow.FlowError, *subscriber.items)
        assert fatal.__name__ in str(subscriber.error)
    assert (before.items, after.items) == ([0, 1], [0])
    stopping.assert_not_terminated()
    processor.on_next(6)
    assert drops.take_items() == [6]


# -- statistics


def test_statistics_name_the_subscribers_that_hold_the_others_back() -> None:
    processor = MulticastProcessor[int](4)
    assert processor.statistics().subscribers == 0
    assert processor.statistics().requested == 0
    assert processor.statistics().capacity == 4
    quick, slow = TestSubscriber[int](3), TestSubscriber[int](1)
    processor.subscribe(quick)
    processor.subscribe(slow)
    assert processor.statistics().held_back_by == ()
    assert processor.statistics().requested == 1
    processor.on_next(1)
    processor.on_next(2)
    seen = processor.statistics()
    assert (seen.subscribers, seen.buffered, seen.requested) == (2, 1, 0)
    assert seen.held_back_by == (slow,)
    assert not seen.terminated
    with pytest.raises(AttributeError):
        seen.requested = 1
    slow.cancel()
    assert processor.statistics().held_back_by == ()
    processor.on_complete()
    assert processor.statistics().terminated
    assert processor.statistics().subscribers == 0


def test_statistics_show_the_subscriber_as_it_was_given() -> None:
    class Foreign:
        def on_subscribe(self, subscription: Subscription) -> None:
            pass

        def on_next(self, item: int) -> None:
            pass

        def on_error(self, error: BaseException) -> None:
            pass

        def on_complete(self) -> None:
            pass

    processor = MulticastProcessor[int]()
    foreign = Foreign()
    processor.subscribe(foreign)
    assert processor.statistics().held_back_by == (foreign,)


@pytest.mark.checklist("M28")
@pytest.mark.parametrize("method", ["on_next", "on_error", "on_subscribe", "offer"])
def test_none_is_refused_and_changes_nothing(method: str) -> None:
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    with pytest.raises(NoneItemError, match=method):
        getattr(processor, method)(None)
    flow.range(3).subscribe(processor)
    subscriber.assert_result(0, 1, 2)
