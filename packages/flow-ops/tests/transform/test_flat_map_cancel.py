"""The cancel of `flat_map`, what it keeps then, and how deep it may be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_ops import flat_map, observe_on
from flow_testing import (
    ENDINGS,
    Payloads,
    TestPublisher,
    TestSubscriber,
    assert_released,
    check_bad_source,
)

INNER: dict[str, Any] = {
    "scalar": flow.just,
    "callable": lambda n: flow.from_callable(lambda: n),
    "hidden": lambda n: flow.just(n).hide(),
    "several": lambda n: flow.just(n, n),
}


def test_a_cancel_cancels_everything_and_drops_waiting_items(dropped):
    inners = [TestPublisher(), TestPublisher()]
    source, seen = TestPublisher(), TestSubscriber(1)
    flow.Flow(source).pipe(flat_map(lambda n: flow.Flow(inners[n]))).subscribe(seen)
    source.next(0, 1)
    inners[0].next("a", "b")
    inners[1].next("c")
    seen.cancel()
    seen.assert_items("a").assert_not_terminated()
    source.assert_cancelled()
    for inner in inners:
        inner.assert_cancelled()
    assert dropped.items == ["b", "c"]


def test_a_cancel_within_on_next_stops_a_synchronous_upstream():
    calls = []

    def mapper(n):
        calls.append(n)
        return flow.just(n)

    seen = TestSubscriber(on_item=lambda self, item: self.cancel() if item == 2 else None)
    flow.range(100).hide().pipe(flat_map(mapper)).subscribe(seen)
    seen.assert_items(0, 1, 2).assert_not_terminated()
    assert calls == [0, 1, 2]


def test_a_cancel_within_the_mapper_starts_nothing():
    inner, source, seen = TestPublisher(), TestPublisher(), TestSubscriber()

    def mapper(_):
        seen.cancel()
        return flow.Flow(inner)

    flow.Flow(source).pipe(flat_map(mapper)).subscribe(seen)
    source.next(0)
    source.assert_cancelled()
    inner.assert_not_subscribed()


def test_an_inner_flow_that_subscribes_late_is_cancelled(dropped):
    class Late:
        def subscribe(self, subscriber):
            self.subscriber = subscriber

    class Link:
        cancels = requests = 0

        def request(self, _):
            self.requests += 1

        def cancel(self):
            self.cancels += 1

    late, link, source, seen = Late(), Link(), TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(flat_map(lambda _: flow.Flow(late))).subscribe(seen)
    source.next(0)
    seen.cancel()
    late.subscriber.on_subscribe(link)
    assert (link.cancels, link.requests) == (1, 0)
    late.subscriber.on_next("late")
    assert dropped.items == ["late"]


@pytest.mark.checklist("X08")
@pytest.mark.parametrize(
    "inner", [flow.just, lambda _: flow.empty(), lambda n: flow.just(n).hide()]
)
@pytest.mark.parametrize("concurrency", [1, 128])
def test_a_hundred_thousand_inner_flows_need_no_stack(inner, concurrency):
    count = 100_000 if inner is flow.just and concurrency > 1 else 10_000
    seen = TestSubscriber()
    flow.range(count).pipe(flat_map(inner, concurrency=concurrency)).count().subscribe(seen)
    assert seen.items[0] in {count, 0}
    assert seen.terminated


@pytest.mark.checklist("X08")
def test_an_upstream_that_answers_within_request_needs_no_stack():
    left = iter(range(5_000))

    def answer(publisher, _):
        for n in left:
            publisher.next(n)
            if not publisher.outstanding:
                return
        if not publisher.terminated:
            publisher.complete()

    source, seen = TestPublisher(on_request=answer), TestSubscriber()
    flow.Flow(source).pipe(
        flat_map(lambda n: flow.just(n).hide(), concurrency=1)
    ).count().subscribe(seen)
    seen.assert_result(5_000)


def test_inner_flows_of_many_threads_end_once_each():
    with ThreadPoolExecutor(8) as pool:
        made = flow.range(300).pipe(
            flat_map(lambda n: flow.range(n % 7).pipe(observe_on(pool)), concurrency=16)
        )
        assert sorted(made) == sorted(m for n in range(300) for m in range(n % 7))


@pytest.mark.parametrize("kind", INNER)
@pytest.mark.usefixtures("dropped")
def test_it_keeps_the_rules_whatever_its_upstream_does(kind):
    check_bad_source(lambda source: source.pipe(flat_map(INNER[kind])), bounded=kind != "several")


@pytest.mark.usefixtures("dropped")
def test_it_keeps_the_rules_whatever_an_inner_flow_does():
    check_bad_source(
        lambda source: flow.range(1).pipe(flat_map(lambda _: source, prefetch=4)), bounded=True
    )


@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
@pytest.mark.parametrize("kind", INNER)
def test_it_lets_go_of_everything(kind, ending):
    def make(payloads: Payloads) -> flow.Flow[Any]:
        return payloads.pushed().pipe(flat_map(INNER[kind], concurrency=2))

    assert_released(make, only=lambda name: name == ending)


@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
def test_it_lets_go_of_inner_flows(ending):
    def make(payloads: Payloads) -> flow.Flow[Any]:
        return flow.range(1).pipe(flat_map(lambda _: payloads.pushed(), prefetch=2))

    assert_released(make, only=lambda name: name == ending)
