"""Connecting, disconnecting and subscribing under every schedule within the bound."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Disposable
from flow_core.testing import TestSubscriber
from flow_core.testing.interleave import Body, Scenario, bound, explore, step
from flow_multicast import Connectable, DisconnectedError, MulticastProcessor, multicast, publish
from flow_multicast.connectables.multicast import MulticastConnectable

pytestmark = [
    pytest.mark.interleave,
    pytest.mark.skipif(
        sys.version_info < (3, 12), reason="needs sys.monitoring, which Python 3.12 brings"
    ),
]


class Source:
    """Counts its subscriptions, and sends to those that are not over."""

    def __init__(self) -> None:
        self.links: list[Link] = []

    def subscribe(self, subscriber: Any, /) -> None:
        link = Link(subscriber)
        self.links.append(link)
        subscriber.on_subscribe(link)

    def next(self, item: int) -> None:
        for link in [*self.links]:
            if not link.over and link.demand:
                link.demand -= 1
                link.subscriber.on_next(item)

    def complete(self) -> None:
        for link in [*self.links]:
            if not link.over:
                link.over = True
                link.subscriber.on_complete()


class Link:
    """One subscription to a `Source`."""

    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        self.demand = 0
        self.over = False

    def request(self, n: int, /) -> None:
        self.demand += n

    def cancel(self) -> None:
        self.over = True


def exhaust(body: Body) -> None:
    report = explore(
        body,
        modules=["flow_core.serial", "flow_multicast", __name__],
        timeout_s=100,
    )
    assert report.exhausted or bound() > 2
    assert report.schedules > 1


def published(source: Source) -> Connectable[int]:
    return flow.Flow(source).pipe(publish())


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

    exhaust(body)


def test_who_subscribes_while_another_connects_is_served_or_told() -> None:
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
                assert numbers.statistics().waiting == 1
                numbers.connect()
                source.complete()
                assert subscriber.terminated

        return Scenario(run, lambda: numbers.subscribe(subscriber), check=check)

    exhaust(body)


@pytest.mark.checklist("C13", "C32")
def test_a_disconnect_while_it_connects_leaves_nobody_without_an_end_or_a_connection() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        early = TestSubscriber[int](10)
        numbers.subscribe(early)

        def check() -> None:
            early.assert_rules_kept()
            if not early.terminated:
                numbers.connect()
                source.complete()
            assert early.terminated

        return Scenario(numbers.connect, lambda: numbers.connect().dispose(), check=check)

    exhaust(body)


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
                late = TestSubscriber[int](10)
                numbers.subscribe(late)
                source.next(7)
                late.assert_items(7)

        return Scenario(end, old.dispose, check=check)

    exhaust(body)


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

    exhaust(body)


def test_an_early_subscriber_that_cancels_or_requests_while_another_connects() -> None:
    def body() -> Scenario:
        source = Source()
        numbers = published(source)
        subscriber = TestSubscriber[int](0)
        numbers.subscribe(subscriber)

        def run() -> None:
            numbers.connect()
            source.next(1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_items(1)

        return Scenario(run, lambda: subscriber.request(2), check=check)

    exhaust(body)


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

    exhaust(body)


SHARED: dict[str, Callable[[Connectable[int]], flow.Flow[int]]] = {
    "ref_count": lambda numbers: numbers.ref_count(),
    "auto_connect": lambda numbers: numbers.auto_connect(),
}


@pytest.mark.parametrize("name", SHARED)
def test_two_who_subscribe_at_once_share_one_run(name: str) -> None:
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

    exhaust(body)


def test_who_comes_as_the_last_one_leaves_is_served() -> None:
    def body() -> Scenario:
        source = Source()
        shared = published(source).ref_count()
        first, second = TestSubscriber[int](10), TestSubscriber[int](10)
        shared.subscribe(first)

        def check() -> None:
            second.assert_not_terminated()
            source.next(1)
            second.assert_items(1)
            second.cancel()
            assert all(link.over for link in source.links)

        return Scenario(first.cancel, lambda: shared.subscribe(second), check=check)

    exhaust(body)


def test_who_comes_as_the_source_ends_gets_an_end_or_a_new_run() -> None:
    def body() -> Scenario:
        source = Source()
        shared = published(source).ref_count()
        first, second = TestSubscriber[int](10), TestSubscriber[int](10)
        shared.subscribe(first)

        def check() -> None:
            first.assert_result()
            if not second.terminated:
                source.complete()
            second.assert_result()

        return Scenario(source.complete, lambda: shared.subscribe(second), check=check)

    exhaust(body)


def test_no_factory_is_called_twice_for_one_connection() -> None:
    def body() -> Scenario:
        made: list[Any] = []

        def factory() -> MulticastProcessor[int]:
            made.append(step())
            return MulticastProcessor[int]()

        numbers = flow.never().pipe(multicast(factory))
        assert isinstance(numbers, MulticastConnectable)
        return Scenario(
            lambda: numbers.connect(), lambda: numbers.connect(), check=lambda: len(made) == 1
        )

    exhaust(body)
