"""The items that subscribers of a connectable get, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_core.protocols import Disposable
from flow_multicast import (
    Connectable,
    DirectProcessor,
    DisconnectedError,
    MulticastProcessor,
    ReplayProcessor,
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    share,
)
from flow_testing import TestPublisher, TestSubscriber, VirtualClock

KINDS: dict[str, Callable[[Flow[int]], Connectable[int]]] = {
    "publish": lambda source: source.pipe(publish()),
    "multicast": lambda source: source.pipe(multicast(MulticastProcessor[int])),
    "replay": lambda source: source.pipe(replay()),
}


@pytest.fixture(params=list(KINDS))
def connectable(request: pytest.FixtureRequest) -> Callable[[Flow[int]], Connectable[int]]:
    return KINDS[request.param]


def counted(source: Flow[int]) -> tuple[Flow[int], list[int]]:
    runs: list[int] = []

    def deferred() -> Flow[int]:
        runs.append(1)
        return source

    return flow.defer(deferred), runs


@pytest.mark.checklist("C01", "C03")
def test_effects_happen_once_for_all_subscribers(connectable: Any) -> None:
    source, runs = counted(flow.range(3))
    numbers = connectable(source)
    seen: list[list[int]] = [[], []]
    for items in seen:
        numbers.flow.subscribe(items.append)
    assert not runs
    numbers.connect()
    assert seen == [[0, 1, 2]] * 2
    assert len(runs) == 1


@pytest.mark.checklist("C02")
def test_a_flow_and_its_neighbour_in_one_run() -> None:
    """Two views of one run, side by side: 1+2, 2+3, ... 9+10."""
    numbers = flow.range(1, 11).pipe(publish())
    first: list[int] = []
    sums: list[str] = []

    def add(n: int) -> None:
        sums.append(f"{first[len(sums)]}+{n}")

    numbers.flow.subscribe(first.append)
    numbers.flow.skip(1).subscribe(add)
    numbers.connect()
    assert sums == [f"{n}+{n + 1}" for n in range(1, 10)]


@pytest.mark.checklist("C05", "C12")
def test_a_source_that_never_returns_is_stopped_by_the_connection_from_the_callback() -> None:
    numbers = flow.repeat_value(7).pipe(publish())
    connections: list[Disposable] = []
    seen: list[int] = []

    def stop_after_five(n: int) -> None:
        seen.append(n)
        if len(seen) == 5:
            connections[0].dispose()

    errors: list[BaseException] = []
    numbers.flow.subscribe(stop_after_five, errors.append)
    assert numbers.connect(connections.append) is connections[0]
    assert seen == [7] * 5
    assert [type(error) for error in errors] == [DisconnectedError]


@pytest.mark.checklist("C06")
def test_without_subscribers_a_published_source_waits_for_the_first_one() -> None:
    pulled: list[int] = []
    numbers = flow.range(100).do_on_next(pulled.append).pipe(publish(prefetch=4))
    numbers.connect()
    assert len(pulled) == 4
    assert list(numbers.flow.take(6)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.checklist("C06")
def test_items_a_short_source_sent_without_subscribers_go_to_the_next_subscriber() -> None:
    numbers = flow.range(1, 4).pipe(publish())
    numbers.connect()
    assert list(numbers.flow) == [1, 2, 3]
    late = TestSubscriber[int](10)
    numbers.subscribe(late)  # that run has ended: it waits for the next one
    late.assert_not_terminated()
    numbers.connect()
    late.assert_result(1, 2, 3)


def test_a_subscriber_that_comes_while_a_slow_one_gets_the_rest_joins_the_same_run() -> None:
    source, runs = counted(flow.range(4))
    numbers = source.pipe(publish())
    slow, late = TestSubscriber[int](1), TestSubscriber[int](10)
    numbers.subscribe(slow)
    numbers.connect()
    numbers.subscribe(late)
    slow.request(9)
    slow.assert_result(0, 1, 2, 3)
    late.assert_result(1, 2, 3)
    assert len(runs) == 1


@pytest.mark.checklist("C07")
@pytest.mark.parametrize("operator", [publish, replay])
def test_a_selected_flow_that_ends_stops_an_endless_source(operator: Any) -> None:
    assert list(flow.repeat_value(1).pipe(operator(lambda shared: shared.take(5)))) == [1] * 5


@pytest.mark.parametrize("operator", [publish, replay])
def test_a_selector_may_use_its_flow_twice_at_the_cost_of_one_run(operator: Any) -> None:
    source, runs = counted(flow.range(1, 4))
    both: list[int] = []

    def selector(shared: Flow[int]) -> Flow[int]:
        shared.subscribe(both.append)
        return shared.map(lambda n: n * 10)

    flow_of_both = source.pipe(operator(selector))
    assert list(flow_of_both) == [10, 20, 30]
    assert both == [1, 2, 3]
    assert list(flow_of_both) == [10, 20, 30]
    assert len(runs) == 2


@pytest.mark.parametrize("operator", [publish, replay])
def test_a_selector_that_fails_fails_the_flow_without_running_the_source(operator: Any) -> None:
    source, runs = counted(flow.range(3))
    error = LookupError("selector")

    def selector(_: Flow[int]) -> Flow[int]:
        raise error

    subscriber = TestSubscriber[int]()
    source.pipe(operator(selector)).subscribe(subscriber)
    subscriber.assert_failure(error)
    assert not runs


@pytest.mark.parametrize("operator", [publish, replay])
def test_the_error_for_a_selector_that_never_connects_says_what_to_return(
    operator: Any,
) -> None:
    source, runs = counted(flow.range(3))
    subscriber = TestSubscriber[int]()
    source.pipe(operator(lambda shared: shared.pipe(replay()))).subscribe(subscriber)
    subscriber.assert_failure(TypeError).assert_error_message(".ref_count()")
    assert not runs
    given = source.pipe(operator(lambda shared: shared.pipe(replay()).ref_count()))
    assert list(given) == [0, 1, 2]


@pytest.mark.checklist("C08")
def test_connecting_and_disconnecting_twice_is_as_once(connectable: Any) -> None:
    source = TestPublisher[int]()
    numbers = connectable(Flow(source))
    given: list[Disposable] = []
    connection = numbers.connect(given.append)
    assert numbers.connect(given.append) is connection
    assert given == [connection, connection]
    source.assert_subscribed(1)
    connection.dispose()
    connection.dispose()
    assert connection.disposed
    source.assert_cancelled()


@pytest.mark.checklist("C09", "C29")
def test_an_old_connection_does_not_concern_a_new_run(connectable: Any) -> None:
    numbers = connectable(flow.never())
    old = numbers.connect()
    old.dispose()
    new = numbers.connect()
    assert new is not old
    old.dispose()
    assert not new.disposed


@pytest.mark.checklist("C13")
def test_disposing_in_the_callback_keeps_the_source_from_running(connectable: Any) -> None:
    source, runs = counted(flow.range(3))
    numbers = connectable(source)
    early = TestSubscriber[int](10)
    numbers.subscribe(early)
    assert numbers.connect(lambda connection: connection.dispose()).disposed
    assert not runs
    early.assert_no_items().assert_not_terminated()
    numbers.connect()
    early.assert_result(0, 1, 2)


@pytest.mark.checklist("C14", "C19", "C37")
def test_after_the_end_it_connects_again_for_later_subscribers(connectable: Any) -> None:
    numbers = connectable(flow.range(2))
    first = TestSubscriber[int](10)
    numbers.subscribe(first)
    numbers.connect()
    first.assert_result(0, 1)
    numbers.reset()
    second = TestSubscriber[int](10)
    numbers.subscribe(second)
    second.assert_no_items().assert_not_terminated()
    numbers.connect()
    second.assert_result(0, 1)
    first.assert_result(0, 1)


@pytest.mark.checklist("C16", "C31", "C37")
@pytest.mark.parametrize("kind", ["publish", "multicast"])
def test_a_subscriber_that_subscribes_and_connects_in_on_complete_is_in_the_next_run(
    kind: str,
) -> None:
    numbers = KINDS[kind](flow.range(2))
    again = TestSubscriber[int](10)

    def on_complete() -> None:
        numbers.subscribe(again)
        numbers.connect()

    numbers.flow.subscribe(lambda _: None, None, on_complete)
    numbers.connect()
    again.assert_result(0, 1)


@pytest.mark.checklist("C17")
def test_a_processor_that_has_ended_has_nothing_more_to_give() -> None:
    processor = DirectProcessor[int]()
    numbers = flow.range(2).pipe(multicast(processor))
    first = TestSubscriber[int](10)
    numbers.subscribe(first)
    numbers.connect()
    first.assert_result(0, 1)
    late = TestSubscriber[int](10)
    numbers.subscribe(late)
    late.assert_result()
    assert numbers.connect() is not None
    late.assert_result()


@pytest.mark.checklist("C10", "C11")
def test_subscribers_of_a_given_processor_go_straight_to_it() -> None:
    processor = DirectProcessor[int]()
    numbers = flow.never().pipe(multicast(processor))
    subscriber = TestSubscriber[int](10)
    numbers.subscribe(subscriber)
    assert processor.has_subscribers
    connection = numbers.connect()
    connection.dispose()
    subscriber.assert_not_terminated()


@pytest.mark.checklist("C18")
def test_a_processor_without_coordination_fails_a_subscriber_that_is_too_slow() -> None:
    numbers = flow.range(3).pipe(multicast(DirectProcessor[int]))
    eager, slow = TestSubscriber[int](10), TestSubscriber[int](1)
    numbers.subscribe(eager)
    numbers.subscribe(slow)
    numbers.connect()
    eager.assert_result(0, 1, 2)
    slow.assert_failure(MissingBackpressureError, 0)


@pytest.mark.checklist("C39")
def test_publish_goes_at_the_pace_of_the_slowest() -> None:
    numbers = flow.range(3).pipe(publish())
    eager, slow = TestSubscriber[int](10), TestSubscriber[int](1)
    numbers.subscribe(eager)
    numbers.subscribe(slow)
    numbers.connect()
    eager.assert_items(0)
    slow.request(5)
    eager.assert_result(0, 1, 2)
    slow.assert_result(0, 1, 2)


@pytest.mark.checklist("C22", "C23", "C24")
def test_requests_before_the_run_count_and_a_cancelled_subscriber_gets_nothing() -> None:
    numbers = flow.range(10).pipe(publish())
    five, gone = TestSubscriber[int](0), TestSubscriber[int](10)
    numbers.subscribe(five)
    numbers.subscribe(gone)
    five.assert_subscribed()
    five.request(2)
    five.request(3)
    gone.cancel()
    assert len(numbers.statistics().waiting) == 1
    numbers.connect()
    five.assert_items(0, 1, 2, 3, 4)
    gone.assert_no_items()


@pytest.mark.checklist("C24")
@pytest.mark.parametrize("when", ["in on_subscribe", "later"])
def test_a_bad_request_before_the_run_is_an_error_at_once(when: str) -> None:
    numbers = flow.range(10).pipe(publish())
    subscriber = TestSubscriber[int](-1 if when == "in on_subscribe" else 0)
    numbers.subscribe(subscriber)
    if when == "later":
        subscriber.request(-1)
    subscriber.assert_failure(ValueError)
    subscriber.assert_error_message("3.9")
    assert len(numbers.statistics().waiting) == 0


@pytest.mark.checklist("C33")
def test_disposing_of_a_run_is_an_error_for_its_subscribers(connectable: Any) -> None:
    numbers = connectable(flow.never())
    early = TestSubscriber[int](10)
    numbers.subscribe(early)
    connection = numbers.connect()
    late = TestSubscriber[int](10)
    numbers.subscribe(late)
    connection.dispose()
    early.assert_failure(DisconnectedError)
    late.assert_failure(DisconnectedError)
    after = TestSubscriber[int](10)
    numbers.subscribe(after)
    after.assert_not_terminated()


@pytest.mark.checklist("C35")
def test_a_factory_that_fails_leaves_waiting_subscribers_to_the_next_connect() -> None:
    error = LookupError("factory")
    failures = [error]

    def factory() -> MulticastProcessor[int]:
        if failures:
            raise failures.pop()
        return MulticastProcessor[int]()

    numbers = flow.range(2).pipe(multicast(factory))
    early = TestSubscriber[int](10)
    numbers.subscribe(early)
    with pytest.raises(LookupError, match="factory"):
        numbers.connect()
    early.assert_not_terminated()
    numbers.connect()
    early.assert_result(0, 1)


@pytest.mark.checklist("C35")
def test_a_factory_that_gives_no_processor_is_named() -> None:
    nothing: Any = lambda: None  # noqa: E731 - what a user may write
    with pytest.raises(TypeError, match="gave None, not a Processor"):
        flow.range(2).pipe(multicast(nothing)).connect()


@pytest.mark.parametrize("given", [False, True], ids=["a function", "a processor"])
def test_a_processor_that_counts_as_false_is_one_all_the_same(given: bool) -> None:
    class Sized:
        """A processor of the user's, with a length."""

        def __init__(self) -> None:
            self.inner = DirectProcessor[int]()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def on_next(self, item: int, /) -> None:
            self.inner.on_next(item)

        def subscribe(self, subscriber: Any, /) -> None:
            self.inner.subscribe(subscriber)

        def __len__(self) -> int:
            return 0

    numbers = flow.range(3).pipe(multicast(Sized() if given else Sized))
    subscriber = TestSubscriber[int](10)
    numbers.subscribe(subscriber)
    numbers.connect()
    subscriber.assert_result(0, 1, 2)


@pytest.mark.checklist("C36")
def test_a_callback_that_fails_leaves_waiting_subscribers_to_the_next_connect(
    connectable: Any,
) -> None:
    source, runs = counted(flow.range(2))
    numbers = connectable(source)
    early = TestSubscriber[int](10)
    numbers.subscribe(early)

    def callback(_: Disposable) -> None:
        raise LookupError("callback")

    with pytest.raises(LookupError, match="callback"):
        numbers.connect(callback)
    assert not runs
    numbers.connect()
    early.assert_result(0, 1)


def test_an_error_of_the_source_goes_to_all_as_the_identical_object(connectable: Any) -> None:
    error = LookupError("source")
    numbers = connectable(flow.error(error))
    both = TestSubscriber[int](10), TestSubscriber[int](10)
    for subscriber in both:
        numbers.subscribe(subscriber)
    numbers.connect()
    for subscriber in both:
        subscriber.assert_failure(error)


def test_a_connection_is_a_context(connectable: Any) -> None:
    source = TestPublisher[int]()
    numbers = connectable(Flow(source))
    with numbers.connect() as connection:
        source.assert_not_cancelled()
    assert connection.disposed
    source.assert_cancelled()


def test_subscribing_while_it_connects_on_another_thread_is_served() -> None:
    release = threading.Event()
    numbers = flow.range(3).pipe(publish())
    inside = threading.Event()

    def callback(_: Disposable) -> None:
        inside.set()
        assert release.wait(20)

    thread = threading.Thread(target=lambda: numbers.connect(callback))
    thread.start()
    assert inside.wait(20)
    subscriber = TestSubscriber[int](10)
    numbers.subscribe(subscriber)
    release.set()
    thread.join(20)
    subscriber.assert_result(0, 1, 2)


# -- replay, cache, publish_value


@pytest.mark.checklist("C39")
def test_a_late_subscriber_gets_the_retained_items() -> None:
    source = TestPublisher[int]()
    numbers = Flow(source).pipe(replay(size=2))
    numbers.connect()
    early = TestSubscriber[int](10)
    numbers.subscribe(early)
    for n in range(4):
        source.next(n)
    late = TestSubscriber[int](10)
    numbers.subscribe(late)
    source.complete()
    early.assert_result(0, 1, 2, 3)
    late.assert_result(2, 3)
    after = TestSubscriber[int](10)
    numbers.subscribe(after)
    after.assert_result(2, 3)


def test_items_that_are_too_old_are_not_for_newcomers() -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    numbers = Flow(source).pipe(replay(ttl=10, clock=clock))
    numbers.connect()
    source.next(1)
    clock.advance_by(6)
    source.next(2)
    clock.advance_by(6)
    subscriber = TestSubscriber[int](10)
    numbers.subscribe(subscriber)
    subscriber.assert_items(2)


def test_a_bounded_replay_runs_no_further_ahead_than_it_can_keep() -> None:
    pulled: list[int] = []
    numbers = flow.range(1000).do_on_next(pulled.append).pipe(replay(size=4))
    slow = TestSubscriber[int](1)
    numbers.subscribe(slow)
    numbers.connect()
    assert len(pulled) <= 6
    for n in range(2, 100):
        slow.request(1)
        assert len(pulled) <= n + 5
    slow.assert_items(*range(99))


def test_a_replay_that_is_fed_too_fast_fails_only_the_subscriber_that_is_too_slow() -> None:
    processor = ReplayProcessor[int](size=2)
    eager, slow = TestSubscriber[int](10), TestSubscriber[int](0)
    processor.subscribe(eager)
    processor.subscribe(slow)
    for n in range(5):
        processor.on_next(n)
    slow.request(1)
    slow.assert_failure(MissingBackpressureError)
    eager.assert_items(0, 1, 2, 3, 4)


def test_a_cache_asks_once() -> None:
    source, runs = counted(flow.range(3))
    cached = source.pipe(cache())
    assert not runs
    assert [list(cached), list(cached)] == [[0, 1, 2]] * 2
    assert len(runs) == 1


def test_a_published_value_comes_first() -> None:
    source = TestPublisher[int]()
    numbers = Flow(source).pipe(publish_value(1))
    early = TestSubscriber[int](10)
    numbers.subscribe(early)
    numbers.connect()
    early.assert_items(1)
    source.next(2)
    late = TestSubscriber[int](10)
    numbers.subscribe(late)
    source.complete()
    early.assert_result(1, 2)
    late.assert_result(2)
    with pytest.raises(NoneItemError):
        publish_value(None)


# -- ref_count, auto_connect, share


def test_it_runs_from_the_first_subscriber_to_the_last() -> None:
    source = TestPublisher[int]()
    shared = Flow(source).pipe(share())
    source.assert_not_subscribed()
    first, second = TestSubscriber[int](10), TestSubscriber[int](10)
    shared.subscribe(first)
    source.assert_subscribed(1)
    shared.subscribe(second)
    source.next(1)
    first.cancel()
    source.assert_not_cancelled()
    second.assert_items(1)
    second.cancel()
    source.assert_cancelled()


def test_it_waits_for_as_many_as_it_takes() -> None:
    source = TestPublisher[int]()
    shared = Flow(source).pipe(publish()).ref_count(2)
    first, second = TestSubscriber[int](10), TestSubscriber[int](10)
    shared.subscribe(first)
    source.assert_not_subscribed()
    shared.subscribe(second)
    source.assert_subscribed(1)


def test_it_continues_without_subscribers_during_the_grace_period() -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    shared = Flow(source).pipe(share(grace=5, clock=clock))
    first, second = TestSubscriber[int](10), TestSubscriber[int](10)
    shared.subscribe(first)
    first.cancel()
    clock.advance_by(4)
    source.assert_not_cancelled()
    shared.subscribe(second)
    clock.advance_by(10)
    source.assert_not_cancelled()
    source.assert_subscribed(1)
    second.cancel()
    clock.advance_by(5)
    source.assert_cancelled()


def test_in_the_block_of_a_virtual_clock_the_time_of_grace_is_measured_by_it() -> None:
    source = TestPublisher[int]()
    shared = Flow(source).pipe(share(grace=3600))
    subscriber = TestSubscriber[int](10)
    with VirtualClock() as clock:
        shared.subscribe(subscriber)
        subscriber.cancel()
        source.assert_not_cancelled()
        clock.advance_by(3600)
    source.assert_cancelled()


def test_in_the_block_of_a_virtual_clock_what_is_replayed_ages_by_it() -> None:
    source = TestPublisher[int]()
    replayed = Flow(source).pipe(replay(ttl=3600))
    subscriber = TestSubscriber[int]()
    with VirtualClock() as clock:
        replayed.connect()
        source.next(1)
        clock.advance_by(1800)
        source.next(2)
        clock.advance_by(1801)
        replayed.flow.subscribe(subscriber)
    subscriber.assert_items(2)


def test_when_the_source_has_ended_the_next_subscriber_starts_it_again() -> None:
    source, runs = counted(flow.range(3))
    for operator in (share(), Operators.replayed()):
        runs.clear()
        shared = source.pipe(operator)
        assert [list(shared), list(shared)] == [[0, 1, 2]] * 2
        assert len(runs) == 2


class Operators:
    @staticmethod
    def replayed() -> Any:
        return flow.Operator("replayed", lambda source: source.pipe(replay()).ref_count())


def test_connecting_by_itself_happens_once_and_lasts() -> None:
    source = TestPublisher[int]()
    connections: list[Disposable] = []
    numbers = Flow(source).pipe(publish()).auto_connect(2, connections.append)
    first, second = TestSubscriber[int](10), TestSubscriber[int](10)
    numbers.subscribe(first)
    source.assert_not_subscribed()
    first.cancel()
    numbers.subscribe(second)
    source.assert_subscribed(1)
    assert len(connections) == 1
    second.cancel()
    source.assert_not_cancelled()
    connections[0].dispose()
    source.assert_cancelled()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda numbers: numbers.ref_count(0), ValueError),
        (lambda numbers: numbers.ref_count("1"), TypeError),
        (lambda numbers: numbers.ref_count(grace=float("nan")), ValueError),
        (lambda numbers: numbers.auto_connect(-1), ValueError),
        (lambda numbers: numbers.auto_connect(None), TypeError),
        (lambda _: publish(3), TypeError),
        (lambda _: publish(prefetch=0), ValueError),
        (lambda _: replay(size=0), ValueError),
        (lambda _: replay(ttl=0), ValueError),
        (lambda _: multicast(3), TypeError),
    ],
)
def test_wrong_arguments_are_refused_at_once(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(flow.range(3).pipe(publish()))
