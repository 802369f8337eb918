"""The order of events in one run of a connectable; and the oddities of some sources."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Operator
from flow_core.introspection import links, report
from flow_core.protocols import Disposable
from flow_multicast import (
    Connectable,
    DirectProcessor,
    DisconnectedError,
    MulticastProcessor,
    UnicastProcessor,
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    share,
)
from flow_multicast.connectables.connection import State
from flow_multicast.connectables.multicast import MulticastConnectable
from flow_testing import TestPublisher, TestSubscriber

KINDS: dict[str, Callable[[Flow[int]], Connectable[int]]] = {
    "publish": lambda source: source.pipe(publish()),
    "replay": lambda source: source.pipe(replay()),
    "fixed": lambda source: source.pipe(multicast(DirectProcessor[int]())),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


class Noted(MulticastProcessor[int]):  # type: ignore[misc]  # final for users; a test looks inside
    """Notes what is done to it."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__()
        self.notes = notes

    def subscribe(self, subscriber: Any, /) -> None:
        self.notes.append("an early subscriber joins")
        super().subscribe(subscriber)

    def on_subscribe(self, subscription: Any, /) -> None:
        self.notes.append("the source is subscribed")
        super().on_subscribe(subscription)

    def on_complete(self) -> None:
        self.notes.append("the end")
        super().on_complete()


@pytest.mark.checklist("C20", "C22", "C28", "C30")
def test_the_steps_of_a_connect_in_their_order() -> None:
    notes: list[str] = []

    def factory() -> Noted:
        notes.append("the processor is made")
        return Noted(notes)

    def deferred() -> Flow[int]:
        notes.append("the source runs")
        return flow.range(1)

    numbers = flow.defer(deferred).pipe(multicast(factory))
    numbers.flow.subscribe(lambda n: notes.append(f"item {n}"))
    assert notes == []
    numbers.connect(lambda connection: notes.append(f"callback, over: {connection.disposed}"))
    assert notes == [
        "the processor is made",
        "callback, over: False",
        "an early subscriber joins",
        "the source runs",
        "the source is subscribed",
        "item 0",
        "the end",
    ]


@pytest.mark.checklist("C20", "C27", "C28")
def test_a_connection_goes_through_its_states_once() -> None:
    source = TestPublisher[int]()
    numbers = Flow(source).pipe(publish())
    assert isinstance(numbers, MulticastConnectable)
    seen: list[State] = []
    made = numbers.connect(lambda connection: seen.append(connection.state))  # type: ignore[attr-defined]  # its own
    seen.append(made.state)  # type: ignore[attr-defined]  # its own
    made.dispose()
    seen.append(made.state)  # type: ignore[attr-defined]  # its own
    assert seen == [State.STARTING, State.RUNNING, State.OVER]
    assert numbers.connect() is not made
    source.assert_subscribed(2)


@pytest.mark.checklist("C21")
def test_connect_during_another_connect_returns_a_handle_that_stops_it() -> None:
    inside, release = threading.Event(), threading.Event()

    def factory() -> MulticastProcessor[int]:
        inside.set()
        assert release.wait(20)
        return MulticastProcessor[int]()

    source = TestPublisher[int]()
    numbers = Flow(source).pipe(multicast(factory))
    first: list[Disposable] = []
    thread = threading.Thread(target=lambda: first.append(numbers.connect()))
    thread.start()
    assert inside.wait(20)
    second = numbers.connect()
    second.dispose()
    release.set()
    thread.join(20)
    assert first == [second]
    assert second.disposed
    source.assert_not_subscribed()
    assert not numbers.connect().disposed
    source.assert_subscribed(1)


@pytest.mark.checklist("C04", "C22", "C25")
def test_a_subscriber_that_comes_while_early_ones_are_served_misses_nothing() -> None:
    """It may come before some of those: the order is open, but no subscriber misses an item."""
    order: list[str] = []
    late = TestSubscriber[int](10, on_item=lambda _, n: order.append(f"late {n}"))

    comes = [late]

    class Joining(MulticastProcessor[int]):  # type: ignore[misc]  # final for users
        def subscribe(self, subscriber: Any, /) -> None:
            if comes:
                numbers.subscribe(comes.pop())
            super().subscribe(subscriber)

    numbers = flow.range(2).pipe(multicast(Joining))
    for name in ("first", "second"):
        numbers.flow.subscribe(lambda n, name=name: order.append(f"{name} {n}"))
    numbers.connect()
    assert sorted(order[:3]) == ["first 0", "late 0", "second 0"]
    assert sorted(order[3:]) == ["first 1", "late 1", "second 1"]
    late.assert_result(0, 1)


@pytest.mark.checklist("C34")
def test_a_subscriber_that_joins_a_run_that_ends_just_then_gets_the_end() -> None:
    connections: list[Disposable] = []

    class Slow(MulticastProcessor[int]):  # type: ignore[misc]  # final for users
        def subscribe(self, subscriber: Any, /) -> None:
            connections[0].dispose()
            super().subscribe(subscriber)

    numbers = flow.never().pipe(multicast(Slow))
    connections.append(numbers.connect())
    subscriber = TestSubscriber[int](10)
    numbers.subscribe(subscriber)
    subscriber.assert_failure(DisconnectedError)


@pytest.mark.checklist("C40")
def test_a_unicast_processor_serves_one_subscriber_of_each_run() -> None:
    numbers = flow.range(3).pipe(multicast(UnicastProcessor[int]))
    first, second = TestSubscriber[int](10), TestSubscriber[int](10)
    numbers.subscribe(first)
    numbers.subscribe(second)
    numbers.connect()
    first.assert_result(0, 1, 2)
    assert second.error is not None
    again = TestSubscriber[int](10)
    numbers.subscribe(again)
    numbers.connect()
    again.assert_result(0, 1, 2)


@pytest.mark.checklist("C15", "C36")
def test_a_handle_of_a_connect_that_failed_stops_no_later_run() -> None:
    source = TestPublisher[int]()
    numbers = Flow(source).pipe(publish())
    given: list[Disposable] = []
    early = TestSubscriber[int](10)
    numbers.subscribe(early)

    def callback(connection: Disposable) -> None:
        given.append(connection)
        raise LookupError("callback")

    with pytest.raises(LookupError):
        numbers.connect(callback)
    assert given[0].disposed
    numbers.connect()
    given[0].dispose()
    source.next(1)
    early.assert_items(1).assert_not_terminated()


class Recursive:
    """Answers each request at once, from within on_next too, and ends in the same call."""

    def __init__(self, count: int, error: BaseException | None = None) -> None:
        self.left = [*range(count)]
        self.error = error
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        while n and self.left:
            n -= 1
            self.subscriber.on_next(self.left.pop(0))
        if not self.left and self.subscriber is not None:
            subscriber, self.subscriber = self.subscriber, None
            if self.error is None:
                subscriber.on_complete()
            else:
                subscriber.on_error(self.error)

    def cancel(self) -> None:
        self.left.clear()
        self.subscriber = None


@pytest.mark.parametrize("error", [None, LookupError("source")])
@pytest.mark.parametrize("count", [0, 1, 4, 5, 9])
def test_the_last_items_of_a_recursive_source_come_before_its_end(
    error: BaseException | None, count: int
) -> None:
    numbers = Flow(Recursive(count, error)).pipe(publish(prefetch=4))
    subscriber = TestSubscriber[int]()
    numbers.subscribe(subscriber)
    numbers.connect()
    if error is None:
        subscriber.assert_result(*range(count))
    else:
        subscriber.assert_failure(error, *range(count))


# -- a given processor


@pytest.mark.checklist("C10")
@pytest.mark.parametrize("make", [DirectProcessor[int], lambda: MulticastProcessor[int](2)])
def test_subscribers_of_a_given_processor_continue_with_the_next_connection(make: Any) -> None:
    source = TestPublisher[int]()
    numbers = Flow(source).pipe(multicast(make()))
    subscriber = TestSubscriber[int]()
    numbers.subscribe(subscriber)
    numbers.connect().dispose()
    connection = numbers.connect()
    assert not connection.disposed
    for n in range(9):
        source.next(n)
    subscriber.assert_items(*range(9))
    source.complete()
    subscriber.assert_result(*range(9))
    assert numbers.connect().disposed  # it has ended for ever (C17)


def test_a_given_processor_is_run_again_for_the_next_subscriber() -> None:
    source = TestPublisher[int]()
    shared = Flow(source).pipe(multicast(DirectProcessor[int]())).ref_count()
    for n in range(3):
        subscriber = TestSubscriber[int]()
        shared.subscribe(subscriber)
        source.next(n)
        subscriber.assert_items(n)
        subscriber.cancel()
        source.assert_cancelled()


# -- by themselves


def failing_once() -> Callable[[], MulticastProcessor[int]]:
    failures = [LookupError("factory")]

    def factory() -> MulticastProcessor[int]:
        if failures:
            raise failures.pop()
        return MulticastProcessor[int]()

    return factory


@pytest.mark.checklist("C35")
@pytest.mark.parametrize("way", ["ref_count", "auto_connect"])
def test_a_factory_that_fails_fails_the_subscriber_that_made_it_connect(way: str) -> None:
    numbers = flow.range(2).pipe(multicast(failing_once()))
    both = numbers.ref_count(2) if way == "ref_count" else numbers.auto_connect(2)
    first, second, third = (TestSubscriber[int](10) for _ in range(3))
    both.subscribe(first)
    both.subscribe(second)
    second.assert_failure(LookupError)
    first.assert_not_terminated()
    both.subscribe(third)
    first.assert_result(0, 1)
    third.assert_result(0, 1)


@pytest.mark.parametrize("operator", [publish, replay])
def test_a_subscriber_that_comes_after_the_only_run_gets_its_end(operator: Any) -> None:
    kept = (0, 1) if operator is replay else ()
    once = flow.range(2).pipe(operator()).auto_connect()
    assert list(once) == [0, 1]
    for _ in range(2):
        late = TestSubscriber[int](10)
        once.subscribe(late)
        late.assert_result(*kept)


def test_a_run_that_waits_for_no_subscriber_has_one_end_as_well() -> None:
    once = flow.range(2).pipe(publish()).auto_connect(0)
    assert [list(once), list(once)] == [[0, 1], []]


@pytest.mark.checklist("C13")
def test_a_run_that_is_disposed_of_before_it_begins_is_tried_again_by_the_next() -> None:
    disposals = [1]

    def on_connect(connection: Disposable) -> None:
        if disposals:
            disposals.pop()
            connection.dispose()

    source = TestPublisher[int]()
    both = Flow(source).pipe(publish()).auto_connect(2, on_connect)
    first, second, third = (TestSubscriber[int](10) for _ in range(3))
    both.subscribe(first)
    both.subscribe(second)
    second.assert_failure(DisconnectedError)
    source.assert_not_subscribed()
    both.subscribe(third)
    source.next(1)
    first.assert_items(1)
    third.assert_items(1)


def test_a_subscriber_that_comes_after_the_only_run_failed_gets_its_error() -> None:
    error = LookupError("source")
    once = flow.error(error).pipe(publish()).auto_connect()
    for _ in range(2):
        late = TestSubscriber[int](10)
        once.subscribe(late)
        late.assert_failure(error)


def test_a_subscriber_that_comes_after_the_only_run_was_disposed_of_is_disconnected() -> None:
    connections: list[Disposable] = []
    once = flow.never().pipe(publish()).auto_connect(1, connections.append)
    once.subscribe(TestSubscriber())
    connections[0].dispose()
    late = TestSubscriber[int](10)
    once.subscribe(late)
    late.assert_failure(DisconnectedError)


@pytest.mark.parametrize("operator", [publish, replay])
def test_a_subscriber_of_a_selected_flow_that_has_ended_is_disconnected(operator: Any) -> None:
    source = TestPublisher[int]()
    side = TestSubscriber[int]()

    def selector(shared: Flow[int]) -> Flow[int]:
        shared.subscribe(side)
        return shared.take(2)

    chosen = TestSubscriber[int]()
    Flow(source).pipe(operator(selector)).subscribe(chosen)
    source.next(0)
    source.next(1)
    chosen.assert_result(0, 1)
    side.assert_failure(DisconnectedError, *side.items)
    source.assert_cancelled()


def test_a_connection_is_disposed_of_though_its_connectable_is_forgotten() -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    numbers = Flow(source).pipe(publish())
    numbers.subscribe(subscriber)
    connection = numbers.connect()
    alive = weakref.ref(numbers)
    del numbers
    assert alive() is not None  # it runs
    connection.dispose()
    source.assert_cancelled()
    subscriber.assert_failure(DisconnectedError)
    del source
    assert alive() is None


# -- re-entering, and subscribers that come while another one is slow


@pytest.mark.checklist("M32", "C39")
@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (publish(), [2, 3]),
        (share(), [2, 3]),
        (multicast(DirectProcessor[int]), [2, 3]),
        (publish_value(0), [1, 2, 3]),
        (replay(), [0, 1, 2, 3]),
        (replay(size=1), [1, 2, 3]),
        (cache(), [0, 1, 2, 3]),
    ],
    ids=lambda value: repr(value),
)
def test_the_items_of_a_subscriber_that_subscribes_within_on_next(
    operator: Any, expected: Any
) -> None:
    source = TestPublisher[int]()
    made = Flow(source).pipe(operator)
    inner = TestSubscriber[int](10)

    def join(_: TestSubscriber[int], item: int) -> None:
        if item == 1:
            made.subscribe(inner)

    outer = TestSubscriber[int](10, on_item=join)
    made.subscribe(outer)
    if isinstance(made, Connectable):
        made.connect()
    source.next(0, 1, 2, 3)
    source.complete()
    inner.assert_result(*expected)
    outer.assert_rules_kept()
    assert outer.items[-4:] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("operator", "slow_gets", "late_gets"),
    [
        (share(), [0, 1, 2], [1, 2]),
        (Operator("replayed", lambda source: source.pipe(replay()).ref_count()), [0, 1, 2], None),
    ],
    ids=["share", "replay"],
)
def test_a_run_whose_source_has_ended_continues_for_slow_and_joining_subscribers(
    operator: Any, slow_gets: list[int], late_gets: list[int] | None
) -> None:
    runs: list[int] = []

    def deferred() -> Flow[int]:
        runs.append(1)
        return flow.range(3)

    shared = flow.defer(deferred).pipe(operator)
    slow, late = TestSubscriber[int](1), TestSubscriber[int](10)
    shared.subscribe(slow)
    slow.assert_items(0)
    shared.subscribe(late)
    slow.request(10)
    slow.assert_result(*slow_gets)
    late.assert_result(*(slow_gets if late_gets is None else late_gets))
    assert len(runs) == 1
    assert list(shared) == [0, 1, 2]
    assert len(runs) == 2


# -- statistics


def test_statistics_name_waiting_served_and_slow_subscribers() -> None:
    source = TestPublisher[int]()
    numbers = Flow(source).pipe(publish(prefetch=8))
    eager, slow = TestSubscriber[int](10), TestSubscriber[int](1)
    numbers.subscribe(eager)
    numbers.subscribe(slow)
    now = numbers.statistics()
    assert (now.connected, now.waiting, now.subscribers) == (False, (eager, slow), 0)
    numbers.connect()
    source.next(1)
    source.next(2)
    now = numbers.statistics()
    assert (now.connected, now.waiting, now.subscribers) == (True, (), 2)
    assert (now.buffered, now.capacity, now.requested) == (1, 8, 0)
    assert len(now.held_back_by) == 1
    source.complete()
    slow.request(1)
    now = numbers.statistics()
    assert (now.connected, now.subscribers, now.requested) == (False, 0, 0)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (share(), ["subscriber", "ref_count(1)", "publish()", "never"]),
        (cache(), ["subscriber", "auto_connect", "served", "replay()", "never"]),
    ],
)
def test_a_shared_flow_shows_its_chain(operator: Any, expected: list[str]) -> None:
    handle = flow.never().pipe(operator).subscribe(prefetch=4)
    assert [each.operator for each in links(handle)] == expected
    assert expected[-2] in report(handle)


@each_kind
def test_a_connectable_and_a_connection_are_links(kind: str) -> None:
    numbers = KINDS[kind](flow.never())
    assert len([*links(numbers)]) == 1
    with numbers.connect() as connection:  # type: ignore[attr-defined]  # its own
        assert [each.operator for each in links(connection)][-1] == "never"
        assert [each.operator for each in links(numbers)][-1] == "never"
    assert not [each for each in links(connection) if each.upstream is not None]


def test_a_waiting_subscriber_is_a_link_as_well() -> None:
    numbers = flow.never().pipe(publish())
    handle = numbers.flow.subscribe(prefetch=4)
    waiting = [*links(handle)][1]
    assert (waiting.operator, waiting.requested) == ("waits for connect()", 4)
    handle.dispose()
