"""Connecting, disconnecting and subscribing under every schedule within the bound."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import flow_core as flow
from flow_core.protocols import Disposable
from flow_multicast import (
    Connectable,
    DirectProcessor,
    DisconnectedError,
    MulticastProcessor,
    cache,
    multicast,
    publish,
    replay,
    share,
)
from flow_multicast.connectables import auto_connect, ref_count
from flow_multicast.connectables.connection import Feeder
from flow_multicast.connectables.inlet import Inlet
from flow_multicast.connectables.multicast import MulticastConnectable
from flow_testing import TestSubscriber, VirtualClock
from flow_testing.interleave import Scenario, step

from .played import Source, exhaust, joined, nobody_is_forgotten

pytestmark = [pytest.mark.interleave, pytest.mark.essential]

COUNTING = (ref_count, auto_connect, MulticastConnectable.__module__)
"""The modules that count and connect, where the others only make more steps."""

ALL = ("flow_multicast.connectables",)


def published(source: Source) -> Connectable[int]:
    return flow.Flow(source).pipe(publish())


@pytest.mark.checklist("C08", "C11", "C27")
def test_of_two_that_connect_one_does_and_both_get_the_same_connection() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        given: list[Disposable] = []
        returned: list[Disposable] = []

        def connect() -> None:
            returned.append(numbers.connect(given.append))

        def check() -> None:
            assert len({id(one) for one in (*given, *returned)}) == 1
            assert len(given) == len(returned) == 2
            assert len(source.links) == 1

        return Scenario(connect, connect, check=check)

    exhaust(body, ALL)


def test_a_subscriber_that_comes_during_connect_is_served_now_or_in_the_next_run() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())

        def run() -> None:
            numbers.connect()
            source.next(1)
            source.complete()

        def check() -> None:
            subscriber.assert_rules_kept()
            if not subscriber.terminated:  # it waits for the next run
                assert len(numbers.statistics().waiting) == 1
                numbers.connect()
                source.complete()
                assert subscriber.terminated

        return Scenario(run, lambda: numbers.subscribe(subscriber), check=check)

    exhaust(body, ALL)


@pytest.mark.checklist("C13", "C32")
def test_a_disconnect_during_connect_leaves_no_subscriber_stranded() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        early = joined(numbers)

        def check() -> None:
            early.assert_rules_kept()
            if not early.terminated:
                numbers.connect()
                source.complete()
            assert early.terminated

        return Scenario(numbers.connect, lambda: numbers.connect().dispose(), check=check)

    exhaust(body, ALL)


@pytest.mark.checklist("C09", "C15")
def test_an_old_connection_does_not_stop_a_newer_one() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        old = numbers.connect()
        again: list[Disposable] = []

        def end() -> None:
            source.complete()
            again.append(numbers.connect())

        def check() -> None:
            if not again[0].disposed:
                late = joined(numbers)
                source.next(7)
                late.assert_items(7)

        return Scenario(end, old.dispose, check=check)

    exhaust(body, ALL)


@pytest.mark.checklist("C33")
def test_the_error_of_a_disconnect_does_not_overlap_an_item() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())
        numbers.subscribe(subscriber)
        connection = numbers.connect()

        return Scenario(
            lambda: source.next(1),
            connection.dispose,
            check=lambda: subscriber.assert_failure(DisconnectedError, *subscriber.items),
        )

    exhaust(body, ALL)


def test_an_early_subscriber_that_cancels_or_requests_while_another_connects() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        subscriber = joined(numbers, 0)

        def run() -> None:
            numbers.connect()
            source.next(1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_items(1)

        return Scenario(run, lambda: subscriber.request(2), check=check)

    exhaust(body, ALL)


@pytest.mark.checklist("C23", "C24")
def test_a_bad_request_before_the_run_is_alone_with_the_subscriber() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())
        numbers.subscribe(subscriber)

        def run() -> None:
            numbers.connect()
            source.next(1)

        return Scenario(
            run,
            lambda: subscriber.subscription.request(0),
            check=lambda: subscriber.assert_failure(ValueError, *subscriber.items),
        )

    exhaust(body, ALL)


SHARED: dict[str, Callable[[Connectable[int]], flow.Flow[int]]] = {
    "ref_count": lambda numbers: numbers.ref_count(),
    "auto_connect": lambda numbers: numbers.auto_connect(),
}


@pytest.mark.parametrize("name", SHARED)
def test_two_simultaneous_subscribers_share_one_run(name: str) -> None:
    def body() -> Scenario:
        source = Source()
        shared = SHARED[name](published(source))
        first, second = TestSubscriber[int](10), TestSubscriber[int](10)

        def check() -> None:
            assert len(source.links) == 1
            source.next(1)
            source.complete()
            first.assert_result(1)
            second.assert_result(1)

        return Scenario(
            lambda: shared.subscribe(first), lambda: shared.subscribe(second), check=check
        )

    exhaust(body, COUNTING)


def test_a_subscriber_that_comes_as_the_last_one_leaves_is_served() -> None:
    def body() -> Scenario:
        source = Source()
        shared = published(source).ref_count()
        first, second = joined(shared), TestSubscriber[int](10)

        def check() -> None:
            second.assert_not_terminated()
            source.next(1)
            second.assert_items(1)
            second.cancel()
            assert not source.running

        return Scenario(first.cancel, lambda: shared.subscribe(second), check=check)

    exhaust(body, COUNTING)


def test_a_subscriber_that_comes_as_the_source_ends_gets_the_end_or_a_new_run() -> None:
    def body() -> Scenario:
        source = Source()
        shared = published(source).ref_count()
        first, second = joined(shared), TestSubscriber[int](10)

        def check() -> None:
            first.assert_result()
            if not second.terminated:
                source.complete()
            second.assert_result()

        return Scenario(source.complete, lambda: shared.subscribe(second), check=check)

    exhaust(body, COUNTING)


@pytest.mark.checklist("C11", "C27")
def test_no_factory_is_called_twice_for_one_connection() -> None:
    def body() -> Scenario:
        made: list[MulticastProcessor[int]] = []

        def factory() -> MulticastProcessor[int]:
            step()
            made.append(MulticastProcessor[int]())
            return made[-1]

        numbers = flow.never().pipe(multicast(factory))
        assert isinstance(numbers, MulticastConnectable)

        def check() -> None:
            assert len(made) == 1

        return Scenario(lambda: numbers.connect(), lambda: numbers.connect(), check=check)

    exhaust(body, ALL)


KINDS: dict[str, Callable[[flow.Flow[int]], Connectable[int]]] = {
    "publish": lambda source: source.pipe(publish()),
    "replay": lambda source: source.pipe(replay()),
    "fixed": lambda source: source.pipe(multicast(DirectProcessor[int]())),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.checklist("C09", "C15", "C33")
@each_kind
def test_a_disconnect_an_end_and_a_new_connection_at_once(kind: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        subscriber = joined(numbers)
        old = numbers.connect()

        return Scenario(
            old.dispose,
            source.complete,
            lambda: numbers.connect(),
            check=lambda: nobody_is_forgotten(source, numbers, subscriber),
        )

    exhaust(body, ALL, preemptions=1)  # of three threads


@pytest.mark.checklist("C04", "C34")
@each_kind
def test_a_subscriber_that_comes_during_a_disconnect_gets_an_end_or_the_next_run(kind: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        connection = numbers.connect()
        subscriber = TestSubscriber[int](10)

        return Scenario(
            connection.dispose,
            lambda: numbers.subscribe(subscriber),
            check=lambda: nobody_is_forgotten(source, numbers, subscriber),
        )

    exhaust(body, ALL)


@pytest.mark.checklist("C04", "C31", "C34")
@each_kind
def test_a_subscriber_that_comes_as_the_source_ends_gets_the_end_or_the_next_run(kind: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        early = joined(numbers)
        numbers.connect()
        subscriber = TestSubscriber[int](10)

        def check() -> None:
            assert early.terminated
            if kind != "publish":  # their newcomers get the end
                assert subscriber.terminated
            nobody_is_forgotten(source, numbers, subscriber)

        return Scenario(source.complete, lambda: numbers.subscribe(subscriber), check=check)

    exhaust(body, ALL)


@pytest.mark.checklist("C23")
@each_kind
def test_a_subscriber_that_cancels_during_connect_gets_nothing_after_that(kind: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        leaving, staying = joined(numbers), joined(numbers)
        missed: list[int] = []

        def leave() -> None:
            leaving.cancel()

        def check() -> None:
            missed.extend(leaving.items)
            source.next(1)
            assert leaving.items == missed
            staying.assert_items(1)
            assert not numbers.statistics().waiting
            leaving.assert_rules_kept()
            nobody_is_forgotten(source, numbers, staying)

        return Scenario(lambda: numbers.connect(), leave, check=check)

    exhaust(body, ALL)


@pytest.mark.checklist("C24")
def test_a_bad_request_while_a_replay_begins_is_an_error_for_one_only() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = flow.Flow(source).pipe(replay())
        bad, good = joined(numbers, 0), joined(numbers)

        def check() -> None:
            bad.assert_failure(ValueError)
            nobody_is_forgotten(source, numbers, good)

        return Scenario(
            lambda: numbers.connect(), lambda: bad.subscription.request(-1), check=check
        )

    exhaust(body, ALL)


@pytest.mark.checklist("C10")
def test_two_connections_never_feed_a_processor_at_once_or_beyond_its_demand() -> None:
    """An item of the old one is on its way as the new one begins."""

    def body() -> Scenario:
        source = Source()
        numbers = flow.Flow(source).pipe(multicast(MulticastProcessor[int](2)))
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())
        numbers.subscribe(subscriber)
        old = numbers.connect()

        link = source.links[0]

        def item() -> None:
            if not link.over:
                link.send(1)

        def again() -> None:
            old.dispose()
            numbers.connect()
            source.next(2)
            source.next(3)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            for n in (4, 5, 6):
                source.next(n)
            assert subscriber.items[-3:] == [4, 5, 6]

        return Scenario(item, again, check=check)

    exhaust(body, (Inlet.__module__, Feeder.__module__))


def test_the_time_of_grace_ends_as_another_subscriber_comes() -> None:
    def body() -> Scenario:
        source = Source()
        clock = VirtualClock()
        shared = published(source).ref_count(grace=5, clock=clock)
        first, second = joined(shared), TestSubscriber[int](10)
        first.cancel()

        def check() -> None:
            second.assert_rules_kept().assert_not_terminated()
            source.next(1)
            second.assert_items(1)
            second.cancel()
            clock.advance_by(10)
            assert not source.running

        return Scenario(lambda: clock.advance_by(5), lambda: shared.subscribe(second), check=check)

    exhaust(body, COUNTING)


def test_the_time_of_grace_begins_and_ends_as_another_comes_and_goes() -> None:
    def body() -> Scenario:
        source = Source()
        clock = VirtualClock()
        shared = published(source).ref_count(grace=5, clock=clock)
        first, second = joined(shared), TestSubscriber[int](-1)

        def check() -> None:
            clock.advance_by(10)
            assert len(source.links) <= 2
            assert not source.running

        return Scenario(
            first.cancel,
            lambda: clock.advance_by(5),
            lambda: shared.subscribe(second),
            check=check,
        )

    exhaust(body, ALL, preemptions=1)  # of three threads


def test_of_two_that_it_takes_one_leaves_as_another_comes() -> None:
    def body() -> Scenario:
        source = Source()
        shared = published(source).ref_count(2)
        first, second, third = (TestSubscriber[int](10) for _ in range(3))
        shared.subscribe(first)

        def check() -> None:
            assert len(source.links) <= 1
            shared.subscribe(third)
            source.next(1)
            second.assert_items(1)
            third.assert_items(1)
            second.cancel()
            third.cancel()
            assert not source.running

        return Scenario(first.cancel, lambda: shared.subscribe(second), check=check)

    exhaust(body, COUNTING)


def test_nothing_runs_for_a_subscriber_that_is_cancelled_during_connect() -> None:
    def body() -> Scenario:
        source = Source()
        shared = published(source).ref_count()
        subscriber = TestSubscriber[int](10)
        entered: list[int] = []

        def leave() -> None:
            if subscriber.signals:
                subscriber.cancel()
                entered.append(1)

        def check() -> None:
            if entered:
                assert not source.running
                source.next(1)
                subscriber.assert_no_items()
            else:
                source.next(1)
                subscriber.assert_items(1)

        return Scenario(lambda: shared.subscribe(subscriber), leave, check=check)

    exhaust(body, COUNTING)


def test_two_awaited_subscribers_that_come_at_once_are_both_served() -> None:
    def body() -> Scenario:
        source = Source()
        both = published(source).auto_connect(2)
        first, second = TestSubscriber[int](10), TestSubscriber[int](10)

        def check() -> None:
            assert len(source.links) == 1
            source.next(1)
            source.complete()
            first.assert_result(1)
            second.assert_result(1)

        return Scenario(lambda: both.subscribe(first), lambda: both.subscribe(second), check=check)

    exhaust(body, ALL)


@pytest.mark.parametrize("ends", ["completes", "is disposed of"])
def test_a_subscriber_that_comes_as_the_only_run_ends_gets_its_end(ends: str) -> None:
    def body() -> Scenario:
        source = Source()
        connections: list[Disposable] = []
        once = published(source).auto_connect(1, connections.append)
        first, second = joined(once), TestSubscriber[int](10)

        def check() -> None:
            assert len(source.links) == 1
            for subscriber in (first, second):
                if ends == "completes":
                    subscriber.assert_result()
                else:
                    subscriber.assert_failure(DisconnectedError)

        return Scenario(
            source.complete if ends == "completes" else connections[0].dispose,
            lambda: once.subscribe(second),
            check=check,
        )

    exhaust(body, ALL)


def test_two_simultaneous_first_subscribers_of_a_cache_get_the_same_items() -> None:
    def body() -> Scenario:
        source = Source()
        cached = flow.Flow(source).pipe(cache())
        first, second = TestSubscriber[int](10), TestSubscriber[int](10)

        def subscribe_and_feed() -> None:
            cached.subscribe(first)
            source.next(1)

        def check() -> None:
            assert len(source.links) == 1
            source.next(2)
            source.complete()
            assert first.items[-1:] == second.items[-1:] == [2]
            second.assert_result(*first.items)

        return Scenario(subscribe_and_feed, lambda: cached.subscribe(second), check=check)

    exhaust(body, COUNTING)


def test_a_subscriber_that_comes_as_a_shared_source_ends_gets_the_end_or_restarts_it() -> None:
    def body() -> Scenario:
        source = Source()
        shared = flow.Flow(source).pipe(share())
        first, second = joined(shared), TestSubscriber[int](10)
        third = TestSubscriber[int](10)

        def check() -> None:
            first.assert_result()
            shared.subscribe(third)
            assert source.running == 1
            source.next(1)
            source.complete()
            third.assert_result(1)
            assert second.terminated
            second.assert_rules_kept()

        return Scenario(source.complete, lambda: shared.subscribe(second), check=check)

    exhaust(body, COUNTING)


@pytest.mark.checklist("C07")
@pytest.mark.parametrize("name", ["publish", "replay"])
def test_a_selected_flow_has_enough_as_an_item_comes(name: str) -> None:
    def body() -> Scenario:
        source = Source()
        side = TestSubscriber[int](10, on_item=lambda *_: step())

        def selector(shared: flow.Flow[int]) -> flow.Flow[int]:
            shared.subscribe(side)
            return shared

        made = flow.Flow(source).pipe(publish(selector) if name == "publish" else replay(selector))
        subscriber = joined(made)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            side.assert_failure(DisconnectedError, *side.items)
            assert not source.running

        return Scenario(lambda: source.next(1), subscriber.cancel, check=check)

    exhaust(body, ALL)


@pytest.mark.checklist("C07")
@pytest.mark.parametrize("name", ["publish", "replay"])
def test_a_selected_flow_is_cancelled_as_the_source_ends(name: str) -> None:
    def body() -> Scenario:
        source = Source()
        side = TestSubscriber[int](10)

        def selector(shared: flow.Flow[int]) -> flow.Flow[int]:
            shared.subscribe(side)
            return shared

        made = flow.Flow(source).pipe(publish(selector) if name == "publish" else replay(selector))
        subscriber = joined(made)

        def check() -> None:
            subscriber.assert_rules_kept()
            side.assert_rules_kept()
            assert side.terminated
            assert not source.running

        return Scenario(source.complete, subscriber.cancel, check=check)

    exhaust(body, ALL)
