"""`expand` walks a tree, breadth first and depth first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_ops import expand
from flow_testing import (
    ENDINGS,
    Payloads,
    TestPublisher,
    TestSubscriber,
    assert_released,
    assert_result,
    check_bad_source,
)

WALKS = pytest.mark.parametrize("depth_first", [False, True])

KINDS = {
    "iterable": flow.from_iterable,
    "hidden": lambda items: flow.from_iterable(items).hide(),
    "scalars": lambda items: flow.just(*items) if items else flow.empty(),
    "callable": lambda items: (
        flow.from_callable(lambda: items[0]) if len(items) == 1 else flow.from_iterable(items)
    ),
    "deferred": lambda items: flow.defer(lambda: flow.from_iterable(items)),
}


def model(roots, children, depth_first):
    """The walk in plain Python."""
    waiting, seen = list(roots), []
    while waiting:
        node = waiting.pop(0)
        seen.append(node)
        below = children(node)
        waiting = [*below, *waiting] if depth_first else [*waiting, *below]
    return seen


def halves(n):
    return [n // 2, n // 2 - 1] if n > 3 else [n - 1] if n > 1 else []


@WALKS
@pytest.mark.parametrize("kind", KINDS)
def test_it_walks_in_the_given_order(kind, depth_first):
    assert_result(
        lambda: flow.just(9, 4).pipe(
            expand(lambda n: KINDS[kind](halves(n)), depth_first=depth_first)
        ),
        model([9, 4], halves, depth_first),
    )


@WALKS
@pytest.mark.parametrize("upstream", [flow.just(7), flow.empty(), flow.range(0), flow.range(1, 4)])
def test_upstreams_of_every_kind(upstream, depth_first):
    roots = list(upstream)
    assert_result(
        lambda: upstream.pipe(
            expand(lambda n: flow.from_iterable(halves(n)), depth_first=depth_first)
        ),
        model(roots, halves, depth_first),
    )


@settings(max_examples=60, deadline=None)
@given(
    tree=st.lists(st.lists(st.integers(1, 3), max_size=3), max_size=12),
    depth_first=st.booleans(),
    kind=st.sampled_from(sorted(KINDS)),
    steps=st.lists(st.integers(1, 5), max_size=6),
)
def test_random_trees(tree, depth_first, kind, steps):
    def children(node):
        return [node + step for step in tree[node]] if node < len(tree) else []

    expected = model([0, 1], children, depth_first)
    if len(expected) > 2_000:
        return
    seen = TestSubscriber(0)
    flow.just(0, 1).pipe(
        expand(lambda node: KINDS[kind](children(node)), depth_first=depth_first)
    ).subscribe(seen)
    for step in steps:
        seen.request(step)
    seen.request(flow.UNBOUNDED)
    seen.assert_result(*expected)


@WALKS
@pytest.mark.parametrize("kind", ["iterable", "hidden", "callable"])
@pytest.mark.checklist("X08")
def test_ten_thousand_levels_need_no_stack(kind, depth_first):
    seen = TestSubscriber()
    flow.just(0).pipe(
        expand(lambda n: KINDS[kind]([n + 1] if n < 10_000 else []), depth_first=depth_first)
    ).count().subscribe(seen)
    seen.assert_result(10_001)


def test_depth_first_the_mapper_is_not_called_without_demand():
    calls = []

    def mapper(n):
        calls.append(n)
        return flow.just(n + 1, n + 2)

    seen = TestSubscriber(0)
    flow.just(0).pipe(expand(mapper, depth_first=True)).subscribe(seen)
    seen.request(1)
    assert calls == []
    seen.request(1)
    assert calls == [0]
    seen.assert_items(0, 1).assert_not_terminated()
    seen.cancel()


def test_breadth_first_a_flow_starts_when_the_one_before_has_ended():
    flows = [TestPublisher() for _ in range(3)]
    seen = TestSubscriber(2)
    flow.Flow(flows[0]).pipe(expand(lambda n: flow.Flow(flows[n]))).subscribe(seen)
    flows[0].assert_requests(2)
    flows[0].next(1, 2)
    flows[1].assert_not_subscribed()
    flows[0].complete()
    flows[1].assert_subscribed().assert_not_requested()
    flows[1].complete()
    flows[2].complete()
    seen.request(1)
    seen.assert_result(1, 2)


def test_depth_first_each_flow_is_asked_for_one_item_at_a_time():
    flows = {n: TestPublisher() for n in range(3)}
    seen = TestSubscriber()
    flow.just(0).pipe(expand(lambda n: flow.Flow(flows[n]), depth_first=True)).subscribe(seen)
    flows[0].assert_requests(1)
    flows[0].next(1)
    flows[1].assert_requests(1)
    flows[0].assert_requests(1, 1)
    flows[0].next(2)
    seen.assert_items(0, 1)
    flows[1].complete()
    seen.assert_items(0, 1, 2)
    flows[2].complete()
    seen.assert_not_terminated()
    flows[0].complete()
    seen.assert_result(0, 1, 2)


@WALKS
def test_a_function_is_called_once(depth_first):
    calls = []

    def child(n):
        calls.append(n)
        return n + 1 if n < 3 else None

    assert list(
        flow.just(0).pipe(
            expand(lambda n: flow.from_callable(lambda: child(n)), depth_first=depth_first)
        )
    ) == [0, 1, 2, 3]
    assert calls == [0, 1, 2, 3]


def test_a_level_that_is_too_broad_ends_the_flow():
    made = flow.just(0).pipe(expand(lambda n: flow.range(10), capacity=5))
    assert_result(lambda: made, [0, 0, 1, 2, 3, 4], MissingBackpressureError)


def test_a_walk_that_gets_too_deep_ends_the_flow(dropped):
    made = flow.just(0).pipe(expand(lambda n: flow.just(n + 1), depth_first=True, capacity=5))
    assert_result(lambda: made, [0, 1, 2, 3, 4, 5], MissingBackpressureError)
    seen = TestSubscriber()
    flow.just(0).pipe(
        expand(lambda n: flow.just(n + 1) if n < 5 else flow.empty(), depth_first=True, capacity=5)
    ).subscribe(seen)
    seen.assert_result(*range(6))


@WALKS
def test_errors_of_all_kinds_end_the_flow(depth_first):
    failure = ValueError("no")

    def raises(n):
        if n == 1:
            raise failure
        return flow.just(n + 1)

    def check(mapper, items, error):
        assert_result(
            lambda: flow.just(0).pipe(expand(mapper, depth_first=depth_first)), items, error
        )

    check(raises, [0, 1], failure)
    assert any(note.startswith("in expand(") and __file__ in note for note in failure.__notes__)
    check(lambda _: flow.error(failure), [0], failure)
    check(lambda _: flow.from_callable(lambda: int("x")), [0], ValueError)
    check(lambda _: None, [0], NoneItemError)
    check(lambda _: 3, [0], TypeError)
    assert_result(
        lambda: flow.error(failure).pipe(expand(lambda _: flow.empty(), depth_first=depth_first)),
        [],
        failure,
    )


@WALKS
def test_a_cancel_reaches_the_flows_that_run(depth_first):
    source, inner = TestPublisher(), TestPublisher()
    seen = TestSubscriber()
    flow.Flow(source).pipe(expand(lambda _: flow.Flow(inner), depth_first=depth_first)).subscribe(
        seen
    )
    source.next(0)
    if not depth_first:
        source.complete()
    inner.assert_subscribed()
    seen.cancel()
    inner.assert_cancelled()
    if depth_first:
        source.assert_cancelled()


@WALKS
@pytest.mark.usefixtures("dropped")
def test_it_keeps_the_rules_whatever_its_upstream_does(depth_first):
    check_bad_source(
        lambda source: source.pipe(expand(lambda _: flow.empty(), depth_first=depth_first)),
        bounded=depth_first,
    )


@WALKS
@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
def test_it_lets_go_of_everything(depth_first, ending):
    def make(payloads: Payloads) -> flow.Flow[Any]:
        return payloads.pushed().pipe(expand(lambda _: flow.empty(), depth_first=depth_first))

    assert_released(make, only=lambda name: name == ending)


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(TypeError, match="expand"):
        expand(3)
    with pytest.raises(ValueError, match="capacity"):
        expand(flow.just, capacity=0)
