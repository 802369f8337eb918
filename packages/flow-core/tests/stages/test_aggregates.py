"""Stages that give one item for all: results, orders, types, errors, and the demand they need."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import UNBOUNDED, Flow, NoItemError, NoneItemError, TooManyItemsError
from flow_testing import TestPublisher, TestSubscriber, assert_result

Stages = Callable[[Flow[Any]], Flow[Any]]


class Pair(NamedTuple):
    """Compared by its first part alone."""

    key: int
    place: int

    def __lt__(self, other: Any) -> bool:
        return bool(self.key < other.key)


pairs = st.lists(st.integers(0, 3), max_size=12).map(
    lambda keys: [Pair(key, place) for place, key in enumerate(keys)]
)


@settings(max_examples=80, deadline=None)
@given(items=pairs)
def test_of_equal_items_the_first_is_the_least_and_the_greatest(items: list[Pair]) -> None:
    def key(item: Pair) -> int:
        return item.key

    source = flow.from_iterable(items)
    for made, expected in (
        (source.min(), [min(items, key=key)] if items else []),
        (source.max(), [max(items, key=key)] if items else []),
        (source.min(key), [min(items, key=key)] if items else []),
        (source.max(key), [max(items, key=key)] if items else []),
        (source.sort(), sorted(items, key=key)),
        (source.sort(reverse=True), sorted(items, key=key, reverse=True)),
        (source.sort(key), sorted(items, key=key)),
        (source.sort(key, reverse=True), sorted(items, key=key, reverse=True)),
    ):
        assert [tuple(item) for item in made] == [tuple(item) for item in expected]
        subscriber = TestSubscriber[Any]()
        made.hide().subscribe(subscriber)
        assert [tuple(item) for item in subscriber.items] == [tuple(item) for item in expected]


# -- sums and averages


@pytest.mark.parametrize(
    ("items", "start", "expected"),
    [
        ([], (), 0),
        ([1, 2], (), 3),
        ([0.5, 1], (), 1.5),
        ([Decimal("0.1"), Decimal("0.2")], (), Decimal("0.3")),
        ([Fraction(1, 3), Fraction(2, 3)], (), Fraction(1)),
        ([timedelta(1), timedelta(2)], (timedelta(),), timedelta(3)),
        ([], (timedelta(),), timedelta()),
        (["a", "b"], ("",), "ab"),
        ([(1,), (2,)], ((),), (1, 2)),
        ([True, True], (), 2),
    ],
)
def test_whatever_can_be_added_can_be_summed(items: list[Any], start: Any, expected: Any) -> None:
    assert_result(lambda: flow.from_iterable(items).sum(*start), [expected])


def test_items_that_cannot_be_added_fail_the_flow() -> None:
    assert_result(lambda: flow.just("a", "b").sum(), [], TypeError)
    assert_result(lambda: flow.just(timedelta(1), timedelta(2)).sum(), [], TypeError)
    assert_result(lambda: flow.just(1, "a").sum(), [], TypeError)


def test_summing_leaves_its_start_as_it_is() -> None:
    start: list[int] = []
    made = flow.just([1], [2]).sum(start)
    assert list(made) == [[1, 2]]
    assert list(made) == [[1, 2]]
    assert start == []


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([1, 2], 1.5),
        ([Fraction(1, 3), Fraction(2, 3)], Fraction(1, 2)),
        ([Decimal(1), Decimal(2)], Decimal("1.5")),
        ([True, False], 0.5),
    ],
)
def test_the_average_is_of_the_type_of_the_items(items: list[Any], expected: Any) -> None:
    assert_result(lambda: flow.from_iterable(items).average(), [expected])
    assert type(flow.from_iterable(items).average().single()) is type(expected)


def test_the_average_of_no_items_fails_with_no_item_error() -> None:
    assert_result(lambda: flow.empty().average(), [], NoItemError)
    assert_result(lambda: flow.empty().average().on_error_return(0.0), [0.0])


# -- nothing at all


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        (lambda f: f.reduce(lambda a, b: a + b), []),
        (lambda f: f.reduce(lambda a, b: a + b, 5), [5]),
        (lambda f: f.scan(lambda a, b: a + b, 5), []),
        (lambda f: f.collect(list, list.append), [[]]),
        (lambda f: f.to_list(), [[]]),
        (lambda f: f.to_set(), [set()]),
        (lambda f: f.to_dict(lambda n: n), [{}]),
        (lambda f: f.to_multidict(lambda n: n), [{}]),
        (lambda f: f.count(), [0]),
        (lambda f: f.min(), []),
        (lambda f: f.max(lambda n: n), []),
        (lambda f: f.sort(), []),
        (lambda f: f.all(lambda n: False), [True]),
        (lambda f: f.some(lambda n: True), [False]),
        (lambda f: f.is_empty(), [True]),
        (lambda f: f.contains(1), [False]),
    ],
)
def test_each_aggregate_gives_its_result_for_no_items(stages: Stages, expected: list[Any]) -> None:
    assert_result(lambda: stages(flow.empty()), expected)
    assert_result(lambda: stages(flow.range(3).filter(lambda _: False)), expected)


# -- results that are no items, and functions that fail


def test_a_result_of_none_is_an_error() -> None:
    assert_result(lambda: flow.range(3).reduce(lambda a, b: None), [], NoneItemError)
    assert_result(lambda: flow.empty().reduce(lambda a, b: a, None), [], NoneItemError)
    assert_result(lambda: flow.range(3).collect(lambda: None, lambda a, b: None), [], NoneItemError)
    assert_result(lambda: flow.range(3).scan(lambda a, b: None), [0], NoneItemError)
    assert_result(lambda: flow.range(3).reduce(lambda a, b: b if a is None else a + b, None), [3])


@pytest.mark.parametrize(
    "stages",
    [
        lambda f, bad: f.reduce(bad),
        lambda f, bad: f.collect(list, bad),
        lambda f, bad: f.to_dict(bad),
        lambda f, bad: f.to_dict(lambda n: n, bad),
        lambda f, bad: f.to_multidict(bad),
        lambda f, bad: f.to_multidict(lambda n: n, bad),
        lambda f, bad: f.min(bad),
        lambda f, bad: f.max(bad),
        lambda f, bad: f.sort(bad),
        lambda f, bad: f.all(bad),
        lambda f, bad: f.some(bad),
        lambda f, bad: f.distinct(bad),
    ],
)
def test_a_function_that_fails_fails_the_flow_and_cancels(stages: Any) -> None:
    error = KeyError(1)

    def bad(*_: object) -> Any:
        raise error

    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[Any]()
    stages(Flow(publisher), bad).subscribe(subscriber)
    publisher.next(1, 2)
    if not publisher.cancelled:
        publisher.complete()  # keys to sort by are asked for at the end
    subscriber.assert_failure(error)
    assert_result(lambda: stages(flow.range(3), bad), [], error)


def test_items_that_cannot_be_hashed_or_compared_fail_the_flow() -> None:
    assert_result(lambda: flow.just([1]).to_set(), [], TypeError)
    assert_result(lambda: flow.just([1]).distinct(), [], TypeError)
    assert_result(lambda: flow.just([1]).to_dict(lambda x: x), [], TypeError)
    assert_result(lambda: flow.just(1, "a").min(), [], TypeError)
    assert_result(lambda: flow.just(1, "a").sort(), [], TypeError)


# -- a container for each run


def test_each_subscriber_gets_separate_containers() -> None:
    for made in (
        flow.range(2).to_list(),
        flow.range(2).to_set(),
        flow.range(2).to_dict(lambda n: n),
        flow.range(2).to_multidict(lambda n: n),
        flow.range(2).collect(list, list.append),
        flow.range(2).buffer_with_count(2),
    ):
        first, second = made.single(), made.single()
        assert first == second
        assert first is not second


def test_of_items_with_the_same_key_the_last_counts_or_all_do() -> None:
    words = ("a", "bb", "c")
    assert_result(lambda: flow.just(*words).to_dict(len), [{1: "c", 2: "bb"}])
    assert_result(lambda: flow.just(*words).to_dict(len, str.upper), [{1: "C", 2: "BB"}])
    assert_result(lambda: flow.just(*words).to_multidict(len), [{1: ["a", "c"], 2: ["bb"]}])
    assert_result(
        lambda: flow.just(*words).to_multidict(len, str.upper), [{1: ["A", "C"], 2: ["BB"]}]
    )


# -- demand


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.reduce(lambda a, b: a + b),
        lambda f: f.to_list(),
        lambda f: f.count(),
        lambda f: f.sum(),
        lambda f: f.average(),
        lambda f: f.min(),
        lambda f: f.all(lambda n: True),
        lambda f: f.contains(9),
        lambda f: f.last_or_error(),
        lambda f: f.last_or_default(1),
    ],
)
def test_everything_is_asked_for_and_the_result_waits_for_demand(stages: Stages) -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[Any](0)
    stages(Flow(publisher)).subscribe(subscriber)
    publisher.assert_requests(UNBOUNDED)
    publisher.next(1)
    publisher.complete()
    assert not subscriber.terminated
    subscriber.assert_no_items()
    subscriber.request(1)
    assert subscriber.completed
    assert len(subscriber.items) == 1


@pytest.mark.parametrize(
    "stages", [lambda f: f.single_or_error(), lambda f: f.single_or_default(1)]
)
def test_two_items_are_enough_to_know_that_there_is_not_a_single_one(stages: Stages) -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[Any](0)
    stages(Flow(publisher)).subscribe(subscriber)
    publisher.assert_requests(2)
    publisher.next(1, 2)
    publisher.assert_cancelled()
    subscriber.assert_failure(TooManyItemsError)


def test_each_of_the_sorted_items_waits_for_demand() -> None:
    for source in (flow.just(3, 1, 2), flow.just(3, 1, 2).hide()):
        for made in (source.sort(), source.sort(lambda n: n)):
            subscriber = TestSubscriber[int](0)
            made.subscribe(subscriber)
            for count in (1, 2, 3):
                subscriber.request(1)
                subscriber.assert_items(*range(1, count + 1))
            subscriber.assert_result(1, 2, 3)


def test_an_error_of_the_source_leaves_no_result() -> None:
    error = KeyError(1)
    for stages in (
        lambda f: f.to_list(),
        lambda f: f.count(),
        lambda f: f.sum(),
        lambda f: f.sort(),
        lambda f: f.is_empty(),
        lambda f: f.all(bool),
    ):
        assert_result(lambda stages=stages: stages(flow.error(error)), [], error)
