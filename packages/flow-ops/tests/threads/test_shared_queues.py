"""One queue where two boundaries meet: observe_on as the consumer of one, and as its owner."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module

import pytest

import flow_core as flow
from flow_core import EMPTY, Flow, Fusion, ProtocolViolationError, QueueSubscription, hooks
from flow_core.errors import RejectedExecutionError
from flow_core.protocols import CoreSubscriber
from flow_ops import observe_on
from flow_testing import TestPublisher, TestSubscriber, assert_result, race

ACROSS = Fusion.ANY | Fusion.THREAD_BOUNDARY
MODES = [Fusion(mode) for mode in range(8)]
WAIT_S = 20


class SharedQueue(QueueSubscription):
    """A publisher that grants ASYNC: the test fills its queue, which the subscriber polls."""

    def __init__(self, *items, grants=Fusion.ASYNC):
        self.grants = grants
        self.items = deque(items)
        self.asked = []
        self.requests = []
        self.cancels = self.clears = 0
        self.poll_threads = set()
        self.subscriber = None

    @property
    def flow(self):
        return Flow(self)

    def subscribe(self, subscriber, /):
        self.subscriber = subscriber
        subscriber.on_subscribe(self)
        if self.items:
            subscriber.on_next(EMPTY)

    def send(self, *items):
        for item in items:
            self.items.append(item)
            self.subscriber.on_next(EMPTY)

    def request_fusion(self, mode, /):
        self.asked.append(mode)
        return mode & self.grants

    def request(self, n, /):
        self.requests.append(n)

    def cancel(self):
        self.cancels += 1

    def poll(self):
        self.poll_threads.add(threading.get_ident())
        try:
            item = self.items.popleft()
        except IndexError:
            return EMPTY
        if isinstance(item, BaseException):
            raise item
        return item

    def is_empty(self):
        return not self.items

    def clear(self):
        self.clears += 1
        self.items.clear()


class Woken(CoreSubscriber):
    """Asks for a mode, writes signals and their threads down, and polls when the test says so."""

    def __init__(self, mode=Fusion.ASYNC, request=0):
        self.mode = mode
        self.request = request
        self.granted = None
        self.signals = []
        self.threads = set()
        self.ended = threading.Event()
        self.queue = None

    def on_subscribe(self, subscription, /):
        self.queue = subscription
        self.granted = subscription.request_fusion(self.mode)
        if self.request:
            subscription.request(self.request)

    def _note(self, signal):
        self.signals.append(signal)
        self.threads.add(threading.get_ident())

    def on_next(self, item, /):
        self._note(item)

    def on_error(self, error, /):
        self._note(error)
        self.ended.set()

    def on_complete(self):
        self._note("complete")
        self.ended.set()

    def polled(self):
        items = []
        while (item := self.queue.poll()) is not EMPTY:
            items.append(item)
        return items


@pytest.fixture
def dropped_items():
    items = []
    with hooks.dropped_items.scoped("here", items.append):
        yield items


@pytest.fixture
def queues(monkeypatch):
    """The queues that observe_on makes."""
    made = []

    def spy(*args):
        made.append(deque(*args))
        return made[-1]

    monkeypatch.setattr(import_module("flow_ops.threads.observe_on"), "deque", spy)
    return made


# -- the queue of the upstream


@pytest.mark.checklist("F43", "F45", "F56")
def test_an_asynchronous_upstream_is_requested_and_polled_when_it_wakes(place, record):
    upstream = SharedQueue()
    upstream.flow.pipe(observe_on(place.executor, prefetch=4)).subscribe(seen := record())
    assert upstream.asked == [ACROSS]
    assert upstream.requests == [4]
    upstream.send(1, 2)
    seen.wait_items(2)
    upstream.send(3)
    upstream.subscriber.on_complete()
    assert seen.wait().items == [1, 2, 3]


@pytest.mark.checklist("F43", "F45")
def test_consumed_items_of_a_shared_queue_are_requested_again(steps, record):
    upstream = SharedQueue(*range(7))
    seen = record(request=3)
    upstream.flow.pipe(observe_on(steps, prefetch=4)).subscribe(seen)
    steps.run()
    assert (seen.items, upstream.requests) == ([0, 1, 2], [4, 3])
    seen.subscription.request(2)
    steps.run()
    assert (seen.items, upstream.requests) == ([0, 1, 2, 3, 4], [4, 3])
    seen.subscription.request(1)
    steps.run()
    assert (seen.items, upstream.requests) == ([0, 1, 2, 3, 4, 5], [4, 3, 3])


@pytest.mark.checklist("F43")
def test_a_shared_queue_is_polled_on_the_executor(elsewhere, record):
    upstream = SharedQueue(1, 2)
    upstream.flow.pipe(observe_on(elsewhere.executor)).subscribe(
        seen := record(here=elsewhere.is_here)
    )
    upstream.subscriber.on_complete()
    assert seen.wait().items == [1, 2]
    assert threading.get_ident() not in upstream.poll_threads


@pytest.mark.checklist("F26")
def test_the_item_of_a_wake_up_has_no_meaning(steps, record, dropped):
    upstream = SharedQueue()
    upstream.flow.pipe(observe_on(steps)).subscribe(seen := record())
    upstream.items += [1, 2]
    upstream.subscriber.on_next("ignored")
    upstream.subscriber.on_next("ignored")
    steps.run()
    assert seen.items == [1, 2]
    assert dropped.items == []


@pytest.mark.checklist("F43", "F33")
@pytest.mark.parametrize("delay_error", [True, False])
@pytest.mark.parametrize("error", [None, ValueError("identical")])
@pytest.mark.parametrize("grants", [Fusion.NONE, Fusion.ASYNC])
def test_items_that_wait_when_the_upstream_ends_come_first(
    steps, record, grants, error, delay_error, dropped_items
):
    upstream = SharedQueue(grants=grants)
    upstream.flow.pipe(observe_on(steps, delay_error=delay_error)).subscribe(seen := record())
    for n in (1, 2):
        if grants:
            upstream.send(n)
        else:
            upstream.subscriber.on_next(n)
    if error is None:
        upstream.subscriber.on_complete()
    else:
        upstream.subscriber.on_error(error)
    steps.run()
    overtaken = error is not None and not delay_error
    assert seen.items == ([] if overtaken else [1, 2])
    assert seen.error is error
    if grants:
        assert upstream.clears == overtaken
        assert not upstream.items
    else:
        assert dropped_items == ([1, 2] if overtaken else [])
    assert upstream.cancels == 0


@pytest.mark.checklist("F43", "O17")
@pytest.mark.parametrize("count", [0, 2])
def test_the_end_behind_a_shared_queue_needs_no_demand(place, record, count):
    upstream = SharedQueue(*range(count))
    seen = record(request=count)
    upstream.flow.pipe(observe_on(place.executor)).subscribe(seen)
    upstream.subscriber.on_complete()
    assert seen.wait().items == list(range(count))


@pytest.mark.checklist("F46")
@pytest.mark.parametrize("request_", [2, flow.UNBOUNDED])
def test_a_shared_queue_that_raises_fails_the_flow_and_is_released(place, record, request_):
    error = ValueError("in poll")
    upstream = SharedQueue(1, error, 2)
    upstream.flow.pipe(observe_on(place.executor)).subscribe(seen := record(request=request_))
    assert seen.wait().items == [1]
    assert seen.error is error
    assert (upstream.cancels, upstream.clears) == (1, 1)


@pytest.mark.checklist("F46")
def test_a_pool_is_not_kept_busy_by_a_flow_whose_poll_raised(record):
    upstream = SharedQueue(ValueError("in poll"))
    with ThreadPoolExecutor(1) as pool:
        upstream.flow.pipe(observe_on(pool)).subscribe(seen := record())
        seen.wait()
        assert pool.submit(lambda: "free").result(WAIT_S) == "free"


@pytest.mark.checklist("F46")
def test_a_fatal_poll_of_a_shared_queue_propagates(steps, record):
    upstream = SharedQueue(KeyboardInterrupt())
    upstream.flow.pipe(observe_on(steps)).subscribe(seen := record())
    with pytest.raises(KeyboardInterrupt):
        steps.run()
    (told,) = seen.ends
    assert isinstance(told.__cause__, KeyboardInterrupt)
    assert (seen.items, upstream.cancels, upstream.clears) == ([], 1, 1)


@pytest.mark.checklist("F12", "F14", "F43")
def test_items_a_conditional_downstream_drops_are_consumed_but_not_delivered(steps, record_even):
    upstream = SharedQueue(1, 3, 2, 5, 4, 6)
    seen = record_even(request=2)
    upstream.flow.pipe(observe_on(steps, prefetch=4)).subscribe(seen)
    steps.run()
    assert seen.items == [2, 4]
    assert list(upstream.items) == [6]
    assert upstream.requests == [4, 3]


@pytest.mark.checklist("F59")
def test_a_filter_that_may_not_move_is_not_fused_and_still_asked_conditionally(steps, record_even):
    """NONE: plain signals upstream, `try_on_next` downstream, and nothing re-requested."""
    publisher = TestPublisher(conditional=True)
    seen = record_even(request=2)
    Flow(publisher).filter(lambda n: n > 2).pipe(observe_on(steps, prefetch=4)).subscribe(seen)
    publisher.next(1, 2, 3, 4)
    publisher.assert_requests(4)
    publisher.next(5, 6)
    steps.run()
    assert seen.items == [4, 6]
    publisher.assert_requests(4, 3)


@pytest.mark.checklist("F42")
@pytest.mark.parametrize("request_", [1, flow.UNBOUNDED])
def test_a_queue_that_says_it_is_not_empty_may_still_give_nothing(place, record, request_):
    class Hoping(SharedQueue):
        def is_empty(self):
            return False

    for upstream in (Hoping(grants=Fusion.ASYNC), Hoping(grants=Fusion.SYNC)):
        seen = record(request=0)
        upstream.flow.pipe(observe_on(place.executor)).subscribe(seen)
        if upstream.grants is Fusion.ASYNC:
            upstream.subscriber.on_complete()
        place.settle()
        seen.subscription.request(request_)
        assert seen.wait().items == []


def test_cancel_stops_polling_and_clears(place, record):
    upstream = SharedQueue(1, 2, 3)
    upstream.flow.pipe(observe_on(place.executor)).subscribe(seen := record(request=1))
    seen.wait_items(1)
    place.settle()
    seen.subscription.cancel()
    place.settle()
    assert (upstream.cancels, upstream.clears) == (1, 1)
    upstream.subscriber.on_next(EMPTY)
    upstream.subscriber.on_complete()
    place.settle()
    assert (seen.items, seen.ends) == ([1], [])


# -- the queue for the downstream


@pytest.mark.checklist("F23", "F56")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("upstream", [Fusion.NONE, Fusion.SYNC, Fusion.ASYNC])
def test_async_is_granted_when_it_is_asked_for(steps, mode, upstream):
    made = SharedQueue(grants=upstream).flow.pipe(observe_on(steps))
    made.subscribe(seen := Woken(mode))
    assert seen.granted is mode & Fusion.ASYNC


@pytest.mark.checklist("F24", "F47")
@pytest.mark.parametrize("mode", MODES)
def test_the_downstream_asks_once(steps, mode):
    class Twice(Woken):
        def on_subscribe(self, subscription, /):
            super().on_subscribe(subscription)
            with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
                subscription.request_fusion(Fusion.ASYNC)

    flow.range(3).pipe(observe_on(steps)).subscribe(seen := Twice(mode))
    with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
        seen.queue.request_fusion(Fusion.ASYNC)


@pytest.mark.checklist("F24")
def test_the_downstream_asks_before_it_requests_and_in_on_subscribe(steps):
    class Late(CoreSubscriber):
        def on_subscribe(self, subscription, /):
            self.queue = subscription
            subscription.request(1)
            with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
                subscription.request_fusion(Fusion.ASYNC)

        on_next = on_error = print

        def on_complete(self):
            pass

    flow.never().pipe(observe_on(steps)).subscribe(late := Late())
    with pytest.raises(ProtocolViolationError, match="request_fusion comes once"):
        late.queue.request_fusion(Fusion.ASYNC)


@pytest.mark.checklist("F26", "F48")
def test_wake_ups_and_the_end_come_on_the_executor_and_items_are_polled(elsewhere, source):
    source.flow.pipe(observe_on(elsewhere.executor)).subscribe(seen := Woken())
    source.send(1, 2)
    elsewhere.settle()
    assert set(seen.signals) == {EMPTY}
    assert seen.polled() == [1, 2]
    source.send(3)
    source.complete()
    assert seen.ended.wait(WAIT_S)
    assert seen.signals[-1] == "complete"
    assert threading.get_ident() not in seen.threads
    assert seen.polled() == [3], "what waits at the end can be polled after it (F33)"


@pytest.mark.checklist("F45", "F48")
@pytest.mark.parametrize("grants", [Fusion.NONE, Fusion.ASYNC])
def test_a_subscriber_that_polls_replenishes_the_upstream(steps, grants):
    upstream = SharedQueue(grants=grants)
    upstream.flow.pipe(observe_on(steps, prefetch=4)).subscribe(seen := Woken(request=2))
    assert upstream.requests == [4], "the downstream's demand stays its own affair (O04)"
    for n in range(4):
        if grants:
            upstream.send(n)
        else:
            upstream.subscriber.on_next(n)
    steps.run()
    assert [seen.queue.poll() for _ in range(2)] == [0, 1]
    assert upstream.requests == [4]
    assert [seen.queue.poll() for _ in range(2)] == [2, 3]
    assert upstream.requests == [4, 3]
    assert seen.queue.is_empty()
    assert seen.queue.poll() is EMPTY


@pytest.mark.checklist("F48", "F33")
def test_both_sides_fused_over_a_synchronous_source(elsewhere, fused):
    """Superseded in the article: a boundary can fuse its front and its back at once."""
    upstream = fused(1, 2, 3)
    upstream.flow.pipe(observe_on(elsewhere.executor)).subscribe(seen := Woken())
    assert seen.ended.wait(WAIT_S)
    assert seen.signals == [EMPTY, "complete"]
    assert not seen.queue.is_empty()
    assert seen.polled() == [1, 2, 3]
    assert seen.queue.is_empty()
    assert upstream.requests == []
    assert upstream.poll_threads == {threading.get_ident()}


@pytest.mark.checklist("F48", "F46")
@pytest.mark.parametrize("grants", [Fusion.SYNC, Fusion.ASYNC])
def test_a_poll_that_raises_through_two_fused_boundaries_fails_the_flow(place, record, grants):
    error = ValueError("in poll")
    upstream = SharedQueue(1, error, 2, grants=grants)
    two = upstream.flow.pipe(observe_on(place.executor)).pipe(observe_on(place.executor))
    two.subscribe(seen := record())
    assert seen.wait().items == [1]
    assert seen.error is error
    assert upstream.cancels >= 1
    assert not upstream.items


@pytest.mark.checklist("F48", "F57")
@pytest.mark.parametrize(
    ("source", "expected"), [(flow.range(500), 0), (flow.range(500).hide(), 1)]
)
@pytest.mark.parametrize("hops", [1, 2, 5])
def test_any_number_of_boundaries_in_a_row_share_one_queue(
    place, record, queues, source, expected, hops
):
    made = source
    for _ in range(hops):
        made = made.pipe(observe_on(place.executor, prefetch=16))
    made.subscribe(seen := record(here=place.is_here))
    assert seen.wait().items == list(range(500))
    assert len(queues) == expected


@pytest.mark.checklist("F57", "F58")
def test_with_a_shared_queue_no_other_queue_is_made(place, record, queues):
    upstream = SharedQueue(1, 2, 3)
    upstream.flow.pipe(observe_on(place.executor)).subscribe(seen := record())
    upstream.subscriber.on_complete()
    assert seen.wait().items == [1, 2, 3]
    assert queues == []


@pytest.mark.checklist("F39")
def test_user_code_between_two_boundaries_stays_on_the_first_ones_thread(record):
    """A stage that calls the user's functions refuses to be polled across the second boundary."""
    threads = {"first": set(), "second": set(), "third": set()}

    def note(where):
        return lambda _: threads[where].add(threading.current_thread().name)

    with ThreadPoolExecutor(1, "one") as one, ThreadPoolExecutor(1, "two") as two:
        made = (
            flow.range(50)
            .do_on_next(note("first"))
            .pipe(observe_on(one, prefetch=64))
            .do_on_next(note("second"))
            .pipe(observe_on(two, prefetch=64))
            .do_on_next(note("third"))
        )
        made.subscribe(seen := record())
        assert seen.wait().items == list(range(50))
    assert threads == {
        "first": {threading.current_thread().name},
        "second": {"one_0"},
        "third": {"two_0"},
    }


@pytest.mark.parametrize("delay_error", [True, False])
def test_an_error_reaches_a_subscriber_that_polls(steps, source, delay_error, dropped_items):
    error = ValueError("identical")
    source.flow.pipe(observe_on(steps, delay_error=delay_error)).subscribe(seen := Woken())
    source.send(1, 2)
    source.fail(error)
    steps.run()
    assert seen.signals[-1] is error
    assert seen.polled() == ([1, 2] if delay_error else [])
    assert dropped_items == ([] if delay_error else [1, 2])


@pytest.mark.parametrize("grants", [Fusion.NONE, Fusion.SYNC, Fusion.ASYNC])
@pytest.mark.parametrize("when", ["before the end", "after the end"])
def test_a_cancel_by_a_polling_subscriber_leaves_nothing_to_poll(
    steps, grants, when, dropped_items
):
    class Cancelling(SharedQueue):
        def cancel(self):
            super().cancel()
            self.items.clear()

    upstream = Cancelling(grants=grants)
    upstream.flow.pipe(observe_on(steps)).subscribe(seen := Woken())
    if grants:
        upstream.items += [1, 2]
        upstream.subscriber.on_next(EMPTY)
    else:
        upstream.subscriber.on_next(1)
        upstream.subscriber.on_next(2)
    if when == "after the end":
        upstream.subscriber.on_complete()
        steps.run()
        assert seen.signals[-1] == "complete"
    seen.queue.cancel()
    seen.queue.cancel()
    steps.run()
    assert seen.queue.poll() is EMPTY
    assert seen.queue.is_empty() or grants
    assert not upstream.items
    assert [n for n in dropped_items if n is not EMPTY] == ([] if grants else [1, 2])


@pytest.mark.parametrize("grants", [Fusion.NONE, Fusion.ASYNC])
def test_clear_drops_the_waiting_items_and_the_flow_continues(steps, grants, dropped_items):
    upstream = SharedQueue(grants=grants)
    upstream.flow.pipe(observe_on(steps)).subscribe(seen := Woken())
    add = upstream.send if grants else upstream.subscriber.on_next
    add(1)
    seen.queue.clear()
    assert seen.queue.poll() is EMPTY
    add(2)
    assert seen.polled() == [2]
    assert dropped_items == ([] if grants else [1])


@pytest.mark.checklist("O12")
def test_a_bad_request_by_a_polling_subscriber_is_answered_on_the_executor(elsewhere, source):
    source.flow.pipe(observe_on(elsewhere.executor)).subscribe(seen := Woken())
    source.send(1)
    seen.queue.request(-1)
    assert seen.ended.wait(WAIT_S)
    assert "3.9" in str(seen.signals[-1])
    assert threading.get_ident() not in seen.threads
    assert source.cancels == 1
    assert seen.queue.poll() is EMPTY


@pytest.mark.checklist("O30")
def test_an_executor_that_refuses_to_wake_fails_the_flow(steps, source, dropped_items):
    source.flow.pipe(observe_on(steps)).subscribe(seen := Woken())
    steps.refuses = RuntimeError("closed")
    source.send(1)
    assert isinstance(seen.signals[-1], RejectedExecutionError)
    assert source.cancels == 1
    assert dropped_items == [1]


@pytest.mark.checklist("O32")
def test_a_subscriber_that_raises_when_woken_is_cancelled(steps, source, dropped):
    error = ValueError("in on_next")

    class Raising(Woken):
        def on_next(self, item, /):
            raise error

    source.flow.pipe(observe_on(steps)).subscribe(Raising())
    source.send(1)
    steps.run()
    assert source.cancels == 1
    assert (dropped.errors, dropped.items) == ([error], [1])


def test_an_upstream_that_raises_when_it_is_replenished_fails_the_poll(steps, dropped_items):
    error = ValueError("in request")

    class Broken(SharedQueue):
        def request(self, n, /):
            super().request(n)
            if n == 3:
                raise error

    upstream = Broken(grants=Fusion.NONE)
    upstream.flow.pipe(observe_on(steps, prefetch=4)).subscribe(seen := Woken())
    for n in range(3):
        upstream.subscriber.on_next(n)
    assert [seen.queue.poll(), seen.queue.poll()] == [0, 1]
    with pytest.raises(ValueError, match="in request"):
        seen.queue.poll()
    assert dropped_items == [2]


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_a_subscriber_that_polled_is_released(steps, source, end):
    """§3.13"""
    source.flow.pipe(observe_on(steps)).subscribe(seen := Woken())
    source.send(1)
    if end == "complete":
        source.complete()
    else:
        seen.queue.cancel()
    steps.run()
    gone = weakref.ref(seen)
    del seen
    gc.collect()
    assert gone() is None


@pytest.mark.checklist("F35", "F36")
def test_the_subscription_of_the_upstream_is_not_forwarded_and_hide_shows_no_queue(steps):
    class Looking(CoreSubscriber):
        def on_subscribe(self, subscription, /):
            self.subscription = subscription

        on_next = on_error = print

        def on_complete(self):
            pass

    upstream = SharedQueue()
    made = upstream.flow.pipe(observe_on(steps))
    made.subscribe(open_ := Looking())
    assert open_.subscription is not upstream
    made.hide().subscribe(hidden := Looking())
    assert not isinstance(hidden.subscription, QueueSubscription)


# -- everything together


@pytest.mark.checklist("F35", "F48", "F52")
@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("executor", ["inline", "pool"])
def test_every_form_of_consuming_gives_the_same(pool, executor, hops):
    on = pool if executor == "pool" else lambda task: task()

    def make(source=lambda: flow.range(7)):
        made = source().map(lambda n: n + 1)
        for _ in range(hops):
            made = made.pipe(observe_on(on, prefetch=2))
        return made

    assert_result(make, [1, 2, 3, 4, 5, 6, 7])
    error = ValueError("identical")
    assert_result(lambda: make(lambda: flow.error(error)), [], error)


@pytest.mark.checklist("F26", "F48")
@pytest.mark.parametrize("prefetch", [1, 3, 64])
@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.ANY])
def test_no_wake_up_is_lost_through_three_hops(paced, prefetch, fusion):
    count = 3000
    source = paced(count)
    with ThreadPoolExecutor(3) as pool:
        made = source.flow
        for _ in range(3):
            made = made.pipe(observe_on(pool, prefetch=prefetch))
        made.subscribe(seen := TestSubscriber(0, fusion=fusion))

        def request():
            for n in range(0, count, 5):
                seen.request(5)
                seen.await_items(n)

        race(source.run, request, timeout_s=60)
        seen.await_terminal(WAIT_S).assert_result(*range(count))


@pytest.mark.checklist("F48", "O22")
@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.ANY])
def test_cancelling_while_items_flow_through_two_hops(fusion):
    for _ in range(100):
        with ThreadPoolExecutor(2) as pool:
            source = flow.range(64).hide()
            made = source.pipe(observe_on(pool, prefetch=4)).pipe(observe_on(pool, prefetch=4))
            seen = TestSubscriber(fusion=fusion)
            race(partial(made.subscribe, seen), seen.cancel)
        assert seen.items == list(range(len(seen.items)))
        seen.assert_rules_kept()
