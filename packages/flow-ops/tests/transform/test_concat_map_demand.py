"""Demand at `concat_map`: exact downstream, bounded upstream."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import flow_core as flow
from flow_ops import concat_map
from flow_testing import TestPublisher, TestSubscriber, Violation, race


def hidden(n):
    return flow.range(n).hide()


@pytest.mark.checklist("P25")
@pytest.mark.parametrize("inner", [flow.range, hidden], ids=["inline", "subscribed"])
@pytest.mark.parametrize("outer", [flow.range, hidden], ids=["pulled", "pushed"])
def test_demand_that_one_inner_flow_leaves_goes_to_the_next(outer, inner):
    seen = TestSubscriber(0)
    outer(8).pipe(concat_map(inner)).subscribe(seen)
    expected = [m for n in range(8) for m in range(n)]
    count = 0
    for n in (1, 4, 2, 9, 3):
        seen.request(n)
        count += n
        seen.assert_items(*expected[:count]).assert_not_terminated()
    seen.request(100)
    seen.assert_result(*expected)


def test_an_inner_flow_gets_a_request_for_the_outstanding_demand():
    first, second = TestPublisher(), TestPublisher()
    inner = {1: first, 2: second}
    seen = TestSubscriber(0)
    flow.just(1, 2).pipe(concat_map(lambda n: flow.Flow(inner[n]))).subscribe(seen)
    assert first.subscribed == 0
    seen.request(5)
    first.assert_requests(5).next("a", "b")
    seen.request(2)
    first.assert_requests(5, 2).complete()
    second.assert_requests(5)
    seen.request(1)
    second.assert_requests(5, 1)
    first.assert_requests(5, 2)
    second.next("c").complete()
    seen.assert_result("a", "b", "c")


def test_unbounded_demand_is_passed_on_without_bound():
    first, second = TestPublisher(), TestPublisher()
    inner = {1: first, 2: second}
    seen = TestSubscriber()
    flow.just(1, 2).pipe(concat_map(lambda n: flow.Flow(inner[n]))).subscribe(seen)
    first.assert_requests(flow.UNBOUNDED).next("a").complete()
    seen.request(7)
    second.assert_requests(flow.UNBOUNDED).complete()
    seen.assert_result("a")


@pytest.mark.checklist("X03")
def test_demand_that_becomes_unbounded_in_two_steps():
    seen = TestSubscriber(0)
    flow.range(3).pipe(concat_map(hidden)).subscribe(seen)
    seen.request(flow.UNBOUNDED - 1)
    seen.request(flow.UNBOUNDED - 1)
    seen.assert_result(0, 0, 1)


def test_without_demand_nothing_is_mapped_or_started():
    calls = []
    seen = TestSubscriber(0)
    flow.range(3).pipe(concat_map(lambda n: calls.append(n) or flow.just(n))).subscribe(seen)
    assert calls == []
    seen.request(1)
    assert calls == [0]
    seen.request(2)
    seen.assert_result(0, 1, 2)
    assert calls == [0, 1, 2]


@pytest.mark.parametrize("outer", [flow.range, hidden], ids=["pulled", "pushed"])
@pytest.mark.parametrize(
    "inner", [flow.just, lambda n: flow.range(n, n + 1)], ids=["scalar", "iterator"]
)
def test_the_end_needs_no_demand(outer, inner):
    seen = TestSubscriber(3)
    outer(3).pipe(concat_map(inner)).subscribe(seen)
    seen.assert_result(0, 1, 2)
    seen = TestSubscriber(0)
    outer(0).pipe(concat_map(inner)).subscribe(seen)
    seen.assert_result()


def test_the_end_behind_a_stage_of_the_upstream_needs_no_demand():
    seen = TestSubscriber(3)
    flow.range(3).map(lambda n: n + 1).pipe(concat_map(flow.just)).subscribe(seen)
    seen.assert_result(1, 2, 3)


@pytest.mark.checklist("P25")
@pytest.mark.parametrize(("prefetch", "again"), [(1, 1), (4, 3), (8, 6)])
def test_an_upstream_is_asked_for_the_prefetch_and_75_percent_again(prefetch, again):
    outer = TestPublisher()
    seen = TestSubscriber()
    flow.Flow(outer).pipe(concat_map(flow.just, prefetch=prefetch)).subscribe(seen)
    outer.assert_requests(prefetch).next(*range(again - 1))
    outer.assert_requests(prefetch).next(9)
    outer.assert_requests(prefetch, again)
    outer.complete()
    seen.assert_result(*range(again - 1), 9)


def test_items_wait_for_their_turn_and_no_more_are_asked_for():
    outer, inner = TestPublisher(), TestPublisher()
    seen = TestSubscriber()
    mapped = []

    def mapper(n):
        mapped.append(n)
        return flow.Flow(inner) if n == 0 else flow.just(n)

    flow.Flow(outer).pipe(concat_map(mapper, prefetch=4)).subscribe(seen)
    outer.next(0, 1, 2, 3)
    assert mapped == [0]
    outer.assert_requests(4)
    inner.next("a")
    inner.complete()
    seen.assert_items("a", 1, 2, 3)
    outer.assert_requests(4, 3)


@pytest.mark.checklist("O09")
def test_an_upstream_that_sends_more_than_was_asked_for_is_an_error(dropped):
    outer, inner = TestPublisher(Violation.OVERFLOW | Violation.IGNORED_CANCEL), TestPublisher()
    seen = TestSubscriber()
    mapper = {0: flow.Flow(inner), 1: flow.just("b"), 2: flow.just("c")}.__getitem__
    flow.Flow(outer).pipe(concat_map(mapper, prefetch=2)).subscribe(seen)
    outer.next(0, 1, 2, 3)
    outer.assert_cancelled()
    assert dropped.items == [3]
    inner.next("a").complete()
    assert "concat_map" in str(seen.error)
    seen.assert_failure(flow.MissingBackpressureError, "a", "b", "c")


@pytest.mark.checklist("X03")
@pytest.mark.parametrize("inner", [flow.range, hidden], ids=["inline", "subscribed"])
@pytest.mark.parametrize("n", [0, -1])
def test_a_wrong_request_is_an_error(inner, n):
    for before in (0, 2):
        seen = TestSubscriber(before)
        flow.range(1, 9).pipe(concat_map(inner)).subscribe(seen)
        seen.request(n)
        assert "§3.9" in str(seen.error)
        seen.assert_failure(ValueError, *[0, 0][:before])
        seen.request(5)
        seen.assert_failure(ValueError, *[0, 0][:before])


def test_a_wrong_request_within_on_next_waits_for_it():
    for inner in (flow.range, hidden):
        seen = TestSubscriber(5, on_item=lambda self, _: self.request(0))
        flow.range(1, 9).pipe(concat_map(inner)).subscribe(seen)
        seen.assert_failure(ValueError, 0)


def test_a_wrong_request_waits_for_the_on_next_of_an_inner_flow():
    inner = TestPublisher()
    seen = TestSubscriber(on_item=lambda self, _: self.request(0))
    flow.just(1, 2).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    inner.next("a")
    seen.assert_failure(ValueError, "a")


def test_a_wrong_request_of_another_thread_waits_for_on_next():
    entered, go = threading.Event(), threading.Event()

    def on_item(*_):
        entered.set()
        assert go.wait(20)

    inner = TestPublisher()
    seen = TestSubscriber(on_item=on_item)
    flow.just(1, 2).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(inner.next, "a")
        assert entered.wait(20)
        seen.request(0)
        inner.assert_cancelled()
        seen.assert_not_terminated()
        go.set()
        running.result(20)
    seen.assert_failure(ValueError, "a")


def test_a_wrong_request_cancels_upstream_and_inner():
    outer, inner = TestPublisher(), TestPublisher()
    seen = TestSubscriber(1)
    flow.Flow(outer).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    outer.next(1)
    seen.request(-5)
    outer.assert_cancelled()
    inner.assert_cancelled()
    seen.assert_failure(ValueError)


def test_a_request_that_is_not_an_int_raises():
    seen = TestSubscriber(0)
    flow.range(3).pipe(concat_map(flow.just)).subscribe(seen)
    with pytest.raises(TypeError):
        seen.subscription.request(1.5)


@pytest.mark.checklist("P25")
def test_requests_of_two_threads_are_all_answered():
    seen = TestSubscriber(0)
    flow.range(400).pipe(concat_map(lambda n: hidden(n % 3) if n % 2 else flow.just(n))).subscribe(
        seen
    )

    def ask():
        for _ in range(100):
            seen.request(1)

    race(ask, ask)
    seen.await_items(200)
    seen.assert_not_terminated()
    assert len(seen.items) == 200


def test_an_inner_flow_that_answers_within_on_next_does_not_overlap():
    inner = [TestPublisher(on_request=lambda publisher, _: publisher.next("x")) for _ in range(3)]
    seen = TestSubscriber(1, on_item=lambda self, _: len(self.items) < 5 and self.request(1))
    flow.range(3).pipe(concat_map(lambda n: flow.Flow(inner[n]))).subscribe(seen)
    seen.assert_items(*"xxxxx")
    seen.request(1)
    inner[0].complete()
    inner[1].assert_requests()
    seen.request(1)
    inner[1].assert_requests(1)
    seen.assert_items(*"xxxxxxx")


def test_random_demand_is_met_exactly():
    rng = random.Random(7)
    for _ in range(60):
        sizes = [rng.randrange(5) for _ in range(rng.randrange(12))]
        kinds = [rng.randrange(3) for _ in sizes]

        def mapper(i, sizes=sizes, kinds=kinds):
            made = flow.range(sizes[i])
            return [made, made.hide(), made.map(int)][kinds[i]]

        expected = [m for size in sizes for m in range(size)]
        outer = flow.range(len(sizes))
        seen = TestSubscriber(0)
        (outer.hide() if rng.random() < 0.5 else outer).pipe(
            concat_map(mapper, prefetch=rng.randrange(1, 5))
        ).subscribe(seen)
        asked = 0
        while asked <= len(expected):
            n = rng.randrange(1, 6)
            asked += n
            seen.request(n)
            seen.assert_items(*expected[:asked])
        seen.assert_result(*expected)
