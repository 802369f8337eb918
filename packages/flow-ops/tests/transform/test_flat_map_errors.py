"""`flat_map` fails at once, or when everything has ended."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_core.errors import NoneItemError
from flow_ops import flat_map
from flow_testing import TestPublisher, TestSubscriber, assert_result


def mapped(*inners, demand=flow.UNBOUNDED, **options):
    """A subscription to the flows that items 0, 1, … become."""
    source, seen = TestPublisher(), TestSubscriber(demand)
    flow.Flow(source).pipe(flat_map(lambda n: flow.Flow(inners[n]), **options)).subscribe(seen)
    return source, seen


def test_the_error_of_an_inner_flow_cancels_everything_and_overtakes_waiting_items(dropped):
    failure = ValueError("inner")
    one, two = TestPublisher(), TestPublisher()
    source, seen = mapped(one, two, demand=1)
    source.next(0, 1)
    one.next("a", "b")
    two.error(failure)
    seen.assert_failure(failure, "a")
    source.assert_cancelled()
    one.assert_cancelled()
    assert dropped.items == ["b"]


def test_the_error_of_the_upstream_cancels_the_inner_flows():
    failure = ValueError("upstream")
    inner = TestPublisher()
    source, seen = mapped(inner)
    source.next(0)
    inner.next("a")
    source.error(failure)
    seen.assert_failure(failure, "a")
    inner.assert_cancelled()


def test_a_delayed_error_of_an_inner_flow_lets_the_others_continue():
    failure = ValueError("inner")
    one, two = TestPublisher(), TestPublisher()
    source, seen = mapped(one, two, delay_error=True)
    source.next(0)
    one.error(failure)
    source.next(1)
    source.complete()
    two.next("b")
    seen.assert_items("b").assert_not_terminated()
    two.complete()
    seen.assert_failure(failure, "b")


def test_a_delayed_error_of_the_upstream_waits_for_the_inner_flows():
    failure = ValueError("upstream")
    inner = TestPublisher()
    source, seen = mapped(inner, delay_error=True)
    source.next(0)
    source.error(failure)
    inner.next("a")
    seen.assert_items("a").assert_not_terminated()
    inner.complete()
    seen.assert_failure(failure, "a")


def test_a_delayed_error_comes_after_waiting_items_for_demand():
    failure = ValueError("inner")
    inner = TestPublisher()
    source, seen = mapped(inner, demand=0, delay_error=True)
    source.next(0)
    inner.next("a")
    inner.error(failure)
    source.complete()
    seen.assert_not_terminated()
    seen.request(1)
    seen.assert_failure(failure, "a")


def test_several_delayed_errors_are_a_group():
    failures = [ValueError("one"), KeyError("two"), OSError("upstream")]
    inners = [TestPublisher(), TestPublisher()]
    source, seen = mapped(*inners, delay_error=True)
    source.next(0, 1)
    for inner, failure in zip(inners, failures, strict=False):
        inner.error(failure)
    source.error(failures[2])
    seen.assert_failure(ExceptionGroup)
    assert list(seen.error.exceptions) == failures
    assert "flat_map(" in str(seen.error)


def test_a_second_error_goes_to_the_hook(dropped):
    one, two = TestPublisher(), TestPublisher()
    source, seen = mapped(one, two)
    source.next(0, 1)
    first, second = ValueError("first"), ValueError("second")
    two_downstream = two._receiver()
    one.error(first)
    two_downstream.on_error(second)
    seen.assert_failure(first)
    assert dropped.errors == [second]


@pytest.mark.checklist("F07")
@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_of_the_mapper_fails_the_flow_with_a_note(delay_error):
    failure = ValueError("mapper")

    def mapper(n):
        if n == 2:
            raise failure
        return flow.just(n)

    assert_result(
        lambda: flow.range(9).hide().pipe(flat_map(mapper, concurrency=1, delay_error=True)),
        [0, 1],
        failure,
    )
    source, seen = TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(flat_map(mapper, delay_error=delay_error)).subscribe(seen)
    source.next(0, 1, 2, 3)
    seen.assert_failure(failure, 0, 1)
    source.assert_cancelled()
    assert any(note.startswith("in flat_map(") and __file__ in note for note in failure.__notes__)


def test_an_upstream_that_cannot_be_mapped_is_cancelled_and_the_inner_flows_end():
    inner = TestPublisher()
    source, seen = mapped(inner, delay_error=True)
    source.next(0, 1)
    source.assert_cancelled()
    inner.next("a").complete()
    seen.assert_failure(IndexError, "a")


@pytest.mark.checklist("F07")
@pytest.mark.parametrize(
    ("made", "error"), [(None, NoneItemError), (3, TypeError), ("ab", TypeError)]
)
@pytest.mark.parametrize("upstream", [lambda: flow.range(1), lambda: flow.just(0)])
def test_a_mapper_result_that_is_not_a_flow_fails_it(upstream, made, error):
    assert_result(lambda: upstream().pipe(flat_map(lambda _: made)), [], error)


@pytest.mark.checklist("F07")
def test_a_mapper_that_raises_stop_iteration_fails_the_flow():
    def mapper(_):
        raise StopIteration

    assert_result(lambda: flow.range(3).pipe(flat_map(mapper)), [], RuntimeError)


@pytest.mark.checklist("F02")
@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_that_a_called_inner_flow_raises_is_its_error(delay_error):
    failure = ValueError("called")

    def call(n):
        if n == 1:
            raise failure
        return n

    source, seen = TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(
        flat_map(lambda n: flow.from_callable(lambda: call(n)), delay_error=delay_error)
    ).subscribe(seen)
    source.next(0, 1, 2)
    if delay_error:
        source.complete()
        seen.assert_failure(failure, 0, 2)
    else:
        seen.assert_failure(failure, 0)
        source.assert_cancelled()


@pytest.mark.parametrize("where", ["mapper", "call"])
def test_a_fatal_error_propagates_and_stops_everything(where):
    def fatal():
        raise KeyboardInterrupt

    inner = TestPublisher()

    def mapper(n):
        if n == 0:
            return flow.Flow(inner)
        return fatal() if where == "mapper" else flow.from_callable(fatal)

    source, seen = TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(flat_map(mapper)).subscribe(seen)
    source.next(0)
    with pytest.raises(KeyboardInterrupt):
        source.next(1)
    seen.assert_not_terminated()
    source.assert_cancelled()
    inner.assert_cancelled()


def test_an_error_that_subscribe_raises_is_the_error_of_the_inner_flow():
    failure = ValueError("subscribe")

    class Bad:
        def subscribe(self, _):
            raise failure

    assert_result(lambda: flow.range(2).pipe(flat_map(lambda _: Bad())), [], failure)


@pytest.mark.checklist("F07")
@pytest.mark.parametrize(
    "upstream", [flow.error(ValueError("no")), flow.from_callable(lambda: int("x"))]
)
def test_an_upstream_that_fails_at_once(upstream):
    assert_result(lambda: upstream.pipe(flat_map(flow.just)), [], ValueError)


@pytest.mark.parametrize("inner", [flow.just, lambda n: flow.just(n).hide()])
@pytest.mark.parametrize("waits", [False, True])
def test_a_downstream_that_raises_cancels_everything(inner, waits, dropped):
    failure = ValueError("downstream")

    def fails(*_):
        raise failure

    source, seen = TestPublisher(), TestSubscriber(0 if waits else 1, on_item=fails)
    flow.Flow(source).pipe(flat_map(inner)).subscribe(seen)
    source.next(1)
    if waits:
        seen.request(1)
    source.assert_cancelled()
    assert dropped.errors == [failure]


def test_a_bad_request_fails_the_flow():
    inner = TestPublisher()
    source, seen = mapped(inner)
    source.next(0)
    seen.subscription.request(-1)
    seen.assert_failure(ValueError)
    seen.assert_error_message("3.9")
    source.assert_cancelled()
    inner.assert_cancelled()
