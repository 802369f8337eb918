"""One upstream, many subscribers: all get the same items in the same order, at the same time."""

from __future__ import annotations

import time

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Publisher, Subscriber
from flow_multicast import MulticastProcessor
from flow_testing import (
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    assert_result,
)


def subscribed(processor: MulticastProcessor[int], *requests: int) -> list[TestSubscriber[int]]:
    subscribers = [TestSubscriber[int](request) for request in requests]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    return subscribers


def feed(processor: MulticastProcessor[int], *items: int) -> None:
    for item in items:
        processor.on_next(item)


@pytest.mark.checklist("M01", "M48")
def test_one_run_of_the_source_serves_all_subscribers() -> None:
    runs = []
    source = flow.defer(lambda: runs.append(1) or flow.range(1000))
    processor = MulticastProcessor[int]()
    subscribers = subscribed(processor, UNBOUNDED, UNBOUNDED, UNBOUNDED)
    source.subscribe(processor)
    for subscriber in subscribers:
        subscriber.assert_result(*range(1000))
    assert runs == [1]


@pytest.mark.checklist("M01", "M17")
def test_subscribers_come_and_go_while_the_flow_is_running() -> None:
    processor = MulticastProcessor[int]()
    first, second = subscribed(processor, UNBOUNDED, UNBOUNDED)
    feed(processor, 1, 2)
    (third,) = subscribed(processor, UNBOUNDED)
    feed(processor, 3)
    first.cancel()
    feed(processor, 4)
    processor.on_complete()
    first.assert_items(1, 2, 3).assert_silent_after_cancel().assert_not_terminated()
    second.assert_result(1, 2, 3, 4)
    third.assert_result(3, 4)


@pytest.mark.checklist("M03")
def test_items_pass_as_they_are() -> None:
    processor = MulticastProcessor[object]()
    subscribers = [TestSubscriber[object](), TestSubscriber[object]()]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    items = [object(), [], float("nan"), NotImplemented, False, 0]
    flow.from_iterable(items).subscribe(processor)
    for subscriber in subscribers:
        assert list(map(id, subscriber.items)) == list(map(id, items))
        assert subscriber.completed


@pytest.mark.checklist("M02")
def test_a_processor_can_be_fed_by_hand_and_stand_between_two_flows() -> None:
    by_hand = MulticastProcessor[int]()
    (subscriber,) = subscribed(by_hand, UNBOUNDED)
    feed(by_hand, 1, 2)
    by_hand.on_complete()
    subscriber.assert_result(1, 2)

    between = MulticastProcessor[int]()
    after = TestSubscriber[str]()
    between.flow.map(str).subscribe(after)
    flow.range(3).map(lambda n: n + 1).subscribe(between)
    after.assert_result("1", "2", "3")


@pytest.mark.checklist("M02")
@pytest.mark.parametrize("face", [Flow, flow.from_publisher, lambda processor: processor.flow])
def test_a_processor_has_the_operators_of_a_flow(face) -> None:
    processor = MulticastProcessor[int]()
    subscriber = TestSubscriber[int]()
    face(processor).filter(lambda n: n % 2).map(lambda n: 10 * n).subscribe(subscriber)
    flow.range(6).subscribe(processor)
    subscriber.assert_result(10, 30, 50)


@pytest.mark.checklist("M09")
def test_no_subscriber_gets_an_item_before_all_have_requested_it() -> None:
    processor = MulticastProcessor[int]()
    eager, slow = subscribed(processor, 10, 0)
    feed(processor, *range(5))
    eager.assert_items()
    slow.request(2)
    eager.assert_items(0, 1)
    slow.assert_items(0, 1)
    slow.request(1)
    eager.assert_items(0, 1, 2)
    slow.assert_items(0, 1, 2)
    slow.request(UNBOUNDED)
    processor.on_complete()
    eager.assert_result(*range(5))
    slow.assert_result(*range(5))


@pytest.mark.checklist("M09", "M36")
def test_the_smallest_demand_of_many_decides() -> None:
    processor = MulticastProcessor[int](8)
    subscribers = subscribed(processor, 5, 3, 4, 3, UNBOUNDED)
    flow.range(100).hide().subscribe(processor)
    for subscriber in subscribers:
        subscriber.assert_items(0, 1, 2)
    assert processor.statistics().requested == 0
    assert processor.statistics().held_back_by == (subscribers[1], subscribers[3])
    subscribers[1].request(50)
    subscribers[0].assert_items(0, 1, 2)
    subscribers[3].request(50)
    for subscriber in subscribers:
        subscriber.assert_items(0, 1, 2, 3)
    assert processor.statistics().held_back_by == (subscribers[2],)


@pytest.mark.checklist("M10")
@pytest.mark.parametrize("complete", [False, True])
def test_a_slow_subscriber_that_leaves_unblocks_the_others_at_once(complete: bool) -> None:
    processor = MulticastProcessor[int]()
    eager, slow = subscribed(processor, 10, 0)
    feed(processor, 1, 2)
    if complete:
        processor.on_complete()
    eager.assert_items()
    slow.cancel()
    if complete:
        eager.assert_result(1, 2)
    else:
        eager.assert_items(1, 2).assert_not_terminated()
    slow.assert_items().assert_silent_after_cancel()


@pytest.mark.checklist("M10")
def test_a_slow_subscriber_that_leaves_unblocks_a_polled_source() -> None:
    processor = MulticastProcessor[int]()
    eager, slow = subscribed(processor, 10, 0)
    flow.range(3).subscribe(processor)
    eager.assert_items()
    slow.cancel()
    eager.assert_result(0, 1, 2)


@pytest.mark.checklist("M10", "M30")
def test_each_slow_subscriber_that_leaves_gives_its_place_to_the_next_slow_one() -> None:
    processor = MulticastProcessor[int]()
    subscribers = subscribed(processor, 0, 0, 1, 0, 0)
    feed(processor, 1)
    for slow in (subscribers[3], subscribers[0], subscribers[4]):
        slow.cancel()
        subscribers[2].assert_items()
    assert processor.statistics().held_back_by == (subscribers[1],)
    subscribers[1].cancel()
    subscribers[2].assert_items(1)


@pytest.mark.checklist("M30", "M11")
def test_items_and_the_end_wait_for_the_first_subscriber() -> None:
    processor = MulticastProcessor[int]()
    feed(processor, 1, 2, 3)
    processor.on_complete()
    (subscriber,) = subscribed(processor, 0)
    subscriber.assert_items().assert_not_terminated()
    subscriber.request(2)
    subscriber.assert_items(1, 2).assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_result(1, 2, 3)


@pytest.mark.checklist("M31")
@pytest.mark.parametrize("hidden", [False, True])
def test_items_without_a_subscriber_are_kept_for_the_next_one(hidden: bool) -> None:
    processor = MulticastProcessor[int]()
    source = flow.range(5)
    first, second = TestSubscriber[int](), TestSubscriber[int]()
    processor.flow.take(1).subscribe(first)
    (source.hide() if hidden else source).subscribe(processor)
    first.assert_result(0)
    processor.subscribe(second)
    second.assert_result(1, 2, 3, 4)


@pytest.mark.checklist("M31")
def test_a_sole_subscriber_that_leaves_by_itself_takes_no_item_along() -> None:
    processor = MulticastProcessor[int]()
    feed(processor, *range(5))
    leaving = TestSubscriber[int](on_item=lambda self, _: self.cancel())
    processor.subscribe(leaving)
    leaving.assert_items(0)
    assert processor.statistics().buffered == 4
    (after,) = subscribed(processor, UNBOUNDED)
    after.assert_items(1, 2, 3, 4)


@pytest.mark.checklist("M32")
@pytest.mark.parametrize("waiting", [False, True], ids=["fed one by one", "from the queue"])
def test_a_subscriber_that_joins_within_on_next_gets_the_next_item(waiting: bool) -> None:
    processor = MulticastProcessor[int]()
    late = TestSubscriber[int](2)

    def join(_: object, item: int) -> None:
        if item == 1:
            processor.subscribe(late)

    early = TestSubscriber[int](on_item=join)
    if waiting:
        feed(processor, *range(6))
    processor.subscribe(early)
    if not waiting:
        feed(processor, *range(6))
    early.assert_items(0, 1, 2, 3)
    late.assert_items(2, 3)
    assert processor.statistics().held_back_by == (late,)


@pytest.mark.checklist("M32", "M30")
def test_a_subscriber_that_joins_without_demand_holds_the_others_back() -> None:
    processor = MulticastProcessor[int]()
    (early,) = subscribed(processor, UNBOUNDED)
    feed(processor, 1)
    (late,) = subscribed(processor, 0)
    feed(processor, 2)
    early.assert_items(1)
    late.request(1)
    early.assert_items(1, 2)
    late.assert_items(2)


@pytest.mark.checklist("M34", "M18")
@pytest.mark.parametrize("waiting", [False, True], ids=["fed one by one", "from the queue"])
@pytest.mark.parametrize("conditional", [False, True])
def test_a_subscriber_that_another_one_cancels_gets_nothing_more(
    waiting: bool, conditional: bool
) -> None:
    processor = MulticastProcessor[int]()
    victim = TestSubscriber[int]()
    make = ConditionalTestSubscriber[int] if conditional else TestSubscriber[int]
    killer = make(on_item=lambda _, item: item == 1 and victim.cancel())
    before, after = TestSubscriber[int](), TestSubscriber[int]()
    if waiting:
        feed(processor, *range(4))
        (hold,) = subscribed(processor, 0)
    for subscriber in (before, killer, victim, after):
        processor.subscribe(subscriber)
    if waiting:
        hold.cancel()
    else:
        feed(processor, *range(4))
    victim.assert_items(0).assert_silent_after_cancel()
    for subscriber in (before, killer, after):
        subscriber.assert_items(0, 1, 2, 3)


@pytest.mark.checklist("M34")
def test_a_subscriber_that_a_later_one_cancels_has_that_item_already() -> None:
    processor = MulticastProcessor[int]()
    victim = TestSubscriber[int]()
    killer = TestSubscriber[int](on_item=lambda _, __: victim.cancel())
    processor.subscribe(victim)
    processor.subscribe(killer)
    feed(processor, 1, 2)
    victim.assert_items(1).assert_silent_after_cancel()
    killer.assert_items(1, 2)


@pytest.mark.checklist("M17", "M18")
@pytest.mark.parametrize("leaving", [0, 1, 2])
def test_when_a_subscriber_leaves_the_others_stay_in_their_order(leaving: int) -> None:
    served: list[int] = []
    processor = MulticastProcessor[int]()
    subscribers = [
        TestSubscriber[int](on_item=lambda _, __, number=number: served.append(number))
        for number in range(3)
    ]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    feed(processor, 1)
    subscribers[leaving].cancel()
    feed(processor, 2)
    assert served == [0, 1, 2] + [number for number in range(3) if number != leaving]


@pytest.mark.checklist("M12", "M13")
def test_demand_is_what_was_requested_and_not_yet_sent() -> None:
    processor = MulticastProcessor[int]()
    seen: list[int] = []
    subscriber = TestSubscriber[int](
        3, on_item=lambda _, __: seen.append(processor.statistics().requested)
    )
    processor.subscribe(subscriber)
    feed(processor, 1, 2)
    assert seen == [2, 1]
    subscriber.request(4)
    assert processor.statistics().requested == 5
    (other,) = subscribed(processor, 2)
    assert processor.statistics().requested == 2
    feed(processor, 3)
    assert processor.statistics().requested == 1
    other.cancel()
    assert processor.statistics().requested == 4


@pytest.mark.checklist("M13")
def test_demand_is_capped_and_unbounded_demand_never_runs_out() -> None:
    processor = MulticastProcessor[int]()
    (subscriber,) = subscribed(processor, UNBOUNDED - 1)
    feed(processor, 1)
    assert processor.statistics().requested == UNBOUNDED - 2
    subscriber.request(UNBOUNDED - 1)
    assert processor.statistics().requested == UNBOUNDED
    feed(processor, 2)
    assert processor.statistics().requested == UNBOUNDED
    subscriber.request(1)
    assert processor.statistics().requested == UNBOUNDED
    subscriber.assert_items(1, 2)


@pytest.mark.checklist("M13")
def test_requests_after_cancel_are_nothing() -> None:
    processor = MulticastProcessor[int]()
    subscriber, other = subscribed(processor, 0, UNBOUNDED)
    subscriber.cancel()
    for amount in (1, UNBOUNDED, 0, -1):
        subscriber.subscription.request(amount)
    feed(processor, 1)
    subscriber.assert_items().assert_not_terminated().assert_silent_after_cancel()
    other.assert_items(1)


@pytest.mark.checklist("M09", "M34")
def test_an_item_that_a_conditional_subscriber_drops_uses_no_demand_up() -> None:
    processor = MulticastProcessor[int]()
    even = ConditionalTestSubscriber[int](lambda n: n % 2 == 0, 2)
    other = TestSubscriber[int](10)
    processor.subscribe(even)
    processor.subscribe(other)
    feed(processor, *range(6))
    even.assert_items(0, 2)
    assert even.rejected == [1]
    other.assert_items(0, 1, 2)
    assert processor.statistics().held_back_by == (even,)
    even.request(1)
    even.assert_items(0, 2, 4)
    other.assert_items(0, 1, 2, 3, 4)
    assert even.offered == 5


@pytest.mark.checklist("M09")
@pytest.mark.parametrize("hidden", [False, True])
def test_a_filter_behind_the_processor_does_not_stall_the_others(hidden: bool) -> None:
    processor = MulticastProcessor[int](4)
    rare, bounded = TestSubscriber[int](1), TestSubscriber[int](1000)
    processor.flow.filter(lambda n: n == 900).subscribe(rare)
    processor.subscribe(bounded)
    source = flow.range(2000)
    (source.hide() if hidden else source).subscribe(processor)
    rare.assert_items(900)
    bounded.assert_items(*range(901))


@pytest.mark.checklist("M29")
def test_feeding_from_within_on_next_keeps_the_order_and_the_stack_flat() -> None:
    processor = MulticastProcessor[int]()
    depth = 0
    deepest = 0

    def feed_next(_: object, item: int) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        if item < 10_000:
            processor.on_next(item + 1)
        depth -= 1

    feeding = TestSubscriber[int](on_item=feed_next)
    processor.subscribe(feeding)
    (other,) = subscribed(processor, UNBOUNDED)
    processor.on_next(0)
    feeding.assert_items(*range(10_001))
    other.assert_items(*range(10_001))
    assert deepest == 1


@pytest.mark.checklist("M29")
@pytest.mark.parametrize("at", [0, 1, 2])
def test_calls_within_the_last_on_next_take_effect_at_once(at: int) -> None:
    processor = MulticastProcessor[int]()
    late = TestSubscriber[int]()

    def act(_: object, item: int) -> None:
        if item == at:
            processor.subscribe(late)
            processor.on_next(100)

    processor.subscribe(TestSubscriber[int](on_item=act))
    feed(processor, *range(at + 1))
    late.assert_items(100)


@pytest.mark.slow
@pytest.mark.checklist("M29")
@pytest.mark.parametrize("hidden", [False, True])
def test_requesting_one_by_one_from_within_on_next_does_not_recurse(hidden: bool) -> None:
    processor = MulticastProcessor[int]()
    subscribers = [
        TestSubscriber[int](1, on_item=lambda self, _: self.request(1)) for _ in range(2)
    ]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    source = flow.range(20_000)
    (source.hide() if hidden else source).subscribe(processor)
    for subscriber in subscribers:
        subscriber.assert_result(*range(20_000))


class Multicast(Publisher[int]):
    """A flow through a separate processor for each subscriber, with a second one beside it."""

    def __init__(self, source: Flow[int], prefetch: int, company: bool) -> None:
        self.source = source
        self.prefetch = prefetch
        self.company = company

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        processor = MulticastProcessor[int](self.prefetch, ref_count=not self.company)
        if self.company:
            processor.subscribe(TestSubscriber())
        processor.subscribe(subscriber)
        self.source.subscribe(processor)


@pytest.mark.checklist("M35", "M47", "M12")
@pytest.mark.parametrize("company", [False, True])
@pytest.mark.parametrize("prefetch", [1, 2, 3, 128])
@pytest.mark.parametrize("hidden", [False, True])
def test_every_way_to_consume_gives_the_same(company: bool, prefetch: int, hidden: bool) -> None:
    source = flow.range(10).hide() if hidden else flow.range(10)
    assert_result(lambda: Flow(Multicast(source, prefetch, company)), range(10))


@pytest.mark.checklist("M35", "M47")
@pytest.mark.parametrize("hidden", [False, True])
def test_every_way_to_consume_gives_the_same_error_after_the_same_items(hidden: bool) -> None:
    source = flow.range(10).map(lambda n: 12 // (6 - n))
    source = source.hide() if hidden else source
    assert_result(
        lambda: Flow(Multicast(source, 4, company=False)), [2, 2, 3, 4, 6, 12], ZeroDivisionError
    )


@pytest.mark.checklist("M36", "M35")
@pytest.mark.parametrize("prefetch", [1, 2, 3, 4, 128])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_thousand_items_pass_at_any_prefetch(prefetch: int, hidden: bool, step: int) -> None:
    processor = MulticastProcessor[int](prefetch)
    first, second = subscribed(processor, step, step)
    source = flow.range(1000)
    (source.hide() if hidden else source).subscribe(processor)
    while not first.terminated:
        first.request(step)
        second.request(step)
    first.assert_result(*range(1000))
    second.assert_result(*range(1000))


@pytest.mark.checklist("M36", "M35", "M23")
def test_consumed_items_are_counted_across_drains() -> None:
    processor = MulticastProcessor[int](2)
    publisher = TestPublisher[int](on_request=lambda self, n: self.next(*range(n)))
    (subscriber,) = subscribed(processor, 3)
    publisher.subscribe(processor)
    assert len(subscriber.items) == 3
    subscriber.request(3)
    assert len(subscriber.items) == 6
    publisher.assert_requests(2, 2, 2, 2)


@pytest.mark.parametrize("conditional", [False, True])
def test_a_return_value_of_a_subscriber_means_nothing_unless_it_is_conditional(
    conditional: bool,
) -> None:
    class Ambiguous:
        def __bool__(self) -> bool:
            raise ValueError("neither true nor false")

    taken: list[int] = []
    processor = MulticastProcessor[int]()
    if conditional:
        processor.subscribe(ConditionalTestSubscriber[int]())
    processor.flow.subscribe(lambda item: taken.append(item) or Ambiguous())
    processor.flow.subscribe(taken.append, prefetch=1)
    feed(processor, 1, 2)
    assert taken == [1, 1, 2, 2]


def attached(processor: MulticastProcessor[int], count: int) -> float:
    """Processor seconds to let `count` subscribers come, ask, be served, and leave."""
    subscribers = [TestSubscriber[int](0) for _ in range(count)]
    start = time.process_time()
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    for subscriber in subscribers:
        subscriber.request(1)
    for subscriber in reversed(subscribers):
        subscriber.request(1)
    for subscriber in subscribers:
        subscriber.cancel()
    seconds = time.process_time() - start
    assert all(subscriber.items == [0, 1] for subscriber in subscribers)
    return seconds


@pytest.mark.slow
@pytest.mark.checklist("M16", "M17")
def test_the_cost_of_coming_and_going_is_linear_in_the_number_of_subscribers() -> None:
    few, many = MulticastProcessor[int](), MulticastProcessor[int]()
    for processor in (few, many):
        feed(processor, 0, 1, 2)
    ratio = attached(many, 16_000) / attached(few, 1_000)
    assert ratio < 16 * 4  # quadratic: 256
