"""The items of `flat_map`, in every form in which a flow can run."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_ops import flat_map, observe_on
from flow_testing import TestPublisher, TestSubscriber, assert_result

INNER = {
    "scalar": (flow.just, lambda n: [n]),
    "empty": (lambda _: flow.empty(), lambda _: []),
    "callable": (lambda n: flow.from_callable(lambda: n), lambda n: [n]),
    "callable without an item": (lambda _: flow.from_callable(lambda: None), lambda _: []),
    "some without an item": (
        lambda n: flow.just(n) if n % 3 == 1 else flow.empty(),
        lambda n: [n] if n % 3 == 1 else [],
    ),
    "range": (flow.range, lambda n: list(range(n))),
    "generator": (lambda n: flow.from_iterable(iter([n] * n)), lambda n: [n] * n),
    "with stages": (
        lambda n: flow.range(n).map(lambda m: m * n).filter(lambda m: m % 2 == 0),
        lambda n: [m * n for m in range(n) if m * n % 2 == 0],
    ),
    "scalar with a stage": (lambda n: flow.just(n).map(str), lambda n: [str(n)]),
    "deferred": (lambda n: flow.defer(lambda: flow.range(n)), lambda n: list(range(n))),
    "hidden": (lambda n: flow.range(n).hide(), lambda n: list(range(n))),
    "nested": (
        lambda n: flow.range(n).pipe(flat_map(lambda m: flow.just(m, n))),
        lambda n: [k for m in range(n) for k in (m, n)],
    ),
    "nested, mapped directly": (
        lambda n: flow.just(n).pipe(flat_map(flow.range)),
        lambda n: list(range(n)),
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


@pytest.mark.checklist("F02", "F52")
@pytest.mark.parametrize("kind", INNER)
def test_inner_flows_that_have_all_at_once_come_in_order(kind):
    mapper, model = INNER[kind]
    assert_result(
        lambda: flow.range(6).pipe(flat_map(mapper)), [m for n in range(6) for m in model(n)]
    )


OUTER = {
    "range": lambda: flow.range(1, 5),
    "stages": lambda: flow.range(20).map(lambda n: n + 1).filter(lambda n: n < 5),
    "take": lambda: flow.range(1, 100).take(4),
    "expanding": lambda: flow.just(1, 3).flat_map_iterable(lambda n: (n, n + 1)),
    "deferred": lambda: flow.defer(lambda: flow.range(1, 5)),
    "deferred with a stage": lambda: flow.defer(lambda: flow.range(4)).map(lambda n: n + 1),
    "mapped": lambda: flow.just(1, 3).pipe(flat_map(lambda n: flow.just(n, n + 1))),
}


@pytest.mark.parametrize("concurrency", [1, 2, 128])
@pytest.mark.parametrize("kind", OUTER)
def test_upstreams_of_every_kind_are_mapped(kind, concurrency):
    assert_result(
        lambda: OUTER[kind]().pipe(flat_map(flow.range, concurrency=concurrency)),
        [m for n in range(1, 5) for m in range(n)],
    )


@pytest.mark.checklist("F06", "F07")
@pytest.mark.parametrize("upstream", [lambda: flow.just(3), lambda: flow.from_callable(lambda: 3)])
def test_with_an_upstream_of_one_item_it_is_the_inner_flow(upstream):
    calls = []

    def mapper(n):
        calls.append(n)
        return flow.range(n)

    made = upstream().pipe(flat_map(mapper))
    assert calls == []  # not while it is assembled
    assert_result(lambda: made, [0, 1, 2])
    subscriber = TestSubscriber(fusion=flow.Fusion.SYNC)
    made.subscribe(subscriber)
    subscriber.assert_fusion(flow.Fusion.SYNC).assert_result(0, 1, 2)


@pytest.mark.checklist("F02", "F03", "F04")
def test_a_function_is_called_once_for_each_subscriber_and_not_before():
    calls = []
    made = flow.range(3).pipe(flat_map(lambda n: flow.from_callable(lambda: calls.append(n) or n)))
    assert calls == []
    for _ in range(2):
        subscriber = TestSubscriber()
        made.subscribe(subscriber)
        subscriber.assert_result(0, 1, 2)
    assert calls == [0, 1, 2] * 2


@pytest.mark.checklist("F35")
def test_maps_what_the_upstream_maps():
    """A subscription that was forwarded through the map would give 0..9."""
    assert_result(
        lambda: flow.range(0, 10).map(lambda n: n + 1).pipe(flat_map(flow.just)),
        list(range(1, 11)),
    )


def test_stages_follow():
    assert_result(
        lambda: flow.range(4).pipe(flat_map(flow.range)).map(lambda n: n + 1).pairwise(),
        [(1, 1), (1, 2), (2, 1), (1, 2), (2, 3)],
    )


def test_items_come_as_they_come():
    inners = [TestPublisher(), TestPublisher(), TestPublisher()]
    seen = TestSubscriber()
    flow.range(3).pipe(flat_map(lambda n: flow.Flow(inners[n]))).subscribe(seen)
    inners[1].next("b1")
    inners[0].next("a1")
    inners[2].next("c1")
    inners[0].complete()
    inners[1].next("b2").complete()
    seen.assert_items("b1", "a1", "c1", "b2").assert_not_terminated()
    inners[2].complete()
    seen.assert_result("b1", "a1", "c1", "b2")


def test_a_foreign_publisher_is_an_inner_flow():
    inner = TestPublisher()
    seen = TestSubscriber()
    flow.range(1).pipe(flat_map(lambda _: inner)).subscribe(seen)
    inner.next(1).complete()
    seen.assert_result(1)


@pytest.mark.parametrize("where", ["outer", "inner", "both", "downstream"])
def test_threads_may_be_crossed_anywhere(where):
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(3) as other:
        source = flow.range(20).map(lambda n: n)
        if where in ("outer", "both"):
            source = source.pipe(observe_on(one))

        def inner(n):
            made = flow.range(n)
            return made.pipe(observe_on(other)) if where in ("inner", "both") else made

        made = source.pipe(flat_map(inner, concurrency=3, prefetch=2))
        if where == "downstream":
            made = made.pipe(observe_on(one))
        for prefetch in (1, 7, 128):
            items = list(made.iterate(prefetch=prefetch))
            assert Counter(items) == Counter(m for n in range(20) for m in range(n))


def test_an_infinite_inner_flow_is_taken_from():
    def count():
        n = 0
        while True:
            yield n
            n += 1

    assert_result(
        lambda: flow.range(3).pipe(flat_map(lambda _: flow.from_iterable(count()))).take(5),
        [0, 1, 2, 3, 4],
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    inners=st.lists(st.lists(st.integers(), max_size=8), max_size=8),
    kinds=st.lists(st.sampled_from(["iterable", "hidden", "single"]), min_size=8, max_size=8),
    concurrency=st.integers(1, 4),
    prefetch=st.integers(1, 4),
    steps=st.lists(st.integers(1, 5), max_size=10),
)
def test_random_inner_flows_give_all_items_each_flow_in_order(
    inners, kinds, concurrency, prefetch, steps
):
    def mapper(index):
        items = [(index, item) for item in inners[index]]
        if kinds[index] == "single" and len(items) == 1:
            return flow.just(items[0])
        made = flow.from_iterable(items)
        return made.hide() if kinds[index] == "hidden" else made

    seen = TestSubscriber(0)
    flow.range(len(inners)).pipe(
        flat_map(mapper, concurrency=concurrency, prefetch=prefetch)
    ).subscribe(seen)
    for step in steps:
        seen.request(step)
    seen.request(flow.UNBOUNDED)
    seen.assert_rules_kept()
    assert seen.terminated
    assert seen.error is None
    for index, items in enumerate(inners):
        assert [item for which, item in seen.items if which == index] == items
    assert len(seen.items) == sum(map(len, inners))


def test_iteration_over_synchronous_flows_opens_them_one_after_the_other():
    asked = []

    def inner(n):
        asked.append(n)
        return flow.range(n).map(lambda k: (n, k))

    items = iter(flow.range(5).pipe(flat_map(inner)))
    assert [next(items), next(items)] == [(1, 0), (2, 0)]
    assert asked == [0, 1, 2]
    assert list(items) == [(2, 1), *((n, k) for n in (3, 4) for k in range(n))]


def test_an_iteration_that_is_left_closes_the_inner_flow_and_the_upstream():
    closed = []

    def numbers(name):
        try:
            yield from range(3)
        finally:
            closed.append(name)

    made = flow.from_iterable(numbers("upstream"))
    made = made.pipe(flat_map(lambda n: flow.from_iterable(numbers(n)).map(str)))
    items = iter(made)
    assert next(items) == "0"
    items.close()
    assert closed == [0, "upstream"]


def test_an_inner_flow_that_fails_to_close_does_not_keep_the_upstream_open():
    closed = []

    def upstream():
        try:
            yield 0
        finally:
            closed.append("upstream")

    def inner(_):
        try:
            yield from range(3)
        finally:
            raise LookupError("planned")

    made = flow.from_iterable(upstream()).pipe(flat_map(lambda n: flow.from_iterable(inner(n))))
    items = iter(made)
    assert next(items) == 0
    with pytest.raises(LookupError, match="planned"):
        items.close()
    assert closed == ["upstream"]


@pytest.mark.parametrize("prefetch", [1, 2, 3, 128])
def test_an_iterated_inner_flow_of_more_than_prefetch_items_runs_beside_those_behind_it(prefetch):
    made = flow.range(6).pipe(
        flat_map(lambda n: flow.range(n).map(lambda k: (n, k)), prefetch=prefetch)
    )
    items = list(made)
    assert sorted(items) == [(n, k) for n in range(6) for k in range(n)]
    for n in range(6):
        assert [item for item in items if item[0] == n] == [(n, k) for k in range(n)]


def test_an_endless_iterated_inner_flow_does_not_keep_the_others_back():
    endless = flow.repeat_value(0).map(abs)
    inners = [endless, flow.just(1, 1).map(abs)]
    made = flow.range(2).pipe(flat_map(lambda n: inners[n], prefetch=4))
    items = iter(made)
    assert 1 in [next(items) for _ in range(1000)]
    items.close()


def test_an_iterated_inner_flow_that_has_to_be_waited_for_runs_beside_those_behind_it():
    started = []

    def inner(n):
        started.append(n)
        return flow.just(n, n).hide() if n % 2 else flow.just(n, n).map(abs)

    items = iter(flow.range(4).pipe(flat_map(inner)))
    assert next(items) == 0
    assert started == [0]
    assert sorted(items) == [0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("first", [flow.range(1).map(abs), flow.just(0, 0).hide()])
def test_a_mapper_that_fails_while_it_is_iterated_has_a_note_of_the_operator(first):
    def inner(n):
        if n:
            raise LookupError("planned")
        return first

    with pytest.raises(LookupError) as raised:
        list(flow.range(2).pipe(flat_map(inner)))
    assert any("flat_map(" in note for note in raised.value.__notes__)
