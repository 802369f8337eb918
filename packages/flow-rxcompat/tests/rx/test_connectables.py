"""Connectables of one library in the other."""

from __future__ import annotations

import itertools
from threading import Event
from typing import Any

import pytest
import reactivex
from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

import flow_core as flow
from flow_multicast import DisconnectedError, publish, replay
from flow_rxcompat.rx import from_rx_connectable, to_rx_connectable
from flow_testing import TIMEOUT_S, TestPublisher, TestSubscriber

# -- theirs as ours


def test_nothing_comes_before_connect() -> None:
    numbers = from_rx_connectable(reactivex.of(1, 2).pipe(ops.publish()))
    first, second = TestSubscriber[int](), TestSubscriber[int](0)
    numbers.subscribe(first)
    numbers.subscribe(second)
    first.assert_no_items().assert_not_terminated()
    numbers.connect()
    first.assert_result(1, 2)
    second.assert_no_items().request(2)
    second.assert_result(1, 2)


def test_the_source_runs_once_for_all() -> None:
    runs: list[int] = []
    source = reactivex.defer(lambda _: reactivex.of(runs.append(1) or 7))
    numbers = from_rx_connectable(source.pipe(ops.publish()))
    for _ in range(3):
        numbers.subscribe(TestSubscriber[int]())
    assert numbers.connect() is numbers.connect()
    assert runs == [1]


@pytest.mark.checklist("C05")
def test_the_callback_gets_the_connection_before_the_source_runs() -> None:
    endless = reactivex.from_iterable(itertools.count()).pipe(ops.publish())
    numbers = from_rx_connectable(endless)
    connections: list[Any] = []
    seen: list[int] = []

    def take(n: int) -> None:
        seen.append(n)
        if n == 4:
            connections[0].dispose()

    numbers.flow.subscribe(take)
    numbers.connect(connections.append)
    assert seen == [0, 1, 2, 3, 4]
    assert connections[0].disposed


@pytest.mark.checklist("C13")
def test_a_callback_that_disposes_keeps_the_source_from_running() -> None:
    runs: list[int] = []
    source = reactivex.defer(lambda _: reactivex.of(runs.append(1) or 7))
    numbers = from_rx_connectable(source.pipe(ops.publish()))
    numbers.connect(lambda connection: connection.dispose())
    assert runs == []
    numbers.connect()
    assert runs == [1]


@pytest.mark.checklist("C36")
def test_a_callback_that_raises_leaves_it_usable() -> None:
    numbers = from_rx_connectable(reactivex.of(1).pipe(ops.publish()))
    subscriber = TestSubscriber[int]()
    numbers.subscribe(subscriber)

    def fail(_: object) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        numbers.connect(fail)
    numbers.connect()
    subscriber.assert_result(1)


@pytest.mark.checklist("C08", "C09")
def test_disposing_stops_the_source_and_an_old_connection_does_nothing_more() -> None:
    subject = Subject[int]()
    numbers = from_rx_connectable(subject.pipe(ops.publish()))
    subscriber = TestSubscriber[int]()
    numbers.subscribe(subscriber)
    old = numbers.connect()
    subject.on_next(1)
    old.dispose()
    subject.on_next(2)
    new = numbers.connect()
    old.dispose()
    subject.on_next(3)
    subscriber.assert_items(1, 3)
    assert (old.disposed, new.disposed) == (True, False)
    new.dispose()
    assert subject.observers == []


def test_a_subscriber_that_comes_after_the_end_gets_it() -> None:
    error = LookupError("theirs")
    numbers = from_rx_connectable(reactivex.throw(error).pipe(ops.publish()))
    numbers.connect()
    subscriber = TestSubscriber[int]()
    numbers.subscribe(subscriber)
    subscriber.assert_failure(error)


def test_a_replaying_one_gives_what_was_before() -> None:
    numbers = from_rx_connectable(reactivex.of(1, 2, 3).pipe(ops.replay(buffer_size=2)))
    numbers.connect()
    assert list(numbers.flow) == [2, 3]


def test_ref_count_connects_with_the_first_and_stops_with_the_last() -> None:
    subject = Subject[int]()
    shared = from_rx_connectable(subject.pipe(ops.publish())).ref_count()
    first, second = TestSubscriber[int](), TestSubscriber[int]()
    shared.subscribe(first)
    shared.subscribe(second)
    assert len(subject.observers) == 1
    subject.on_next(1)
    first.cancel()
    assert len(subject.observers) == 1
    second.cancel()
    assert subject.observers == []
    third = TestSubscriber[int]()
    shared.subscribe(third)
    subject.on_next(2)
    third.assert_items(2)


def test_auto_connect_connects_with_the_nth() -> None:
    both = from_rx_connectable(reactivex.of(1, 2).pipe(ops.publish())).auto_connect(2)
    first, second = TestSubscriber[int](), TestSubscriber[int]()
    both.subscribe(first)
    first.assert_no_items()
    both.subscribe(second)
    first.assert_result(1, 2)
    second.assert_result(1, 2)


def test_a_subscriber_that_comes_after_an_auto_connected_run_stopped_is_disconnected() -> None:
    connections: list[Any] = []
    subject = Subject[int]()
    auto = from_rx_connectable(subject.pipe(ops.publish())).auto_connect(1, connections.append)
    auto.subscribe(TestSubscriber[int]())
    connections[0].dispose()
    late = TestSubscriber[int]()
    auto.subscribe(late)
    late.assert_failure(DisconnectedError)


def test_items_of_the_connect_of_the_observable_come_too() -> None:
    theirs = reactivex.of(1, 2).pipe(ops.publish())
    subscriber = TestSubscriber[int]()
    from_rx_connectable(theirs).subscribe(subscriber)
    theirs.connect()
    subscriber.assert_result(1, 2)


def test_statistics_tell_how_far_it_is() -> None:
    numbers = from_rx_connectable(Subject[int]().pipe(ops.publish()))
    numbers.subscribe(TestSubscriber[int]())
    assert (numbers.statistics().connected, numbers.statistics().subscribers) == (False, 1)
    connection = numbers.connect()
    assert numbers.statistics().connected
    connection.dispose()
    assert not numbers.statistics().connected


@pytest.mark.parametrize("wrong", [None, reactivex.of(1)], ids=["None", "Observable"])
def test_from_rx_connectable_refuses_a_value_that_is_not_connectable(wrong: Any) -> None:
    with pytest.raises(TypeError, match="from_rx_connectable"):
        from_rx_connectable(wrong)


# -- ours as theirs


def test_ours_waits_for_connect_too() -> None:
    numbers = to_rx_connectable(flow.range(3).pipe(publish()))
    first: list[int] = []
    second: list[int] = []
    numbers.subscribe(first.append)
    numbers.subscribe(second.append)
    assert (first, second) == ([], [])
    numbers.connect()
    assert (first, second) == ([0, 1, 2], [0, 1, 2])


def test_disposing_of_the_connection_cancels_and_notifies_the_observers() -> None:
    publisher = TestPublisher[int]()
    numbers = to_rx_connectable(flow.Flow(publisher).pipe(publish()))
    seen: list[object] = []
    numbers.subscribe(seen.append, seen.append)
    connection = numbers.connect()
    assert connection is not None
    publisher.next(1)
    connection.dispose()
    assert publisher.cancels == 1
    assert seen[0] == 1
    assert isinstance(seen[1], DisconnectedError)


def test_their_ref_count_stops_an_endless_source_of_ours() -> None:
    cancelled = Event()
    endless = flow.repeat_value(7).do_on_cancel(cancelled.set).pipe(publish())
    shared = to_rx_connectable(endless).pipe(ops.ref_count(), ops.take(3), ops.to_list())
    assert shared.run() == [7, 7, 7]
    assert cancelled.wait(TIMEOUT_S)


def test_their_auto_connect_connects_ours() -> None:
    both: Observable[int] = to_rx_connectable(flow.range(2).pipe(publish())).auto_connect(2)
    first: list[int] = []
    second: list[int] = []
    both.subscribe(first.append)
    assert first == []
    both.subscribe(second.append)
    assert (first, second) == ([0, 1], [0, 1])


def test_a_replaying_one_of_ours_gives_what_was_before() -> None:
    numbers = to_rx_connectable(flow.range(3).pipe(replay()))
    numbers.connect()
    assert numbers.pipe(ops.to_list()).run() == [0, 1, 2]


@pytest.mark.parametrize("wrong", [None, flow.just(1)], ids=["None", "flow"])
def test_to_rx_connectable_refuses_a_value_that_is_not_a_connectable(wrong: Any) -> None:
    with pytest.raises(TypeError, match="to_rx_connectable"):
        to_rx_connectable(wrong)
