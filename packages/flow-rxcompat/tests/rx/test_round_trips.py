"""A flow that goes to the other library and back is the same; and pipelines of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import reactivex
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as ops
from reactivex.scheduler import EventLoopScheduler

import flow_core as flow
from flow_core import Flow
from flow_rxcompat.rx import from_rx, rx, to_rx, via_flow
from flow_testing import TestPublisher, TestSubscriber, assert_result

# -- round trips


def through_rx(items: Flow[Any]) -> Flow[Any]:
    return from_rx(to_rx(items))


def through_flow(items: Observable[Any]) -> Observable[Any]:
    return to_rx(from_rx(items))


WAYS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "converted": through_rx,
    "with a prefetch": lambda items: from_rx(to_rx(items, prefetch=3)),
    "as an operator": lambda items: items.pipe(rx(ops.as_observable())),
    "twice": lambda items: through_rx(through_rx(items)),
    "through ours within theirs": lambda items: from_rx(
        to_rx(items).pipe(via_flow(lambda inner: inner))
    ),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


@pytest.mark.checklist("A22")
@each_way
@pytest.mark.parametrize("count", [0, 1, 200])
def test_items_order_and_end_stay(way: Callable[[Flow[Any]], Flow[Any]], count: int) -> None:
    assert_result(lambda: way(flow.range(count)), [*range(count)])


@each_way
def test_items_are_the_identical_objects(way: Callable[[Flow[Any]], Flow[Any]]) -> None:
    items = [object() for _ in range(10)]
    got = list(way(flow.from_iterable(items)))
    assert all(a is b for a, b in zip(got, items, strict=True))


@each_way
def test_the_error_is_the_identical_object(way: Callable[[Flow[Any]], Flow[Any]]) -> None:
    error = LookupError("theirs")

    def fail(n: int) -> int:
        if n == 3:
            raise error
        return n

    assert_result(lambda: way(flow.range(5).map(fail)), [0, 1, 2], error)


@each_way
def test_an_error_at_once_is_the_identical_object(way: Callable[[Flow[Any]], Flow[Any]]) -> None:
    error = LookupError("theirs")
    assert_result(lambda: way(flow.error(error)), [], error)


@each_way
def test_a_cancel_arrives_once(way: Callable[[Flow[Any]], Flow[Any]]) -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    way(Flow(publisher)).subscribe(subscriber)
    publisher.next(1)
    subscriber.cancel()
    subscriber.assert_items(1).assert_silent_after_cancel()
    assert publisher.cancels == 1


@each_way
def test_take_stops_a_source_without_end(way: Callable[[Flow[Any]], Flow[Any]]) -> None:
    cancels: list[int] = []
    endless = flow.repeat_value(7).do_on_cancel(lambda: cancels.append(1))
    assert list(way(endless).take(3)) == [7, 7, 7]
    assert cancels == [1]


def test_the_way_round_by_their_side_keeps_everything() -> None:
    error = LookupError("theirs")
    disposed: list[int] = []
    seen: list[object] = []
    source = reactivex.concat(reactivex.of(1, 2), reactivex.throw(error)).pipe(
        ops.finally_action(lambda: disposed.append(1))
    )
    through_flow(source).subscribe(seen.append, seen.append)
    assert seen == [1, 2, error]
    assert disposed == [1]


def test_across_a_thread_nothing_is_lost_and_the_order_stays() -> None:
    scheduler = EventLoopScheduler()
    numbers = from_rx(to_rx(flow.range(20_000), scheduler))
    assert list(numbers) == list(range(20_000))
    scheduler.dispose()


# -- pipelines of operators that both have


@dataclass(frozen=True)
class Both:
    """One step, in both libraries."""

    name: str
    ours: Callable[[Flow[int]], Flow[int]]
    theirs: Callable[[Observable[int]], Observable[int]]

    def __repr__(self) -> str:
        return self.name


def less(limit: int) -> Callable[[int], bool]:
    return lambda n: n < limit


def of_number(n: int) -> list[Both]:
    """Steps that take a number."""
    return [
        Both(f"map(+{n})", lambda f: f.map(lambda m: m + n), ops.map(lambda m: m + n)),
        Both(
            f"filter(%{n + 1})",
            lambda f: f.filter(lambda m: m % (n + 1) == 0),
            ops.filter(lambda m: m % (n + 1) == 0),
        ),
        Both(f"take({n})", lambda f: f.take(n), ops.take(n)),
        Both(f"skip({n})", lambda f: f.skip(n), ops.skip(n)),
        Both(f"take_last({n})", lambda f: f.take_last(n), ops.take_last(n)),
        Both(f"skip_last({n})", lambda f: f.skip_last(n), ops.skip_last(n)),
        Both(f"take_while({n})", lambda f: f.take_while(less(n)), ops.take_while(less(n))),
        Both(f"skip_while({n})", lambda f: f.skip_while(less(n)), ops.skip_while(less(n))),
        Both(
            f"buffer_with_count({n + 1})",
            lambda f: f.buffer_with_count(n + 1).map(sum),
            lambda o: o.pipe(ops.buffer_with_count(n + 1), ops.map(sum)),
        ),
        Both(
            f"default_if_empty({n})",
            lambda f: f.default_if_empty(n),
            ops.default_if_empty(n),
        ),
        Both(f"start_with({n})", lambda f: f.start_with(n), ops.start_with(n)),
        Both(
            f"fail at {n}",
            lambda f: f.map(lambda item: 12 // (item - n)),
            ops.map(lambda item: 12 // (item - n)),
        ),
        Both(
            f"scan({n})",
            lambda f: f.scan(lambda a, b: a + b, n),
            ops.scan(lambda a, b: a + b, n),
        ),
        Both(
            f"reduce({n})",
            lambda f: f.reduce(lambda a, b: a + b, n),
            ops.reduce(lambda a, b: a + b, n),
        ),
        Both(
            f"all({n})",
            lambda f: f.all(less(n)).map(int),
            lambda o: o.pipe(ops.all(less(n)), ops.map(int)),
        ),
        Both(
            f"contains({n})",
            lambda f: f.contains(n).map(int),
            lambda o: o.pipe(ops.contains(n), ops.map(int)),
        ),
    ]


PLAIN = [
    Both(
        "pairwise",
        lambda f: f.pairwise().map(sum),
        lambda o: o.pipe(ops.pairwise(), ops.map(sum)),
    ),
    Both("distinct", lambda f: f.distinct(), ops.distinct()),
    Both(
        "distinct_until_changed",
        lambda f: f.distinct_until_changed(),
        ops.distinct_until_changed(),
    ),
    Both("count", lambda f: f.count(), ops.count()),
    Both("sum", lambda f: f.sum(), ops.sum()),
    Both("to_list", lambda f: f.to_list().map(sum), lambda o: o.pipe(ops.to_list(), ops.map(sum))),
    Both("ignore_elements", lambda f: f.ignore_elements(), ops.ignore_elements()),
    Both(
        "is_empty", lambda f: f.is_empty().map(int), lambda o: o.pipe(ops.is_empty(), ops.map(int))
    ),
]

steps = st.one_of(
    st.sampled_from(PLAIN), st.integers(0, 6).flatmap(lambda n: st.sampled_from(of_number(n)))
)


def ran(pipeline: Flow[Any] | Observable[Any]) -> tuple[list[Any], object]:
    """Return the items, and the end: the class of the error, or "end"."""
    seen: list[Any] = []
    ends: list[object] = []
    pipeline.subscribe(
        seen.append, lambda error: ends.append(type(error)), lambda: ends.append("end")
    )
    (end,) = ends
    return seen, end


@given(st.lists(st.integers(-3, 9), max_size=30), st.lists(steps, max_size=6))
@settings(max_examples=150, deadline=None)
def test_a_random_pipeline_gives_the_same_list_and_the_same_end_in_both(
    items: list[int], pipeline: list[Both]
) -> None:
    ours: Flow[int] = flow.from_iterable(items)
    theirs: Observable[int] = reactivex.from_iterable(items)
    for step in pipeline:
        ours = step.ours(ours)
        theirs = theirs.pipe(step.theirs)
    assert ran(ours) == ran(theirs)


@given(
    st.lists(st.integers(-3, 9), max_size=30),
    st.lists(st.tuples(steps, st.booleans()), max_size=6),
)
@settings(max_examples=150, deadline=None)
def test_a_random_pipeline_across_both_gives_the_same_list_and_the_same_end(
    items: list[int], pipeline: list[tuple[Both, bool]]
) -> None:
    mixed: Flow[int] = flow.from_iterable(items)
    mixed_theirs: Observable[int] = reactivex.from_iterable(items)
    theirs: Observable[int] = reactivex.from_iterable(items)
    for step, crossing in pipeline:
        theirs = theirs.pipe(step.theirs)
        mixed = mixed.pipe(rx(step.theirs)) if crossing else step.ours(mixed)
        mixed_theirs = mixed_theirs.pipe(via_flow(step.ours) if crossing else step.theirs)
    expected = ran(theirs)
    assert ran(mixed) == expected
    assert ran(mixed_theirs) == expected
