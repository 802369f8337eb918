"""observe_on: back-pressure, the bounded queue, and amounts that are not demand."""

from __future__ import annotations

import threading

import pytest

import flow_core as flow
from flow_core import MissingBackpressureError
from flow_ops import observe_on


@pytest.mark.checklist("O04")
@pytest.mark.parametrize(
    ("prefetch", "limit"), [(128, 96), (1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (100, 75)]
)
def test_requests_prefetch_and_then_three_quarters_as_often_as_those_were_delivered(
    steps, record, source, prefetch, limit
):
    seen = record()
    source.flow.pipe(observe_on(steps, prefetch=prefetch)).subscribe(seen)
    assert source.requests == [prefetch]
    sent, room = 0, prefetch
    for _ in range(6):
        source.send(*range(room))
        sent += room
        steps.run()
        assert source.requests == [prefetch] + [limit] * (sent // limit)
        room = sum(source.requests) - sent


@pytest.mark.checklist("O04", "O11")
def test_the_demand_of_the_downstream_does_not_reach_the_upstream(steps, record, source):
    seen = record(request=0)
    source.flow.pipe(observe_on(steps, prefetch=4)).subscribe(seen)
    for n in (1, 2, flow.UNBOUNDED, flow.UNBOUNDED):
        seen.subscription.request(n)
    steps.run()
    assert source.requests == [4]


@pytest.mark.checklist("O04")
def test_a_source_that_has_ended_is_not_requested_again(steps, record, source):
    seen = record()
    source.flow.pipe(observe_on(steps, prefetch=4)).subscribe(seen)
    source.send(1, 2, 3, 4)
    source.complete()
    steps.run()
    assert seen.wait().items == [1, 2, 3, 4]
    assert source.requests == [4]


@pytest.mark.checklist("O05", "O09")
def test_the_queue_is_bounded_by_prefetch(steps, record, source):
    """Without demand it fills up to exactly `prefetch` items; one more is too many."""
    seen = record(request=0)
    source.flow.pipe(observe_on(steps, prefetch=8)).subscribe(seen)
    source.send(*range(8))
    assert source.cancels == 0
    seen.subscription.request(8)
    steps.run()
    assert seen.items == list(range(8))


@pytest.mark.checklist("O05")
def test_a_fast_source_is_never_more_than_prefetch_ahead(place, record):
    prefetch, ahead, worst = 16, 0, 0
    lock = threading.Lock()

    def count(by: int) -> None:
        nonlocal ahead, worst
        with lock:
            ahead += by
            worst = max(worst, ahead)

    seen = record(on_item=lambda _: count(-1))
    counted = flow.range(5000).do_on_next(lambda _: count(1))
    counted.pipe(observe_on(place.executor, prefetch=prefetch)).subscribe(seen)
    assert len(seen.wait().items) == 5000
    assert 1 <= worst <= prefetch + 1  # and the one that is being sent


@pytest.mark.checklist("O09")
def test_an_upstream_that_ignores_demand_fails_instead_of_losing_items(
    steps, record, source, dropped
):
    seen = record()
    source.flow.pipe(observe_on(steps, prefetch=4)).subscribe(seen)
    source.send(1, 2, 3, 4, 5, 6)
    assert source.cancels == 1
    steps.run()
    assert seen.wait().items == [1, 2, 3, 4]
    assert isinstance(seen.error, MissingBackpressureError)
    assert dropped.items == [5, 6]
    message = str(seen.error)
    assert "observe_on(" in message
    assert __file__ in message  # where it was assembled
    assert "4 items" in message


@pytest.mark.checklist("O09", "O18")
def test_too_many_items_overtake_those_that_wait_when_errors_do(steps, record, source, dropped):
    seen = record()
    source.flow.pipe(observe_on(steps, prefetch=2, delay_error=False)).subscribe(seen)
    source.send(1, 2, 3)
    steps.run()
    assert seen.wait().items == []
    assert isinstance(seen.error, MissingBackpressureError)
    assert sorted(dropped.items) == [1, 2, 3]


@pytest.mark.checklist("O06", "O11")
def test_delivers_exactly_what_was_requested(place, record):
    seen = record(request=5, here=place.is_here)
    flow.range(1000).hide().pipe(observe_on(place.executor)).subscribe(seen)
    seen.wait_items(5)
    place.settle()
    assert seen.items == list(range(5))
    seen.subscription.request(200)
    seen.wait_items(205)
    place.settle()
    assert seen.items == list(range(205))
    seen.subscription.request(flow.UNBOUNDED)
    seen.subscription.request(flow.UNBOUNDED)
    assert seen.wait().items == list(range(1000))


@pytest.mark.checklist("O11")
def test_demand_adds_up_and_is_capped(steps, record, source):
    seen = record(request=0)
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    source.send(1, 2, 3, 4)
    seen.subscription.request(1)
    seen.subscription.request(2)
    steps.run()
    assert seen.items == [1, 2, 3]
    seen.subscription.request(flow.UNBOUNDED)
    seen.subscription.request(flow.UNBOUNDED)
    steps.run()
    source.send(5)
    source.complete()
    steps.run()
    assert seen.wait().items == [1, 2, 3, 4, 5]


@pytest.mark.checklist("O12")
@pytest.mark.parametrize("n", [0, -1])
@pytest.mark.parametrize("upstream", [flow.range, lambda n: flow.range(n).hide()])
def test_a_non_positive_request_fails_the_flow_on_the_executor(place, record, dropped, n, upstream):
    seen = record(request=3, here=place.is_here)
    upstream(100).pipe(observe_on(place.executor)).subscribe(seen)
    seen.wait_items(3)
    seen.subscription.request(n)
    error = seen.wait().error
    assert isinstance(error, ValueError)
    assert "3.9" in str(error)
    assert "non-positive subscription request" in str(error)
    assert seen.items == [0, 1, 2]


@pytest.mark.checklist("O08", "O12")
def test_a_wrong_request_in_on_subscribe_fails_the_flow_after_it(place, record, source):
    seen = record(request=-5, here=place.is_here)
    source.flow.pipe(observe_on(place.executor)).subscribe(seen)
    assert "3.9" in str(seen.wait().error)
    assert (source.requests, source.cancels) == ([], 1)


@pytest.mark.checklist("O12")
def test_a_wrong_request_is_serialised_with_a_running_on_next(elsewhere, record, source, dropped):
    entered, go = threading.Event(), threading.Event()

    def hold(_: int) -> None:
        entered.set()
        assert go.wait(20)

    seen = record(on_item=hold, here=elsewhere.is_here)
    source.flow.pipe(observe_on(elsewhere.executor)).subscribe(seen)
    source.send(1, 2)
    assert entered.wait(20)
    seen.subscription.request(0)
    assert source.cancels == 1
    assert seen.ends == []
    go.set()
    assert "3.9" in str(seen.wait().error)
    assert seen.items == [1]
    assert dropped.items == [2]


@pytest.mark.checklist("O12")
def test_a_request_that_is_not_an_int_raises(steps, record, source):
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    for wrong in (1.0, "1", True, None):
        with pytest.raises(TypeError):
            seen.subscription.request(wrong)
    source.send(1)
    source.complete()
    steps.run()
    assert seen.wait().items == [1]


def test_a_wrong_request_after_cancel_is_not_answered(steps, record, source):
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    seen.subscription.cancel()
    seen.subscription.request(0)
    steps.run()
    assert seen.ends == []


@pytest.mark.checklist("O36")
@pytest.mark.parametrize("prefetch", [0, -1])
def test_prefetch_is_at_least_one(prefetch):
    with pytest.raises(ValueError, match="prefetch"):
        observe_on(lambda task: task(), prefetch=prefetch)


@pytest.mark.checklist("O36")
@pytest.mark.parametrize("prefetch", [1.5, "8", True, None])
def test_prefetch_is_an_int(prefetch):
    with pytest.raises(TypeError, match="prefetch"):
        observe_on(lambda task: task(), prefetch=prefetch)


def test_unbounded_prefetch_requests_everything_once(steps, record, source):
    seen = record()
    source.flow.pipe(observe_on(steps, prefetch=flow.UNBOUNDED)).subscribe(seen)
    source.send(*range(1000))
    source.complete()
    steps.run()
    assert seen.wait().items == list(range(1000))
    assert source.requests == [flow.UNBOUNDED]


@pytest.mark.parametrize("request_", [1, 3, flow.UNBOUNDED])
def test_an_item_that_a_conditional_downstream_drops_costs_no_demand(
    steps, record_even, source, request_
):
    seen = record_even(request=request_)
    source.flow.pipe(observe_on(steps, prefetch=8)).subscribe(seen)
    source.send(1, 3, 5, 2, 7, 4, 6, 8)
    steps.run()
    assert seen.items == [2, 4, 6, 8][: min(request_, 4)]
    assert source.requests == ([8, 6] if request_ > 2 else [8])


def test_a_downstream_that_returns_false_from_on_next_is_not_conditional(steps, record, source):
    """Only `try_on_next` answers; what a user's function returns has no meaning."""
    items = []
    source.flow.pipe(observe_on(steps)).subscribe(lambda item: bool(items.append(item)), prefetch=2)
    source.send(1, 2, 3, 4, 5)
    steps.run()
    assert items == [1, 2, 3, 4, 5]


def test_stages_after_the_hop_are_conditional(place):
    evens = flow.range(10_000).pipe(observe_on(place.executor)).filter(lambda n: n % 1000 == 0)
    seen = []
    assert evens.subscribe(seen.append, prefetch=1).wait(20)
    assert seen == list(range(0, 10_000, 1000))
