"""`exhaust_map`: items that come while a flow runs are dropped; and `concat_all`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import flow_core as flow
from flow_core import hooks
from flow_ops import concat_all, exhaust_map
from flow_testing import (
    TestPublisher,
    TestSubscriber,
    VirtualClock,
    assert_marbles,
    assert_result,
    cold,
)


def test_items_that_come_while_a_flow_runs_are_dropped() -> None:
    clock = VirtualClock()
    clicks = cold("-a-b-c----d-|", clock=clock).flow
    made = clicks.exhaust_map(lambda c: cold("-1--2|", {"1": c, "2": 2 * c}, clock=clock).flow)
    values = {"1": "a", "2": "aa", "3": "d", "4": "dd"}
    assert_marbles(made, "--1--2-----3--4|", values, clock=clock)


def test_dropped_items_go_to_the_hook() -> None:
    dropped: list[Any] = []
    outer, inner = TestPublisher[int](), TestPublisher[str]()
    seen = TestSubscriber[str]()
    with hooks.dropped_items.scoped("test", dropped.append):
        flow.from_publisher(outer).exhaust_map(lambda _: flow.from_publisher(inner)).subscribe(seen)
        outer.next(1, 2, 3)
        inner.next("a")
    assert dropped == [2, 3]
    assert seen.items == ["a"]


def test_the_next_item_after_the_end_of_a_flow_starts_another() -> None:
    outer = TestPublisher[int]()
    inners = [TestPublisher[str](), TestPublisher[str]()]
    seen = TestSubscriber[str]()
    flow.from_publisher(outer).exhaust_map(lambda n: flow.from_publisher(inners[n])).subscribe(seen)
    outer.next(0)
    inners[0].next("a").complete()
    outer.next(1)
    inners[1].next("b")
    outer.complete()
    assert not seen.terminated
    inners[1].complete()
    seen.assert_result("a", "b")


def test_without_demand_a_flow_that_has_items_counts_as_running() -> None:
    outer = TestPublisher[int]()
    seen = TestSubscriber[int](request=0)
    flow.from_publisher(outer).exhaust_map(lambda n: flow.just(n, -n)).subscribe(seen)
    outer.next(1, 2)
    seen.request(2)
    outer.next(3).complete()
    seen.request(9)
    seen.assert_result(1, -1, 3, -3)


def test_a_cancel_reaches_both() -> None:
    outer, inner = TestPublisher[int](), TestPublisher[int]()
    seen = TestSubscriber[int]()
    flow.from_publisher(outer).exhaust_map(lambda _: flow.from_publisher(inner)).subscribe(seen)
    outer.next(1)
    seen.cancel()
    outer.assert_cancelled()
    inner.assert_cancelled()


@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_ends_it_at_once_or_when_the_other_has_ended(delay_error: bool) -> None:
    outer, inner = TestPublisher[int](), TestPublisher[int]()
    seen = TestSubscriber[int]()
    made = flow.from_publisher(outer).exhaust_map(
        lambda _: flow.from_publisher(inner), delay_error=delay_error
    )
    made.subscribe(seen)
    outer.next(1)
    outer.error(KeyError())
    assert seen.terminated != delay_error
    if delay_error:
        inner.next(7).complete()
        assert seen.items == [7]
    seen.assert_failure(KeyError, *seen.items)


def test_coroutines_and_lists_are_taken() -> None:
    async def fetch(n: int) -> int:
        await asyncio.sleep(0)
        return n * 10

    assert list(flow.just(1).exhaust_map(fetch)) == [10]
    assert list(flow.range(3).pipe(exhaust_map(lambda n: [n, n]))) == [0, 0, 1, 1, 2, 2]


def test_it_takes_a_function() -> None:
    with pytest.raises(TypeError, match=r"exhaust_map\(\) takes a function from an item to a Flow"):
        flow.range(3).exhaust_map(3)  # type: ignore[arg-type]


def test_concat_all_gives_one_flow_after_the_other() -> None:
    assert_result(lambda: flow.just(flow.range(2), flow.just(7)).concat_all(), [0, 1, 7])
    assert_result(lambda: flow.empty().pipe(concat_all()), [])
    second = TestPublisher[int]()
    seen = TestSubscriber[int]()
    flow.just(flow.never(), flow.from_publisher(second)).concat_all().subscribe(seen)
    assert not second.subscribed


def test_concat_all_may_let_the_others_follow_one_that_fails() -> None:
    flows = flow.just(flow.error(KeyError()), flow.just(7))
    for delay_error, items in ((False, []), (True, [7])):
        seen = TestSubscriber[int]()
        flows.concat_all(delay_error=delay_error).subscribe(seen)
        seen.assert_failure(KeyError, *items)
    assert repr(flows.concat_all(prefetch=1, delay_error=True)).endswith(
        "concat_all(prefetch=1, delay_error=True)"
    )


def test_the_error_for_an_item_that_concat_all_cannot_follow_names_it() -> None:
    with pytest.raises(TypeError, match="gave 1, not a Flow"):
        list(flow.range(1, 3).concat_all())  # type: ignore[misc]
    with pytest.raises(ValueError, match="prefetch must be at least 1"):
        concat_all(prefetch=0)
