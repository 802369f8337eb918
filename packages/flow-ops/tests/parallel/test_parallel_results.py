"""The items of rails: each comes once, whatever the rails do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, current_thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flow_core as flow
from flow_ops import FailureHandling, ParallelFlow, observe_on, parallel, repeat, retry
from flow_testing import (
    STAGE_CASES,
    TIMEOUT_S,
    StageCase,
    TestPublisher,
    TestSubscriber,
    assert_result,
    observe,
)


@pytest.fixture(scope="module")
def workers():
    with ThreadPoolExecutor(4, thread_name_prefix="worker") as pool:
        yield pool


def sorted_items(rails: ParallelFlow[Any], **more: Any) -> flow.Flow[list[Any]]:
    return rails.sequential(**more).to_list().map(sorted)


# -- the operators of a flow, in each rail


ONLY_OF_FLOWS = ("slice", "element_at", "zip_with_iterable")  # by brackets; by place
CASES = [case for case in STAGE_CASES if not case.name.startswith(ONLY_OF_FLOWS)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_stage_does_in_a_rail_what_it_does_in_a_flow(case: StageCase) -> None:
    items = [1, 1, 2, 3, 3, 3, 1, 7, 7]
    made: Any = case.apply(flow.from_iterable(items).parallel(1))  # type: ignore[arg-type]
    result = made.sequential() if isinstance(made, ParallelFlow) else made
    assert list(result) == case.model(items)


def test_an_operator_that_takes_time_runs_in_each_rail(workers: ThreadPoolExecutor) -> None:
    rails = flow.range(6).parallel(2).run_on(workers)
    late = rails.flat_map(lambda n: flow.just(n, n)).delay_elements(0.001).buffer_with_count(2)
    assert sorted(late.sequential()) == [[n, n] for n in range(6)]


# -- items


def test_one_rail_keeps_the_order() -> None:
    assert_result(
        lambda: flow.range(9).pipe(parallel(1)).map(lambda n: n + 1).sequential(), range(1, 10)
    )


@pytest.mark.parametrize("prefetch", [1, 2, 128])
@pytest.mark.parametrize("rails", [2, 3, 7])
def test_every_item_comes_once(rails: int, prefetch: int) -> None:
    assert_result(
        lambda: sorted_items(
            flow.range(9).pipe(parallel(rails, prefetch=prefetch)).map(lambda n: n * n),
            prefetch=prefetch,
        ),
        [[n * n for n in range(9)]],
    )


@pytest.mark.parametrize("rails", [1, 2, 4, 9])
def test_every_item_comes_once_across_threads(rails: int, workers: ThreadPoolExecutor) -> None:
    for source in (flow.range(1000), flow.range(1000).hide()):
        made = source.pipe(parallel(rails, prefetch=8)).run_on(workers, prefetch=4)
        result = list(made.filter(lambda n: n % 3).map(str).sequential(prefetch=2))
        assert sorted(result) == sorted(str(n) for n in range(1000) if n % 3)


@pytest.mark.slow
@given(
    items=st.lists(st.integers(), max_size=40),
    rails=st.integers(1, 5),
    prefetch=st.integers(1, 9),
    ahead=st.integers(1, 9),
)
def test_it_agrees_with_a_list(items: list[int], rails: int, prefetch: int, ahead: int) -> None:
    dealt = flow.from_iterable(items).pipe(parallel(rails, prefetch=prefetch))
    kept = dealt.filter(lambda n: n % 3).map(lambda n: -n)
    assert sorted(kept.sequential(prefetch=ahead)) == sorted(-n for n in items if n % 3)
    assert list(dealt.sorted(key=lambda n: -n)) == sorted(items, reverse=True)
    assert list(dealt.reduce(max)) == ([max(items)] if items else [])
    counts = dealt.reduce(lambda count, _: count + 1, 0).sequential().to_list().single()
    assert len(counts) == rails
    assert sum(counts) == len(items)


def test_rails_run_at_the_same_time(workers: ThreadPoolExecutor) -> None:
    together = Barrier(3)

    def meet(n: int) -> str:
        together.wait(TIMEOUT_S)
        return current_thread().name

    names = list(flow.range(3).pipe(parallel(3)).run_on(workers).map(meet).sequential())
    assert len(set(names)) == 3


def test_nothing_and_errors_end_all_rails(workers: ThreadPoolExecutor, dropped: Any) -> None:
    assert_result(lambda: flow.empty().pipe(parallel(3)).sequential(), [])
    error = ValueError("upstream")
    assert_result(lambda: flow.error(error).pipe(parallel(3)).sequential(), [], error)
    assert_result(
        lambda: flow.error(error).pipe(parallel(3)).run_on(workers).sequential(), [], error
    )
    # It may be on its way in one rail while the flow fails with it, out of another one.
    assert {*dropped.errors} <= {error}
    dropped.errors.clear()


@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_of_the_upstream_comes_once_and_after_its_items(
    delay_error: bool, workers: ThreadPoolExecutor
) -> None:
    error = ValueError("upstream")
    failing = flow.range(5).map(lambda n: n if n < 4 else fail(error))
    rails = failing.pipe(parallel(3))
    observe(rails.sequential(delay_error=delay_error)).assert_failure(error, 0, 1, 2, 3)
    subscriber = observe(rails.run_on(workers).sequential(delay_error=delay_error))
    subscriber.await_terminal()
    assert subscriber.error is error
    if delay_error:
        assert sorted(subscriber.items) == [0, 1, 2, 3]


def fail(error: BaseException) -> Any:
    raise error


def test_errors_of_several_rails_are_grouped_when_they_may_wait() -> None:
    rails = flow.range(4).pipe(parallel(2)).map(lambda n: n if n < 2 else fail(ValueError(n)))
    subscriber = observe(rails.sequential(delay_error=True))
    assert isinstance(subscriber.error, ExceptionGroup)
    assert sorted(error.args[0] for error in subscriber.error.exceptions) == [2, 3]
    assert sorted(subscriber.items) == [0, 1]
    subscriber = observe(rails.sequential())
    assert isinstance(subscriber.error, ValueError)


# -- operators


def test_operators_of_every_kind_stand_in_each_rail(workers: ThreadPoolExecutor) -> None:
    rails = flow.range(4).pipe(parallel(2))
    seen: list[int] = []
    assert sorted(rails.flat_map_iterable(range).sequential()) == [0, 0, 0, 1, 1, 2]
    assert sorted(rails.concat_map(flow.range).sequential()) == [0, 0, 0, 1, 1, 2]
    assert sorted(rails.flat_map(flow.range).sequential()) == [0, 0, 0, 1, 1, 2]
    assert sorted(rails.do_on_next(seen.append).sequential()) == sorted(seen) == [0, 1, 2, 3]
    assert sorted(rails.collect(list, list.append).sequential()) == [[0, 2], [1, 3]]
    assert sorted(rails.take(1).sequential()) == [0, 1]
    assert sorted(rails.pipe_rails(observe_on(workers)).map(str).sequential()) == list("0123")
    assert rails.rails == 2


def test_it_can_be_run_again_and_again() -> None:
    squares = flow.range(4).pipe(parallel(2)).map(lambda n: n * n).sequential()
    assert sorted(squares) == sorted(squares) == [0, 1, 4, 9]
    assert sorted(squares.map(lambda n: n + 1)) == [1, 2, 5, 10]


def test_sorted_merges_the_rails() -> None:
    assert_result(lambda: flow.just(5, 3, 9, 1).pipe(parallel(3)).sorted(), [1, 3, 5, 9])
    assert_result(
        lambda: flow.just("b", "C", "a").pipe(parallel(2)).sorted(key=str.lower, reverse=True),
        ["C", "b", "a"],
    )
    assert_result(lambda: flow.empty().pipe(parallel(2)).sorted(), [])


def test_reduce_without_a_seed_is_one_item() -> None:
    assert_result(lambda: flow.range(9).pipe(parallel(4)).reduce(lambda a, b: a + b), [36])
    assert_result(lambda: flow.just(7).pipe(parallel(4)).reduce(lambda a, b: a + b), [7])
    assert_result(lambda: flow.empty().pipe(parallel(4)).reduce(max), [])


# -- failures of functions


def inverse(n: int) -> float:
    return 1 / n


def test_a_failure_fails_the_flow() -> None:
    rails = flow.just(1, 0, 2).pipe(parallel(1))
    assert_result(lambda: rails.map(inverse).sequential().to_list(), [], ZeroDivisionError)
    assert_result(lambda: rails.filter(inverse).sequential().to_list(), [], ZeroDivisionError)


def test_a_failure_is_skipped() -> None:
    rails = flow.just(1, 0, 2).pipe(parallel(1))
    skip = FailureHandling.SKIP
    assert_result(lambda: rails.map(inverse, on_error=skip).sequential(), [1, 0.5])
    assert_result(lambda: rails.filter(inverse, on_error=skip).sequential(), [1, 2])
    assert_result(lambda: rails.map(lambda _: None, on_error=skip).sequential(), [])


def test_a_failure_stops_its_rail_only() -> None:
    stop = FailureHandling.STOP
    one = flow.just(1, 0, 2).pipe(parallel(1))
    assert_result(lambda: one.map(inverse, on_error=stop).sequential(), [1])
    assert_result(lambda: one.filter(inverse, on_error=stop).sequential(), [1])
    two = flow.just(0, 1, 2, 4).pipe(parallel(2))
    assert sorted(two.map(inverse, on_error=stop).sequential()) == [0.25, 0.5, 1]


def test_a_failure_is_tried_again_as_often_as_the_function_says() -> None:
    tried: list[int] = []

    def flaky(n: int) -> int:
        tried.append(n)
        if tried.count(n) < 3:
            raise ValueError(n)
        return n

    def twice(tries: int, error: BaseException) -> FailureHandling:
        assert isinstance(error, ValueError)
        return FailureHandling.RETRY if tries < 2 else FailureHandling.SKIP

    rails = flow.just(5, 6).pipe(parallel(1))
    assert list(rails.map(flaky, on_error=FailureHandling.RETRY).sequential()) == [5, 6]
    assert tried == [5, 5, 5, 6, 6, 6]
    tried.clear()
    assert list(rails.map(flaky, on_error=twice).sequential()) == []
    assert tried == [5, 5, 6, 6]
    tried.clear()
    assert list(rails.filter(flaky, on_error=lambda *_: FailureHandling.RETRY).sequential()) == [
        5,
        6,
    ]


def test_a_policy_that_gives_something_else_fails_the_flow() -> None:
    wrong: Any = lambda *_: "skip"  # noqa: E731 - an argument that must not be
    rails = flow.just(0).pipe(parallel(1))
    subscriber = observe(rails.map(inverse, on_error=wrong).sequential())
    subscriber.assert_failure(TypeError)
    assert isinstance(subscriber.error.__cause__, ZeroDivisionError)
    with pytest.raises(TypeError, match="FailureHandling"):
        rails.map(inverse, on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="function"):
        rails.map(None, on_error=FailureHandling.SKIP)  # type: ignore[arg-type]


def test_a_fatal_error_is_never_handled() -> None:
    def leave(_: object) -> Any:
        raise SystemExit

    rails = flow.just(0).pipe(parallel(1)).map(leave, on_error=FailureHandling.SKIP)
    with pytest.raises(SystemExit):
        list(rails.sequential())


# -- arguments


@pytest.mark.parametrize("wrong", [0, -1])
def test_numbers_have_to_be_positive(wrong: int) -> None:
    for assemble in (
        lambda: parallel(wrong),
        lambda: parallel(2, prefetch=wrong),
        lambda: flow.range(3).pipe(parallel(2)).sequential(prefetch=wrong),
    ):
        with pytest.raises(ValueError, match="at least 1"):
            assemble()
    with pytest.raises(TypeError, match="int"):
        parallel("2")  # type: ignore[arg-type]


def test_an_operator_that_makes_no_flow_is_refused() -> None:
    operator = flow.Operator("count", lambda _: 3)
    with pytest.raises(TypeError, match="no flow of a rail"):
        flow.range(3).pipe(parallel(2)).pipe_rails(operator)  # type: ignore[arg-type]


@pytest.mark.parametrize("rails", [1, 2])
def test_a_rail_that_is_subscribed_to_again_fails_instead_of_hanging(rails: int) -> None:
    seen = observe(flow.range(4).pipe(parallel(rails)).pipe_rails(repeat(2)).sequential())
    assert isinstance(seen.error, flow.ProtocolViolationError)
    assert "behind sequential()" in str(seen.error)

    failing = flow.range(4).pipe(parallel(rails)).map(lambda n: 1 // n)
    seen = observe(failing.pipe_rails(retry(1)).sequential())
    assert isinstance(seen.error, flow.ProtocolViolationError)


def test_without_a_number_there_are_as_many_rails_as_processors() -> None:
    assert flow.range(3).pipe(parallel()).rails >= 1


def test_it_tells_what_the_rails_do() -> None:
    rails = flow.range(3).pipe(parallel(2)).map(str)
    assert repr(rails) == "range(0, 3) | parallel(2: rail | map(str))"
    assert repr(rails.sequential()) == "range(0, 3) | parallel(2: rail | map(str))"


# -- demand


def test_the_upstream_is_asked_for_the_prefetch_and_three_quarters_again() -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](0)
    flow.Flow(source).pipe(parallel(2, prefetch=4)).sequential(prefetch=2).subscribe(subscriber)
    assert source.outstanding == 4
    source.next(0, 1, 2, 3)  # each rail has got two
    assert source.outstanding == 3
    source.next(4, 5, 6)
    assert source.outstanding == 0
    subscriber.request(2)
    subscriber.assert_items(0, 1)
    assert source.outstanding == 0
    subscriber.request(1)  # the second one of a rail, which has room for two again
    subscriber.assert_items(0, 1, 2)
    assert source.outstanding == 3
    source.complete()
    subscriber.request(100)
    assert sorted(subscriber.items) == list(range(7))
    assert subscriber.completed


def test_a_cancel_reaches_the_upstream_and_drops_waiting_items(dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](1)
    flow.Flow(source).pipe(parallel(2, prefetch=4)).sequential(prefetch=1).subscribe(subscriber)
    source.next(0, 1, 2, 3)
    subscriber.cancel()
    source.assert_cancelled()
    assert subscriber.items == [0]
    assert sorted(dropped.items) == [1, 2, 3]
