"""A source that tests play, and what must hold of runs under every schedule."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flow_core.protocols import CoreSubscriber, Publisher
from flow_multicast import Connectable
from flow_testing import TestSubscriber
from flow_testing.interleave import Body, Exhaustive, explore_all


class Source:
    """Sends to the subscriptions that are not over, as far as they have asked."""

    def __init__(self) -> None:
        self.links: list[Link] = []

    def subscribe(self, subscriber: Any, /) -> None:
        link = Link(subscriber)
        self.links.append(link)
        subscriber.on_subscribe(link)
        if isinstance(subscriber, CoreSubscriber):  # as all sources of the library do
            link.send = subscriber.receiver()

    def next(self, *items: int) -> None:
        for item in items:
            for link in [*self.links]:
                if not link.over and link.demand:
                    link.demand -= 1
                    link.send(item)

    def complete(self) -> None:
        for link in [*self.links]:
            if not link.over:
                link.over = True
                link.subscriber.on_complete()

    @property
    def running(self) -> int:
        return sum(not link.over for link in self.links)


class Link:
    """One subscription to a `Source`."""

    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        self.send = subscriber.on_next
        self.demand = 0
        self.over = False

    def request(self, n: int, /) -> None:
        self.demand += n

    def cancel(self) -> None:
        self.over = True


def joined(shared: Publisher[int], request: int = 10) -> TestSubscriber[int]:
    """A subscriber that is there before anything happens."""
    subscriber = TestSubscriber[int](request)
    shared.subscribe(subscriber)
    return subscriber


def exhaust(body: Body, only: tuple[ModuleType | str, ...], preemptions: int | None = None) -> None:
    """Every schedule. Processors are explored by their own tests: a call of one is one step."""
    explore_all(
        body,
        modules=["flow_core.serial", *only, __name__, body.__module__],
        strategy=Exhaustive(preemptions),
    )


def nobody_is_forgotten(
    source: Source, numbers: Connectable[int], *subscribers: TestSubscriber[int]
) -> None:
    """Check that a subscriber without an end is served by this or the next run, one at a time."""
    for subscriber in subscribers:
        subscriber.assert_rules_kept()
    assert source.running <= 1
    left = [one for one in subscribers if not one.terminated]
    numbers.connect()
    source.next(99)
    for subscriber in left:
        assert subscriber.items[-1:] == [99]
    source.complete()
    for subscriber in left:
        assert subscriber.completed
        subscriber.assert_rules_kept()
