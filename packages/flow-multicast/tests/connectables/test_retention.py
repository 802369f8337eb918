"""Connectables keep nothing alive when they have ended, or when a subscriber has left."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.protocols import Subscriber
from flow_multicast import (
    Connectable,
    DirectProcessor,
    MulticastProcessor,
    cache,
    multicast,
    publish,
    replay,
    share,
)
from flow_testing import (
    BAD_SOURCES,
    ENDINGS,
    BadSource,
    Ending,
    Payload,
    Payloads,
    TestPublisher,
    TestSubscriber,
    assert_released,
    check_bad_source,
)

Shared = Callable[[Flow[Any]], Flow[Any]]

SHARED: dict[str, Shared] = {
    "publish": lambda source: source.pipe(publish(prefetch=2)).ref_count(),
    "share": lambda source: source.pipe(share(prefetch=2)),
    "replay": lambda source: source.pipe(replay()).ref_count(),
    "replay, 2 items": lambda source: source.pipe(replay(size=2)).ref_count(),
    "a given processor": lambda source: source.pipe(multicast(DirectProcessor[Any]())).ref_count(),
    "publish, selected": lambda source: source.pipe(publish(lambda items: items, prefetch=2)),
    "replay, selected": lambda source: source.pipe(replay(lambda items: items)),
}


class Once:
    """Shares the upstream again for each subscriber, so that nothing is left to share it."""

    def __init__(self, upstream: Flow[Any], shared: Shared) -> None:
        self.upstream = upstream
        self.shared = shared

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.shared(self.upstream).subscribe(subscriber)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize("name", SHARED)
def test_it_lets_go_of_everything(name: str, ending: Ending) -> None:
    def make(payloads: Payloads) -> Flow[Any]:
        return Flow(Once(payloads.pushed(), SHARED[name]))

    assert_released(make, keeps_error=True, only=lambda one: one == ending.name)


@pytest.mark.parametrize("error", [None, LookupError("over")])
def test_a_subscriber_that_has_got_all_of_a_cache_retains_nothing_of_it(
    error: LookupError | None,
) -> None:
    source = TestPublisher[Any]()
    cached = Flow(source).pipe(cache())
    subscriber = TestSubscriber[Any](10)
    cached.subscribe(subscriber)
    item = Payload(1)
    alive = weakref.ref(item)
    source.next(item)
    if error is None:
        source.complete()
    else:
        source.error(error)
    subscriber.items.clear()
    subscriber.signals.clear()
    del item
    assert alive() is not None
    del cached
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
@pytest.mark.parametrize("name", SHARED)
def test_it_keeps_the_rules_behind_a_bad_source(name: str, bad: BadSource) -> None:
    check_bad_source(
        SHARED[name], bounded=name in {"publish", "share"}, only=lambda one: one == bad.name
    )


KINDS: dict[str, Callable[[Flow[Any]], Connectable[Any]]] = {
    "publish": lambda source: source.pipe(publish()),
    "multicast": lambda source: source.pipe(multicast(MulticastProcessor[Any])),
    "replay": lambda source: source.pipe(replay()),
    "fixed": lambda source: source.pipe(multicast(DirectProcessor[Any]())),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.checklist("C23")
@each_kind
def test_an_early_subscriber_that_has_left_is_not_kept(kind: str) -> None:
    numbers = KINDS[kind](flow.never())
    subscriber = TestSubscriber[int](10)
    alive = weakref.ref(subscriber)
    numbers.subscribe(subscriber)
    subscriber.cancel()
    del subscriber
    assert alive() is None
    assert not numbers.statistics().waiting


@each_kind
def test_a_subscriber_with_an_invalid_request_is_not_retained(kind: str) -> None:
    numbers = KINDS[kind](flow.never())
    subscriber = TestSubscriber[int](-1)
    alive = weakref.ref(subscriber)
    numbers.subscribe(subscriber)
    subscriber.assert_failure(ValueError)
    del subscriber
    assert alive() is None


@pytest.mark.parametrize("ends", ["completes", "is disposed of"])
@pytest.mark.parametrize("kind", ["publish", "multicast", "replay"])
def test_a_connection_that_has_ended_retains_no_items_however_long_it_is_held(
    kind: str, ends: str
) -> None:
    source = TestPublisher[Any]()
    numbers = KINDS[kind](Flow(source))
    subscriber = TestSubscriber[Any](0)
    numbers.subscribe(subscriber)
    connection = numbers.connect()
    item = Payload(1)
    alive = weakref.ref(item)
    source.next(item)
    del item
    assert alive() is not None
    if ends == "completes":
        source.complete()
        if kind != "replay":  # a slow subscriber gets it all the same
            subscriber.request(1)
    else:
        connection.dispose()
        subscriber.cancel()  # or it gets the item before it gets the error
    subscriber.items.clear()
    subscriber.signals.clear()
    if ends == "completes" and kind == "replay":
        subscriber.cancel()
        assert alive() is not None  # it is for late subscribers
        numbers.reset()
    gc.collect()
    assert alive() is None
    assert connection.disposed


@each_kind
def test_a_flow_that_is_forgotten_dies_at_once(kind: str) -> None:
    source = flow.never()
    numbers = KINDS[kind](source)
    connection = numbers.connect()
    numbers.subscribe(TestSubscriber[int](1))
    connection.dispose()
    alive = weakref.ref(numbers)
    gc.disable()
    try:
        del numbers, connection
        assert alive() is None
    finally:
        gc.enable()
