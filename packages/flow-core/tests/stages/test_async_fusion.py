"""Stages between a shared queue and the subscriber that polls it: ASYNC fusion inside a flow."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import product
from threading import Thread, get_ident
from typing import Any

import pytest

import flow_core as flow
from flow_core import EMPTY, UNBOUNDED, Flow, Fusion, NoneItemError, QueueSubscription
from flow_core.errors import ProtocolViolationError
from flow_core.protocols import CoreSubscriber, Subscriber, Subscription
from flow_core.structure import source_of, stages_of
from flow_testing import (
    STAGE_CASES,
    TIMEOUT_S,
    ConditionalTestSubscriber,
    Drops,
    StageCase,
    TestSubscriber,
    race,
    recorded_drops,
)

MODES = [Fusion(mode) for mode in range(8)]
GRANTS = [Fusion.NONE, Fusion.SYNC, Fusion.ASYNC, Fusion.ANY]


class SharedQueue(QueueSubscription[Any]):
    """A publisher whose queue is polled: the test fills it, as far as it likes."""

    def __init__(self, *items: Any, grants: Fusion = Fusion.ASYNC) -> None:
        self.grants = grants
        self.items = deque(items)
        self.asked: list[Fusion] = []
        self.requests: list[int] = []
        self.cancels = self.clears = 0
        self.subscriber: Subscriber[Any]

    @property
    def flow(self) -> Flow[Any]:
        return Flow(self)

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def wake(self, carried: object = EMPTY) -> None:
        self.subscriber.on_next(carried)

    def send(self, *items: Any) -> None:
        for item in items:
            self.items.append(item)
            self.wake()

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        self.asked.append(mode)
        both = mode & self.grants & Fusion.ANY
        return Fusion.SYNC if both & Fusion.SYNC else both

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1

    def poll(self) -> Any:
        try:
            item = self.items.popleft()
        except IndexError:
            return EMPTY
        if isinstance(item, BaseException):
            raise item
        return item

    def is_empty(self) -> bool:
        return not self.items

    def clear(self) -> None:
        self.clears += 1
        self.items.clear()


class Woken(CoreSubscriber[Any]):
    """Asks for a mode in on_subscribe, writes signals down, and leaves polling to the test."""

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


def woken(made: Flow[Any], mode: Fusion = Fusion.ASYNC, request: int = 0) -> Woken:
    made.subscribe(subscriber := Woken(mode, request))
    return subscriber


def staged(case: StageCase) -> bool:
    """Return whether it leaves the source as it is and puts something behind it."""
    made = case.apply(Flow(SharedQueue()))
    return bool(stages_of(made)) and isinstance(source_of(made), SharedQueue)


def item_by_item(made: Flow[Any]) -> bool:
    """Return whether each stage makes at most one item of each, and has nothing else to do."""
    for stage in stages_of(made):
        lines = stage.template.lines
        if lines.expands or lines.absorbs or lines.stops or lines.on_end:
            return False
        if lines.on_start or lines.on_error or lines.on_close:
            return False
    return True


each_case = pytest.mark.parametrize(
    "case", [case for case in STAGE_CASES if staged(case)], ids=lambda case: case.name
)
each_polled_case = pytest.mark.parametrize(
    "case",
    [
        case
        for case in STAGE_CASES
        if staged(case) and item_by_item(case.apply(Flow(SharedQueue())))
    ],
    ids=lambda case: case.name,
)


# -- what is asked and granted


@pytest.mark.checklist("F23")
@each_case
def test_the_granted_fusion_lies_within_the_requested_fusion(case: StageCase) -> None:
    for grants, mode in product(GRANTS, MODES):
        upstream = SharedQueue(grants=grants)
        made = case.apply(upstream.flow)
        subscriber = woken(made, mode)
        can = grants if item_by_item(made) else grants & ~Fusion.ASYNC
        if mode & Fusion.THREAD_BOUNDARY and any(
            s.template.calls_user_code for s in stages_of(made)
        ):
            can = Fusion.NONE
        both = mode & can & Fusion.ANY
        assert subscriber.granted is (Fusion.SYNC if both & Fusion.SYNC else both)
        assert len(upstream.asked) <= 1
        assert all(not asked & ~mode for asked in upstream.asked)


@pytest.mark.checklist("F37", "F40", "F56")
@pytest.mark.parametrize(
    ("stages", "polled"),
    [
        (lambda f: f.map(str), True),
        (lambda f: f.filter(bool), True),
        (lambda f: f.do_on_next(str), True),
        (lambda f: f.skip(3), True),
        (lambda f: f.skip_while(bool), True),
        (lambda f: f.pairwise(), True),
        (lambda f: f.distinct(), True),
        (lambda f: f.scan(lambda a, b: a + b), True),
        (lambda f: f.map(str).filter(bool).skip(1), True),
        # More items than came, or items at the end: demand is counted anew.
        (lambda f: f.flat_map_iterable(range), False),
        (lambda f: f.buffer_with_count(2), False),
        (lambda f: f.to_list(), False),
        (lambda f: f.count(), False),
        # Ends of their own: one that the upstream signals while items wait would overtake them.
        (lambda f: f.take(3), False),
        (lambda f: f.take_while(bool), False),
        (lambda f: f.map(str).take(1).map(str), False),
    ],
)
def test_only_stages_that_go_item_by_item_are_polled_asynchronously(
    stages: Callable[[Flow[Any]], Flow[Any]], polled: bool
) -> None:
    upstream = SharedQueue(grants=Fusion.ASYNC)
    granted = woken(stages(upstream.flow), Fusion.ANY).granted
    assert granted is (Fusion.ASYNC if polled else Fusion.NONE)
    # What cannot be polled as the queue is filled may still be polled from a synchronous source.
    assert woken(stages(SharedQueue(grants=Fusion.ANY).flow), Fusion.ANY).granted is Fusion.SYNC


@pytest.mark.checklist("F39", "F41")
@pytest.mark.parametrize(
    ("stages", "moves"),
    [
        (lambda f: f.skip(1), True),
        (lambda f: f.pairwise(), True),
        (lambda f: f.distinct(), True),
        (lambda f: f.map(str), False),
        (lambda f: f.filter(bool), False),
        (lambda f: f.do_on_next(str), False),
        (lambda f: f.skip(1).map(str), False),
    ],
)
def test_functions_of_the_user_are_not_polled_across_threads(
    stages: Callable[[Flow[Any]], Flow[Any]], moves: bool
) -> None:
    upstream = SharedQueue()
    granted = woken(stages(upstream.flow), Fusion.ANY | Fusion.THREAD_BOUNDARY).granted
    assert granted is (Fusion.ASYNC if moves else Fusion.NONE)
    assert upstream.asked == ([Fusion.ANY | Fusion.THREAD_BOUNDARY] if moves else [])


@pytest.mark.checklist("F24", "F47")
@pytest.mark.parametrize("mode", [Fusion.SYNC, Fusion.ASYNC])
def test_fusion_is_asked_for_once(mode: Fusion) -> None:
    subscriber = woken(SharedQueue(grants=Fusion.ANY).flow.map(str), mode)
    assert subscriber.granted is mode
    with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
        subscriber.queue.request_fusion(mode)


@pytest.mark.checklist("F24")
@pytest.mark.parametrize("request_", [0, 1])
def test_fusion_is_asked_for_before_any_request_and_in_on_subscribe(request_: int) -> None:
    class Late(Woken):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            assert isinstance(subscription, QueueSubscription)
            self.queue = subscription
            if request_:
                subscription.request(request_)
                with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
                    subscription.request_fusion(Fusion.ASYNC)

    SharedQueue().flow.map(str).subscribe(late := Late())
    with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
        late.queue.request_fusion(Fusion.ASYNC)


@pytest.mark.checklist("F35")
@each_polled_case
def test_no_stage_forwards_the_subscription_of_a_shared_queue(case: StageCase) -> None:
    upstream = SharedQueue(*range(9))
    subscriber = woken(case.apply(upstream.flow))
    assert subscriber.granted is Fusion.ASYNC
    assert subscriber.queue is not upstream
    assert subscriber.polled() == case.model(list(range(9)))


# -- items


@pytest.mark.checklist("F26", "F37")
def test_a_wake_up_is_passed_on_and_nothing_else() -> None:
    mapped: list[int] = []

    def note(n: int) -> int:
        mapped.append(n)
        return n * 10

    upstream = SharedQueue()
    subscriber = woken(upstream.flow.map(note))
    subscriber.signals.clear()
    upstream.send(1)
    upstream.items.append(2)
    upstream.wake("ignored")
    assert subscriber.signals == [EMPTY, EMPTY]
    assert mapped == [], "the mapper is applied by poll"
    assert [subscriber.queue.poll(), mapped] == [10, [1]]
    assert [subscriber.queue.poll(), mapped] == [20, [1, 2]]
    assert [subscriber.queue.poll(), mapped] == [EMPTY, [1, 2]], "EMPTY is not mapped"
    upstream.send(3)
    assert subscriber.queue.poll() == 30, "EMPTY was not the end"


def test_user_code_runs_in_the_thread_that_polls() -> None:
    threads: list[int] = []
    upstream = SharedQueue()
    subscriber = woken(upstream.flow.do_on_next(lambda _: threads.append(get_ident())))
    thread = Thread(target=lambda: upstream.send(1, 2))
    thread.start()
    thread.join(TIMEOUT_S)
    assert threads == []
    assert subscriber.polled() == [1, 2]
    assert threads == [get_ident()] * 2


def test_a_wake_up_allocates_nothing_that_stays() -> None:
    upstream = SharedQueue()
    subscriber = woken(upstream.flow.map(str))
    subscriber.on_next = lambda _: None  # type: ignore[method-assign]  # would keep the signals
    for _ in range(3):
        upstream.wake()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        upstream.wake()
    assert sys.getallocatedblocks() - before < 50


@each_polled_case
@pytest.mark.parametrize("ended", [False, True])
def test_every_such_stage_gives_what_it_gives_when_pushed(case: StageCase, ended: bool) -> None:
    for request in (UNBOUNDED, 0):
        upstream = SharedQueue()
        subscriber = TestSubscriber[Any](request, fusion=Fusion.ANY)
        case.apply(upstream.flow).subscribe(subscriber)
        assert subscriber.fused is Fusion.ASYNC
        upstream.send(*range(9))
        if ended:
            upstream.subscriber.on_complete()
        expected = case.model(list(range(9)))
        for count in range(1, len(expected) + 1) if not request else ():
            subscriber.request(1)
            subscriber.assert_items(*expected[:count])
        if not ended:
            subscriber.assert_items(*expected).assert_not_terminated()
            upstream.subscriber.on_complete()
        if not subscriber.terminated:
            subscriber.request(1)
        subscriber.assert_result(*expected)


def test_several_runs_of_stages_in_a_row_are_polled_through() -> None:
    upstream = SharedQueue()
    made = Flow(Flow(upstream.flow.map(lambda n: n + 1)).filter(lambda n: n % 2)).map(str)
    for _ in range(70):  # more than fits into one loop
        made = made.filter(bool)
    subscriber = woken(made)
    assert subscriber.granted is Fusion.ASYNC
    upstream.send(0, 1, 2)
    assert subscriber.polled() == ["1", "3"]


@pytest.mark.checklist("F42")
def test_is_empty_may_be_false_before_a_poll_that_gives_nothing() -> None:
    upstream = SharedQueue(1, 2)
    subscriber = woken(upstream.flow.filter(lambda _: False))
    assert not subscriber.queue.is_empty()
    assert subscriber.queue.poll() is EMPTY
    assert subscriber.queue.is_empty()


def test_clear_drops_what_waits_and_what_comes_later_is_polled() -> None:
    upstream = SharedQueue(1, 2)
    subscriber = woken(upstream.flow.map(str))
    subscriber.queue.clear()
    assert (upstream.clears, subscriber.queue.poll()) == (1, EMPTY)
    upstream.send(3)
    assert subscriber.polled() == ["3"]


def test_a_subscriber_that_polls_in_on_subscribe_gets_nothing_yet_and_is_woken_later() -> None:
    class Early(Woken):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            self.early = self.queue.poll()

    SharedQueue(1).flow.map(str).subscribe(subscriber := Early())
    assert subscriber.early is EMPTY
    assert subscriber.signals == [EMPTY]
    assert subscriber.polled() == ["1"]


# -- demand


@pytest.mark.checklist("F26", "F40")
def test_requests_go_up_and_only_after_on_subscribe() -> None:
    upstream = SharedQueue()
    subscriber = woken(upstream.flow.map(str), request=5)
    assert upstream.requests == [5]
    subscriber.queue.request(3)
    assert upstream.requests == [5, 3]


@pytest.mark.checklist("F40")
def test_dropped_items_are_requested_again_when_the_queue_is_empty() -> None:
    upstream = SharedQueue()
    subscriber = woken(upstream.flow.filter(lambda n: n % 4 == 3), request=8)
    upstream.send(*range(8))
    assert upstream.requests == [8]
    assert subscriber.polled() == [3, 7]
    assert upstream.requests == [8, 6]
    assert subscriber.polled() == []
    assert upstream.requests == [8, 6]


@pytest.mark.checklist("F40")
def test_many_dropped_items_are_requested_again_before_that() -> None:
    upstream = SharedQueue(*range(1000))
    subscriber = woken(upstream.flow.filter(lambda n: n == 999), request=1000)
    assert subscriber.queue.poll() == 999
    assert len(upstream.requests) > 5
    subscriber.polled()
    assert sum(upstream.requests) == 1000 + 999


@pytest.mark.checklist("F40", "F45")
def test_no_dropped_item_is_requested_again_of_an_unbounded_or_ended_upstream() -> None:
    upstream = SharedQueue(*range(8))
    subscriber = woken(upstream.flow.filter(lambda _: False), request=UNBOUNDED)
    assert subscriber.polled() == []
    assert upstream.requests == [UNBOUNDED]
    upstream = SharedQueue(*range(8))
    subscriber = woken(upstream.flow.filter(lambda _: False), request=8)
    upstream.subscriber.on_complete()
    assert subscriber.polled() == []
    assert upstream.requests == [8]


@pytest.mark.checklist("F40")
def test_a_filter_that_drops_everything_does_not_starve() -> None:
    """Each request is answered at once, within poll: the wake-ups come re-entrantly."""

    class Answering(SharedQueue):
        sent = 0

        def request(self, n: int, /) -> None:
            super().request(n)
            for _ in range(min(n, 100 - self.sent)):
                self.sent += 1
                self.send(self.sent)
            if self.sent == 100:
                self.sent += 1
                self.subscriber.on_complete()

    subscriber = TestSubscriber[int](2, fusion=Fusion.ASYNC)
    Answering().flow.filter(lambda n: n % 50 == 0).subscribe(subscriber)
    subscriber.assert_result(50, 100)


@pytest.mark.parametrize("n", [0, -1])
def test_a_wrong_amount_fails_the_flow(n: int) -> None:
    upstream = SharedQueue(1)
    subscriber = woken(upstream.flow.map(str))
    subscriber.queue.request(n)
    assert "3.9" in str(subscriber.signals[-1])
    assert upstream.cancels == 1
    assert subscriber.queue.poll() is EMPTY
    upstream.wake()
    assert "3.9" in str(subscriber.signals[-1])


# -- the end


@pytest.mark.checklist("F33")
@pytest.mark.parametrize("error", [None, ValueError("identical")])
def test_the_end_comes_at_once_and_what_waits_is_polled_after_it(
    error: BaseException | None,
) -> None:
    upstream = SharedQueue()
    subscriber = woken(upstream.flow.filter(lambda n: n != 2).map(str))
    upstream.send(1, 2, 3)
    if error is None:
        upstream.subscriber.on_complete()
    else:
        upstream.subscriber.on_error(error)
    assert subscriber.signals[-1] is (error or subscriber.signals[-1])
    assert subscriber.signals.count("complete") == (error is None)
    assert subscriber.polled() == ["1", "3"]
    upstream.wake()
    upstream.subscriber.on_complete()
    assert len(subscriber.signals) == 5


@pytest.mark.checklist("F38", "X04")
def test_a_mapper_that_gives_none_fails_the_poll() -> None:
    upstream = SharedQueue(1, 2)
    subscriber = woken(upstream.flow.map(lambda _: None))
    with pytest.raises(NoneItemError, match="map"):
        subscriber.queue.poll()
    assert upstream.cancels == 1
    assert subscriber.queue.poll() is EMPTY
    assert subscriber.queue.is_empty()
    assert subscriber.signals == [EMPTY]


@pytest.mark.checklist("F38", "F46")
@pytest.mark.parametrize("after_the_end", [False, True])
def test_a_function_that_raises_fails_the_poll_with_the_identical_error(
    after_the_end: bool,
) -> None:
    error = ValueError("in the predicate")

    def fail(n: int) -> bool:
        if n == 2:
            raise error
        return True

    upstream = SharedQueue(1, 2, 3)
    subscriber = woken(upstream.flow.skip(0).filter(fail))
    if after_the_end:
        upstream.subscriber.on_complete()
    assert subscriber.queue.poll() == 1
    with pytest.raises(ValueError) as raised:
        subscriber.queue.poll()
    assert raised.value is error
    assert "filter(" in error.__notes__[0]
    assert upstream.cancels == 1
    assert subscriber.queue.poll() is EMPTY


@pytest.mark.checklist("F46")
def test_an_upstream_that_raises_when_polled_is_cancelled_and_no_stage_blamed() -> None:
    error = ValueError("in poll")
    upstream = SharedQueue(1, error, 2)
    subscriber = woken(upstream.flow.map(str))
    assert subscriber.queue.poll() == "1"
    with pytest.raises(ValueError) as raised:
        subscriber.queue.poll()
    assert raised.value is error
    assert not hasattr(error, "__notes__")
    assert upstream.cancels == 1


def test_stop_iteration_out_of_a_function_is_an_error() -> None:
    def fail(_: int) -> int:
        raise StopIteration

    subscriber = woken(SharedQueue(1).flow.map(fail))
    with pytest.raises(RuntimeError) as raised:
        subscriber.queue.poll()
    assert isinstance(raised.value.__cause__, StopIteration)


def test_a_failed_poll_reaches_a_subscriber_as_the_one_terminal() -> None:
    error = ValueError()
    upstream = SharedQueue()
    subscriber = TestSubscriber[str](fusion=Fusion.ASYNC)

    def fail(n: int) -> str:
        if n == 2:
            raise error
        return str(n)

    upstream.flow.map(fail).subscribe(subscriber)
    upstream.send(1, 2, 3)
    subscriber.assert_failure(error, "1")
    assert upstream.cancels >= 1


@pytest.fixture
def drops() -> Any:
    with recorded_drops() as recorded:
        yield recorded


def test_a_subscriber_that_raises_when_woken_is_cancelled(drops: Drops) -> None:
    error = ValueError("in on_next")

    class Raising(Woken):
        def on_next(self, item: Any, /) -> None:
            raise error

    upstream = SharedQueue(1)
    upstream.flow.map(str).subscribe(subscriber := Raising())
    assert upstream.cancels == 1
    assert drops.take_errors() == [error]
    assert subscriber.queue.poll() is EMPTY


def test_a_fatal_error_when_woken_propagates() -> None:
    class Raising(Woken):
        def on_next(self, item: Any, /) -> None:
            raise KeyboardInterrupt

    upstream = SharedQueue(1)
    with pytest.raises(KeyboardInterrupt):
        upstream.flow.map(str).subscribe(Raising())
    assert upstream.cancels == 1


@pytest.mark.parametrize("when", ["before the end", "after the end"])
def test_cancel_goes_up_and_nothing_is_polled_after_it(when: str) -> None:
    upstream = SharedQueue(1, 2)
    subscriber = woken(upstream.flow.map(str))
    if when == "after the end":
        upstream.subscriber.on_complete()
    subscriber.signals.clear()
    subscriber.queue.cancel()
    subscriber.queue.cancel()
    assert upstream.cancels == 1
    assert subscriber.queue.poll() is EMPTY
    upstream.wake()
    assert subscriber.signals == []


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_the_subscriber_is_let_go_of(end: str) -> None:
    """§3.13"""
    upstream = SharedQueue()
    subscriber = woken(upstream.flow.map(str))
    if end == "cancel":
        subscriber.queue.cancel()
    else:
        upstream.subscriber.on_complete()
    gone = weakref.ref(subscriber)
    del subscriber
    gc.collect()
    assert gone() is None


def test_an_error_that_the_upstream_sends_after_the_end_is_dropped(drops: Drops) -> None:
    upstream = SharedQueue()
    subscriber = woken(upstream.flow.map(str))
    upstream.subscriber.on_complete()
    upstream.subscriber.on_error(error := ValueError())
    assert subscriber.signals[-1] == "complete"
    assert drops.take_errors() == [error]
    assert drops.take_items() == []


@pytest.mark.checklist("F59")
def test_after_a_refusal_items_are_pushed_conditionally() -> None:
    upstream = SharedQueue(grants=Fusion.NONE)
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2, 2, fusion=Fusion.ANY)
    upstream.flow.map(lambda n: n + 1).subscribe(subscriber)
    assert subscriber.fused is Fusion.NONE
    for n in range(3):
        upstream.subscriber.on_next(n)
    subscriber.assert_items(1, 3)
    assert upstream.requests == [2, 1]


# -- threads


@pytest.mark.checklist("F26", "F33")
@pytest.mark.parametrize("count", [1, 2, 1000])
def test_no_wake_up_is_lost_between_a_producer_and_a_requester(count: int) -> None:
    for _ in range(200 if count < 1000 else 2):
        upstream = SharedQueue()
        subscriber = TestSubscriber[int](0, fusion=Fusion.ANY)
        upstream.flow.filter(lambda n: n % 2 == 0).map(lambda n: n // 2).subscribe(subscriber)

        def produce(upstream: SharedQueue = upstream) -> None:
            upstream.send(*range(2 * count))
            upstream.subscriber.on_complete()

        def request(subscriber: TestSubscriber[int] = subscriber) -> None:
            for _ in range(count):
                subscriber.request(1)

        race(produce, request)
        if not subscriber.terminated:
            subscriber.request(1)
        subscriber.assert_result(*range(count))


@pytest.mark.slow
@pytest.mark.checklist("F26")
def test_cancel_races_with_wake_ups_polls_and_the_end(drops: Drops) -> None:
    for _ in range(300):
        upstream = SharedQueue()
        subscriber = TestSubscriber[str](2, fusion=Fusion.ANY)
        upstream.flow.map(str).subscribe(subscriber)

        def produce(upstream: SharedQueue = upstream) -> None:
            upstream.send(0, 1, 2)
            upstream.subscriber.on_complete()

        race(produce, subscriber.cancel, partial(subscriber.request, 1))
        assert subscriber.items == ["0", "1", "2"][: len(subscriber.items)]
        subscriber.assert_rules_kept()


@pytest.mark.checklist("F26")
def test_a_wrong_amount_never_overlaps_a_wake_up() -> None:
    for _ in range(200):
        upstream = SharedQueue()
        subscriber = TestSubscriber[str](fusion=Fusion.ANY)
        upstream.flow.map(str).subscribe(subscriber)
        race(
            partial(upstream.send, 0, 1, 2),
            partial(subscriber.subscription.request, 0),
        )
        subscriber.await_terminal()
        assert isinstance(subscriber.error, ValueError)
        subscriber.assert_rules_kept()


def test_a_synchronous_flow_is_not_touched_by_all_this() -> None:
    assert woken(Flow(flow.range(3)).map(str), Fusion.ASYNC).granted is Fusion.NONE
    assert woken(Flow(flow.range(3)).map(str), Fusion.ANY).granted is Fusion.SYNC


@pytest.mark.parametrize(
    "made",
    [
        lambda f: f.buffer_with_count(2),
        lambda f: f.sort(),
        lambda f: f.take(5),
        lambda f: f.on_error_return(0),
        lambda f: f.to_list(),
    ],
)
def test_a_queue_that_was_polled_to_its_end_is_empty(
    made: Callable[[Flow[Any]], Flow[Any]],
) -> None:
    subscriber = woken(made(SharedQueue(1, 2, 3, grants=Fusion.SYNC).flow), Fusion.SYNC)
    assert subscriber.granted is Fusion.SYNC
    assert not subscriber.queue.is_empty()
    assert subscriber.polled()
    assert subscriber.queue.is_empty(), "who asks would wait for ever"
