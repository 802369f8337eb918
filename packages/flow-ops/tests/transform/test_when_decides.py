"""`map_when`, `filter_when` and `delay_until`: another flow decides about each item."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core.errors import NoneItemError
from flow_ops import delay_until, filter_when, map_when
from flow_testing import (
    ENDINGS,
    Payloads,
    TestPublisher,
    TestSubscriber,
    assert_released,
    assert_result,
    check_bad_source,
)

FLOWS = {
    "scalar": lambda item: flow.just(item),
    "callable": lambda item: flow.from_callable(lambda: item),
    "several": lambda item: flow.just(item, "more"),
    "hidden": lambda item: flow.just(item, "more").hide(),
    "deferred": lambda item: flow.defer(lambda: flow.just(item)),
}


@pytest.mark.parametrize("kind", FLOWS)
@pytest.mark.parametrize("outer", [lambda: flow.range(4), lambda: flow.range(4).hide()])
def test_map_when_filter_when_and_delay_until_send_what_their_flows_decide(kind, outer):
    of = FLOWS[kind]
    assert_result(lambda: outer().pipe(map_when(lambda n: of(n * n))), [0, 1, 4, 9])
    assert_result(lambda: outer().pipe(filter_when(lambda n: of(n % 2 == 1))), [1, 3])
    assert_result(lambda: outer().pipe(delay_until(of)), [0, 1, 2, 3])


@pytest.mark.checklist("F06")
def test_an_upstream_of_one_item():
    assert_result(lambda: flow.just(3).pipe(map_when(lambda n: flow.just(n + 1, 0))), [4])
    assert_result(lambda: flow.just(3).pipe(filter_when(lambda n: flow.just(n == 3))), [3])
    assert_result(lambda: flow.just(3).pipe(delay_until(flow.range)), [3])


@pytest.mark.parametrize("empty", [flow.empty(), flow.empty().hide(), flow.range(0)])
def test_an_empty_flow_drops_the_item_or_lets_it_go(empty):
    assert_result(
        lambda: flow.range(4).pipe(map_when(lambda n: empty if n % 2 else flow.just(n))), [0, 2]
    )
    assert_result(
        lambda: flow.range(4).pipe(filter_when(lambda n: empty if n % 2 else flow.just(True))),
        [0, 2],
    )
    assert_result(lambda: flow.range(3).pipe(delay_until(lambda _: empty)), [0, 1, 2])


@pytest.mark.parametrize("operator", [map_when, filter_when])
def test_a_flow_is_cancelled_after_its_first_item(operator):
    inner, source, seen = TestPublisher(), TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(operator(lambda _: flow.Flow(inner))).subscribe(seen)
    source.next(1)
    inner.next(True)
    inner.assert_cancelled()
    seen.assert_items(1)


def test_an_item_waits_until_its_flow_has_completed_and_so_do_the_next():
    inners = [TestPublisher(), TestPublisher()]
    source, seen = TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(delay_until(lambda n: flow.Flow(inners[n]))).subscribe(seen)
    source.next(0, 1)
    source.complete()
    inners[1].assert_not_subscribed()
    inners[0].next("x", "y")
    seen.assert_no_items()
    inners[0].complete()
    seen.assert_items(0)
    inners[1].complete()
    seen.assert_result(0, 1)


def test_one_item_at_a_time_is_mapped_and_only_on_demand():
    calls, inners = [], [TestPublisher(), TestPublisher()]

    def mapper(n):
        calls.append(n)
        return flow.Flow(inners[n])

    seen = TestSubscriber(0)
    flow.range(2).hide().pipe(map_when(mapper, prefetch=2)).subscribe(seen)
    assert calls == []
    seen.request(1)
    assert calls == [0]
    inners[0].next("a")
    assert calls == [0]
    seen.assert_items("a").request(1)
    assert calls == [0, 1]
    inners[1].complete()
    seen.assert_result("a")


OPERATORS: dict[str, Any] = {
    "map_when": map_when,
    "filter_when": filter_when,
    "delay_until": delay_until,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_errors(name):
    operator, failure = OPERATORS[name], ValueError("no")

    def raises(n):
        if n == 1:
            raise failure
        return flow.just(True)

    def fails(n):
        return flow.error(failure) if n == 1 else flow.just(True)

    def calls(n):
        return flow.from_callable(lambda: raises(n) and True)

    for mapper in (raises, fails, calls):
        seen = TestSubscriber()
        flow.range(3).pipe(operator(mapper)).subscribe(seen)
        seen.assert_failure(failure, *seen.items)
        assert len(seen.items) == 1
    assert any(note.startswith(f"in {name}(") and __file__ in note for note in failure.__notes__)
    assert not any("concat_map" in note for note in failure.__notes__)
    for mapper in (fails, calls):
        seen = TestSubscriber()
        flow.range(3).pipe(operator(mapper, delay_error=True)).subscribe(seen)
        seen.assert_failure(failure, *seen.items)
        assert len(seen.items) == 2
    assert_result(lambda: flow.range(1).pipe(operator(lambda _: None)), [], NoneItemError)
    assert_result(lambda: flow.range(1).pipe(operator(lambda _: 3)), [], TypeError)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    inners=st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=8),
    hidden=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_random_flows(inners, hidden):
    def of(index):
        made = flow.from_iterable(inners[index])
        return made.hide() if hidden[index] else made

    indices = flow.range(len(inners))
    assert_result(lambda: indices.pipe(map_when(of)), [inner[0] for inner in inners if inner])
    assert_result(
        lambda: indices.pipe(filter_when(of)),
        [index for index, inner in enumerate(inners) if inner and inner[0]],
    )
    assert_result(lambda: indices.pipe(delay_until(of)), list(range(len(inners))))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.usefixtures("dropped")
def test_they_keep_the_rules_whatever_their_upstream_does(name):
    check_bad_source(
        lambda source: source.pipe(OPERATORS[name](lambda _: flow.just(True))), bounded=True
    )


@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("hidden", [False, True])
def test_they_let_go_of_everything(name, hidden, ending):
    def of(n: Any) -> flow.Flow[Any]:
        return flow.just(n).hide() if hidden else flow.just(n)

    def make(payloads: Payloads) -> flow.Flow[Any]:
        return payloads.pushed().pipe(OPERATORS[name](of))

    assert_released(make, only=lambda each: each == ending)


@pytest.mark.parametrize("operator", [map_when, filter_when, delay_until])
def test_wrong_arguments_are_refused_at_once(operator):
    with pytest.raises(TypeError, match=operator.__name__):
        operator(3)
    with pytest.raises(ValueError, match="prefetch"):
        operator(flow.just, prefetch=0)
