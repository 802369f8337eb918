"""`switch_map` and `switch_latest`: items, demand, errors, cancel, what is kept."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import Flow
from flow_core.errors import NoneItemError
from flow_ops import observe_on, subscribe_on, switch_latest, switch_map
from flow_testing import (
    BAD_SOURCES,
    ENDINGS,
    BadSource,
    ConditionalTestSubscriber,
    Ending,
    PublisherProbe,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_released,
    assert_result,
    check_bad_source,
    observe,
)

Inner = TestPublisher[int]


def switching(
    request: int = flow.UNBOUNDED, delay_error: bool = False
) -> tuple[TestPublisher[Inner], TestSubscriber[int]]:
    """An upstream whose items are publishers."""
    outer = TestPublisher[Inner]()
    made = Flow(outer).pipe(switch_map(lambda inner: Flow(inner), delay_error=delay_error))
    return outer, observe(made, request)


# -- results


@pytest.mark.parametrize(
    "inner",
    [
        lambda n: flow.range(n),
        lambda n: flow.range(n).hide(),
        lambda n: flow.range(n).filter(lambda m: m < 99),
        lambda n: flow.defer(lambda: flow.range(n)),
    ],
    ids=["range", "hidden", "stages", "deferred"],
)
@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("upstream", [flow.just, lambda n: flow.just(n).map(int)])
@pytest.mark.checklist("F06")
def test_one_inner_flow_is_given_as_it_is(inner: Any, count: int, upstream: Any) -> None:
    assert_result(lambda: upstream(count).pipe(switch_map(inner)), list(range(count)))


@pytest.mark.checklist("F02")
@pytest.mark.parametrize("item", [flow.just(7), flow.from_callable(lambda: 7)])
def test_an_inner_flow_of_one_item(item: Flow[int]) -> None:
    assert_result(lambda: flow.just(1).map(int).pipe(switch_map(lambda _: item)), [7])


def test_only_the_last_one_that_never_ends_matters() -> None:
    assert_result(
        lambda: flow.just(flow.never(), flow.never(), flow.range(5)).pipe(switch_latest()),
        list(range(5)),
    )


def test_with_unbounded_demand_synchronous_ones_are_given_in_full() -> None:
    flows = flow.range(4).pipe(switch_map(lambda n: flow.range(n).map(lambda m: (n, m))))
    assert list(flows.iterate(prefetch=1000)) == [(n, m) for n in range(4) for m in range(n)]


def test_each_takes_the_place_of_the_one_before() -> None:
    outer, subscriber = switching()
    first, second = Inner(), Inner()
    outer.next(first)
    first.next(1, 2)
    outer.next(second)
    first.assert_cancelled()
    second.next(3).complete()
    subscriber.assert_not_terminated()
    outer.complete()
    subscriber.assert_result(1, 2, 3)
    outer.assert_requests(flow.UNBOUNDED)


def test_it_ends_with_the_last_inner_flow() -> None:
    outer, subscriber = switching()
    inner = Inner()
    outer.next(inner).complete()
    inner.next(1)
    subscriber.assert_not_terminated()
    inner.complete()
    subscriber.assert_result(1)


def test_without_items_it_is_empty() -> None:
    outer, subscriber = switching(0)
    outer.complete()
    subscriber.assert_result()


@pytest.mark.checklist("P07", "P19", "P28")
def test_items_that_a_replaced_inner_flow_still_sends_are_dropped(dropped: Any) -> None:
    outer = TestPublisher[Inner]()
    subscriber = observe(Flow(outer).pipe(switch_map(Flow[int])))
    first, second = Inner(Violation.IGNORED_CANCEL), Inner()
    outer.next(first, second)
    first.next(1)
    second.next(2)
    first.error(ValueError("late"))
    second.complete()
    outer.complete()
    subscriber.assert_result(2)
    assert dropped.items == [1]
    assert [str(error) for error in dropped.errors] == ["late"]


# -- demand


@pytest.mark.checklist("P17", "P18", "P19")
def test_the_next_one_gets_a_request_for_the_outstanding_demand() -> None:
    outer, subscriber = switching(5)
    first, second, third = Inner(), Inner(), Inner()
    outer.next(first)
    first.assert_requests(5)
    first.next(1, 2)
    outer.next(second)
    second.assert_requests(3)
    subscriber.request(2)
    second.assert_requests(3, 2)
    first.assert_requests(5)
    second.next(3, 4, 5, 6, 7)
    outer.next(third)
    third.assert_not_requested()
    subscriber.request(1)
    third.assert_requests(1)


@pytest.mark.checklist("P16")
def test_unbounded_demand_stays_unbounded() -> None:
    outer, _ = switching()
    first, second = Inner(), Inner()
    outer.next(first)
    first.next(1)
    outer.next(second)
    second.assert_requests(flow.UNBOUNDED)


@pytest.mark.checklist("P06")
def test_demand_from_before_the_first_inner_flow_goes_to_it() -> None:
    outer, subscriber = switching(3)
    subscriber.request(4)
    inner = Inner()
    outer.next(inner)
    inner.assert_requests(7)


def test_a_rejected_item_of_an_inner_flow_is_requested_again() -> None:
    outer = TestPublisher[Inner]()
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2, 2)
    Flow(outer).pipe(switch_map(Flow[int])).subscribe(subscriber)
    first, second = Inner(), Inner()
    outer.next(first)
    first.next(0, 1)
    assert first.requested == 3
    outer.next(second)
    second.assert_requests(1)
    second.next(2, 3)
    assert subscriber.items == [1, 3]


def test_an_item_that_was_called_waits_for_demand_and_is_dropped_for_the_next(
    dropped: Any,
) -> None:
    outer = TestPublisher[int]()
    subscriber = observe(Flow(outer).pipe(switch_map(lambda n: flow.just(n))), 1)
    outer.next(1, 2, 3)
    subscriber.assert_items(1).request(1)
    outer.next(4).complete()
    subscriber.assert_items(1, 3).assert_not_terminated().request(1)
    subscriber.assert_result(1, 3, 4)
    assert dropped.items == [2]


def test_requests_within_on_next_do_not_nest() -> None:
    subscriber = observe(
        flow.just(0).map(int).pipe(switch_map(lambda _: flow.range(20_000).hide())),
        1,
        on_item=lambda self, _: self.request(1),
    )
    subscriber.assert_result(*range(20_000))


@pytest.mark.checklist("P27")
@pytest.mark.parametrize("inner", [flow.empty, lambda: flow.empty().hide(), lambda: flow.just(1)])
def test_many_that_end_at_once_do_not_nest(inner: Any) -> None:
    seen = observe(flow.range(20_000).pipe(switch_map(lambda _: inner())))
    seen.assert_result(*seen.items)


def test_one_within_the_other() -> None:
    made: Flow[int] = flow.just(0)
    for _ in range(20):
        before = made
        made = flow.just(0).map(int).pipe(switch_map(lambda _, before=before: before.hide()))
    assert list(made) == [0]


@pytest.mark.slow
def test_an_upstream_that_sends_within_on_next_does_not_nest_without_end() -> None:
    """The downstream's on_next brings the next item of the upstream, thousands of times."""
    subscriber = _Feeding(20_000)
    Flow(subscriber.outer).pipe(switch_map(lambda n: flow.just(n, n + 1).hide())).subscribe(
        subscriber
    )
    subscriber.outer.next(0)
    subscriber.assert_rules_kept()
    assert subscriber.items[-1] >= 20_000


class _Feeding(TestSubscriber[int]):
    """Sends the upstream's next item as soon as it has got one."""

    def __init__(self, count: int) -> None:
        self.outer = TestPublisher[int]()
        super().__init__(on_item=lambda _, item: item < count and self.outer.next(item + 1))


# -- errors


def test_an_error_of_the_inner_flow_cancels_the_upstream() -> None:
    outer, subscriber = switching()
    inner, error = Inner(), ValueError()
    outer.next(inner)
    inner.next(1).error(error)
    subscriber.assert_failure(error, 1)
    outer.assert_cancelled()


def test_an_error_of_the_upstream_cancels_the_inner_flow() -> None:
    outer, subscriber = switching()
    inner, error = Inner(), ValueError()
    outer.next(inner)
    outer.error(error)
    subscriber.assert_failure(error)
    inner.assert_cancelled()


def test_delayed_errors_come_at_the_end_together() -> None:
    outer, subscriber = switching(delay_error=True)
    first, second, errors = Inner(), Inner(), [ValueError(), KeyError()]
    outer.next(first)
    first.error(errors[0])
    outer.next(second)
    outer.error(errors[1])
    second.next(1)
    subscriber.assert_not_terminated()
    second.complete()
    subscriber.assert_failure(ExceptionGroup, 1)
    assert isinstance(subscriber.error, ExceptionGroup)
    assert list(subscriber.error.exceptions) == errors


@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_that_the_mapper_raises_ends_the_flow(delay_error: bool) -> None:
    error = KeyError("mapper")

    def mapper(inner: Inner | str) -> Flow[int]:
        if isinstance(inner, str):
            raise error
        return Flow(inner)

    outer, inner = TestPublisher[Inner | str](), Inner()
    subscriber = observe(Flow(outer).pipe(switch_map(mapper, delay_error=delay_error)))
    outer.next(inner)
    inner.next(1)
    outer.next("wrong")
    inner.assert_cancelled()
    outer.assert_cancelled()
    subscriber.assert_failure(error, 1)


@pytest.mark.parametrize("made", [None, 5])
@pytest.mark.parametrize("upstream", [flow.just(1), flow.just(1).hide()])
def test_a_mapper_has_to_give_a_flow(made: Any, upstream: Flow[int]) -> None:
    subscriber = observe(upstream.pipe(switch_map(lambda _: made)))
    subscriber.assert_failure(NoneItemError if made is None else TypeError)
    assert subscriber.error is not None
    assert any("in switch_map(" in note for note in subscriber.error.__notes__)


def test_an_inner_flow_that_is_called_may_fail() -> None:
    error = ValueError()

    def call() -> int:
        raise error

    made = flow.range(2).pipe(switch_map(lambda _: flow.from_callable(call)))
    observe(made).assert_failure(error)
    made = flow.range(2).pipe(
        switch_map(lambda n: flow.just(n) if n else flow.from_callable(call), delay_error=True)
    )
    observe(made).assert_failure(error, 1)


def test_a_fatal_error_of_the_mapper_propagates() -> None:
    def mapper(_: int) -> Flow[int]:
        raise KeyboardInterrupt

    outer = TestPublisher[int]()
    observe(Flow(outer).pipe(switch_map(mapper)))
    with pytest.raises(KeyboardInterrupt):
        outer.next(1)
    outer.assert_cancelled()


# -- cancel


@pytest.mark.checklist("P24")
def test_a_cancel_reaches_both() -> None:
    outer, subscriber = switching()
    inner = Inner()
    outer.next(inner)
    subscriber.cancel()
    outer.assert_cancelled()
    inner.assert_cancelled()


def test_a_bad_request_cancels_both() -> None:
    outer, subscriber = switching(0)
    inner = Inner()
    outer.next(inner)
    subscriber.request(0)
    subscriber.assert_failure(ValueError)
    outer.assert_cancelled()
    inner.assert_cancelled()


def test_the_old_one_is_cancelled_before_the_mapper_is_called() -> None:
    seen: list[bool] = []
    inners = [Inner(), Inner()]

    def mapper(n: int) -> Flow[int]:
        seen.append(inners[0].cancelled)
        return Flow(inners[n])

    outer = TestPublisher[int]()
    observe(Flow(outer).pipe(switch_map(mapper)))
    outer.next(0, 1)
    assert seen == [False, True]


# -- threads


def test_inner_flows_on_other_threads() -> None:
    with ThreadPoolExecutor(2) as pool:
        made = flow.range(50).pipe(
            switch_map(lambda n: flow.range(100).map(lambda m: (n, m)).pipe(observe_on(pool)))
        )
        seen = list(made)
    assert seen[-100:] == [(49, m) for m in range(100)]
    assert seen == sorted(seen)


def test_a_source_that_blocks_does_not_keep_the_next_one_from_running() -> None:
    """The first inner flow works on a pool, and hangs there; the second one is given at once."""
    entered, go_on = threading.Event(), threading.Event()

    def hang() -> int:
        entered.set()
        go_on.wait(20)
        return 1

    with ThreadPoolExecutor(1) as pool:
        hanging = flow.from_callable(hang).map(int).hide().pipe(subscribe_on(pool))
        outer = TestPublisher[Flow[int]]()
        subscriber = observe(Flow(outer).pipe(switch_latest()))
        outer.next(hanging)
        assert entered.wait(20)
        outer.next(flow.range(3).hide()).complete()
        subscriber.assert_result(0, 1, 2)
        go_on.set()


# -- against a model


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["outer", "item", "request", "end inner", "end outer"]), max_size=25)
)
def test_it_does_what_the_rules_say(steps: list[str]) -> None:
    outer, subscriber = switching(0)
    inner: Inner | None = None
    demand, expected, ended = 0, list[int](), False
    for number, step in enumerate(steps):
        if step == "request":
            subscriber.request(2)
            demand += 2
        elif step == "outer" and not ended:
            if inner is not None:
                before = inner
                inner = Inner()
                outer.next(inner)
                before.assert_cancelled()
            else:
                inner = Inner()
                outer.next(inner)
        elif step == "item" and inner is not None and inner.outstanding:
            inner.next(number)
            expected.append(number)
            demand -= 1
        elif step == "end inner" and inner is not None:
            inner.complete()
            inner = None
        elif step == "end outer" and not ended:
            outer.complete()
            ended = True
        subscriber.assert_items(*expected)
        assert inner is None or inner.outstanding == demand
        assert subscriber.completed == (ended and inner is None)
        if subscriber.completed:
            return


# -- the rules, and what is kept


@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
def test_it_keeps_the_rules_behind_a_bad_upstream(bad: BadSource, dropped: Any) -> None:
    check_bad_source(
        lambda source: source.pipe(switch_map(lambda n: flow.just(n))),
        only=lambda name: name == bad.name and name != "two threads at once",
    )


@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
def test_it_keeps_the_rules_behind_a_bad_inner_flow(bad: BadSource, dropped: Any) -> None:
    check_bad_source(
        lambda source: flow.just(0).map(int).pipe(switch_map(lambda _: source)),
        only=lambda name: name == bad.name,
    )


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize(
    "make",
    [
        lambda payloads: flow.just(0).map(int).pipe(switch_map(lambda _: payloads.pushed())),
        lambda payloads: flow.just(flow.never(), payloads.pushed()).pipe(switch_latest()),
        lambda payloads: payloads.pushed().pipe(switch_map(lambda item: flow.just(item))),
        lambda payloads: payloads.pushed().pipe(switch_map(lambda item: flow.just(item).hide())),
    ],
    ids=["inner", "second inner", "upstream, called", "upstream"],
)
def test_it_lets_go_of_everything(make: Any, ending: Ending) -> None:
    assert_released(make, only=lambda name: name == ending.name)


def test_a_replaced_inner_flow_is_let_go() -> None:
    probe = PublisherProbe(flow.never())
    outer = TestPublisher[Flow[int]]()
    observe(Flow(outer).pipe(switch_latest()))
    outer.next(probe.flow, flow.never())
    probe.assert_cancelled()


def test_a_function_is_needed() -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match="switch_map"):
        switch_map(wrong)
