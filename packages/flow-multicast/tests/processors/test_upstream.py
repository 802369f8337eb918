"""The requests of a processor to its upstream, feeding it by hand, and too many items."""

from __future__ import annotations

import threading
from collections import deque

import pytest

import flow_core as flow
from flow_core import (
    EMPTY,
    UNBOUNDED,
    Empty,
    Flow,
    FlowError,
    Fusion,
    MissingBackpressureError,
    ProtocolViolationError,
    Publisher,
    QueueSubscription,
    Subscriber,
)
from flow_multicast import MulticastProcessor
from flow_testing import Drops, TestPublisher, TestSubscriber, Violation, race


@pytest.mark.checklist("M05")
@pytest.mark.parametrize("prefetch", [0, -1, -128])
def test_a_prefetch_below_one_is_refused(prefetch: int) -> None:
    with pytest.raises(ValueError, match="prefetch must be at least 1"):
        MulticastProcessor(prefetch)


@pytest.mark.checklist("M05")
@pytest.mark.parametrize("prefetch", [1.5, "1", None, True])
def test_a_prefetch_that_is_not_an_int_is_refused(prefetch: object) -> None:
    with pytest.raises(TypeError, match="prefetch"):
        MulticastProcessor(prefetch)


def test_a_processor_says_how_it_was_made() -> None:
    assert repr(MulticastProcessor()) == "MulticastProcessor(prefetch=128)"
    assert repr(MulticastProcessor(2, ref_count=True)) == (
        "MulticastProcessor(prefetch=2, ref_count=True)"
    )


# -- demand


@pytest.mark.checklist("M23", "M35")
@pytest.mark.parametrize(
    ("prefetch", "requests"),
    [
        (1, [1] * 11),
        (2, [2, *[2] * 5]),
        (3, [3, *[3] * 3]),
        (4, [4, *[3] * 3]),
        (8, [8, 6]),
        (128, [128]),
    ],
)
def test_three_quarters_are_requested_again_when_they_were_sent(
    prefetch: int, requests: list[int]
) -> None:
    processor = MulticastProcessor[int](prefetch)
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    publisher.next(*range(10))
    publisher.assert_requests(*requests)
    subscriber.assert_items(*range(10))


@pytest.mark.checklist("M23", "M30")
def test_only_the_prefetch_is_requested_while_no_subscriber_takes_items() -> None:
    processor = MulticastProcessor[int](4)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    publisher.next(1, 2, 3, 4)
    publisher.assert_requests(4)
    subscriber = TestSubscriber[int](2)
    processor.subscribe(subscriber)
    publisher.assert_requests(4)
    subscriber.request(1)
    publisher.assert_requests(4, 3)
    subscriber.assert_items(1, 2, 3)


@pytest.mark.checklist("M23")
def test_a_second_upstream_is_cancelled_and_the_first_stays() -> None:
    processor = MulticastProcessor[int](4)
    first, second = TestPublisher[int](), TestPublisher[int]()
    first.subscribe(processor)
    second.subscribe(processor)
    second.assert_cancelled().assert_requests()
    first.assert_requests(4)
    assert not first.cancelled
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    first.next(1)
    subscriber.assert_items(1)


@pytest.mark.checklist("M26", "M08")
@pytest.mark.parametrize("failed", [False, True])
def test_an_upstream_that_comes_after_the_end_is_cancelled(failed: bool) -> None:
    processor = MulticastProcessor[int](4)
    if failed:
        processor.on_error(ValueError("over"))
    else:
        processor.on_complete()
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    publisher.assert_cancelled().assert_requests()


def test_nothing_is_asked_of_an_upstream_that_has_ended() -> None:
    processor = MulticastProcessor[int](4)
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    publisher.next(1, 2, 3, 4)
    publisher.complete()
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    subscriber.assert_result(1, 2, 3, 4)
    publisher.assert_requests(4)
    assert not publisher.cancelled


def test_an_upstream_whose_request_raises_fails_the_flow(drops: Drops) -> None:
    error = ValueError("request() must not raise")

    def refuse(_: object, n: int) -> None:
        if n == 3:
            raise error

    processor = MulticastProcessor[int](4)
    subscribers = [TestSubscriber[int](), TestSubscriber[int](0)]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    publisher = TestPublisher[int](on_request=refuse)
    publisher.subscribe(processor)
    publisher.next(1, 2, 3, 4)
    subscribers[1].request(5)
    for subscriber in subscribers:
        subscriber.assert_failure(error, 1, 2, 3)
    publisher.assert_cancelled()
    assert drops.take_items() == [4]


# -- too much


@pytest.mark.checklist("M24")
@pytest.mark.parametrize("present", [False, True])
def test_an_upstream_that_sends_too_much_fails_the_flow_after_waiting_items(
    drops: Drops, present: bool
) -> None:
    processor = MulticastProcessor[int](2)
    subscriber = TestSubscriber[int](0)
    if present:
        processor.subscribe(subscriber)
    publisher = TestPublisher[int](Violation.OVERFLOW | Violation.IGNORED_CANCEL)
    publisher.subscribe(processor)
    publisher.next(*range(6))
    assert publisher.cancels == 1
    publisher.complete()
    if not present:
        processor.subscribe(subscriber)
    subscriber.assert_not_terminated()
    subscriber.request(UNBOUNDED)
    subscriber.assert_failure(MissingBackpressureError, 0, 1)
    assert drops.take_items() == [2, 3, 4, 5]


@pytest.mark.checklist("M24")
def test_the_message_says_which_subscriber_was_too_slow_and_what_to_do() -> None:
    processor = MulticastProcessor[int](1)
    slow = TestSubscriber[int](0)
    processor.subscribe(slow)
    processor.subscribe(TestSubscriber[int]())
    processor.on_next(1)
    processor.on_next(2)
    slow.request(1)
    assert isinstance(slow.error, FlowError)
    message = str(slow.error)
    assert "MulticastProcessor(prefetch=1)" in message
    assert "1 of its 2 subscribers have not requested" in message
    assert "offer()" in message


@pytest.mark.checklist("M04")
@pytest.mark.parametrize("prefetch", [1, 3, 5, 128])
def test_there_is_room_for_exactly_the_prefetch(prefetch: int) -> None:
    by_offer = MulticastProcessor[int](prefetch)
    assert [by_offer.offer(n) for n in range(prefetch + 2)] == [True] * prefetch + [False] * 2
    by_on_next = MulticastProcessor[int](prefetch)
    for n in range(prefetch):
        by_on_next.on_next(n)
    assert by_on_next.statistics().buffered == prefetch
    subscriber = TestSubscriber[int]()
    by_on_next.subscribe(subscriber)
    subscriber.assert_items(*range(prefetch)).assert_not_terminated()

    overflowing = MulticastProcessor[int](prefetch)
    for n in range(prefetch + 1):
        overflowing.on_next(n)
    late = TestSubscriber[int]()
    overflowing.subscribe(late)
    late.assert_failure(MissingBackpressureError, *range(prefetch))


# -- by hand


@pytest.mark.checklist("M27")
def test_offer_returns_false_when_there_is_no_room() -> None:
    processor = MulticastProcessor[int](4)
    processor.start()
    assert [processor.offer(n) for n in (1, 2, 3, 4)] == [True] * 4
    assert not processor.offer(5)
    processor.on_complete()
    assert not processor.offer(6)
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    subscriber.assert_result(1, 2, 3, 4)


@pytest.mark.checklist("M27")
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("prefetch", [1, 4, 128])
def test_a_processor_without_upstream_passes_any_number_of_items(
    started: bool, prefetch: int
) -> None:
    processor = MulticastProcessor[int](prefetch)
    if started:
        processor.start()
    first, second = TestSubscriber[int](), TestSubscriber[int](UNBOUNDED - 1)
    processor.subscribe(first)
    processor.subscribe(second)
    for n in range(500):
        processor.on_next(n)
    for n in range(500, 1000):
        assert processor.offer(n)
    processor.on_complete()
    first.assert_result(*range(1000))
    second.assert_result(*range(1000))


@pytest.mark.checklist("M27")
def test_started_without_bound_there_is_room_for_all() -> None:
    processor = MulticastProcessor[int](2)
    processor.start_unbounded()
    processor.start_unbounded()
    assert all(processor.offer(n) for n in range(500))
    for n in range(500, 1000):
        processor.on_next(n)
    assert processor.statistics().buffered == 1000
    assert processor.statistics().capacity == UNBOUNDED
    processor.on_complete()
    subscriber = TestSubscriber[int](1, on_item=lambda self, _: self.request(1))
    processor.subscribe(subscriber)
    subscriber.assert_result(*range(1000))


@pytest.mark.checklist("M27")
def test_an_upstream_that_comes_after_the_start_is_cancelled() -> None:
    processor = MulticastProcessor[int]()
    processor.start()
    processor.start()
    publisher = TestPublisher[int]()
    publisher.subscribe(processor)
    publisher.assert_cancelled().assert_requests()


@pytest.mark.checklist("M27")
def test_a_processor_is_started_once_and_in_one_way() -> None:
    fed = MulticastProcessor[int]()
    TestPublisher[int]().subscribe(fed)
    with pytest.raises(ProtocolViolationError, match="fed already"):
        fed.start()
    started = MulticastProcessor[int]()
    started.start()
    with pytest.raises(ProtocolViolationError, match="started already"):
        started.start_unbounded()


@pytest.mark.checklist("M27", "M04")
def test_threads_that_offer_at_once_exceed_the_room_by_one_item_each_at_most() -> None:
    processor = MulticastProcessor[tuple[int, int]](100)
    accepted: list[bool] = []

    def offer(thread: int) -> None:
        accepted.extend(processor.offer((thread, n)) for n in range(50))

    race(*(lambda thread=thread: offer(thread) for thread in range(4)))
    assert 100 <= accepted.count(True) < 104
    subscriber = TestSubscriber[tuple[int, int]]()
    processor.subscribe(subscriber)
    assert len(subscriber.items) == accepted.count(True)
    for thread in range(4):
        mine = [n for by, n in subscriber.items if by == thread]
        assert mine == sorted(mine)


def rest(source: TestPublisher[int], last: int) -> None:
    """Let `source` send 0, 1, 2 and so on to `last`, as it is asked."""
    n = 0
    while n <= last:
        assert source.outstanding, f"nobody asks for {n}"
        source.next(n)
        n += 1


@pytest.mark.checklist("M04", "M27")
@pytest.mark.parametrize("by", ["offer", "on_next"])
@pytest.mark.parametrize(
    ("waiting", "requests"), [(0, [4, 3]), (1, [3, 3]), (3, [1, 3]), (4, [1, 3])]
)
def test_items_that_wait_when_the_upstream_comes_reduce_the_first_request(
    waiting: int, requests: list[int], by: str
) -> None:
    processor = MulticastProcessor[int](4)
    before = range(100, 100 + waiting)
    for n in before:
        getattr(processor, by)(n)
    source = TestPublisher[int]()
    source.subscribe(processor)
    assert source.requested == 4 - waiting
    if source.outstanding:
        source.next(*range(source.outstanding))  # as much as it may, though no subscriber takes it
    subscriber = TestSubscriber[int](0)
    processor.subscribe(subscriber)
    subscriber.request(1)
    assert source.requested == (1 if waiting == 4 else 4 - waiting)  # as soon as there is room
    subscriber.request(3)
    source.assert_requests(*requests)
    subscriber.assert_items(*[*before, *range(4)][:4])
    subscriber.assert_not_terminated()


@pytest.mark.checklist("M04", "M27")
@pytest.mark.parametrize("prefetch", [1, 2, 4, 7])
@pytest.mark.parametrize("waiting", [0, 1, 4, 7])
def test_all_that_the_upstream_has_comes_after_what_was_offered(
    prefetch: int, waiting: int
) -> None:
    processor = MulticastProcessor[int](prefetch)
    before = [n for n in range(100, 100 + waiting) if processor.offer(n)]
    source = TestPublisher[int]()
    source.subscribe(processor)
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    rest(source, 30)
    subscriber.assert_items(*before, *range(31)).assert_not_terminated()


@pytest.mark.checklist("M04", "M27")
def test_items_sent_before_the_upstream_came_do_not_count_towards_its_requests() -> None:
    processor = MulticastProcessor[int](4)
    subscriber = TestSubscriber[int](3)
    processor.subscribe(subscriber)
    processor.on_next(100)
    processor.on_next(101)
    source = TestPublisher[int]()
    source.subscribe(processor)
    source.next(0, 1, 2, 3)
    source.assert_requests(4)  # three wait, and the first was sent
    subscriber.request(2)
    source.assert_requests(4, 3)
    subscriber.assert_items(100, 101, 0, 1, 2).assert_not_terminated()


@pytest.mark.checklist("M04", "M27")
def test_an_upstream_has_all_the_room() -> None:
    processor = MulticastProcessor[int](4)
    source = TestPublisher[int]()
    source.subscribe(processor)
    subscriber = TestSubscriber[int](0)
    processor.subscribe(subscriber)
    assert processor.room() == 0
    assert not processor.offer(100)
    source.next(0, 1, 2, 3)
    assert not processor.offer(100)
    subscriber.request(2)
    assert processor.room() == 0
    assert not processor.offer(100)
    subscriber.request(1)
    source.assert_requests(4, 3)
    source.next(4, 5, 6)
    subscriber.request(9)
    subscriber.assert_items(*range(7)).assert_not_terminated()


@pytest.mark.checklist("M27")
def test_an_upstream_that_comes_while_an_item_is_sent_is_asked_after_that() -> None:
    processor = MulticastProcessor[int](2)
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](
        on_item=lambda _, n: source.subscribe(processor) if n == 100 else None
    )
    processor.subscribe(subscriber)
    processor.offer(100)
    rest(source, 10)
    subscriber.assert_items(100, *range(11)).assert_not_terminated()
    assert source.requests[0] == 2


@pytest.mark.checklist("M27")
def test_items_that_are_offered_meanwhile_are_sent_by_the_sending_thread() -> None:
    processor = MulticastProcessor[int]()
    entered, go_on = threading.Event(), threading.Event()

    def block(_: object, item: int) -> None:
        if item == 0:
            entered.set()
            assert go_on.wait(5)

    subscriber = TestSubscriber[int](on_item=block)
    processor.subscribe(subscriber)
    feeding = threading.Thread(target=processor.offer, args=(0,))
    feeding.start()
    assert entered.wait(5)
    assert processor.offer(1)
    assert processor.offer(2)
    subscriber.assert_items(0)
    go_on.set()
    feeding.join(5)
    subscriber.assert_items(0, 1, 2)
    assert subscriber.threads == {feeding.ident}


# -- bad sources


@pytest.mark.checklist("M25")
@pytest.mark.parametrize("first", ["complete", "error"])
def test_signals_of_a_source_after_the_end_go_to_the_hooks(drops: Drops, first: str) -> None:
    processor = MulticastProcessor[int]()
    subscribers = [TestSubscriber[int](), TestSubscriber[int](0)]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    publisher = TestPublisher[int](Violation.AFTER_TERMINAL)
    publisher.subscribe(processor)
    publisher.next(1)
    error, second = ValueError("first"), ValueError("second")
    if first == "complete":
        publisher.complete()
    else:
        publisher.error(error)
    publisher.next(2)
    publisher.error(second)
    publisher.complete()
    subscribers[1].request(5)
    for subscriber in subscribers:
        if first == "complete":
            subscriber.assert_result(1)
        else:
            subscriber.assert_failure(error, 1)
    publisher.next(3)
    assert drops.take_items() == [2, 3]
    assert drops.take_errors() == [second]


@pytest.mark.checklist("M28")
def test_an_upstream_that_sends_none_fails_the_flow() -> None:
    class Careless(Publisher[int]):
        """Sends None, and treats what on_next raises as a publisher of this library does."""

        def subscribe(self, subscriber: Subscriber[int], /) -> None:
            TestPublisher[int]().subscribe(subscriber)
            subscriber.on_next(1)
            with pytest.raises(TypeError) as raised:
                subscriber.on_next(None)
            assert subscriber.on_next_raised(raised.value)

    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    Careless().subscribe(processor)
    subscriber.assert_failure(flow.NoneItemError, 1)


# -- fusion


class Queue(QueueSubscription[int], Publisher[int]):
    """A publisher with a queue that it shares (ASYNC), or that is all it has (SYNC)."""

    def __init__(self, mode: Fusion, *items: int, error: BaseException | None = None) -> None:
        self.mode = mode
        self.items = deque(items)
        self.error = error
        self.asked: list[Fusion] = []
        self.requests: list[int] = []
        self.cancels = self.clears = 0
        self.subscriber: Subscriber[int] | None = None

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        self.asked.append(mode)
        return self.mode & mode

    def poll(self) -> int | Empty:
        if self.items:
            return self.items.popleft()
        if self.error is not None:
            raise self.error
        return EMPTY

    def is_empty(self) -> bool:
        return not self.items and self.error is None

    def clear(self) -> None:
        self.clears += 1
        self.items.clear()

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1

    def push(self, *items: int) -> None:
        """Put items into the shared queue, and say so."""
        self.items.extend(items)
        self.subscriber.on_next(EMPTY)


@pytest.mark.checklist("M47")
def test_a_synchronous_upstream_is_polled_and_never_requested() -> None:
    queue = Queue(Fusion.SYNC, 1, 2, 3)
    processor = MulticastProcessor[int](1)
    subscriber = TestSubscriber[int](2)
    processor.subscribe(subscriber)
    queue.subscribe(processor)
    assert queue.asked == [Fusion.ANY | Fusion.THREAD_BOUNDARY]
    subscriber.assert_items(1, 2)
    assert list(queue.items) == [3]
    subscriber.request(1)
    subscriber.assert_result(1, 2, 3)
    assert (queue.requests, queue.cancels) == ([], 0)


@pytest.mark.checklist("M47")
def test_the_queue_of_an_asynchronous_upstream_is_shared(drops: Drops) -> None:
    queue = Queue(Fusion.ASYNC)
    processor = MulticastProcessor[int](4)
    first, second = TestSubscriber[int](3), TestSubscriber[int]()
    processor.subscribe(first)
    processor.subscribe(second)
    queue.subscribe(processor)
    assert queue.requests == [4]
    queue.push(1, 2)
    queue.push(3, 4)
    for subscriber in (first, second):
        subscriber.assert_items(1, 2, 3)
    assert queue.requests == [4, 3]
    assert not processor.offer(5)
    processor.on_complete()
    second.assert_not_terminated()
    first.request(1)
    for subscriber in (first, second):
        subscriber.assert_result(1, 2, 3, 4)
    assert drops.take_items() == []


@pytest.mark.checklist("M47", "M30")
def test_a_polled_upstream_is_not_polled_without_subscribers() -> None:
    taken: list[int] = []
    processor = MulticastProcessor[int]()
    source = flow.from_iterable(taken.append(n) or n for n in range(3))
    source.subscribe(processor)
    assert taken == []
    subscriber = TestSubscriber[int](1)
    processor.subscribe(subscriber)
    subscriber.assert_items(0)
    subscriber.request(2)
    subscriber.assert_result(0, 1, 2)


@pytest.mark.checklist("M47", "M38")
@pytest.mark.parametrize("mode", [Fusion.SYNC, Fusion.ASYNC])
def test_the_end_of_a_fused_upstream_needs_no_demand(mode: Fusion) -> None:
    queue = Queue(mode)
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int](0)
    processor.subscribe(subscriber)
    queue.subscribe(processor)
    if mode is Fusion.ASYNC:
        subscriber.assert_not_terminated()
        processor.on_complete()
    subscriber.assert_result()


@pytest.mark.checklist("M47")
def test_a_polled_upstream_that_fails_fails_the_flow() -> None:
    error = ValueError("polled")
    queue = Queue(Fusion.SYNC, 1, error=error)
    processor = MulticastProcessor[int]()
    subscribers = [TestSubscriber[int](), TestSubscriber[int]()]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    queue.subscribe(processor)
    for subscriber in subscribers:
        subscriber.assert_failure(error, 1)
    assert (queue.cancels, queue.clears) == (1, 1)


@pytest.mark.checklist("M47", "M38")
def test_a_polled_upstream_that_fails_when_it_is_looked_at_fails_the_flow() -> None:
    class Broken(Queue):
        def is_empty(self) -> bool:
            raise self.error

    error = ValueError("looked at")
    queue = Broken(Fusion.SYNC, error=error)
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int](0)
    processor.subscribe(subscriber)
    queue.subscribe(processor)
    subscriber.assert_failure(error)
    assert queue.cancels == 1


@pytest.mark.checklist("M47")
def test_a_fatal_error_of_a_polled_upstream_is_never_taken_for_its_end() -> None:
    error = KeyboardInterrupt()
    queue = Queue(Fusion.SYNC, 1, error=error)
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    with pytest.raises(KeyboardInterrupt):
        queue.subscribe(processor)
    assert queue.cancels == 1
    subscriber.assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_not_terminated()  # unbounded: there is nothing to add
    processor.subscribe(TestSubscriber[int]())
    subscriber.assert_failure(FlowError, 1)


@pytest.mark.checklist("M47")
def test_items_that_were_fed_before_a_fusable_upstream_came_are_sent_first() -> None:
    queue = Queue(Fusion.SYNC, 3)
    processor = MulticastProcessor[int](4)
    processor.on_next(1)
    processor.on_next(2)
    queue.subscribe(processor)
    assert queue.asked == []
    assert queue.requests == [2]
    subscriber = TestSubscriber[int]()
    processor.subscribe(subscriber)
    subscriber.assert_items(1, 2)


@pytest.mark.checklist("M47")
@pytest.mark.parametrize("mode", [Fusion.SYNC, Fusion.ASYNC])
def test_nothing_is_offered_while_an_upstream_decides_to_be_polled(mode: Fusion) -> None:
    processor = MulticastProcessor[int](4)
    taken: list[bool] = []

    class Deciding(Queue):
        def request_fusion(self, mode: Fusion, /) -> Fusion:
            taken.append(processor.offer(100))
            return super().request_fusion(mode)

    Deciding(mode, 1, 2).subscribe(processor)
    assert taken == [False]


@pytest.mark.checklist("M47")
@pytest.mark.parametrize("mode", [Fusion.SYNC, Fusion.ASYNC])
@pytest.mark.parametrize("ref_count", [False, True])
def test_a_fused_upstream_is_cancelled_and_cleared_when_all_have_left(
    mode: Fusion, ref_count: bool
) -> None:
    queue = Queue(mode, 1, 2, 3)
    processor = MulticastProcessor[int](ref_count=ref_count)
    subscriber = TestSubscriber[int](1)
    processor.subscribe(subscriber)
    queue.subscribe(processor)
    subscriber.cancel()
    assert (queue.cancels, queue.clears) == ((1, 1) if ref_count else (0, 0))


@pytest.mark.checklist("M47", "M10")
def test_a_generator_is_closed_when_all_have_left() -> None:
    closed = []

    def numbers():
        try:
            n = 0
            while True:
                yield n
                n += 1
        finally:
            closed.append(True)

    processor = MulticastProcessor[int](ref_count=True)
    first, second = TestSubscriber[int](), TestSubscriber[int]()
    processor.flow.take(3).subscribe(first)
    processor.flow.take(5).subscribe(second)
    flow.from_iterable(numbers()).subscribe(processor)
    first.assert_result(0, 1, 2)
    second.assert_result(0, 1, 2, 3, 4)
    assert closed == [True]


@pytest.mark.checklist("M47")
def test_processors_can_follow_each_other() -> None:
    first, second = MulticastProcessor[int](2), MulticastProcessor[int](3)
    left, right = TestSubscriber[int](), TestSubscriber[int]()
    first.subscribe(left)
    first.subscribe(second)
    second.subscribe(right)
    flow.range(100).subscribe(first)
    left.assert_result(*range(100))
    right.assert_result(*range(100))


@pytest.mark.checklist("M49")
def test_a_foreign_publisher_and_foreign_subscribers_take_part() -> None:
    class Numbers:
        """Reactive Streams without this library."""

        def __init__(self, stop: int) -> None:
            self.stop = stop

        def subscribe(self, subscriber) -> None:
            state = {"sent": 0, "asked": 0, "busy": False, "done": False}
            stop = self.stop

            class Link:
                def request(self, n: int) -> None:
                    state["asked"] += n
                    if state["busy"]:
                        return
                    state["busy"] = True
                    while not state["done"] and state["sent"] < min(state["asked"], stop):
                        state["sent"] += 1
                        subscriber.on_next(state["sent"])
                    state["busy"] = False
                    if state["sent"] == stop and not state["done"]:
                        state["done"] = True
                        subscriber.on_complete()

                def cancel(self) -> None:
                    state["done"] = True

            subscriber.on_subscribe(Link())

    class Collect:
        def __init__(self) -> None:
            self.items: list[int] = []
            self.done = False

        def on_subscribe(self, subscription) -> None:
            self.subscription = subscription
            subscription.request(1)

        def on_next(self, item: int) -> None:
            self.items.append(item)
            self.subscription.request(1)

        def on_error(self, error: BaseException) -> None:
            raise AssertionError from error

        def on_complete(self) -> None:
            self.done = True

    processor = MulticastProcessor[int](4)
    first, second = Collect(), Collect()
    processor.subscribe(first)
    Flow(processor).subscribe(second)
    Numbers(20).subscribe(processor)
    for subscriber in (first, second):
        assert subscriber.items == list(range(1, 21))
        assert subscriber.done
