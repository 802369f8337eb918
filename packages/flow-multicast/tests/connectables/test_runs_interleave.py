"""Runs that begin and end while subscribers come and go, and sinks, under every schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Disposable
from flow_multicast import (
    Connectable,
    DirectProcessor,
    DisconnectedError,
    EmitResult,
    MulticastProcessor,
    ReplayProcessor,
    Sink,
    UnicastProcessor,
    cache,
    multicast,
    publish,
    replay,
    share,
)
from flow_multicast.connectables import auto_connect, ref_count
from flow_multicast.connectables.multicast import MulticastConnectable
from flow_testing import TestSubscriber, VirtualClock
from flow_testing.interleave import Scenario, step

from .played import Source, exhaust, joined, nobody_is_forgotten

pytestmark = pytest.mark.interleave

RUNS = (MulticastConnectable.__module__, "flow_multicast.connectables.connection")


Make = Callable[[flow.Flow[int]], Connectable[int]]

KINDS: dict[str, Make] = {
    "publish": lambda source: source.pipe(publish()),
    "replay": lambda source: source.pipe(replay()),
    "replay, 1 item": lambda source: source.pipe(replay(size=1)),
    "multicast": lambda source: source.pipe(multicast(DirectProcessor[int])),
    "fixed": lambda source: source.pipe(multicast(MulticastProcessor[int]())),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


# -- subscribers come and go while a run is served


@pytest.mark.checklist("M10")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "multicast"])
def test_a_subscriber_that_leaves_while_items_come_holds_no_other_back(kind: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        leaving, staying = joined(numbers, 1), joined(numbers)
        numbers.connect()

        def run() -> None:
            source.next(1)
            source.next(2)
            source.complete()

        def check() -> None:
            staying.assert_result(1, 2)
            leaving.assert_rules_kept()
            assert leaving.items in ([], [1])
            assert numbers.statistics().subscribers == 0

        if kind == "replay, 1 item":  # such a source sends nothing without demand

            def check() -> None:
                staying.assert_rules_kept()
                assert staying.completed
                assert staying.items in ([1], [1, 2])
                leaving.assert_rules_kept()

        return Scenario(run, leaving.cancel, check=check)

    exhaust(body, RUNS)


@pytest.mark.checklist("C04", "C22", "C25")
@each_kind
def test_a_subscriber_that_comes_while_early_ones_are_let_in_has_the_same_run(kind: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        early = [TestSubscriber[int](10) for _ in range(2)]
        for subscriber in early:
            numbers.subscribe(subscriber)
        late = TestSubscriber[int](10)

        def check() -> None:
            assert source.running == 1
            assert not numbers.statistics().waiting
            source.next(1)
            source.complete()
            for subscriber in (*early, late):
                subscriber.assert_result(1)

        return Scenario(lambda: numbers.connect(), lambda: numbers.subscribe(late), check=check)

    exhaust(body, RUNS)


@pytest.mark.checklist("C13", "C32")
@each_kind
def test_early_and_late_subscribers_survive_a_disconnect_during_connect(kind: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        early, late = joined(numbers), TestSubscriber[int](10)
        given: list[Disposable] = []

        def dispose() -> None:
            for connection in given:
                connection.dispose()

        return Scenario(
            lambda: numbers.connect(given.append),
            dispose,
            lambda: numbers.subscribe(late),
            check=lambda: nobody_is_forgotten(source, numbers, early, late),
        )

    exhaust(body, RUNS, preemptions=1)  # of three threads


@pytest.mark.checklist("C08", "C27")
@each_kind
def test_two_that_connect_and_one_that_disconnects(kind: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        early = joined(numbers)
        made: list[Disposable] = []

        def connect() -> None:
            made.append(numbers.connect())

        return Scenario(
            connect,
            connect,
            lambda: numbers.connect().dispose(),
            check=lambda: nobody_is_forgotten(source, numbers, early),
        )

    exhaust(body, RUNS, preemptions=1)  # of three threads


@pytest.mark.checklist("C15", "C31")
@each_kind
def test_reset_as_a_run_ends_leaves_the_next_run_alone(kind: str) -> None:
    """reset() frees only the place of a run that has ended."""

    def body() -> Scenario:
        source = Source()
        numbers = KINDS[kind](flow.Flow(source))
        first, second = joined(numbers), TestSubscriber[int](10)
        numbers.connect()

        def end_and_come_again() -> None:
            source.complete()
            numbers.subscribe(second)

        def check() -> None:
            first.assert_result()
            if kind == "fixed":
                second.assert_result()
            else:
                nobody_is_forgotten(source, numbers, second)

        return Scenario(end_and_come_again, numbers.reset, check=check)

    exhaust(body, RUNS)


# -- the end of a run and late subscribers


@pytest.mark.checklist("C06")
def test_items_without_a_subscriber_go_to_the_one_that_comes_as_the_source_ends() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS["publish"](flow.Flow(source))
        numbers.connect()
        source.next(1)
        first = TestSubscriber[int](10)

        def check() -> None:
            first.assert_result(1)
            assert not numbers.statistics().waiting

        return Scenario(source.complete, lambda: numbers.subscribe(first), check=check)

    exhaust(body, RUNS)


CACHES: dict[str, Callable[[flow.Flow[int]], flow.Flow[int]]] = {
    "cache": lambda source: source.pipe(cache()),
    "cache, 1 item": lambda source: source.pipe(cache(size=1)),
    "replay, ref_count": lambda source: source.pipe(replay()).ref_count(),
}


@pytest.mark.parametrize("name", CACHES)
def test_a_subscriber_that_comes_to_a_cache_as_its_source_ends_gets_what_is_kept(name: str) -> None:
    def body() -> Scenario:
        source = Source()
        cached = CACHES[name](flow.Flow(source))
        first, late = joined(cached), TestSubscriber[int](10)
        source.next(1, 2)

        def check() -> None:
            first.assert_result(1, 2)
            late.assert_rules_kept()
            if name == "replay, ref_count":  # it may have begun a new run
                source.next(3)
                source.complete()
                assert late.items in ([1, 2], [3])
                assert len(source.links) <= 2
            else:
                assert late.items == ([2] if "1 item" in name else [1, 2])
                assert len(source.links) == 1
            assert late.completed

        return Scenario(source.complete, lambda: cached.subscribe(late), check=check)

    exhaust(body, (ref_count,))


def test_a_subscriber_that_comes_as_the_source_ends_joins_the_run_of_a_slow_one() -> None:
    def body() -> Scenario:
        source = Source()
        shared = flow.Flow(source).pipe(share())
        slow, late = joined(shared, 0), TestSubscriber[int](10)
        source.next(1)

        def check() -> None:
            slow.assert_not_terminated()
            assert len(source.links) == 1
            slow.request(1)
            slow.assert_result(1)
            late.assert_result(1)

        return Scenario(source.complete, lambda: shared.subscribe(late), check=check)

    exhaust(body, (ref_count,))


def test_a_subscriber_that_comes_as_the_rest_is_taken_gets_the_end_or_a_new_run() -> None:
    def body() -> Scenario:
        source = Source()
        shared = flow.Flow(source).pipe(share())
        slow, late = joined(shared, 0), TestSubscriber[int](10)
        source.next(1)
        source.complete()

        def check() -> None:
            slow.assert_result(1)
            late.assert_rules_kept()
            assert source.running == (not late.terminated)
            source.next(2)
            source.complete()
            assert late.items in ([], [1], [2])
            assert late.completed

        return Scenario(lambda: slow.request(1), lambda: shared.subscribe(late), check=check)

    exhaust(body, (ref_count,))


@pytest.mark.checklist("C35")
@pytest.mark.parametrize("way", ["ref_count", "auto_connect"])
def test_a_subscriber_that_came_while_another_failed_to_connect_is_served(way: str) -> None:
    def body() -> Scenario:
        source = Source()
        failures = [LookupError("factory")]

        def factory() -> MulticastProcessor[int]:
            step()
            if failures:
                raise failures.pop()
            return MulticastProcessor[int]()

        numbers = flow.Flow(source).pipe(multicast(factory))
        shared = numbers.ref_count() if way == "ref_count" else numbers.auto_connect()
        both = TestSubscriber[int](10), TestSubscriber[int](10)

        def check() -> None:
            failed = [one for one in both if one.error is not None]
            assert len(failed) == 1
            (served,) = [one for one in both if one.error is None]
            assert source.running == 1
            source.next(1)
            source.complete()
            served.assert_result(1)

        return Scenario(
            lambda: shared.subscribe(both[0]), lambda: shared.subscribe(both[1]), check=check
        )

    counting = (ref_count,) if way == "ref_count" else (auto_connect, RUNS[0])
    exhaust(body, counting)


@pytest.mark.checklist("C32", "C33")
@pytest.mark.parametrize("way", ["ref_count", "auto_connect"])
def test_a_subscriber_that_connects_during_a_disconnect_is_served_or_disconnected(way: str) -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS["publish"](flow.Flow(source))
        shared = numbers.ref_count() if way == "ref_count" else numbers.auto_connect()
        subscriber = TestSubscriber[int](10)

        def check() -> None:
            subscriber.assert_rules_kept()
            if subscriber.terminated:
                subscriber.assert_failure(DisconnectedError)
                assert source.running == 0 or way == "auto_connect"  # whose run continues
            else:
                assert source.running == 1
                source.next(1)
                subscriber.assert_items(1)

        return Scenario(
            lambda: shared.subscribe(subscriber), lambda: numbers.connect().dispose(), check=check
        )

    exhaust(body, (ref_count if way == "ref_count" else auto_connect, RUNS[0]))


# -- the time of grace


def test_the_source_ends_in_the_time_of_grace_as_another_comes() -> None:
    def body() -> Scenario:
        source = Source()
        clock = VirtualClock()
        shared = flow.Flow(source).pipe(share(grace=5, clock=clock))
        first, second = joined(shared), TestSubscriber[int](10)
        first.cancel()

        def check() -> None:
            second.assert_rules_kept()
            if not second.terminated:
                assert source.running == 1
                clock.advance_by(10)
                source.next(1)
                second.assert_items(1)
                second.cancel()
                clock.advance_by(10)
            assert source.running == 0
            third = joined(shared)
            source.next(2)
            third.assert_items(2)

        return Scenario(source.complete, lambda: shared.subscribe(second), check=check)

    exhaust(body, (ref_count,))


def test_one_leaves_and_another_comes_while_the_time_of_grace_ends() -> None:
    def body() -> Scenario:
        source = Source()
        clock = VirtualClock()
        shared = flow.Flow(source).pipe(replay()).ref_count(grace=5, clock=clock)
        first, second = joined(shared), TestSubscriber[int](10)
        source.next(1)

        def leave() -> None:
            first.cancel()
            clock.advance_by(5)

        def check() -> None:
            second.assert_rules_kept().assert_not_terminated()
            assert source.running == 1
            source.next(2)
            assert second.items in ([1, 2], [2])
            second.cancel()
            clock.advance_by(5)
            assert source.running == 0

        return Scenario(leave, lambda: shared.subscribe(second), check=check)

    exhaust(body, (ref_count,))


@pytest.mark.checklist("C33")
def test_a_counted_run_is_disposed_of_as_another_comes() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = KINDS["publish"](flow.Flow(source))
        shared = numbers.ref_count()
        first, second = joined(shared), TestSubscriber[int](10)
        connection = numbers.connect()

        def check() -> None:
            first.assert_failure(DisconnectedError)
            second.assert_rules_kept()
            if second.terminated:
                second.assert_failure(DisconnectedError)
            else:
                assert source.running == 1
                source.complete()
                second.assert_result()
            assert source.running == 0

        return Scenario(connection.dispose, lambda: shared.subscribe(second), check=check)

    exhaust(body, (ref_count,))


# -- sinks


FED: dict[str, Callable[[], Any]] = {
    "direct": DirectProcessor,
    "multicast": MulticastProcessor,
    "replay": ReplayProcessor,
    "unicast": UnicastProcessor,
}
each_fed = pytest.mark.parametrize("name", FED)


@each_fed
def test_two_simultaneous_emits_are_both_taken_or_one_is_non_serialized(name: str) -> None:
    def body() -> Scenario:
        processor = FED[name]()
        sink = Sink[int](processor)
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())
        processor.subscribe(subscriber)
        answers: dict[int, EmitResult] = {}

        def emit(item: int) -> None:
            answers[item] = sink.try_next(item)

        def check() -> None:
            taken = [n for n, answer in answers.items() if answer is EmitResult.OK]
            assert taken
            assert {*answers.values()} <= {EmitResult.OK, EmitResult.NON_SERIALIZED}
            subscriber.assert_rules_kept()
            assert sorted(subscriber.items) == sorted(taken)
            assert sink.try_next(3) is EmitResult.OK

        return Scenario(lambda: emit(1), lambda: emit(2), check=check)

    exhaust(body, ("flow_multicast.sink",))


@each_fed
def test_an_emit_during_the_end_gets_a_true_answer(name: str) -> None:
    def body() -> Scenario:
        processor = FED[name]()
        sink = Sink[int](processor)
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())
        processor.subscribe(subscriber)
        item: list[EmitResult] = []
        end: list[EmitResult] = []

        def check() -> None:
            assert {*item, *end} <= {
                EmitResult.OK,
                EmitResult.NON_SERIALIZED,
                EmitResult.TERMINATED,
            }
            assert end[0] is not EmitResult.TERMINATED
            subscriber.assert_rules_kept()
            assert subscriber.items == ([1] if item[0] is EmitResult.OK else [])
            assert subscriber.completed == (end[0] is EmitResult.OK)

        return Scenario(
            lambda: item.append(sink.try_next(1)),
            lambda: end.append(sink.try_complete()),
            check=check,
        )

    exhaust(body, ("flow_multicast.sink",))


@each_fed
def test_an_emit_as_the_subscriber_leaves_gets_a_true_answer(name: str) -> None:
    def body() -> Scenario:
        processor = FED[name]()
        sink = Sink[int](processor)
        subscriber = TestSubscriber[int](10, on_item=lambda *_: step())
        processor.subscribe(subscriber)
        answer: list[EmitResult] = []

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert (
                answer[0]
                in {
                    "direct": {EmitResult.OK, EmitResult.ZERO_SUBSCRIBER},
                    "multicast": {EmitResult.OK},
                    "replay": {EmitResult.OK},
                    "unicast": {EmitResult.OK, EmitResult.CANCELLED},
                }[name]
            )
            if subscriber.items:
                assert answer[0] is EmitResult.OK

        return Scenario(lambda: answer.append(sink.try_next(1)), subscriber.cancel, check=check)

    exhaust(body, ("flow_multicast.sink", "flow_multicast.processors"))
