"""`lift`: a boundary made of a subscriber; `serialize`: signals of several threads in a row."""

from __future__ import annotations

from functools import partial
from threading import Event, Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import (
    UNBOUNDED,
    CoreSubscriber,
    Flow,
    MissingBackpressureError,
    Operator,
    Subscriber,
    Subscription,
)
from flow_core.operators import lift, serialize
from flow_testing import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    Drops,
    TestPublisher,
    TestSubscriber,
    assert_released,
    assert_result,
    check_bad_source,
    observe,
    race,
)


class Doubled:
    """A foreign subscriber, which sends each item twice as big, and no fusion."""

    def __init__(self, downstream: CoreSubscriber[int]) -> None:
        self.downstream = downstream
        self.upstream: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.upstream = subscription
        self.downstream.on_subscribe(self)

    def on_next(self, item: int, /) -> None:
        if item == 5:
            raise ValueError("five")
        self.downstream.on_next(2 * item)

    def on_error(self, error: BaseException, /) -> None:
        self.downstream.on_error(error)

    def on_complete(self) -> None:
        self.downstream.on_complete()

    def request(self, n: int, /) -> None:
        if self.upstream is not None:
            self.upstream.request(n)

    def cancel(self) -> None:
        if self.upstream is not None:
            self.upstream.cancel()


def doubled() -> Operator[int, Flow[int]]:
    return lift("doubled", Doubled)


# -- lift


def test_a_subscriber_becomes_an_operator_with_a_name() -> None:
    assert repr(doubled()) == "doubled(Doubled)"
    assert repr(flow.range(3).pipe(doubled())) == "range(0, 3) | doubled(Doubled)"
    assert_result(lambda: flow.range(4).pipe(doubled()).map(str), ["0", "2", "4", "6"])


def test_each_subscriber_gets_a_separate_wrapping_subscriber() -> None:
    made: list[Doubled] = []

    def wrap(downstream: CoreSubscriber[int]) -> Doubled:
        made.append(Doubled(downstream))
        return made[-1]

    counted = flow.range(2).pipe(lift("counted", wrap))
    assert made == []
    assert list(counted) == list(counted) == [0, 2]
    assert len(made) == 2


def test_an_error_of_a_wrapper_fails_the_flow() -> None:
    error = LookupError("mine")

    def wrap(_: CoreSubscriber[int]) -> CoreSubscriber[int]:
        raise error

    publisher = TestPublisher[int]()
    observe(Flow(publisher).pipe(lift("broken", wrap))).assert_failure(error)
    publisher.assert_not_subscribed()


def test_a_wrapper_that_gives_no_subscriber_fails_the_flow_too() -> None:
    def wrap(_: CoreSubscriber[int]) -> Any:
        return 5

    observe(flow.range(2).pipe(lift("broken", wrap))).assert_failure(TypeError)


def test_a_foreign_subscriber_that_raises_cancels_the_flow(drops: Drops) -> None:
    subscriber = observe(flow.range(9).pipe(doubled()))
    subscriber.assert_items(0, 2, 4, 6, 8).assert_not_terminated()
    assert [str(error) for error in drops.take_errors()] == ["five"]


@pytest.mark.parametrize("wrong", [(None, Doubled), ("name", None), ("name", 5)], ids=str)
def test_lift_refuses_an_invalid_name_and_a_value_that_is_not_a_function(wrong: Any) -> None:
    with pytest.raises(TypeError, match="lift"):
        lift(*wrong)


# -- serialize


def test_a_serialized_flow_is_the_same_flow_in_every_form() -> None:
    assert_result(lambda: flow.range(5).pipe(serialize()), [0, 1, 2, 3, 4])
    assert_result(lambda: flow.range(5).pipe(serialize(prefetch=1)), [0, 1, 2, 3, 4])


class Chaotic:
    """A publisher that signals from several threads at once."""

    def __init__(self, threads: int, items: int, *, ends: bool = True) -> None:
        self.threads = threads
        self.items = items
        self.ends = ends

    def subscribe(self, subscriber: Subscriber[tuple[int, int]], /) -> None:
        subscriber.on_subscribe(self)

        def send(thread: int) -> None:
            for n in range(self.items):
                subscriber.on_next((thread, n))

        race(*(lambda thread=thread: send(thread) for thread in range(self.threads)))
        if self.ends:
            race(*[subscriber.on_complete] * self.threads)

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


@pytest.mark.checklist("X02")
def test_signals_of_several_threads_come_one_at_a_time_and_none_is_lost() -> None:
    source = Flow[tuple[int, int]](Chaotic(4, 200))
    subscriber = observe(source.pipe(serialize(prefetch=800)))
    subscriber.assert_rules_kept()
    assert subscriber.completed
    assert len(subscriber.items) == 800
    for thread in range(4):
        assert [n for found, n in subscriber.items if found == thread] == list(range(200))


def test_an_item_that_comes_during_another_waits_for_the_thread_that_delivers() -> None:
    inside, go_on = Event(), Event()

    def wait(it: TestSubscriber[int], n: int) -> None:
        if n == 1:
            inside.set()
            assert go_on.wait(TIMEOUT_S)

    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int](on_item=wait)
    Flow(publisher).pipe(serialize()).subscribe(subscriber)
    thread = Thread(target=publisher.next, args=(1,))
    thread.start()
    assert inside.wait(TIMEOUT_S)
    race(lambda: publisher.next(2))
    publisher.complete()
    subscriber.assert_items(1)
    go_on.set()
    thread.join(TIMEOUT_S)
    subscriber.assert_result(1, 2)
    assert {signal.thread for signal in subscriber.signals[1:]} == {thread.ident}


def test_the_upstream_is_asked_for_the_prefetch_and_again_for_three_quarters() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).pipe(serialize(prefetch=8)), request=2)
    publisher.assert_requests(8)
    publisher.next(*range(8))
    subscriber.assert_items(0, 1)
    subscriber.request(3)
    publisher.assert_requests(8)
    subscriber.request(1)
    publisher.assert_requests(8, 6)
    subscriber.assert_items(0, 1, 2, 3, 4, 5).cancel()


def test_too_many_items_end_the_flow_after_those_that_wait(drops: Drops) -> None:
    subscriber = observe(
        Flow[tuple[int, int]](Chaotic(2, 5, ends=False)).pipe(serialize(prefetch=4)), request=0
    )
    assert len(drops.take_items()) == 6
    subscriber.request(UNBOUNDED)
    subscriber.assert_rules_kept()
    assert len(subscriber.items) == 4
    assert isinstance(subscriber.error, MissingBackpressureError)


def test_a_conditional_subscriber_is_asked() -> None:
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2 == 0, request=2)
    flow.range(9).pipe(serialize()).subscribe(subscriber)
    subscriber.assert_items(0, 2).cancel()


def test_serialize_survives_what_breaks_the_rules_and_keeps_nothing() -> None:
    check_bad_source(lambda upstream: upstream.pipe(serialize()), bounded=True)
    assert_released(lambda payloads: flow.from_iterable(payloads).pipe(serialize()))


def test_requests_cancels_and_items_may_race() -> None:
    for _ in range(50):
        publisher = TestPublisher[int]()
        subscriber = observe(Flow(publisher).pipe(serialize(prefetch=64)), request=0)
        race(
            partial(subscriber.request, 20),
            partial(subscriber.request, 20),
            partial(publisher.next, *range(40)),
        )
        subscriber.assert_items(*range(40))
        subscriber.cancel()
        publisher.assert_cancelled()


@pytest.mark.parametrize(("wrong", "error"), [(0, ValueError), (1.5, TypeError)])
def test_serialize_refuses_a_wrong_prefetch(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        serialize(prefetch=wrong)
