"""The requests of `concat_map_eager`; its failures and cancel."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_core.protocols import Fusion
from flow_ops import concat_map_eager
from flow_testing import (
    ENDINGS,
    Payloads,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_released,
    assert_result,
    check_bad_source,
)


def mapped(*inners, demand=flow.UNBOUNDED, **options):
    """A subscription to the flows that items 0, 1, … become."""
    source, seen = TestPublisher(), TestSubscriber(demand)
    flow.Flow(source).pipe(concat_map_eager(lambda n: flow.Flow(inners[n]), **options)).subscribe(
        seen
    )
    return source, seen


def test_one_more_item_is_requested_for_each_inner_flow_that_is_sent():
    inners = [TestPublisher() for _ in range(3)]
    source, seen = mapped(*inners, concurrency=2)
    source.next(0, 1)
    source.assert_requests(2)
    inners[1].next("b").complete()
    source.assert_requests(2)
    inners[0].complete()
    source.assert_requests(2, 2)
    source.complete()
    seen.assert_result("b")


@pytest.mark.parametrize("inner", [flow.just, lambda n: flow.from_callable(lambda: n)])
def test_an_item_that_waits_takes_its_slot(inner):
    source, seen = TestPublisher(), TestSubscriber(0)
    flow.Flow(source).pipe(concat_map_eager(inner, concurrency=2)).subscribe(seen)
    source.next(1, 2)
    source.assert_requests(2)
    seen.request(1)
    source.assert_requests(2, 1)
    source.next(3)
    seen.request(2)
    seen.assert_items(1, 2, 3)


def test_prefetch_items_wait_for_their_turn_and_75_percent_are_requested_again():
    one, two = TestPublisher(), TestPublisher()
    source, seen = mapped(one, two, prefetch=4)
    source.next(0, 1)
    two.assert_requests(4)
    two.next(1, 2, 3, 4)
    two.assert_requests(4)
    one.complete()
    two.assert_requests(4, 3)
    seen.assert_items(1, 2, 3, 4)


def test_an_inner_flow_that_sends_too_much_before_its_turn_fails(dropped):
    one, two = TestPublisher(), TestPublisher(Violation.OVERFLOW)
    source, seen = mapped(one, two, prefetch=2)
    source.next(0, 1)
    two.next("a", "b", "c")
    seen.assert_failure(MissingBackpressureError)
    source.assert_cancelled()
    one.assert_cancelled()
    assert sorted(dropped.items) == ["a", "b", "c"]


@pytest.mark.checklist("F56", "F60")
def test_inner_flows_are_polled(fused):
    inners = [fused(1, 2), fused(3)]
    seen = TestSubscriber(1)
    flow.range(2).pipe(concat_map_eager(lambda n: inners[n].flow)).subscribe(seen)
    assert inners[0].asked == [Fusion.ANY | Fusion.THREAD_BOUNDARY]
    seen.assert_items(1)
    assert inners[1].items == [3]
    seen.request(2)
    seen.assert_result(1, 2, 3)
    assert inners[0].requests == inners[1].requests == []


def test_the_error_of_an_inner_flow_overtakes_waiting_items(dropped):
    failure = ValueError("inner")
    inners = [TestPublisher() for _ in range(3)]
    source, seen = mapped(*inners)
    source.next(0, 1, 2)
    inners[2].next("c")
    inners[1].error(failure)
    seen.assert_failure(failure)
    source.assert_cancelled()
    inners[0].assert_cancelled()
    inners[2].assert_cancelled()
    assert dropped.items == ["c"]


def test_a_delayed_error_comes_when_all_have_ended():
    failure = ValueError("inner")
    inners = [TestPublisher() for _ in range(3)]
    source, seen = mapped(*inners, delay_error=True)
    source.next(0, 1, 2)
    inners[2].next("c").complete()
    inners[1].next("b")
    inners[1].error(failure)
    inners[0].next("a").complete()
    source.complete()
    seen.assert_failure(failure, "a", "b", "c")


def test_errors_of_the_upstream_and_of_the_mapper():
    failure = ValueError("upstream")
    for delay_error in (False, True):
        one = TestPublisher()
        source, seen = mapped(one, delay_error=delay_error)
        source.next(0)
        one.next("a")
        source.error(failure)
        if delay_error:
            seen.assert_not_terminated()
            one.complete()
        seen.assert_failure(failure, "a")
        source, seen = mapped(delay_error=delay_error)
        source.next(0)
        seen.assert_failure(IndexError)
        source.assert_cancelled()


def test_a_mapper_result_that_is_not_a_flow_fails_it():
    for made, error in ((None, NoneItemError), (3, TypeError)):
        assert_result(
            lambda made=made: flow.range(1).pipe(concat_map_eager(lambda _: made)), [], error
        )


@pytest.mark.usefixtures("dropped")
def test_an_error_that_a_called_inner_flow_raises_is_its_error():
    def call(n):
        if n == 1:
            raise ValueError
        return n

    assert_result(
        lambda: flow.range(3).pipe(
            concat_map_eager(lambda n: flow.from_callable(lambda: call(n)), delay_error=True)
        ),
        [0, 2],
        ValueError,
    )


def test_a_cancel_cancels_everything_and_drops_waiting_items(dropped):
    inners = [TestPublisher(), TestPublisher()]
    source, seen = mapped(*inners, demand=1)
    source.next(0, 1)
    inners[0].next("a", "b")
    inners[1].next("c")
    told = seen.subscription.statistics()
    assert told.operator.startswith("concat_map_eager(")
    assert told.buffered == 2
    seen.cancel()
    seen.assert_items("a").assert_not_terminated()
    source.assert_cancelled()
    for inner in inners:
        inner.assert_cancelled()
    assert dropped.items == ["b", "c"]


@pytest.mark.checklist("X08")
@pytest.mark.parametrize("inner", [flow.just, lambda n: flow.just(n).hide()])
@pytest.mark.parametrize("concurrency", [1, 128])
def test_many_inner_flows_need_no_stack(inner, concurrency):
    count = 20_000 if inner is flow.just else 5_000
    seen = TestSubscriber()
    flow.range(count).pipe(concat_map_eager(inner, concurrency=concurrency)).count().subscribe(seen)
    seen.assert_result(count)


INNER: dict[str, Any] = {
    "scalar": flow.just,
    "hidden": lambda n: flow.just(n).hide(),
    "several": lambda n: flow.just(n, n),
}


@pytest.mark.usefixtures("dropped")
@pytest.mark.parametrize("kind", INNER)
def test_it_keeps_the_rules_whatever_its_upstream_does(kind):
    check_bad_source(
        lambda source: source.pipe(concat_map_eager(INNER[kind])), bounded=kind != "several"
    )


@pytest.mark.usefixtures("dropped")
def test_it_keeps_the_rules_whatever_an_inner_flow_does():
    check_bad_source(
        lambda source: flow.range(1).pipe(concat_map_eager(lambda _: source, prefetch=4)),
        bounded=True,
    )


@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
@pytest.mark.parametrize("kind", INNER)
def test_it_lets_go_of_everything(kind, ending):
    def make(payloads: Payloads) -> flow.Flow[Any]:
        return payloads.pushed().pipe(concat_map_eager(INNER[kind], concurrency=2))

    assert_released(make, only=lambda name: name == ending)


@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
def test_it_lets_go_of_inner_flows(ending):
    def make(payloads: Payloads) -> flow.Flow[Any]:
        return flow.range(1).pipe(concat_map_eager(lambda _: payloads.pushed(), prefetch=2))

    assert_released(make, only=lambda name: name == ending)


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"prefetch": 0}])
def test_wrong_numbers_are_refused_at_once(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        concat_map_eager(flow.just, **options)


def test_a_mapper_that_cannot_be_called_is_refused_at_once():
    with pytest.raises(TypeError, match="concat_map_eager"):
        concat_map_eager(3)
