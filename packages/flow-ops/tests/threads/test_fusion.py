"""observe_on and queue fusion with its upstream."""

from __future__ import annotations

import threading

import pytest

import flow_core as flow
from flow_core import Fusion
from flow_ops import observe_on


@pytest.mark.checklist("F39", "F43", "F47")
def test_asks_once_for_any_mode_across_threads(place, record, fused):
    upstream = fused(1, 2, 3)
    upstream.flow.pipe(observe_on(place.executor)).subscribe(seen := record())
    assert seen.wait().items == [1, 2, 3]
    assert upstream.asked == [Fusion.ANY | Fusion.THREAD_BOUNDARY]


@pytest.mark.checklist("F43", "F45", "F60")
def test_a_fused_upstream_is_polled_and_never_requested(place, record, fused):
    upstream = fused(*range(1000))
    seen = record(request=10, here=place.is_here)
    upstream.flow.pipe(observe_on(place.executor, prefetch=4)).subscribe(seen)
    seen.wait_items(10)
    place.settle()
    assert seen.items == list(range(10))
    assert len(upstream.items) == 990, "an item is polled only when it can be delivered"
    seen.subscription.request(flow.UNBOUNDED)
    assert seen.wait().items == list(range(1000))
    assert upstream.requests == []


@pytest.mark.checklist("F43")
def test_a_fused_upstream_is_polled_on_the_executor(elsewhere, record, fused):
    upstream = fused(1, 2, 3)
    upstream.flow.pipe(observe_on(elsewhere.executor)).subscribe(seen := record())
    assert seen.wait().items == [1, 2, 3]
    assert threading.get_ident() not in upstream.poll_threads


@pytest.mark.checklist("F43")
def test_an_upstream_that_is_not_fused_gets_requests(place, record, source):
    source.flow.pipe(observe_on(place.executor)).subscribe(seen := record(here=place.is_here))
    source.send(1)
    source.complete()
    assert seen.wait().items == [1]
    assert source.requests == [128]


@pytest.mark.checklist("F43")
def test_an_upstream_that_does_not_fuse_is_requested(steps, record, fused):
    class Refusing(fused):
        def request_fusion(self, mode):
            super().request_fusion(mode)
            return Fusion.NONE

    upstream = Refusing()
    upstream.flow.pipe(observe_on(steps)).subscribe(record())
    assert upstream.requests == [128]


@pytest.mark.checklist("F39")
def test_user_code_refuses_to_move_to_the_executor(elsewhere, source, record):
    """The mapper runs where its source is requested first: in the thread that subscribes."""
    threads = []
    count = 100  # less than prefetch, so that the executor requests nothing
    mapped = flow.range(count).map(lambda n: threads.append(threading.get_ident()) or n)
    mapped.pipe(observe_on(elsewhere.executor)).subscribe(seen := record())
    assert seen.wait().items == list(range(count))
    assert set(threads) == {threading.get_ident()}


@pytest.mark.checklist("F43", "F46")
@pytest.mark.parametrize("request_", [2, 10, flow.UNBOUNDED])
def test_a_poll_that_raises_fails_the_flow(place, record, fused, request_):
    error = ValueError("in poll")
    upstream = fused(1, error, 2)
    upstream.flow.pipe(observe_on(place.executor)).subscribe(
        seen := record(request=request_, here=place.is_here)
    )
    assert seen.wait().items == [1]
    assert seen.error is error
    assert (upstream.cancels, upstream.clears) == (1, 1)


@pytest.mark.checklist("F46")
def test_a_poll_that_raises_when_it_is_asked_whether_it_is_empty_fails_the_flow(
    place, record, fused
):
    error = ValueError("in is_empty")

    class Broken(fused):
        def is_empty(self):
            raise error

    upstream = Broken(1, 2)
    upstream.flow.pipe(observe_on(place.executor)).subscribe(seen := record(request=1))
    assert seen.wait().items == [1]
    assert seen.error is error


@pytest.mark.checklist("F46")
def test_a_fatal_poll_propagates(steps, record, fused):
    upstream = fused(1, KeyboardInterrupt())
    upstream.flow.pipe(observe_on(steps)).subscribe(seen := record())
    with pytest.raises(KeyboardInterrupt):
        steps.run()
    (told,) = seen.ends
    assert isinstance(told.__cause__, KeyboardInterrupt)
    assert (seen.items, upstream.cancels, upstream.clears) == ([1], 1, 1)


@pytest.mark.checklist("F43", "O17")
def test_a_fused_end_needs_no_demand(place, record, fused):
    fused().flow.pipe(observe_on(place.executor)).subscribe(seen := record(request=0))
    assert seen.wait().error is None
    fused(1).flow.pipe(observe_on(place.executor)).subscribe(seen := record(request=1))
    assert seen.wait().items == [1]


@pytest.mark.checklist("F43")
def test_a_fused_flow_heeds_what_a_conditional_downstream_drops(place, record_even, fused):
    seen = record_even(request=3)
    fused(1, 3, 2, 5, 4, 6, 7, 8).flow.pipe(observe_on(place.executor)).subscribe(seen)
    seen.wait_items(3)
    place.settle()
    assert seen.items == [2, 4, 6]
    seen.subscription.request(2)
    assert seen.wait().items == [2, 4, 6, 8]


@pytest.mark.checklist("F43", "O32")
def test_a_raising_downstream_of_a_fused_flow_cancels_it(place, record, fused, dropped):
    error = ValueError("in on_next")

    def fail(_: int) -> None:
        raise error

    upstream = fused(1, 2, 3)
    seen = record(on_item=fail)
    upstream.flow.pipe(observe_on(place.executor)).subscribe(seen)
    seen.wait_items(1)
    place.settle()
    assert (seen.items, seen.ends) == ([1], [])
    assert (upstream.cancels, upstream.clears) == (1, 1)
    assert dropped.errors == [error]


@pytest.mark.checklist("F43")
def test_a_fused_upstream_that_pushes_all_the_same_is_not_heard(steps, record, fused, dropped):
    upstream = fused(1)
    subscribers = []
    upstream.subscribe = lambda s: (subscribers.append(s), s.on_subscribe(upstream))
    upstream.flow.pipe(observe_on(steps)).subscribe(seen := record())
    subscribers[0].on_next(9)
    subscribers[0].on_complete()
    steps.run()
    assert seen.wait().items == [1]
    assert dropped.items == [9]


@pytest.mark.checklist("F48")
def test_two_hops_in_a_row_keep_the_order(place, record):
    both = flow.range(1000).pipe(observe_on(place.executor)).pipe(observe_on(place.executor))
    both.subscribe(seen := record(here=place.is_here))
    assert seen.wait().items == list(range(1000))


@pytest.mark.checklist("F45")
def test_replenishing_does_not_raise_the_demand_of_the_downstream(steps, record, source):
    """request(limit) goes to the upstream, not to the operator itself."""
    source.flow.pipe(observe_on(steps, prefetch=4)).subscribe(seen := record(request=4))
    source.send(1, 2, 3, 4)
    steps.run()
    assert source.requests == [4, 3]
    source.send(5, 6, 7)
    steps.run()
    assert seen.items == [1, 2, 3, 4]


def test_it_is_registered_with_the_fusion_that_it_requests():
    from flow_core.plugins import Backpressure
    from flow_ops import _plugin

    specs = {spec.name: spec for spec in _plugin.flow_operators()}
    spec = specs["observe_on"]
    assert spec.load() is observe_on
    assert spec.asks == Fusion.ANY | Fusion.THREAD_BOUNDARY
    assert spec.answers == Fusion.ASYNC | Fusion.THREAD_BOUNDARY
    assert spec.backpressure is Backpressure.FULL
