"""Subjects as processors, and processors as subjects."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops
from reactivex.subject import AsyncSubject, BehaviorSubject, ReplaySubject, Subject

import flow_core as flow
from flow_core.demand import UNBOUNDED
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    UnicastProcessor,
    multicast,
)
from flow_rxcompat.rx import from_rx_subject, to_rx_subject
from flow_testing import Drops, TestPublisher, TestSubscriber

# -- subjects as processors


def test_a_flow_feeds_it_and_its_subscribers_get_the_items() -> None:
    processor = from_rx_subject(Subject[int]())
    first, second = TestSubscriber[int](), TestSubscriber[int]()
    processor.subscribe(first)
    processor.flow.map(lambda n: n * n).subscribe(second)
    flow.range(3).subscribe(processor)
    first.assert_result(0, 1, 2)
    second.assert_result(0, 1, 4)


def test_observers_of_the_subject_get_them_too() -> None:
    subject = Subject[int]()
    seen: list[int] = []
    subject.subscribe(seen.append)
    flow.range(3).subscribe(from_rx_subject(subject))
    assert seen == [0, 1, 2]


def test_a_slow_subscriber_does_not_hold_the_others_back() -> None:
    processor = from_rx_subject(Subject[int]())
    fast, slow = TestSubscriber[int](), TestSubscriber[int](1)
    processor.subscribe(fast)
    processor.subscribe(slow)
    flow.range(300).subscribe(processor)
    fast.assert_result(*range(300))
    slow.assert_items(0).request(299)
    slow.assert_result(*range(300))


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (Subject[int](), []),
        (BehaviorSubject[int](7), []),
        (ReplaySubject[int](), [0, 1, 2]),
        (ReplaySubject[int](2), [1, 2]),
        (AsyncSubject[int](), [2]),
    ],
    ids=["direct", "behavior", "replay", "replay 2", "async"],
)
def test_a_subscriber_that_comes_after_the_end_gets_what_its_kind_of_subject_keeps(
    subject: Any, expected: list[int]
) -> None:
    processor = from_rx_subject(subject)
    flow.range(3).subscribe(processor)
    assert list(processor.flow) == expected


def test_the_error_is_the_identical_object_for_late_subscribers_too() -> None:
    error = LookupError("theirs")
    processor = from_rx_subject(Subject[int]())
    flow.error(error).subscribe(processor)
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    subscriber.assert_failure(error)


def test_everything_is_requested_and_a_second_upstream_is_refused() -> None:
    processor = from_rx_subject(Subject[int]())
    first, second = TestPublisher[int](), TestPublisher[int]()
    first.subscribe(processor)
    second.subscribe(processor)
    assert first.requested == UNBOUNDED
    assert second.cancels == 1


def test_items_can_be_given_by_hand() -> None:
    processor = from_rx_subject(BehaviorSubject(1))
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    processor.on_next(2)
    processor.on_complete()
    subscriber.assert_result(1, 2)


def test_signals_after_the_end_go_to_the_hook(drops: Drops) -> None:
    processor = from_rx_subject(Subject[int]())
    processor.on_complete()
    late = LookupError("late")
    processor.on_next(1)
    processor.on_error(late)
    assert drops.take_items() == [1]
    assert drops.take_errors() == [late]


def test_an_error_of_an_observer_ends_the_upstream(drops: Drops) -> None:
    error = ValueError("mine")
    subject = Subject[int]()

    def fail(_: int) -> None:
        raise error

    subject.subscribe(fail)
    cancels: list[int] = []
    flow.range(5).do_on_cancel(lambda: cancels.append(1)).subscribe(from_rx_subject(subject))
    assert drops.take_errors() == [error]


def test_it_serves_a_connectable_of_ours() -> None:
    numbers = flow.range(3).pipe(multicast(lambda: from_rx_subject(Subject[int]())))
    first, second = TestSubscriber[int](), TestSubscriber[int](1)
    numbers.subscribe(first)
    numbers.subscribe(second)
    numbers.connect()
    first.assert_result(0, 1, 2)
    second.assert_items(0).request(2)
    second.assert_result(0, 1, 2)


@pytest.mark.parametrize(
    "wrong",
    [None, reactivex.of(1), DirectProcessor[int]()],
    ids=["None", "Observable", "DirectProcessor"],
)
def test_from_rx_subject_refuses_a_value_that_is_not_a_subject(wrong: Any) -> None:
    with pytest.raises(TypeError, match="from_rx_subject"):
        from_rx_subject(wrong)


# -- processors as subjects


def test_an_observable_feeds_it_and_observers_get_the_items() -> None:
    subject = to_rx_subject(DirectProcessor[int]())
    seen: list[object] = []
    subject.subscribe(seen.append, seen.append, lambda: seen.append("end"))
    reactivex.of(1, 2).subscribe(subject)
    assert seen == [1, 2, "end"]


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        (DirectProcessor[int](), ["end"]),
        (BehaviorProcessor[int](7), ["end"]),
        (ReplayProcessor[int](), [1, 2, 3, "end"]),
        (AsyncProcessor[int](), [3, "end"]),
        (UnicastProcessor[int](), [1, 2, 3, "end"]),
        (MulticastProcessor[int](), [1, 2, 3, "end"]),
    ],
    ids=repr,
)
def test_an_observer_that_comes_after_the_end_gets_what_its_kind_of_processor_keeps(
    processor: Any, expected: list[object]
) -> None:
    subject = to_rx_subject(processor)
    for n in (1, 2, 3):
        subject.on_next(n)
    subject.on_completed()
    seen: list[object] = []
    subject.subscribe(seen.append, seen.append, lambda: seen.append("end"))
    assert seen == expected


def test_a_lock_step_processor_loses_nothing_however_much_is_pushed() -> None:
    subject = to_rx_subject(MulticastProcessor[int](prefetch=2))
    for n in range(500):
        subject.on_next(n)
    seen: list[int] = []
    subject.subscribe(seen.append)
    subject.on_completed()
    assert seen == list(range(500))


def test_its_subscribers_and_its_observers_are_the_same_crowd() -> None:
    processor = DirectProcessor[int]()
    subject = to_rx_subject(processor)
    subscriber = TestSubscriber[int]()
    seen: list[int] = []
    processor.subscribe(subscriber)
    handle = subject.subscribe(seen.append)
    subject.on_next(1)
    handle.dispose()
    subject.on_next(2)
    subject.on_completed()
    assert seen == [1]
    subscriber.assert_result(1, 2)


def test_an_error_is_the_identical_object() -> None:
    error = LookupError("theirs")
    subject = to_rx_subject(DirectProcessor[int]())
    seen: list[BaseException] = []
    subject.subscribe(on_error=seen.append)
    subject.on_error(error)
    subject.subscribe(on_error=seen.append)
    assert seen == [error, error]


def test_it_is_pushed_from_within_another_action_and_nothing_is_lost() -> None:
    subject = to_rx_subject(DirectProcessor[int]())
    seen: list[int] = []
    reactivex.merge(
        reactivex.of(1, 2).pipe(ops.do_action(subject.on_next), ops.ignore_elements()), subject
    ).subscribe(seen.append)
    assert seen == [1, 2]


def test_items_that_several_threads_push_come_one_by_one() -> None:
    subject = to_rx_subject(DirectProcessor[int]())
    seen: list[int] = []
    subject.subscribe(seen.append)
    together = Barrier(4)

    def push() -> None:
        together.wait()
        for n in range(300):
            subject.on_next(n)

    threads = [Thread(target=push) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted([*range(300)] * 4)


def test_disposed_of_it_refuses_signals_and_lets_the_processor_go() -> None:
    subject = to_rx_subject(DirectProcessor[int]())
    seen: list[object] = []
    subject.subscribe(seen.append)
    subject.dispose()
    for action in (lambda: subject.on_next(1), subject.on_completed, lambda: subject.subscribe()):
        with pytest.raises(Exception, match="dispos"):
            action()
    assert seen == []


def test_it_serves_their_multicast() -> None:
    subject = to_rx_subject(ReplayProcessor[int]())
    connectable = reactivex.of(1, 2).pipe(ops.multicast(subject))
    first: list[int] = []
    second: list[int] = []
    connectable.subscribe(first.append)
    connectable.connect()
    connectable.subscribe(second.append)
    assert (first, second) == ([1, 2], [1, 2])


@pytest.mark.parametrize("wrong", [None, flow.just(1), Subject()], ids=["None", "Flow", "Subject"])
def test_to_rx_subject_refuses_a_value_that_is_not_a_processor(wrong: Any) -> None:
    with pytest.raises(TypeError, match="to_rx_subject"):
        to_rx_subject(wrong)
