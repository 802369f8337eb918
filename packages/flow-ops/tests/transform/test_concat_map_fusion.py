"""The fusion of `concat_map` with its upstream, and what it says of itself."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

import flow_core as flow
from flow_core.protocols import Fusion, IterableSource, QueueSubscription
from flow_core.structure import source_of
from flow_ops import concat_map, observe_on
from flow_testing import TestSubscriber

ASKED = Fusion.ANY | Fusion.THREAD_BOUNDARY


@pytest.mark.checklist("F21", "F24", "F25", "F56", "F60")
def test_an_upstream_that_grants_sync_is_polled_and_never_requested(fused):
    upstream = fused(1, 2, 3)
    seen = TestSubscriber(0)
    upstream.flow.pipe(concat_map(flow.just)).subscribe(seen)
    assert upstream.asked == [ASKED]
    seen.request(2)
    seen.assert_items(1, 2).assert_not_terminated()
    assert upstream.items == [3]
    seen.request(1)
    seen.assert_result(1, 2, 3)
    assert upstream.requests == []
    assert upstream.cancels == 0


@pytest.mark.checklist("F25", "F46")
@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_that_poll_raises_fails_the_flow(fused, delay_error):
    failure = ValueError("polled")
    upstream = fused(1, failure, 3)
    seen = TestSubscriber()
    upstream.flow.pipe(concat_map(flow.just, delay_error=delay_error)).subscribe(seen)
    seen.assert_failure(failure, 1)
    assert upstream.cancels == 1
    assert upstream.clears >= 1


def test_a_polled_upstream_is_cancelled_and_cleared(fused):
    upstream = fused(1, 2, 3)
    seen = TestSubscriber(1)
    upstream.flow.pipe(concat_map(flow.just)).subscribe(seen)
    seen.cancel()
    assert upstream.cancels == 1
    assert upstream.items == []
    seen.assert_items(1).assert_not_terminated()


class Shared(QueueSubscription):
    """A publisher that grants ASYNC: its queue is shared."""

    def __init__(self, grants=Fusion.ASYNC):
        self.queue = deque()
        self.grants = grants
        self.asked = []
        self.requests = []
        self.cancels = 0

    @property
    def flow(self):
        return flow.Flow(self)

    def subscribe(self, subscriber):
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request_fusion(self, mode, /):
        self.asked.append(mode)
        return mode & self.grants

    def request(self, n, /):
        self.requests.append(n)

    def cancel(self):
        self.cancels += 1

    def poll(self):
        return self.queue.popleft() if self.queue else flow.EMPTY

    def is_empty(self):
        return not self.queue

    def clear(self):
        self.queue.clear()

    def send(self, *items):
        self.queue.extend(items)
        self.subscriber.on_next(flow.EMPTY)


@pytest.mark.checklist("F26", "F31", "F58", "F61")
def test_an_upstream_that_grants_async_is_polled_when_it_wakes():
    upstream = Shared()
    seen = TestSubscriber(3)
    upstream.flow.pipe(concat_map(flow.just, prefetch=4)).subscribe(seen)
    assert upstream.asked == [ASKED]
    assert upstream.requests == [4]
    upstream.send("a", "b")
    seen.assert_items("a", "b")
    upstream.send("c", "d")
    seen.assert_items("a", "b", "c")
    assert upstream.requests == [4, 3]
    assert list(upstream.queue) == ["d"]
    upstream.subscriber.on_complete()
    seen.assert_not_terminated().request(1)
    seen.assert_result("a", "b", "c", "d")
    assert upstream.cancels == 0


@pytest.mark.checklist("F26", "F33")
def test_an_error_of_a_shared_queue_comes_after_what_it_holds():
    upstream, failure = Shared(), ValueError("no")
    seen = TestSubscriber(1)
    upstream.flow.pipe(concat_map(flow.just)).subscribe(seen)
    upstream.send("a", "b")
    upstream.subscriber.on_error(failure)
    seen.assert_items("a").assert_not_terminated().request(1)
    seen.assert_failure(failure, "a", "b")


def test_a_shared_queue_is_cleared_when_the_flow_is_left():
    upstream = Shared()
    seen = TestSubscriber(1)
    upstream.flow.pipe(concat_map(flow.just)).subscribe(seen)
    upstream.send("a", "b")
    seen.cancel()
    assert not upstream.queue
    assert upstream.cancels == 1


@pytest.mark.checklist("F59")
def test_an_upstream_that_refuses_is_requested():
    upstream = Shared(Fusion.NONE)
    seen = TestSubscriber()
    upstream.flow.pipe(concat_map(flow.just, prefetch=2)).subscribe(seen)
    assert upstream.requests == [2]
    upstream.subscriber.on_next(1)
    upstream.subscriber.on_complete()
    seen.assert_result(1)


@pytest.mark.checklist("F39")
def test_user_code_of_an_asynchronous_upstream_keeps_its_thread():
    """Inner flows end on a separate thread; the upstream's map does not move there."""
    threads = set()
    with (
        ThreadPoolExecutor(1) as outer,
        ThreadPoolExecutor(1) as inner,
    ):
        home = outer.submit(threading.get_ident).result()
        seen = TestSubscriber()
        flow.range(50).pipe(observe_on(outer)).map(
            lambda n: threads.add(threading.get_ident()) or n
        ).pipe(concat_map(lambda n: flow.just(n).pipe(observe_on(inner)), prefetch=2)).subscribe(
            seen
        )
        seen.await_terminal().assert_result(*range(50))
    assert threads == {home}


def test_asynchronous_inner_flows_keep_their_thread():
    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(threading.get_ident).result()
        seen = TestSubscriber()
        flow.range(5).pipe(concat_map(lambda n: flow.just(n).pipe(observe_on(pool)))).subscribe(
            seen
        )
        seen.await_terminal().assert_result(*range(5))
        assert seen.threads == {worker}


@pytest.mark.checklist("F06", "F55")
@pytest.mark.parametrize("make", [flow.just, lambda n: flow.from_callable(lambda: n), flow.range])
def test_inner_flows_of_a_known_source_are_not_subscribed_to(make, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("subscribed")

    seen = TestSubscriber()
    made = flow.range(1, 4).pipe(concat_map(make))
    source = source_of(made)
    monkeypatch.setattr(flow.Flow, "subscribe", refused)
    source.subscribe(seen)
    assert seen.assert_rules_kept().completed
    assert seen.items in ([1, 2, 3], [0, 0, 1, 0, 1, 2])


@pytest.mark.checklist("F35", "F36")
def test_the_subscription_is_its_own():
    for outer in (flow.range(3), flow.range(3).hide()):
        seen = TestSubscriber(0, fusion=Fusion.ANY)
        outer.pipe(concat_map(flow.just)).subscribe(seen)
        assert not isinstance(seen.subscription, QueueSubscription)


def test_a_synchronous_upstream_makes_a_source_that_can_be_iterated():
    assert isinstance(source_of(flow.range(3).pipe(concat_map(flow.just))), IterableSource)
    hidden = flow.range(3).hide().pipe(concat_map(flow.just))
    assert not isinstance(source_of(hidden), IterableSource)


@pytest.mark.checklist("F12", "F14")
def test_items_that_a_filter_drops_cost_no_demand():
    for inner in (flow.range, lambda n: flow.range(n).hide()):
        seen = TestSubscriber(3)
        flow.range(6).pipe(concat_map(inner)).filter(lambda n: n > 1).subscribe(seen)
        seen.assert_items(2, 2, 3).assert_not_terminated()


def test_it_is_registered_with_the_fusion_that_it_requests():
    from flow_core.plugins import Backpressure
    from flow_ops import _plugin

    spec = {spec.name: spec for spec in _plugin.flow_operators()}["concat_map"]
    assert spec.load() is concat_map
    assert spec.asks == ASKED
    assert spec.answers == Fusion.NONE
    assert spec.backpressure is Backpressure.FULL
