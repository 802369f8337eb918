"""The requests of `flat_map`, to its upstream and to the inner flows, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.errors import MissingBackpressureError
from flow_ops import flat_map
from flow_testing import (
    ConditionalTestSubscriber,
    Drops,
    TestPublisher,
    TestSubscriber,
    Violation,
)


def mapped(*inners, request=flow.UNBOUNDED, **options):
    """A subscription to the flows that items 0, 1, … become."""
    source, seen = TestPublisher(), TestSubscriber(request)
    flow.Flow(source).pipe(flat_map(lambda n: flow.Flow(inners[n]), **options)).subscribe(seen)
    return source, seen


@pytest.mark.checklist("F06")
def test_one_item_more_is_requested_for_each_inner_flow_that_has_ended():
    inners = [TestPublisher() for _ in range(4)]
    source, seen = mapped(*inners, concurrency=2)
    source.assert_requests(2)
    source.next(0, 1)
    source.assert_requests(2)
    inners[1].complete()
    source.assert_requests(2, 1)
    source.next(2)
    inners[0].complete()
    inners[2].complete()
    source.assert_requests(2, 1, 1, 1)
    source.complete()
    seen.assert_result()


def test_a_slot_is_asked_for_when_the_upstream_has_more_to_send_too():
    inners = [TestPublisher() for _ in range(2)]
    source, _ = mapped(*inners, concurrency=8)
    source.next(0)
    inners[0].complete()
    source.assert_requests(8, 1)


@pytest.mark.parametrize(
    "inner", [flow.just, lambda _: flow.empty(), lambda n: flow.just(n, n).hide()]
)
def test_inner_flows_that_end_at_once_are_asked_for_at_75_percent(inner):
    source, seen = TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(flat_map(inner, concurrency=8)).subscribe(seen)
    source.next(*range(5))
    source.assert_requests(8)
    source.next(5)
    source.assert_requests(8, 6)
    source.next(*range(6))
    source.assert_requests(8, 6, 6)


def test_slots_of_one_item_are_asked_for_when_the_upstream_may_send_nothing_more():
    """The others are taken for long: 75 % would never be free."""
    inners = [TestPublisher() for _ in range(3)]
    source, seen = TestPublisher(), TestSubscriber()
    flow.Flow(source).pipe(
        flat_map(lambda n: flow.Flow(inners[n]) if n < 3 else flow.just(n), concurrency=4)
    ).subscribe(seen)
    source.next(0, 3, 1, 2)
    source.assert_requests(4, 1)
    source.next(4)
    source.assert_requests(4, 1, 1)
    seen.assert_items(3, 4)


def test_prefetch_is_requested_of_an_inner_flow_and_75_percent_of_it_again():
    inner = TestPublisher()
    source, seen = mapped(inner, request=0, prefetch=4)
    source.next(0)
    inner.assert_requests(4)
    inner.next(1, 2, 3, 4)
    inner.assert_requests(4)
    seen.request(2)
    inner.assert_requests(4)
    seen.request(1)
    inner.assert_requests(4, 3)
    seen.request(1)
    inner.next(5, 6, 7)
    seen.request(flow.UNBOUNDED)
    inner.assert_requests(4, 3, 3)
    seen.assert_items(1, 2, 3, 4, 5, 6, 7)


def test_items_that_wait_are_given_in_the_order_in_which_they_came():
    inners = [TestPublisher(), TestPublisher()]
    source, seen = mapped(*inners, request=0)
    source.next(0, 1)
    inners[0].next("a")
    inners[1].next("b", "c")
    inners[0].next("d")
    seen.request(3)
    seen.assert_items("a", "b", "c")
    inners[1].next("e")
    seen.request(5)
    seen.assert_items("a", "b", "c", "d", "e")


def test_a_slot_is_taken_as_long_as_items_of_its_flow_wait():
    """Or flows that end at once would fill the queue without bound."""
    source, seen = TestPublisher(), TestSubscriber(0)
    flow.Flow(source).pipe(flat_map(lambda n: flow.just(n, -n).hide(), concurrency=2)).subscribe(
        seen
    )
    source.next(1, 2)
    source.assert_requests(2)
    seen.request(1)
    source.assert_requests(2)
    seen.request(1)
    source.assert_requests(2, 1)
    seen.request(2)
    source.assert_requests(2, 1, 1)
    seen.assert_items(1, -1, 2, -2)


@pytest.mark.parametrize("inner", [flow.just, lambda n: flow.from_callable(lambda: n)])
def test_a_single_item_that_waits_takes_its_slot(inner):
    source, seen = TestPublisher(), TestSubscriber(0)
    flow.Flow(source).pipe(flat_map(inner, concurrency=2)).subscribe(seen)
    source.next(1, 2)
    source.assert_requests(2)
    seen.request(1)
    source.assert_requests(2, 1)
    source.next(3)
    seen.request(2)
    seen.assert_items(1, 2, 3)


@pytest.mark.parametrize("demand", [0, 3])
def test_an_inner_flow_that_sends_too_much_fails(demand, dropped):
    inner = TestPublisher(Violation.OVERFLOW)
    source, seen = mapped(inner, request=demand, prefetch=2)
    source.next(0)
    inner.next(*range(6))
    seen.assert_failure(MissingBackpressureError, *range(demand))
    seen.assert_error_message("a source of flat_map(")
    inner.assert_cancelled()
    source.assert_cancelled()
    assert sorted(dropped.items) == list(range(demand, demand + 3))  # a cancelled one sends no more


def test_an_upstream_that_sends_too_much_fails(dropped):
    inners = [TestPublisher() for _ in range(3)]
    source, seen = TestPublisher(Violation.OVERFLOW), TestSubscriber()
    flow.Flow(source).pipe(flat_map(lambda n: flow.Flow(inners[n]), concurrency=2)).subscribe(seen)
    source.next(0, 1, 2)
    seen.assert_failure(MissingBackpressureError)
    seen.assert_error_message("the upstream of flat_map(")
    source.assert_cancelled()
    inners[0].assert_cancelled()
    inners[2].assert_not_subscribed()
    assert dropped.items == [2]


def test_a_conditional_downstream_that_turns_items_down_gets_others():
    seen = ConditionalTestSubscriber(lambda n: n % 2 == 0, 3)
    flow.range(10).pipe(flat_map(flow.just)).subscribe(seen)
    seen.assert_items(0, 2, 4)
    seen = ConditionalTestSubscriber(lambda n: n % 2 == 0, 3)
    flow.range(2).pipe(flat_map(lambda n: flow.range(10 * n, 10 * n + 4).hide())).subscribe(seen)
    seen.assert_items(0, 2, 10)
    seen.request(9)
    seen.assert_result(0, 2, 10, 12)


@pytest.mark.parametrize("demand", [1, 3])
def test_requests_within_on_next_add_up(demand):
    seen = TestSubscriber(demand, on_item=lambda self, _: self.request(1))
    flow.range(200).pipe(flat_map(lambda n: flow.range(n % 3))).subscribe(seen)
    seen.assert_result(*(m for n in range(200) for m in range(n % 3)))


def test_one_says_what_it_holds():
    inners = [TestPublisher(), TestPublisher()]
    source, seen = mapped(*inners, request=1)
    source.next(0, 1)
    inners[0].next("a", "b")
    inners[1].next("c")
    told = seen.subscription.statistics()
    assert told.operator.startswith("flat_map(")
    assert (told.requested, told.buffered) == (0, 2)
    assert len(told.inners) == 2
    seen.cancel()
    told = seen.subscription.statistics()
    assert told.cancelled
    assert (told.buffered, told.inners) == (0, ())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"concurrency": 0}, ValueError),
        ({"prefetch": 0}, ValueError),
        ({"concurrency": 1.5}, TypeError),
        ({"prefetch": True}, TypeError),
    ],
)
def test_wrong_numbers_are_refused_at_once(options, error):
    with pytest.raises(error, match=next(iter(options))):
        flat_map(flow.just, **options)


def test_a_mapper_that_cannot_be_called_is_refused_at_once():
    with pytest.raises(TypeError, match="flat_map"):
        flat_map(3)


@pytest.mark.parametrize("prefetch", [1, 2, 4, 128])
@pytest.mark.parametrize("request_", [1, 3, 4, 7, 50])
@pytest.mark.parametrize("stages", [lambda made: made, lambda made: made.filter(bool)])
def test_an_inner_flow_in_place_takes_as_much_ahead_as_one_that_was_subscribed_to(
    prefetch: int, request_: int, stages: Callable[[Flow[int]], Flow[int]]
) -> None:
    def run(hidden: bool) -> tuple[list[int], list[int], list[int]]:
        taken: list[int] = []

        def items() -> Iterator[int]:
            for n in range(1, 300):
                taken.append(n)
                yield n

        def inner(_: int) -> Flow[int]:
            made = stages(flow.from_iterable(items()))
            return made.hide() if hidden else made

        seen = TestSubscriber[int](request_)
        flow.range(2).hide().pipe(flat_map(inner, prefetch=prefetch)).subscribe(seen)
        before = [*taken]
        seen.request(2)
        return before, taken, seen.items

    assert run(hidden=False) == run(hidden=True)


def test_waiting_items_of_an_inner_flow_in_place_are_dropped_by_a_cancel(drops: Drops) -> None:
    seen = TestSubscriber[int](2)
    flow.just(0).hide().pipe(flat_map(lambda _: flow.range(5).map(abs))).subscribe(seen)
    seen.assert_items(0, 1).cancel()
    assert drops.items == [2, 3, 4]


def test_the_hook_of_subscriptions_sees_inner_flows_that_could_run_in_place() -> None:
    seen: list[object] = []
    with flow.hooks.on_subscribe.scoped("test", lambda one: seen.append(one) or one):
        made = flow.range(3).hide().pipe(flat_map(lambda n: flow.range(2)))
        made.subscribe(TestSubscriber[int]())
    assert len(seen) > 3
