"""The operator of the article, in both of its versions: RxJava 1, word for word in Python."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core.demand import UNBOUNDED
from flow_core.protocols import CoreSubscriber, Subscription
from flow_ops import ProducerArbiter, concat, concat_with
from flow_testing import TestSubscriber

REQUESTED = 20


class Rx1Subscriber:
    """A subscriber of RxJava 1: it is given a producer, and keeps no account."""

    def __init__(self) -> None:
        self.requested = 0
        self.producer: Any = None

    def request(self, n: int) -> None:
        self.requested = min(self.requested + n, UNBOUNDED)
        if self.producer is not None:
            self.producer.request(n)

    def set_producer(self, producer: Any) -> None:
        """As often as it is given one, it requests all that was ever requested."""
        self.producer = producer
        if self.requested:
            producer.request(self.requested)

    @abstractmethod
    def on_next(self, item: int) -> None: ...

    @abstractmethod
    def on_error(self, error: BaseException) -> None: ...

    @abstractmethod
    def on_completed(self) -> None: ...


class Recording(Rx1Subscriber):
    """The child."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[int] = []
        self.ends: list[BaseException | None] = []

    def on_next(self, item: int) -> None:
        self.items.append(item)

    def on_error(self, error: BaseException) -> None:
        self.ends.append(error)

    def on_completed(self) -> None:
        self.ends.append(None)


class Link(CoreSubscriber[int]):
    """Has a flow send to a subscriber of RxJava 1."""

    def __init__(self, subscriber: Rx1Subscriber) -> None:
        self.on_subscribe: Any = subscriber.set_producer
        self.on_next: Any = subscriber.on_next
        self.on_error: Any = subscriber.on_error
        self.on_complete: Any = subscriber.on_completed


def unsafe_subscribe(source: flow.Flow[int], subscriber: Rx1Subscriber) -> None:
    source.subscribe(Link(subscriber))


class NaiveThenObserve(Rx1Subscriber):
    """Version 1: hands its child to the second source."""

    def __init__(self, other: flow.Flow[int], child: Rx1Subscriber) -> None:
        super().__init__()
        self.other = other
        self.child = child
        self.on_next = child.on_next  # type: ignore[method-assign]  # as it is
        self.on_error = child.on_error  # type: ignore[method-assign]  # as it is
        self.set_producer = child.set_producer  # type: ignore[method-assign]  # shared

    def on_completed(self) -> None:
        unsafe_subscribe(self.other, self.child)


class ThenObserve(Rx1Subscriber):
    """Version 2: an arbiter for each child, and a new subscriber for the second source.

    Args:
        child: gets the signals.
        arbiter: the account.
        other: what follows; None for nothing.
        batched: whether production is told once, at the end.
    """

    made = 0

    def __init__(
        self,
        child: Rx1Subscriber,
        arbiter: ProducerArbiter,
        other: flow.Flow[int] | None,
        batched: bool,
    ) -> None:
        super().__init__()
        ThenObserve.made += 1
        self.child = child
        self.arbiter = arbiter
        self.other = other
        self.batched = batched
        self.count = 0

    def set_producer(self, producer: Any) -> None:
        self.arbiter.set(producer)

    def on_next(self, item: int) -> None:
        self.child.on_next(item)
        if self.batched:
            self.count += 1
        else:
            self.arbiter.produced(1)

    def on_error(self, error: BaseException) -> None:
        self.arbiter.set(None)
        self.child.on_error(error)

    def on_completed(self) -> None:
        if self.count:
            self.arbiter.produced(self.count)
        self.arbiter.set(None)
        if self.other is None:
            self.child.on_completed()
        else:
            unsafe_subscribe(self.other, ThenObserve(self.child, self.arbiter, None, self.batched))


def naive(first: flow.Flow[int], second: flow.Flow[int], child: Rx1Subscriber) -> None:
    unsafe_subscribe(first, NaiveThenObserve(second, child))


def then(
    first: flow.Flow[int], second: flow.Flow[int], child: Rx1Subscriber, batched: bool = False
) -> None:
    arbiter = ProducerArbiter()
    child.set_producer(arbiter)
    unsafe_subscribe(first, ThenObserve(child, arbiter, second, batched))


FIRST, SECOND = flow.range(1, 11), flow.range(11, 101)


@pytest.mark.checklist("P03")
@pytest.mark.parametrize("run", [naive, then])
def test_without_bound_both_versions_give_all_items(run: Callable[..., None]) -> None:
    child = Recording()
    child.request(UNBOUNDED)
    run(FIRST, SECOND, child)
    assert (child.items, child.ends) == ([*range(1, 101)], [None])


@pytest.mark.checklist("P01", "P02", "P03")
def test_the_naive_one_gives_30_items_when_20_are_requested() -> None:
    """A defect that has to be found: the second source is asked for all 20 again."""
    child = Recording()
    child.request(REQUESTED)
    naive(FIRST, SECOND, child)
    assert (child.items, child.ends) == ([*range(1, 31)], [])


@pytest.mark.checklist("P03", "P04", "P25", "P26")
@pytest.mark.parametrize("batched", [False, True])
def test_the_arbiter_gives_exactly_20_and_then_the_rest(batched: bool) -> None:
    child = Recording()
    child.request(REQUESTED)
    then(FIRST, SECOND, child, batched)
    assert (child.items, child.ends) == ([*range(1, 21)], [])
    child.request(80)
    assert (child.items, child.ends) == ([*range(1, 101)], [None])


@pytest.mark.checklist("P25", "P30")
def test_the_second_source_gets_a_separate_subscriber_whose_end_is_the_end() -> None:
    """With the first one it would be subscribed to again and again."""
    ThenObserve.made = 0
    child = Recording()
    child.request(UNBOUNDED)
    then(FIRST, SECOND, child)
    assert (ThenObserve.made, child.ends) == (2, [None])


@pytest.mark.checklist("P25")
def test_an_error_in_the_first_source_skips_the_second() -> None:
    child, error, started = Recording(), ValueError("first"), list[int]()
    child.request(5)
    second = SECOND.do_on_subscribe(lambda: started.append(1))
    then(flow.just(1).pipe(concat_with(flow.error(error))), second, child)
    assert (child.items, child.ends, started) == ([1], [error], [])


@pytest.mark.checklist("P26")
def test_telling_once_comes_to_the_same_as_telling_of_each_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[int] = []
    produced = ProducerArbiter.produced

    def counted(self: ProducerArbiter, n: int, /) -> None:
        told.append(n)
        produced(self, n)

    monkeypatch.setattr(ProducerArbiter, "produced", counted)
    results = []
    for batched in (False, True):
        told.clear()
        child = Recording()
        child.request(15)
        then(FIRST, SECOND, child, batched)
        results.append((child.items, child.ends, sum(told[:10]) if not batched else sum(told)))
        assert len(told) == (1 if batched else 15)
    assert results[0] == results[1] == ([*range(1, 16)], [], 10)


@pytest.mark.checklist("P07", "P19")
def test_a_change_during_on_next_asks_for_one_item_too_many() -> None:
    """The limit of an arbiter that items do not pass through: the item under way counts twice."""
    arbiter = ProducerArbiter()
    asked: list[int] = []

    class Producer:
        def request(self, n: int, /) -> None:
            asked.append(n)

    arbiter.set(Producer())
    arbiter.request(1)
    # The first producer is in on_next, and has not called `produced` yet, when it is replaced.
    arbiter.set(Producer())
    arbiter.produced(1)
    assert asked == [1, 1]  # two items for a demand of one


class Cancelling(CoreSubscriber[int]):
    """Requests one item, and lets the test cancel."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(1)

    def on_next(self, item: int, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...


@pytest.mark.checklist("P03", "P04", "P25")
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("form", ["concat", "concat_with"])
def test_concat_is_the_operator_of_the_article(form: str, hidden: bool) -> None:
    first, second = (FIRST.hide(), SECOND.hide()) if hidden else (FIRST, SECOND)
    made = concat(first, second) if form == "concat" else first.pipe(concat_with(second))
    subscriber = TestSubscriber[int](REQUESTED)
    made.subscribe(subscriber)
    subscriber.assert_items(*range(1, 21)).assert_not_terminated().request(80)
    subscriber.assert_result(*range(1, 101))


@pytest.mark.checklist("P25")
@pytest.mark.parametrize("second", [False, True])
def test_a_cancel_reaches_the_current_source(second: bool) -> None:
    cancelled: list[int] = []
    never = flow.never().do_on_cancel(lambda: cancelled.append(1))
    made: flow.Flow[int] = concat(flow.just(1), never) if second else concat(never, flow.just(1))
    subscriber = Cancelling()
    made.subscribe(subscriber)
    subscriber.subscription.cancel()
    assert cancelled == [1]
