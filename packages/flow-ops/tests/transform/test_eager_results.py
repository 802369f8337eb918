"""The items of `concat_map_eager`, in every form in which a flow can run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_ops import concat_map_eager, merge_sequential, observe_on
from flow_testing import TestPublisher, TestSubscriber, assert_result

INNER = {
    "scalar": (flow.just, lambda n: [n]),
    "callable": (lambda n: flow.from_callable(lambda: n), lambda n: [n]),
    "some without an item": (
        lambda n: flow.just(n) if n % 3 == 1 else flow.empty(),
        lambda n: [n] if n % 3 == 1 else [],
    ),
    "range": (flow.range, lambda n: list(range(n))),
    "with stages": (
        lambda n: flow.range(n).map(lambda m: m * n).filter(lambda m: m % 2 == 0),
        lambda n: [m * n for m in range(n) if m * n % 2 == 0],
    ),
    "deferred": (lambda n: flow.defer(lambda: flow.range(n)), lambda n: list(range(n))),
    "hidden": (lambda n: flow.range(n).hide(), lambda n: list(range(n))),
    "nested": (
        lambda n: flow.range(n).pipe(concat_map_eager(lambda m: flow.just(m, n))),
        lambda n: [k for m in range(n) for k in (m, n)],
    ),
    "of every kind": (
        lambda n: [
            flow.just(n),
            flow.range(n),
            flow.range(n).hide(),
            flow.empty(),
            flow.from_callable(lambda: n),
        ][n % 5],
        lambda n: [[n], list(range(n)), list(range(n)), [], [n]][n % 5],
    ),
}


@pytest.mark.many
@pytest.mark.checklist("F02", "F52")
@pytest.mark.parametrize("options", [{}, {"concurrency": 1}, {"prefetch": 1}])
@pytest.mark.parametrize("kind", INNER)
def test_inner_flows_of_every_kind_follow_one_another(kind, options):
    mapper, model = INNER[kind]
    assert_result(
        lambda: flow.range(6).pipe(concat_map_eager(mapper, **options)),
        [m for n in range(6) for m in model(n)],
    )


@pytest.mark.checklist("F06")
@pytest.mark.parametrize("upstream", [lambda: flow.just(3), lambda: flow.from_callable(lambda: 3)])
def test_with_an_upstream_of_one_item_it_is_the_inner_flow(upstream):
    assert_result(lambda: upstream().pipe(concat_map_eager(flow.range)), [0, 1, 2])
    subscriber = TestSubscriber(fusion=flow.Fusion.SYNC)
    upstream().pipe(concat_map_eager(flow.range)).subscribe(subscriber)
    subscriber.assert_fusion(flow.Fusion.SYNC)


def test_all_run_at_once_and_come_in_order():
    inners = [TestPublisher() for _ in range(3)]
    seen = TestSubscriber()
    flow.range(3).pipe(concat_map_eager(lambda n: flow.Flow(inners[n]))).subscribe(seen)
    for inner in inners:
        inner.assert_subscribed()
    inners[2].next("c").complete()
    inners[1].next("b")
    seen.assert_items()
    inners[0].next("a1")
    seen.assert_items("a1")
    inners[0].next("a2").complete()
    seen.assert_items("a1", "a2", "b").assert_not_terminated()
    inners[1].complete()
    seen.assert_result("a1", "a2", "b", "c")


def test_a_called_item_waits_for_its_turn():
    inner, seen = TestPublisher(), TestSubscriber()
    made = [flow.Flow(inner), flow.just("b"), flow.from_callable(lambda: "c")]
    flow.range(3).pipe(concat_map_eager(lambda n: made[n])).subscribe(seen)
    seen.assert_no_items()
    inner.next("a")
    seen.assert_items("a")
    inner.complete()
    seen.assert_result("a", "b", "c")


@pytest.mark.parametrize("prefetch", [1, 3, 128])
@pytest.mark.parametrize("concurrency", [1, 3, 128])
def test_threads_make_no_difference(prefetch, concurrency):
    with ThreadPoolExecutor(4) as pool:
        made = flow.range(40).pipe(
            concat_map_eager(
                lambda n: flow.range(n % 7).pipe(observe_on(pool)),
                prefetch=prefetch,
                concurrency=concurrency,
            )
        )
        assert list(made) == [m for n in range(40) for m in range(n % 7)]


def test_merge_sequential_gives_one_source_after_the_other():
    sources = [flow.range(3), flow.just("a"), flow.empty(), flow.range(2).hide()]
    expected = [0, 1, 2, "a", 0, 1]
    assert_result(lambda: merge_sequential(*sources), expected)
    assert_result(lambda: merge_sequential(sources), expected)
    assert_result(lambda: merge_sequential(), [])


def test_merge_sequential_asks_an_iterable_only_as_far_as_it_runs():
    inners = [TestPublisher() for _ in range(4)]
    asked = []

    def sources():
        for inner in inners:
            asked.append(inner)
            yield flow.Flow(inner)

    seen = TestSubscriber()
    merge_sequential(sources(), concurrency=2).subscribe(seen)
    assert len(asked) == 2
    inners[1].complete()  # not yet its turn
    assert len(asked) == 2
    inners[0].complete()
    assert len(asked) == 4
    inners[3].next("d").complete()
    inners[2].next("c").complete()
    seen.assert_result("c", "d")


@settings(max_examples=60, deadline=None)
@given(
    inners=st.lists(st.lists(st.integers(), max_size=8), max_size=8),
    kinds=st.lists(st.sampled_from(["iterable", "hidden", "single"]), min_size=8, max_size=8),
    concurrency=st.integers(1, 4),
    prefetch=st.integers(1, 4),
    steps=st.lists(st.integers(1, 5), max_size=10),
)
def test_random_inner_flows_give_all_items_in_order(inners, kinds, concurrency, prefetch, steps):
    def mapper(index):
        items = inners[index]
        if kinds[index] == "single" and len(items) == 1:
            return flow.just(items[0])
        made = flow.from_iterable(items)
        return made.hide() if kinds[index] == "hidden" else made

    seen = TestSubscriber(0)
    flow.range(len(inners)).pipe(
        concat_map_eager(mapper, concurrency=concurrency, prefetch=prefetch)
    ).subscribe(seen)
    for step in steps:
        seen.request(step)
    seen.request(flow.UNBOUNDED)
    seen.assert_result(*(item for items in inners for item in items))
