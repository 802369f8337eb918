"""The items of `zip` and `zip_with`, in every form in which a flow can run."""

from __future__ import annotations

import builtins

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core.protocols import IterableSource
from flow_core.structure import source_of
from flow_ops import concat_map, zip_with
from flow_ops import zip as zip_flows
from flow_testing import TestPublisher, TestSubscriber, assert_result

FORMS = {
    "range": lambda: flow.range(5),
    "list": lambda: flow.from_iterable([0, 1, 2, 3, 4]),
    "generator": lambda: flow.from_iterable(n for n in range(5)),
    "stages": lambda: flow.range(-1, 4).map(lambda n: n + 1),
    "dropping": lambda: flow.range(9).filter(lambda n: n < 5),
    "hidden": lambda: flow.range(5).hide(),
    "deferred": lambda: flow.defer(lambda: flow.range(5)),
    "concatenated": lambda: flow.just(0, 2, 4).pipe(
        concat_map(lambda n: flow.range(n, min(n + 2, 5)))
    ),
    "effects": lambda: flow.range(5).finally_action(lambda: None),
    "zipped": lambda: zip_flows(flow.range(5), flow.range(5)).starmap(lambda a, b: (a + b) // 2),
}


@pytest.mark.parametrize("right", FORMS)
@pytest.mark.parametrize("left", FORMS)
def test_flows_of_every_kind_are_zipped(left, right):
    made = zip_flows(FORMS[left](), FORMS[right]()).starmap(lambda a, b: (a, b))
    subscriber = TestSubscriber()
    made.subscribe(subscriber)
    subscriber.assert_result(*builtins.zip(range(5), range(5), strict=True))
    assert list(zip_flows(FORMS[left](), FORMS[right]())) == [(n, n) for n in range(5)]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_same_in_every_form(form):
    assert_result(
        lambda: zip_flows(FORMS[form](), flow.range(10, 20)).starmap(lambda a, b: a + b),
        [10, 12, 14, 16, 18],
    )


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_any_number_of_flows(count, hide):
    def sources():
        made = [flow.range(n, n + 3) for n in range(count)]
        return [source.hide() for source in made] if hide else made

    rows = [tuple(range(n, n + count)) for n in range(3)]
    assert_result(lambda: zip_flows(*sources()), rows)
    assert_result(
        lambda: zip_flows(*sources()).starmap(lambda *row: sum(row)), [sum(row) for row in rows]
    )


def test_without_flows_it_is_empty():
    assert_result(lambda: zip_flows(), [])


@pytest.mark.parametrize("hide", [False, True])
def test_the_shortest_ends_it(hide):
    def source(n):
        return flow.range(n).hide() if hide else flow.range(n)

    for lengths in [(3, 5), (5, 3), (0, 3), (3, 0), (0, 0), (4, 2, 3)]:
        expected = [(n,) * len(lengths) for n in range(min(lengths))]
        assert_result(lambda lengths=lengths: zip_flows(*map(source, lengths)), expected)


def test_zip_with_is_an_operator():
    assert_result(
        lambda: flow.range(3).pipe(zip_with(flow.just("a", "b", "c"))),
        [(0, "a"), (1, "b"), (2, "c")],
    )
    assert_result(
        lambda: flow.range(9).hide().pipe(zip_with(flow.range(1, 4))), [(0, 1), (1, 2), (2, 3)]
    )


def test_stages_follow_in_the_same_loop():
    assert_result(
        lambda: (
            zip_flows(flow.range(9), flow.range(9))
            .starmap(lambda a, b: a * b)
            .filter(lambda n: n % 2 == 0)
            .map(str)
            .take(3)
        ),
        ["0", "4", "16"],
    )


@pytest.mark.parametrize("prefetch", [1, 2, 3, 128])
def test_every_prefetch_gives_all_rows(prefetch):
    assert_result(
        lambda: zip_flows(flow.range(50).hide(), flow.range(50).hide(), prefetch=prefetch),
        [(n, n) for n in range(50)],
    )


def test_synchronous_flows_are_one_iterable():
    made = zip_flows(flow.range(3), flow.range(3).map(str))
    assert isinstance(source_of(made), IterableSource)
    assert not hasattr(source_of(made), "subscribe")
    hidden = zip_flows(flow.range(3), flow.range(3).hide())
    assert not isinstance(source_of(hidden), IterableSource)


def test_a_row_comes_when_the_last_item_of_it_does():
    left, right = TestPublisher(), TestPublisher()
    subscriber = TestSubscriber()
    zip_flows(flow.Flow(left), flow.Flow(right)).subscribe(subscriber)
    left.next(1, 2)
    subscriber.assert_no_items()
    right.next("a")
    subscriber.assert_items((1, "a"))
    right.next("b", "c")
    subscriber.assert_items((1, "a"), (2, "b"))
    left.next(3)
    subscriber.assert_items((1, "a"), (2, "b"), (3, "c"))
    subscriber.assert_not_terminated()


@pytest.mark.slow
def test_many_flows_and_many_items_take_no_deep_stack():
    assert sum(zip_flows(*[flow.range(3).hide()] * 2_000).starmap(lambda *row: len(row))) == 6_000
    subscriber = TestSubscriber(1, on_item=lambda subscriber, _: subscriber.request(1))
    zip_flows(flow.range(20_000).hide(), flow.range(20_000)).subscribe(subscriber)
    assert len(subscriber.items) == 20_000
    nested = flow.range(3)
    for _ in range(50):
        nested = zip_flows(nested, flow.range(3)).starmap(lambda a, _: a)
    assert list(nested) == [0, 1, 2]


lists = st.lists(st.lists(st.integers(), max_size=12), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(lists, st.data())
def test_it_agrees_with_the_builtin(items, data):
    hidden = [data.draw(st.booleans()) for _ in items]
    sources = [
        flow.from_iterable(each).hide() if hide else flow.from_iterable(each)
        for each, hide in builtins.zip(items, hidden, strict=True)
    ]
    prefetch = data.draw(st.integers(1, 5))
    expected = [*builtins.zip(*items, strict=False)]
    assert list(zip_flows(*sources, prefetch=prefetch)) == expected
    subscriber = TestSubscriber(0)
    zip_flows(*sources, prefetch=prefetch).subscribe(subscriber)
    while len(subscriber.items) < len(expected):
        before = len(subscriber.items)
        n = data.draw(st.integers(1, 4))
        subscriber.request(n)
        assert len(subscriber.items) == min(before + n, len(expected))
    subscriber.request(1)
    subscriber.assert_result(*expected)
