"""Demand through stages: the requests to the upstream, and the time when a flow completes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, cycle
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow
from flow_core.protocols import CoreSubscriber, Subscription
from flow_core.stages import _pulled as pulled
from flow_core.stages import _pushed as pushed
from flow_testing import (
    STAGE_CASES,
    ConditionalTestSubscriber,
    StageCase,
    TestPublisher,
    TestSubscriber,
    Violation,
)

hidden_or_not = pytest.mark.parametrize("hidden", [False, True], ids=["plain", "hidden"])


def source(items: range, *, hidden: bool) -> Flow[int]:
    made = flow.range(items.start, items.stop, items.step)
    return made.hide() if hidden else made


class Pulled:
    """An iterable that counts how many items were taken."""

    def __init__(self, items: Iterator[int] | None = None) -> None:
        self.items = count() if items is None else items
        self.taken = 0

    def __iter__(self) -> Iterator[int]:
        for item in self.items:
            self.taken += 1
            yield item


def subscribed(made: Flow[Any], request: int = UNBOUNDED) -> TestSubscriber[Any]:
    subscriber = TestSubscriber[Any](request)
    made.subscribe(subscriber)
    return subscriber


# -- the source


def test_nothing_is_taken_from_the_source_without_demand() -> None:
    items = Pulled()
    subscriber = subscribed(flow.from_iterable(items).map(str), 0)
    assert items.taken == 0
    subscriber.request(2)
    assert items.taken == 2
    subscriber.assert_items("0", "1").assert_not_terminated()


@pytest.mark.checklist("F16")
def test_demand_adds_up_and_is_met_item_by_item() -> None:
    subscriber = subscribed(flow.range(10), 1)
    for seen in range(1, 6):
        subscriber.assert_items(*range(seen)).request(1)
    subscriber.request(2)
    subscriber.assert_items(*range(8)).assert_not_terminated()


@pytest.mark.checklist("X03")
@hidden_or_not
def test_demand_is_capped_and_stays_unbounded(hidden: bool) -> None:
    subscriber = subscribed(source(range(1000), hidden=hidden).map(lambda n: n), 0)
    subscriber.request(1)
    subscriber.request(UNBOUNDED - 1)
    subscriber.request(UNBOUNDED)
    subscriber.assert_result(*range(1000))


@pytest.mark.parametrize("part", [1, 2, 3])
@pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)
def test_a_loop_gets_its_demand_in_parts(
    case: StageCase, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2**29 items, which takes too long to see."""
    monkeypatch.setattr(pulled, "GRANT", part)
    monkeypatch.setattr(pushed, "GRANT", part)
    items = [3, 1, 4, 1, 5, 9, 2, 6, 5]
    for source in (
        flow.from_iterable(items),
        flow.from_iterable(items).hide(),
        Flow(flow.from_iterable(items)),
    ):
        for request in (UNBOUNDED, 100):
            subscribed(case.apply(source), request).assert_result(*case.model(items))
        turns = cycle((True, False))
        half = ConditionalTestSubscriber[Any](lambda _, turns=turns: next(turns))
        case.apply(source).subscribe(half)
        half.assert_result(*case.model(items)[::2])


# -- completion without more demand


@pytest.mark.parametrize(
    "make",
    [
        lambda: flow.range(3),
        lambda: flow.from_iterable([0, 1, 2]),
        lambda: flow.just(0, 1, 2),
        lambda: flow.range(3).map(lambda n: n),
        lambda: flow.range(9).take(3),
        lambda: flow.from_iterable(count()).take(3),
        lambda: flow.range(3).hide(),
        lambda: flow.range(3).hide().map(lambda n: n),
        lambda: flow.range(9).hide().take(3),
        lambda: flow.just(0).flat_map_iterable(lambda _: [0, 1, 2]),
        lambda: flow.just(0).hide().flat_map_iterable(lambda _: [0, 1, 2]),
        lambda: flow.just(0).flat_map_iterable(lambda _: count()).take(3),
        lambda: flow.just(0).hide().flat_map_iterable(lambda _: count()).take(3),
        lambda: flow.range(3).buffer_with_count(2).flat_map_iterable(lambda items: items),
        lambda: flow.range(3).hide().buffer_with_count(2).flat_map_iterable(lambda items: items),
    ],
)
def test_a_flow_with_a_known_end_completes_with_its_last_item(
    make: Callable[[], Flow[int]],
) -> None:
    subscribed(make(), 3).assert_result(0, 1, 2)


@pytest.mark.parametrize(
    "make",
    [
        flow.empty,
        flow.just,
        lambda: flow.range(0),
        lambda: flow.range(0).map(str).filter(bool),
        lambda: flow.range(0).hide().flat_map_iterable(range),
        lambda: flow.range(0).hide().buffer_with_count(2),
        lambda: flow.range(0).hide().reduce(lambda a, b: a + b),
        lambda: flow.range(5).take(0),
        lambda: flow.never().take(0),
    ],
)
def test_an_empty_flow_completes_without_demand(make: Callable[[], Flow[Any]]) -> None:
    subscribed(make(), 0).assert_result()


def test_an_error_needs_no_demand() -> None:
    error = ValueError()
    subscribed(flow.error(error), 0).assert_failure(error)
    subscribed(flow.error(error).map(str), 0).assert_failure(error)
    subscribed(flow.error(error).to_list(), 0).assert_failure(error)


# -- stages that give one item at the end


@pytest.mark.parametrize(
    ("aggregate", "result"),
    [
        (lambda f: f.reduce(lambda a, b: a + b), 45),
        (lambda f: f.reduce(lambda a, b: a + b, 5), 50),
        (lambda f: f.count(), 10),
        (lambda f: f.to_list(), list(range(10))),
        (lambda f: f.collect(list, list.append), list(range(10))),
        (lambda f: f.filter(lambda n: n % 2).map(str).count(), 5),
        (lambda f: f.flat_map_iterable(range).count(), 45),
    ],
)
@hidden_or_not
def test_an_aggregate_waits_for_demand_and_one_is_enough(
    aggregate: Callable[[Flow[int]], Flow[Any]], result: object, hidden: bool
) -> None:
    subscriber = subscribed(aggregate(source(range(10), hidden=hidden)), 0)
    subscriber.assert_items().assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_result(result)


def test_an_aggregate_asks_its_upstream_for_everything_at_once() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).count(), 0)
    publisher.assert_requests(UNBOUNDED)
    publisher.next(7, 8, 9).complete()
    subscriber.assert_items().assert_not_terminated().request(1)
    subscriber.assert_result(3)


def test_an_aggregate_of_the_first_items_asks_for_those() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).take(3).to_list(), 0)
    publisher.assert_requests(3).next(7, 8, 9).assert_cancelled()
    subscriber.assert_items().assert_not_terminated().request(1)
    subscriber.assert_result([7, 8, 9])


# -- stages that pass an item or drop it


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(str),
        lambda f: f.filter(bool),
        lambda f: f.scan(lambda a, b: a + b),
        lambda f: f.do_on_next(str),
        lambda f: f.distinct(),
        lambda f: f.distinct_until_changed(),
        lambda f: f.skip_while(lambda n: n < 0),
        lambda f: f.take_while(lambda n: n > 0).map(str),
    ],
)
def test_demand_passes_through_stages_that_make_one_of_one(
    stages: Callable[[Flow[int]], Flow[Any]],
) -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(stages(Flow(publisher)), 2)
    publisher.assert_requests(2).next(1, 2).assert_requests(2)
    subscriber.request(3)
    publisher.assert_requests(2, 3).next(3, 4, 5)
    subscriber.request(UNBOUNDED)
    publisher.assert_requests(2, 3, UNBOUNDED).complete()
    assert len(subscriber.items) == 5
    assert subscriber.completed


@pytest.mark.checklist("F19")
def test_a_dropped_item_is_asked_for_again() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).filter(lambda n: n % 2), 2)
    publisher.next(0, 1).assert_requests(2, 1)
    publisher.next(2, 3).assert_requests(2, 1, 1)
    subscriber.assert_items(1, 3)
    assert publisher.outstanding == 0


@pytest.mark.checklist("F12", "F15", "F18", "F57")
@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.filter(lambda n: n % 2),
        lambda f: f.map(lambda n: n + 2).filter(lambda n: n % 2).map(lambda n: n - 2),
        lambda f: f.skip_while(lambda n: n < 1).filter(lambda n: n % 2),
        lambda f: f.skip(1).filter(lambda n: n % 2),
    ],
)
def test_a_conditional_upstream_sees_no_request_for_dropped_items(
    stages: Callable[[Flow[int]], Flow[int]],
) -> None:
    publisher = TestPublisher[int](conditional=True)
    subscriber = subscribed(stages(Flow(publisher)), 2)
    publisher.next(0, 1, 2, 3).assert_requests(2)
    assert publisher.outstanding == 0
    subscriber.assert_items(1, 3)


@pytest.mark.checklist("F17")
def test_the_answer_of_a_conditional_subscriber_reaches_a_conditional_upstream() -> None:
    publisher = TestPublisher[int](conditional=True)
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2, 2)
    Flow(publisher).map(lambda n: n + 1).subscribe(subscriber)
    publisher.next(0, 1, 2).assert_requests(2)
    subscriber.assert_items(1, 3)
    assert subscriber.rejected == [2]
    assert subscriber.offered == 3


@pytest.mark.checklist("F14")
def test_the_source_offers_items_to_a_conditional_subscriber_with_and_without_bound() -> None:
    for request in (2, UNBOUNDED):
        subscriber = ConditionalTestSubscriber[int](lambda n: n > 2, request)
        flow.range(5).subscribe(subscriber)
        subscriber.assert_result(3, 4)
        assert subscriber.offered == 5


# -- take


@pytest.mark.parametrize("request_first", [1, 2, 5, UNBOUNDED])
@pytest.mark.parametrize(
    "before",
    [
        lambda f: f,
        lambda f: f.map(lambda n: n),
        lambda f: f.scan(lambda _, n: n),
        lambda f: f.do_on_next(str),
    ],
)
def test_take_never_asks_for_more_than_it_lets_through(
    before: Callable[[Flow[int]], Flow[int]], request_first: int
) -> None:
    publisher = TestPublisher[int](Violation.OVERFLOW)
    subscriber = subscribed(before(Flow(publisher)).take(3), request_first)
    subscriber.request(UNBOUNDED)
    subscriber.request(UNBOUNDED)
    assert sum(publisher.requests) == 3
    publisher.next(7, 8).assert_not_cancelled().next(9).assert_cancelled()
    subscriber.assert_result(7, 8, 9)
    assert publisher.cancels == 1


def test_take_behind_a_filter_asks_for_what_was_dropped_and_no_more() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).filter(lambda n: n % 2).take(2))
    publisher.assert_requests(2).next(0, 1, 2).assert_requests(2, 1, 1).next(3).assert_cancelled()
    subscriber.assert_result(1, 3)


def test_a_filter_behind_take_asks_for_no_item_that_take_would_stop() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).take(3).filter(lambda n: n % 2), 2)
    publisher.assert_requests(2).next(0).assert_requests(2, 1).next(2).assert_requests(2, 1)
    publisher.next(4)
    subscriber.assert_result()
    publisher.assert_cancelled()


@pytest.mark.parametrize("hidden", [False, True])
def test_take_takes_exactly_as_many_items_of_the_source(hidden: bool) -> None:
    items = Pulled()
    made = flow.from_iterable(items)
    subscribed((made.hide() if hidden else made).take(3)).assert_result(0, 1, 2)
    assert items.taken == 3
    assert list(flow.from_iterable(items).take(2)) == [3, 4]
    assert items.taken == 5


def test_take_of_nothing_does_not_subscribe() -> None:
    publisher = TestPublisher[int]()
    subscribed(Flow(publisher).take(0)).assert_result()
    assert publisher.subscribed == 0


# -- stages that make many of one, or emit at the end


def test_the_inbox_is_filled_ahead_and_refilled_at_75_percent() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).flat_map_iterable(lambda n: [n]), 1)
    publisher.assert_requests(128).next(*range(128))
    subscriber.assert_items(0).request(94)
    publisher.assert_requests(128)
    subscriber.request(1)
    subscriber.assert_items(*range(96))
    publisher.assert_requests(128, 96)


def test_unbounded_demand_asks_for_everything_once() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).flat_map_iterable(lambda n: [n] * n))
    publisher.assert_requests(UNBOUNDED).next(*range(300)).assert_requests(UNBOUNDED).complete()
    assert len(subscriber.items) == sum(range(300))
    assert subscriber.completed


def test_a_leading_take_bounds_the_inbox() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).take(5).flat_map_iterable(lambda n: [n, n]), 1)
    publisher.assert_requests(5).next(*range(5))
    subscriber.assert_items(0).request(UNBOUNDED)
    publisher.assert_requests(5).assert_cancelled()
    subscriber.assert_result(0, 0, 1, 1, 2, 2, 3, 3, 4, 4)


def test_more_than_the_inbox_holds_is_an_error_that_says_what_to_do() -> None:
    publisher = TestPublisher[int](Violation.OVERFLOW)
    subscriber = subscribed(Flow(publisher).flat_map_iterable(lambda n: [n] * 2), 1)
    publisher.next(*range(200)).assert_cancelled()
    assert isinstance(subscriber.error, flow.MissingBackpressureError)
    assert "flat_map_iterable" in str(subscriber.error)
    assert "back-pressure" in str(subscriber.error)
    subscriber.assert_items(0)


@hidden_or_not
def test_endless_inner_iterables_are_taken_as_far_as_the_demand_goes(hidden: bool) -> None:
    inner: list[Pulled] = []

    def endless(_: int) -> Pulled:
        inner.append(Pulled())
        return inner[-1]

    made = source(range(5), hidden=hidden).flat_map_iterable(endless)
    subscriber = subscribed(made, 3)
    subscriber.assert_items(0, 1, 2).assert_not_terminated()
    subscriber.request(4)
    subscriber.assert_items(*range(7))
    assert [items.taken for items in inner] == [7]
    subscriber.cancel()
    subscriber.request(5)
    assert [items.taken for items in inner] == [7]


@hidden_or_not
def test_endless_inner_iterables_within_each_other(hidden: bool) -> None:
    made = (
        source(range(3), hidden=hidden)
        .flat_map_iterable(lambda _: count())
        .filter(lambda n: n % 2)
        .flat_map_iterable(lambda n: count(n * 100))
    )
    subscriber = subscribed(made, 3)
    subscriber.assert_items(100, 101, 102).assert_not_terminated()
    subscriber.cancel()
    assert list(made.take(2)) == [100, 101]


@hidden_or_not
def test_an_inner_iterable_that_ends_with_the_demand_costs_no_look_ahead(hidden: bool) -> None:
    seen: list[int] = []
    made = (
        source(range(5), hidden=hidden).do_on_next(seen.append).flat_map_iterable(lambda n: [n, n])
    )
    subscriber = subscribed(made, 2)
    subscriber.assert_items(0, 0)
    assert seen == [0]
    subscriber.request(1)
    assert seen == [0, 1]


@hidden_or_not
def test_a_buffer_needs_as_many_items_as_it_holds_and_its_rest_waits_for_demand(
    hidden: bool,
) -> None:
    subscriber = subscribed(source(range(5), hidden=hidden).buffer_with_count(2), 2)
    subscriber.assert_items([0, 1], [2, 3]).assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_result([0, 1], [2, 3], [4])


@hidden_or_not
def test_each_of_several_rests_waits_for_its_demand(hidden: bool) -> None:
    subscriber = subscribed(source(range(4), hidden=hidden).buffer_with_count(3, 1), 2)
    subscriber.assert_items([0, 1, 2], [1, 2, 3]).assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_items([0, 1, 2], [1, 2, 3], [2, 3]).assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_result([0, 1, 2], [1, 2, 3], [2, 3], [3])


def test_an_error_waits_for_the_items_before_it() -> None:
    error = ValueError()
    for stages, items in (
        (lambda f: f.flat_map_iterable(lambda n: [n, n]), [1, 1, 2, 2]),
        (lambda f: f.buffer_with_count(1), [[1], [2]]),
    ):
        publisher = TestPublisher[int]()
        subscriber = subscribed(stages(Flow(publisher)), 1)
        publisher.next(1, 2).error(error)
        for seen in range(1, len(items)):
            subscriber.assert_items(*items[:seen]).assert_not_terminated()
            subscriber.request(1)
        subscriber.assert_failure(error, *items)


def test_completion_waits_for_the_items_before_it_and_no_longer() -> None:
    publisher = TestPublisher[int]()
    subscriber = subscribed(Flow(publisher).flat_map_iterable(lambda n: [n, n]), 1)
    publisher.next(1, 2).complete()
    subscriber.assert_items(1).request(2)
    subscriber.assert_items(1, 1, 2).assert_not_terminated().request(1)
    subscriber.assert_result(1, 1, 2, 2)


# -- non-positive and wrong requests


SHAPES: dict[str, Callable[[], Flow[Any]]] = {
    "a source": lambda: flow.range(5),
    "a generator": lambda: flow.from_iterable(n for n in range(5)),
    "stages": lambda: flow.range(5).map(str),
    "hidden": lambda: flow.range(5).hide(),
    "stages after hidden": lambda: flow.range(5).hide().map(str),
    "filter after hidden": lambda: flow.range(5).hide().filter(bool).take(2),
    "many of one": lambda: flow.range(5).hide().flat_map_iterable(range),
    "an aggregate": lambda: flow.range(5).hide().filter(bool).count(),
    "one item": lambda: flow.just(5),
    "a call": lambda: flow.from_callable(lambda: 5),
    "deferred": lambda: flow.defer(lambda: flow.range(5)),
    "never": flow.never,
    "stages after a publisher": lambda: flow.from_publisher(TestPublisher[int]()),
}


@pytest.mark.parametrize("n", [0, -1, -(2**63)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_non_positive_request_cancels_and_fails(shape: str, n: int) -> None:
    subscriber = subscribed(SHAPES[shape](), 0)
    subscriber.subscription.request(n)
    subscriber.subscription.request(1)
    subscriber.subscription.request(n)
    assert isinstance(subscriber.error, ValueError)
    assert "3.9" in str(subscriber.error)
    assert "non-positive subscription request" in str(subscriber.error)
    subscriber.assert_items()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_non_positive_request_in_on_subscribe_fails_after_it(shape: str) -> None:
    class Wrong(TestSubscriber[Any]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            self._begin("on_subscribe", None)
            self._subscription = subscription
            subscription.request(-1)
            subscription.request(5)
            self._end()

    subscriber = Wrong()
    SHAPES[shape]().subscribe(subscriber)
    subscriber.assert_failure(ValueError)


@pytest.mark.parametrize(
    "shape", [shape for shape in SHAPES if shape not in ("never", "stages after a publisher")]
)
def test_a_non_positive_request_in_on_next_fails_after_it(shape: str) -> None:
    subscriber = TestSubscriber[Any](1, on_item=lambda self, _: self.subscription.request(0))
    SHAPES[shape]().subscribe(subscriber)
    assert len(subscriber.items) == 1
    subscriber.assert_failure(ValueError, *subscriber.items)


def test_a_non_positive_request_with_the_last_item_gives_one_terminal() -> None:
    for made in (flow.range(5).take(1), flow.range(5).hide().take(1), flow.range(1).hide()):
        subscriber = TestSubscriber[int](1, on_item=lambda self, _: self.subscription.request(0))
        made.subscribe(subscriber)
        assert subscriber.terminated
        subscriber.assert_items(0)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_non_positive_request_after_cancel_or_the_end_is_ignored(shape: str) -> None:
    subscriber = subscribed(SHAPES[shape](), 0)
    subscriber.cancel()
    subscriber.subscription.request(-1)
    subscriber.assert_silent_after_cancel()
    ended = subscribed(flow.range(2))
    ended.subscription.request(-1)
    ended.assert_result(0, 1)


@pytest.mark.parametrize("n", [1.0, "1", None, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_request_of_no_int_is_a_type_error(shape: str, n: Any) -> None:
    subscriber = subscribed(SHAPES[shape](), 0)
    with pytest.raises(TypeError, match="request"):
        subscriber.subscription.request(n)
    subscriber.assert_items().assert_not_terminated()


def test_a_non_positive_request_cancels_the_upstream() -> None:
    for stages in (lambda f: f.map(str), lambda f: f.flat_map_iterable(str), lambda f: f.count()):
        publisher = TestPublisher[int]()
        subscriber = subscribed(stages(Flow(publisher)), 0)
        subscriber.subscription.request(0)
        publisher.assert_cancelled()
        assert all(n > 0 for n in publisher.requests)
        subscriber.assert_failure(ValueError)


# -- no recursion


class Counting(CoreSubscriber[Any]):
    """Requests one item from within on_next, again and again."""

    def __init__(self) -> None:
        self.count = 0
        self.ended: object = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.request = subscription.request
        subscription.request(1)

    def on_next(self, item: Any, /) -> None:
        self.count += 1
        self.request(1)

    def on_error(self, error: BaseException, /) -> None:
        self.ended = error

    def on_complete(self) -> None:
        self.ended = "completed"


@pytest.mark.checklist("X08")
@pytest.mark.parametrize(
    ("items", "make"),
    [
        (10**5, flow.range),
        (10**4, lambda n: flow.range(2 * n).filter(lambda i: i % 2).map(str)),
        (10**4, lambda n: flow.range(n).hide()),
        (10**4, lambda n: flow.range(2 * n).hide().filter(lambda i: i % 2)),
        (10**4, lambda n: flow.range(n // 10).hide().flat_map_iterable(lambda _: range(10))),
        (10**4, lambda n: flow.just(n).hide().flat_map_iterable(range)),
        (10**4, lambda n: flow.range(n).hide().buffer_with_count(1)),
    ],
    ids=["range", "stages", "hidden", "pushed", "expanded", "one expanded", "buffered"],
)
def test_ten_thousand_requests_from_on_next_run_in_constant_stack(
    items: int, make: Callable[[int], Flow[Any]]
) -> None:
    subscriber = Counting()
    make(items).subscribe(subscriber)
    assert (subscriber.count, subscriber.ended) == (items, "completed")


def test_many_dropped_items_run_in_constant_stack() -> None:
    subscribed(flow.range(10**5).hide().filter(lambda n: n == 99_999), 1).assert_items(99_999)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stages", [lambda f: f.map(str), lambda f: f.flat_map_iterable(lambda n: [n])]
)
def test_an_upstream_that_answers_each_request_at_once_is_put_up_with(
    stages: Callable[[Flow[int]], Flow[Any]],
) -> None:
    sent = 0

    def answer(publisher: TestPublisher[int], n: int) -> None:
        nonlocal sent
        for _ in range(n):
            sent += 1
            if sent <= 10**5:
                publisher.next(sent)
            elif sent == 10**5 + 1:
                publisher.complete()

    subscriber = Counting()
    stages(Flow(TestPublisher[int](on_request=answer))).subscribe(subscriber)
    assert (subscriber.count, subscriber.ended) == (10**5, "completed")
