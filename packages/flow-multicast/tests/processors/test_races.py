"""Threads that meet at a barrier. The deterministic twins of these tests are in the other files."""

from __future__ import annotations

import functools
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import ParamSpec

import pytest

import flow_core as flow
from flow_core import UNBOUNDED
from flow_multicast import MulticastProcessor
from flow_testing import TIMEOUT_S, TestPublisher, TestSubscriber, race

ROUNDS = 60

P = ParamSpec("P")


def repeated(test: Callable[P, None]) -> Callable[P, None]:
    """Run a test often enough, and have threads switched as often as can be."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(ROUNDS):
                test(*args, **kwargs)
        finally:
            sys.setswitchinterval(before)

    return run


@pytest.mark.checklist("M06", "M20", "M37")
@pytest.mark.parametrize("error", [None, ValueError("failed")], ids=["completed", "failed"])
@repeated
def test_a_subscriber_that_comes_while_it_ends_gets_the_end_after_on_subscribe(
    error: BaseException | None,
) -> None:
    processor = MulticastProcessor[int]()
    early, late, later = (TestSubscriber[int](n) for n in (0, 0, UNBOUNDED))
    processor.subscribe(early)
    race(
        lambda: processor.subscribe(late),
        lambda: processor.on_error(error) if error else processor.on_complete(),
        lambda: processor.subscribe(later),
    )
    for subscriber in (early, late, later):
        subscriber.await_terminal()
        if error is None:
            subscriber.assert_result()
        else:
            subscriber.assert_failure(error)
    assert not processor.has_subscribers


@pytest.mark.checklist("M16")
@repeated
def test_threads_that_subscribe_at_once_all_join() -> None:
    processor = MulticastProcessor[int]()
    subscribers = [TestSubscriber[int]() for _ in range(6)]
    race(*(lambda s=s: processor.subscribe(s) for s in subscribers))
    assert processor.statistics().subscribers == 6
    flow.range(3).subscribe(processor)
    for subscriber in subscribers:
        subscriber.assert_result(0, 1, 2)


@pytest.mark.checklist("M16", "M17")
@repeated
def test_threads_that_come_and_go_leave_the_right_ones_behind() -> None:
    processor = MulticastProcessor[int]()
    stay = [TestSubscriber[int]() for _ in range(3)]
    go = [TestSubscriber[int]() for _ in range(3)]
    for subscriber in go:
        processor.subscribe(subscriber)
    race(
        *(lambda s=s: processor.subscribe(s) for s in stay),
        *(s.cancel for s in go),
        *(s.cancel for s in go),
    )
    assert processor.statistics().subscribers == 3
    processor.on_next(1)
    for subscriber in stay:
        subscriber.assert_items(1)
    for subscriber in go:
        subscriber.assert_items().assert_rules_kept()


@pytest.mark.checklist("M14")
@repeated
def test_the_error_of_a_non_positive_request_comes_once_and_never_overlaps_on_next() -> None:
    processor = MulticastProcessor[int]()
    wrong, other = TestSubscriber[int](), TestSubscriber[int]()
    processor.subscribe(wrong)
    processor.subscribe(other)
    subscription = wrong.subscription

    def feed() -> None:
        for n in range(20):
            processor.on_next(n)

    race(
        feed,
        lambda: subscription.request(-1),
        lambda: subscription.request(0),
    )
    wrong.await_terminal().assert_failure(ValueError, *range(len(wrong.items)))
    assert "3.9" in str(wrong.error)
    other.assert_items(*range(20))


@pytest.mark.checklist("M33", "M11")
@pytest.mark.parametrize("prefetch", [1, 2, 128])
@repeated
def test_the_end_never_overtakes_the_last_item(prefetch: int) -> None:
    processor = MulticastProcessor[int](prefetch)
    first, second = TestSubscriber[int](0), TestSubscriber[int](0)
    processor.subscribe(first)
    processor.subscribe(second)

    def feed() -> None:
        for n in range(10):
            while not processor.offer(n):
                pass
        processor.on_complete()

    def ask(subscriber: TestSubscriber[int]) -> None:
        for _ in range(10):
            subscriber.request(1)

    race(feed, lambda: ask(first), lambda: ask(second))
    for subscriber in (first, second):
        subscriber.await_terminal().assert_result(*range(10))


@pytest.mark.checklist("M33", "M09", "M36")
@pytest.mark.parametrize("hidden", [False, True])
@repeated
def test_requests_of_many_threads_lose_nothing(hidden: bool) -> None:
    processor = MulticastProcessor[int](4)
    subscribers = [TestSubscriber[int](0) for _ in range(4)]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    source = flow.range(30)
    (source.hide() if hidden else source).subscribe(processor)

    def ask(subscriber: TestSubscriber[int]) -> None:
        for _ in range(15):
            subscriber.request(2)

    race(*(lambda s=s: ask(s) for s in subscribers))
    for subscriber in subscribers:
        subscriber.await_terminal().assert_result(*range(30))


@pytest.mark.checklist("M10")
@repeated
def test_a_slow_subscriber_that_leaves_while_items_come_never_stalls_the_rest() -> None:
    processor = MulticastProcessor[int]()
    eager, slow = TestSubscriber[int](), TestSubscriber[int](2)
    processor.subscribe(eager)
    processor.subscribe(slow)

    def feed() -> None:
        for n in range(20):
            processor.on_next(n)
        processor.on_complete()

    race(feed, slow.cancel)
    eager.await_terminal().assert_result(*range(20))
    slow.assert_items(*range(len(slow.items)))
    assert len(slow.items) <= 2


@pytest.mark.checklist("M40", "M37")
@repeated
def test_the_last_leave_and_a_join_happen_in_some_order() -> None:
    processor = MulticastProcessor[int](ref_count=True)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    leaving, joining = TestSubscriber[int](), TestSubscriber[int]()
    processor.subscribe(leaving)
    race(leaving.cancel, lambda: processor.subscribe(joining))
    if publisher.cancelled:
        assert publisher.cancels == 1
        joining.await_terminal().assert_result()
    else:
        publisher.next(1)
        publisher.complete()
        joining.await_terminal().assert_result(1)


@pytest.mark.checklist("M23")
@repeated
def test_of_two_upstreams_that_come_at_once_one_is_cancelled() -> None:
    processor = MulticastProcessor[int]()
    publishers = [TestPublisher[int](), TestPublisher[int]()]
    race(*(lambda p=p: p.subscribe(processor) for p in publishers))
    assert sorted(publisher.cancels for publisher in publishers) == [0, 1]


@pytest.mark.checklist("M29")
def test_a_thread_that_signals_while_another_sends_does_not_wait_for_it() -> None:
    processor = MulticastProcessor[int]()
    entered, go_on = threading.Event(), threading.Event()

    def block(_: object, __: int) -> None:
        entered.set()
        assert go_on.wait(TIMEOUT_S)

    blocking, joining = TestSubscriber[int](on_item=block), TestSubscriber[int]()
    processor.subscribe(blocking)
    sending = threading.Thread(target=processor.on_next, args=(1,))
    sending.start()
    assert entered.wait(TIMEOUT_S)
    # None of these blocks, though the drain is held; what they say is done when it comes back.
    processor.subscribe(joining)
    processor.on_next(2)
    blocking.subscription.request(1)
    processor.on_complete()
    joining.assert_items().assert_not_terminated()
    go_on.set()
    sending.join(TIMEOUT_S)
    blocking.assert_result(1, 2)
    joining.assert_result(2)


@pytest.mark.checklist("M06", "M32")
def test_a_subscriber_that_joined_while_another_thread_drained_gets_the_next_item() -> None:
    processor = MulticastProcessor[int]()
    early, late = TestSubscriber[int](), TestSubscriber[int]()
    processor.subscribe(early)
    processor.on_next(0)
    # As if another thread was about to come back from its drain.
    assert processor.try_enter()
    processor.subscribe(late)
    processor.leave()
    processor.on_next(1)
    early.assert_items(0, 1)
    late.assert_items(1)


class Hooked(deque[int]):
    """A queue that lets something happen just before it is first looked at."""

    happens: Callable[[], object] | None = None

    def __len__(self) -> int:
        happens, self.happens = self.happens, None
        if happens is not None:
            thread = threading.Thread(target=happens)
            thread.start()
            thread.join(TIMEOUT_S)
        return super().__len__()


@pytest.mark.checklist("M06", "M32", "M33")
def test_a_join_and_items_that_come_during_a_drain_stay_in_order() -> None:
    processor = MulticastProcessor[int]()
    queue = processor._queue = Hooked()
    early, late = TestSubscriber[int](), TestSubscriber[int]()
    processor.subscribe(early)
    processor.on_next(0)

    def meanwhile() -> None:
        processor.subscribe(late)
        queue.append(1)
        processor.on_complete()

    queue.happens = meanwhile
    processor.signal()
    early.assert_result(0, 1)
    late.assert_result(1)
