"""The end of a processor: by its upstream, by itself, or because all have left."""

from __future__ import annotations

import gc
import traceback
import weakref

import pytest

import flow_core as flow
from flow_core import UNBOUNDED
from flow_multicast import MulticastProcessor
from flow_testing import Drops, TestPublisher, TestSubscriber, Violation


class Item:
    """Something that can be watched while it dies."""


def ended(error: BaseException | None) -> MulticastProcessor[int]:
    processor = MulticastProcessor[int]()
    if error is None:
        processor.on_complete()
    else:
        processor.on_error(error)
    return processor


@pytest.mark.checklist("M08", "M07")
@pytest.mark.parametrize("error", [None, ValueError("failed")], ids=["completed", "failed"])
@pytest.mark.parametrize("request_", [0, 1, UNBOUNDED])
@pytest.mark.parametrize("served", [False, True])
def test_a_subscriber_that_comes_after_the_end_gets_the_same_terminal(
    error: BaseException | None, request_: int, served: bool
) -> None:
    processor = MulticastProcessor[int]()
    if served:
        processor.subscribe(TestSubscriber[int]())
        processor.on_next(1)
    if error is None:
        processor.on_complete()
    else:
        processor.on_error(error)
    for _ in range(2):
        late = TestSubscriber[int](request_)
        processor.subscribe(late)
        if error is None:
            late.assert_result()
        else:
            late.assert_failure(error)
        assert late.signals[0].name == "on_subscribe"
    assert not processor.has_subscribers


@pytest.mark.checklist("M07")
def test_a_processor_that_ended_without_subscribers_is_not_one_that_waits_for_them() -> None:
    waiting, over = MulticastProcessor[int](), ended(None)
    first, second = TestSubscriber[int](), TestSubscriber[int]()
    waiting.subscribe(first)
    over.subscribe(second)
    first.assert_not_terminated()
    second.assert_result()
    assert not waiting.statistics().terminated
    assert over.statistics().terminated


@pytest.mark.checklist("M11", "M33")
@pytest.mark.parametrize("error", [None, ValueError("failed")], ids=["completed", "failed"])
def test_waiting_items_are_sent_before_the_end(error: BaseException | None) -> None:
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int](1)
    processor.subscribe(subscriber)
    for item in (1, 2, 3):
        processor.on_next(item)
    if error is None:
        processor.on_complete()
    else:
        processor.on_error(error)
    subscriber.assert_items(1).assert_not_terminated()
    late = TestSubscriber[int](2)
    processor.subscribe(late)
    subscriber.request(1)
    late.assert_items(2).assert_not_terminated()
    subscriber.request(1)
    for seen, items in ((subscriber, (1, 2, 3)), (late, (2, 3))):
        if error is None:
            seen.assert_result(*items)
        else:
            seen.assert_failure(error, *items)


@pytest.mark.checklist("M38")
@pytest.mark.parametrize("error", [None, ValueError("failed")], ids=["completed", "failed"])
def test_the_end_needs_no_demand(error: BaseException | None) -> None:
    processor = MulticastProcessor[int]()
    subscribers = [TestSubscriber[int](0), TestSubscriber[int](1), TestSubscriber[int]()]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    if error is None:
        processor.on_complete()
    else:
        processor.on_error(error)
    for subscriber in subscribers:
        if error is None:
            subscriber.assert_result()
        else:
            subscriber.assert_failure(error)


@pytest.mark.checklist("M38")
@pytest.mark.parametrize("hidden", [False, True])
def test_the_end_comes_with_the_last_item_that_was_asked_for(hidden: bool) -> None:
    processor = MulticastProcessor[int](2)
    subscriber = TestSubscriber[int](4)
    processor.subscribe(subscriber)
    source = flow.range(4)
    (source.hide() if hidden else source).subscribe(processor)
    subscriber.assert_result(0, 1, 2, 3)


@pytest.mark.checklist("M06", "M25")
def test_the_error_is_the_identical_object_for_all() -> None:
    error = ValueError("one")
    processor = MulticastProcessor[int]()
    early = TestSubscriber[int]()
    processor.subscribe(early)
    processor.on_error(error)
    late = TestSubscriber[int]()
    processor.subscribe(late)
    assert early.error is error
    assert late.error is error


@pytest.mark.checklist("M37")
def test_a_subscriber_that_comes_within_on_complete_gets_the_end_too() -> None:
    processor = MulticastProcessor[int]()
    late = TestSubscriber[int]()

    class Recommends(TestSubscriber[int]):
        def on_complete(self) -> None:
            super().on_complete()
            processor.subscribe(late)

    processor.subscribe(Recommends())
    after = TestSubscriber[int]()
    processor.subscribe(after)
    processor.on_complete()
    after.assert_result()
    late.assert_result()


def test_a_subscriber_that_is_cancelled_within_on_complete_gets_no_end() -> None:
    processor = MulticastProcessor[int]()
    victim = TestSubscriber[int]()

    class Kills(TestSubscriber[int]):
        def on_complete(self) -> None:
            super().on_complete()
            victim.cancel()

    processor.subscribe(Kills())
    processor.subscribe(victim)
    processor.on_complete()
    victim.assert_not_terminated().assert_silent_after_cancel()


@pytest.mark.checklist("M08")
def test_a_fatal_error_of_a_late_subscriber_changes_nothing_for_later_ones() -> None:
    class Interrupted(TestSubscriber[int]):
        def on_complete(self) -> None:
            raise KeyboardInterrupt

    processor = ended(None)
    with pytest.raises(KeyboardInterrupt):
        processor.subscribe(Interrupted())
    later = TestSubscriber[int]()
    processor.subscribe(later)
    later.assert_result()


@pytest.mark.checklist("M37")
def test_after_a_fatal_error_at_the_end_the_other_subscribers_still_get_it() -> None:
    class Interrupted(TestSubscriber[int]):
        def on_complete(self) -> None:
            raise KeyboardInterrupt

    processor = MulticastProcessor[int]()
    after = TestSubscriber[int]()
    processor.subscribe(Interrupted())
    processor.subscribe(after)
    with pytest.raises(KeyboardInterrupt):
        processor.on_complete()
    after.assert_not_terminated()
    late = TestSubscriber[int]()
    processor.subscribe(late)
    after.assert_result()
    late.assert_result()


# -- errors that are kept


def failing(payload: object) -> ValueError:
    """An error whose traceback holds on to `payload`."""

    def inner(_: object) -> None:
        raise ValueError("kept")

    try:
        inner(payload)
    except ValueError as error:
        error.__context__ = KeyError("before")
        return error
    raise AssertionError


@pytest.mark.checklist("M42")
@pytest.mark.parametrize("subscribed", [False, True])
def test_a_kept_error_lets_go_of_what_its_traceback_holds(subscribed: bool) -> None:
    payload = Item()
    gone = weakref.ref(payload)
    error = failing(payload)
    processor = MulticastProcessor[int]()
    early = TestSubscriber[int]()
    if subscribed:
        processor.subscribe(early)
    processor.on_error(error)
    del payload
    gc.collect()
    assert gone() is None
    late = TestSubscriber[int]()
    processor.subscribe(late)
    late.assert_failure(error)
    # Where it was raised can still be read.
    assert "in inner" in "".join(traceback.format_exception(error))


def test_raising_a_kept_error_again_does_not_grow_its_traceback() -> None:
    error = failing(None)
    processor = MulticastProcessor[int]()
    processor.on_error(error)
    lengths = set()
    for _ in range(5):
        late = TestSubscriber[int]()
        processor.subscribe(late)
        lengths.add(len(traceback.extract_tb(error.__traceback__)))
        with pytest.raises(ValueError, match="kept"):
            raise late.error
    assert len(lengths) == 1


def test_the_causes_and_parts_of_a_kept_error_let_go_too() -> None:
    payloads = [Item(), Item(), Item()]
    gone = [weakref.ref(payload) for payload in payloads]
    group = ExceptionGroup("several", [failing(payloads[0]), failing(payloads[1])])
    group.__cause__ = failing(payloads[2])
    group.__context__ = group.exceptions[0]
    processor = MulticastProcessor[int]()
    processor.on_error(group)
    payloads.clear()
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3


# -- when all have left


@pytest.mark.checklist("M40", "M41", "M15")
@pytest.mark.parametrize("ref_count", [False, True])
def test_the_upstream_is_cancelled_with_the_last_subscriber_if_so_wanted(ref_count: bool) -> None:
    processor = MulticastProcessor[int](ref_count=ref_count)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    first, second = TestSubscriber[int](), TestSubscriber[int]()
    processor.subscribe(first)
    processor.subscribe(second)
    publisher.next(1)
    first.cancel()
    first.cancel()
    assert publisher.cancels == 0
    second.cancel()
    second.cancel()
    late = TestSubscriber[int]()
    processor.subscribe(late)
    if ref_count:
        assert publisher.cancels == 1
        late.assert_result()
    else:
        assert publisher.cancels == 0
        publisher.next(2)
        publisher.complete()
        late.assert_result(2)


@pytest.mark.checklist("M40", "M41")
@pytest.mark.parametrize("ref_count", [False, True])
def test_subscribers_may_come_and_go_before_there_is_an_upstream(ref_count: bool) -> None:
    processor = MulticastProcessor[int](ref_count=ref_count)
    for _ in range(3):
        subscriber = TestSubscriber[int]()
        processor.subscribe(subscriber)
        subscriber.cancel()
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    assert not publisher.cancelled
    last = TestSubscriber[int]()
    processor.subscribe(last)
    publisher.next(1)
    last.assert_items(1).assert_not_terminated()
    last.cancel()
    assert publisher.cancels == (1 if ref_count else 0)


@pytest.mark.checklist("M40", "M41", "M27")
@pytest.mark.parametrize("ref_count", [False, True])
def test_a_started_processor_ends_with_its_last_subscriber_if_so_wanted(ref_count: bool) -> None:
    processor = MulticastProcessor[int](ref_count=ref_count)
    processor.start()
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    assert processor.offer(1)
    subscriber.cancel()
    assert processor.offer(2) is not ref_count
    assert processor.statistics().terminated is ref_count


@pytest.mark.checklist("M40", "M21")
def test_a_sole_subscriber_that_cancels_within_on_subscribe_counts_as_having_left() -> None:
    processor = MulticastProcessor[int](ref_count=True)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    subscriber = TestSubscriber[int]()
    subscriber.cancel()
    processor.subscribe(subscriber)
    assert publisher.cancels == 1


@pytest.mark.checklist("M15", "M40")
def test_a_subscriber_that_left_before_the_upstream_came_cannot_leave_again() -> None:
    processor = MulticastProcessor[int](ref_count=True)
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    subscriber.cancel()
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    subscriber.subscription.cancel()
    subscriber.subscription.leave()  # what a second thread says that came too late
    assert not publisher.cancelled


@pytest.mark.checklist("M40", "M39")
@pytest.mark.parametrize("bad", [1, 2, 3])
def test_a_sole_subscriber_that_raises_counts_as_having_left(drops: Drops, bad: int) -> None:
    processor = MulticastProcessor[int](ref_count=True)
    publisher = TestPublisher[int]()

    def fail(_: object, item: int) -> None:
        if item == bad:
            raise ValueError("bad")

    processor.subscribe(TestSubscriber[int](on_item=fail))
    publisher.subscribe(processor)
    publisher.next(*range(1, bad + 1))
    assert publisher.cancels == 1
    assert [str(error) for error in drops.take_errors()] == ["bad"]


@pytest.mark.checklist("M42")
def test_waiting_items_are_dropped_when_all_subscribers_have_left(drops: Drops) -> None:
    processor = MulticastProcessor[Item](ref_count=True)
    publisher = TestPublisher[Item](Violation.IGNORED_CANCEL)
    publisher.subscribe(processor)
    slow = TestSubscriber[Item](0)
    processor.subscribe(slow)
    items = [Item(), Item()]
    gone = [weakref.ref(item) for item in items]
    publisher.next(*items)
    slow.cancel()
    assert drops.take_items() == items
    assert processor.statistics().buffered == 0
    items.clear()
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    # What an upstream sends that has not noticed yet is dropped as well.
    publisher.next(Item())
    assert len(drops.take_items()) == 1
    late = TestSubscriber[Item]()
    processor.subscribe(late)
    late.assert_result()


@pytest.mark.checklist("M42")
def test_an_error_that_comes_after_all_have_left_is_not_lost(drops: Drops) -> None:
    processor = MulticastProcessor[int](ref_count=True)
    publisher = TestPublisher[int](Violation.IGNORED_CANCEL)
    publisher.subscribe(processor)
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    subscriber.cancel()
    error = ValueError("too late")
    publisher.error(error)
    assert drops.take_errors() == [error]


@pytest.mark.checklist("M42", "M40")
@pytest.mark.parametrize("error", [None, ValueError("failed")], ids=["completed", "failed"])
def test_an_upstream_that_has_ended_is_not_cancelled_when_all_leave(
    drops: Drops, error: BaseException | None
) -> None:
    processor = MulticastProcessor[int](ref_count=True)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    slow = TestSubscriber[int](0)
    processor.subscribe(slow)
    publisher.next(1)
    if error is None:
        publisher.complete()
    else:
        publisher.error(error)
    slow.cancel()
    assert publisher.cancels == 0
    assert drops.take_items() == [1]
    late = TestSubscriber[int]()
    processor.subscribe(late)
    if error is None:
        late.assert_result()
    else:
        late.assert_failure(error)


def test_an_item_is_not_kept_after_it_was_sent() -> None:
    processor = MulticastProcessor[Item]()
    seen: list[int] = []
    processor.flow.subscribe(lambda _: seen.append(1))
    item = Item()
    gone = weakref.ref(item)
    processor.on_next(item)
    del item
    gc.collect()
    assert gone() is None
    assert seen == [1]
