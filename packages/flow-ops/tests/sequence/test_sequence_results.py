"""The items of operators that run one flow after another, in every form in which they can run."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import Flow, NoItemError
from flow_core.protocols import Fusion
from flow_ops import (
    Backoff,
    and_then,
    concat,
    concat_map,
    concat_with,
    observe_on,
    on_error_resume,
    repeat,
    repeat_until,
    repeat_when,
    retry,
    retry_when,
    start_with_flows,
    switch_if_empty,
)
from flow_testing import TestSubscriber, assert_result

MANY = 10**5


def failing(times: int, item: int = 0) -> Flow[int]:
    """Gives `item`, and fails, a number of times; then completes."""
    left = [times]

    def attempt() -> Flow[int]:
        if not left[0]:
            return flow.just(item)
        left[0] -= 1
        return concat(flow.just(item), flow.error(ValueError(left[0])))

    return flow.defer(attempt)


def counting(runs: int) -> Callable[[], bool]:
    """True when it was called so often."""
    left = iter(range(runs - 1, -1, -1))
    return lambda: next(left) == 0


KINDS: dict[str, Callable[[int, int], Flow[int]]] = {
    "range": flow.range,
    "list": lambda start, stop: flow.from_iterable(list(range(start, stop))),
    "stages": lambda start, stop: flow.range(start - 1, stop - 1).map(lambda n: n + 1),
    "hidden": lambda start, stop: flow.range(start, stop).hide(),
    "deferred": lambda start, stop: flow.defer(lambda: flow.range(start, stop)),
    "boundary": lambda start, stop: flow.range(start, stop).pipe(
        observe_on(lambda task: task(), prefetch=2)
    ),
}
each_kind = pytest.mark.parametrize("kind", KINDS)

FORMS: dict[str, tuple[Callable[[Callable[[int, int], Flow[int]]], Flow[Any]], list[Any]]] = {
    "concat": (lambda make: concat(make(0, 2), make(2, 5), make(5, 6)), [*range(6)]),
    "concat, delayed": (
        lambda make: concat(make(0, 2), make(2, 5), delay_error=True),
        [*range(5)],
    ),
    "concat of empty ones": (lambda make: concat(make(0, 0), make(0, 2), make(0, 0)), [0, 1]),
    "concat_with": (lambda make: make(0, 3).pipe(concat_with(make(3, 5))), [*range(5)]),
    "start_with_flows": (
        lambda make: make(3, 5).pipe(start_with_flows(make(0, 2), make(2, 3))),
        [*range(5)],
    ),
    "and_then": (lambda make: make(0, 3).pipe(and_then(make(3, 6))), [3, 4, 5]),
    "repeat": (lambda make: make(0, 3).pipe(repeat(3)), [0, 1, 2] * 3),
    "repeat, for ever": (lambda make: make(0, 3).pipe(repeat()).take(7), [0, 1, 2, 0, 1, 2, 0]),
    "repeat_until": (
        lambda make: flow.defer(lambda: make(0, 3).pipe(repeat_until(counting(3)))),
        [0, 1, 2] * 3,
    ),
    "repeat_when": (
        lambda make: make(0, 3).pipe(repeat_when(lambda runs: runs.take(3))),
        [0, 1, 2] * 3,
    ),
    "retry": (
        lambda make: flow.defer(lambda: concat(make(0, 2), failing(2, 7)).pipe(retry(2))),
        [0, 1, 7] * 3,
    ),
    "retry_when": (
        lambda make: flow.defer(
            lambda: concat(make(0, 2), failing(2, 7)).pipe(retry_when(lambda errors: errors))
        ),
        [0, 1, 7] * 3,
    ),
    "retry_when, not needed": (lambda make: make(0, 4).pipe(retry_when(Backoff(1))), [*range(4)]),
    "switch_if_empty": (lambda make: make(0, 0).pipe(switch_if_empty(make(1, 4))), [1, 2, 3]),
    "switch_if_empty, not needed": (
        lambda make: make(1, 4).pipe(switch_if_empty(make(0, 9))),
        [1, 2, 3],
    ),
    "on_error_resume": (
        lambda make: make(0, 3).map(lambda n: 6 // (2 - n)).pipe(on_error_resume(make(5, 9))),
        [3, 6, 5, 6, 7, 8],
    ),
    "on_error_resume, by function": (
        lambda make: (
            make(0, 3).map(lambda n: 6 // (2 - n)).pipe(on_error_resume(lambda error: make(5, 9)))
        ),
        [3, 6, 5, 6, 7, 8],
    ),
}


@pytest.mark.parametrize("request_", [0, 1])
@pytest.mark.parametrize(
    "first",
    [
        lambda: flow.empty().first_or_error(),
        lambda: flow.from_iterable([]).last_or_error(),
        lambda: flow.just(1).element_at(1),
        lambda: flow.just(1).hide().element_at(1),
    ],
)
def test_a_flow_that_fails_at_its_end_does_so_whenever_that_is_found_out(
    first: Callable[[], Flow[int]], request_: int
) -> None:
    for made in (
        concat(first(), flow.just(5)),
        flow.just(0).pipe(concat_map(lambda _: first())),
        first().pipe(concat_with(flow.empty())),
    ):
        subscriber = TestSubscriber[int](request_)
        made.subscribe(subscriber)
        subscriber.request(5)
        subscriber.assert_failure(NoItemError)


@pytest.mark.many
@pytest.mark.checklist("P04", "P25", "P29")
@each_kind
@pytest.mark.parametrize("form", FORMS)
def test_flows_of_every_kind_follow_one_another(form: str, kind: str) -> None:
    make, expected = FORMS[form]
    assert_result(lambda: make(KINDS[kind]), expected)


@each_kind
@pytest.mark.parametrize("delay_error", [False, True])
@pytest.mark.usefixtures("dropped")  # a cancel finds errors that wait
def test_an_error_ends_a_concat_or_waits(kind: str, delay_error: bool) -> None:
    error, make = ValueError("second"), KINDS[kind]

    def made() -> Flow[int]:
        failed: Flow[int] = make(2, 4).pipe(concat_with(flow.error(error)))
        return concat(make(0, 2), failed, make(4, 6), delay_error=delay_error)

    assert_result(made, [0, 1, 2, 3, 4, 5] if delay_error else [0, 1, 2, 3], error)


def test_several_delayed_errors_come_as_a_group() -> None:
    errors = [ValueError("a"), KeyError("b")]
    made = concat(flow.error(errors[0]), flow.just(1), flow.error(errors[1]), delay_error=True)
    subscriber = TestSubscriber[int]()
    made.subscribe(subscriber)
    subscriber.assert_failure(ExceptionGroup, 1)
    assert isinstance(subscriber.error, ExceptionGroup)
    assert list(subscriber.error.exceptions) == errors


def test_none_at_all_is_empty() -> None:
    assert_result(lambda: concat(), [])
    assert_result(lambda: flow.range(2).pipe(concat_with()), [0, 1])
    assert_result(lambda: flow.range(2).pipe(repeat(0)), [])


@pytest.mark.usefixtures("dropped")
def test_a_chain_is_flattened_only_where_it_means_the_same() -> None:
    error = ValueError("inner")
    inner: Flow[int] = concat(flow.error(error), flow.just(1), delay_error=True)
    assert_result(lambda: concat(inner, flow.just(2)), [1], error)
    assert_result(lambda: concat(inner, flow.just(2), delay_error=True), [1, 2], error)
    mapped = concat(flow.just(1), flow.just(2)).map(lambda n: n + 10)
    assert_result(lambda: concat(mapped, flow.just(3)), [11, 12, 3])


@pytest.mark.parametrize("worker_runs", [1, 3])
def test_flows_on_other_threads_follow_one_another(worker_runs: int) -> None:
    with ThreadPoolExecutor(worker_runs) as pool:

        def there(start: int, stop: int) -> Flow[int]:
            return flow.range(start, stop).pipe(observe_on(pool, prefetch=2))

        assert list(concat(there(0, 50), there(50, 100))) == [*range(100)]
        assert list(there(0, 50).pipe(repeat(3))) == [*range(50)] * 3
        assert list(there(0, 50).pipe(repeat_until(counting(3)))) == [*range(50)] * 3
        expected = [*range(50), 7] * 3
        assert list(concat(there(0, 50), failing(2, 7)).pipe(retry())) == expected
        assert list(there(0, 0).pipe(switch_if_empty(there(0, 9)))) == [*range(9)]


def test_no_operator_forwards_the_upstreams_subscription() -> None:
    """A subscriber that polled past it would miss the items that it adds (F35)."""
    for form, expected in FORMS.values():
        subscriber: TestSubscriber[Any] = TestSubscriber(fusion=Fusion.ANY)
        form(flow.range).subscribe(subscriber)
        subscriber.assert_result(*expected)


def test_a_flow_of_flows_is_concatenated_by_concat_map() -> None:
    flows = flow.just(flow.range(2), flow.range(3))
    assert_result(lambda: flows.pipe(concat_map(lambda inner: inner)), [0, 1, 0, 1, 2])


_PARTS = st.lists(
    st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 4), st.booleans()), max_size=6
)


@settings(max_examples=60, deadline=None)
@given(_PARTS, st.lists(st.integers(1, 5), max_size=12))
def test_concat_is_itertools_chain(parts: list[tuple[str, int, bool]], requests: list[int]) -> None:
    def made() -> Iterator[Flow[int]]:
        for kind, count, nested in parts:
            one = KINDS[kind](1, count + 1)
            yield concat(one, flow.empty()) if nested else one

    model = list(itertools.chain(*(range(1, count + 1) for _, count, _ in parts)))
    subscriber = TestSubscriber[int](0)
    concat(*made()).subscribe(subscriber)
    for n in requests:
        subscriber.request(n)
    assert subscriber.items == model[: sum(requests)]
    subscriber.request(len(model) + 1)
    subscriber.assert_result(*model)


# -- no recursion


def run(made: Flow[Any], request: int = flow.UNBOUNDED) -> TestSubscriber[Any]:
    subscriber: TestSubscriber[Any] = TestSubscriber(request)
    made.subscribe(subscriber)
    return subscriber


@pytest.mark.slow
@pytest.mark.checklist("P27")
@pytest.mark.parametrize("hidden", [False, True])
def test_ten_thousand_empty_flows(hidden: bool) -> None:
    empty = flow.empty().hide() if hidden else flow.empty()
    run(concat(*[empty] * 10_000)).assert_result()
    run(concat(*[empty] * 10_000), 0).assert_result()
    assert list(concat(*[empty] * 10_000)) == []


@pytest.mark.slow
@pytest.mark.checklist("P27", "P29")
@pytest.mark.parametrize(("hidden", "times"), [(False, MANY), (True, MANY // 5)])
def test_a_hundred_thousand_failures_in_a_row(hidden: bool, times: int) -> None:
    left = [times]

    def attempt() -> int:
        left[0] -= 1
        return 1 // (left[0] < 0)

    source = flow.from_callable(attempt)
    run((source.hide() if hidden else source).pipe(retry())).assert_result(1)


@pytest.mark.slow
@pytest.mark.checklist("P27")
def test_a_hundred_thousand_runs() -> None:
    assert run(flow.empty().pipe(repeat(MANY))).completed
    assert run(flow.empty().pipe(repeat_until(counting(MANY // 5))), 0).completed


@pytest.mark.slow
@pytest.mark.checklist("P27")
def test_tens_of_thousands_of_runs_that_another_flow_allows() -> None:
    runs = 10 * sys.getrecursionlimit()
    assert run(flow.empty().pipe(repeat_when(lambda done: done.take(runs))), 0).completed
    left = iter(range(runs, -1, -1))
    source = flow.from_callable(lambda: 1 // (next(left) == 0))
    run(source.pipe(retry_when(lambda errors: errors))).assert_result(1)


@pytest.mark.checklist("P27")
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("how", ["concat_with", "nested to the right", "start_with_flows"])
def test_a_chain_of_thousands(how: str, hidden: bool) -> None:
    depth = 3 * sys.getrecursionlimit()

    def one(n: int) -> Flow[int]:
        return flow.just(n).hide() if hidden else flow.just(n)

    made = one(0)
    for n in range(1, depth):
        if how == "concat_with":
            made = made.pipe(concat_with(one(n)))
        elif how == "start_with_flows":
            made = made.pipe(start_with_flows(one(n)))
        else:
            made = one(n).pipe(concat_with(made))
    expected = [*range(depth)] if how == "concat_with" else [*range(depth - 1, -1, -1)]
    run(made).assert_result(*expected)
    assert list(made) == expected
    subscriber = run(made, 5)
    subscriber.cancel()
    subscriber.assert_items(*expected[:5])
