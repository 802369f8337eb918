"""A subscription that has ended keeps nothing alive, however long it is held (§3.13)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flow_core import Flow
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    Connectable,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    serialized,
    share,
)
from flow_testing import Drops, TestPublisher, TestSubscriber
from flow_testing.retention import Payload


@pytest.fixture(autouse=True)
def by_reference_count() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


PROCESSORS: dict[str, Callable[[], Any]] = {
    "async": AsyncProcessor,
    "behavior": BehaviorProcessor,
    "direct": DirectProcessor,
    "multicast": MulticastProcessor,
    "multicast, ref_count": lambda: MulticastProcessor(ref_count=True),
    "replay": ReplayProcessor,
    "replay, 2 items": lambda: ReplayProcessor(2),
    "serialized": lambda: serialized(ReplayProcessor()),
}
# Not here: a UnicastProcessor is its own subscription.


def cancels(_: Any, subscriber: TestSubscriber[Any]) -> None:
    subscriber.cancel()


def requests_what_cannot_be(_: Any, subscriber: TestSubscriber[Any]) -> None:
    subscriber.request(-1)


def completes(processor: Any, _: TestSubscriber[Any]) -> None:
    processor.on_complete()


def fails(processor: Any, _: TestSubscriber[Any]) -> None:
    processor.on_error(LookupError("over"))


ENDS = (cancels, requests_what_cannot_be, completes, fails)
each_end = pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
each_processor = pytest.mark.parametrize("name", PROCESSORS)


class Held:
    """A processor that is kept here only, and its subscriber.

    Args:
        name: of the processor; see `PROCESSORS`.
        subscriber: comes with `join`.
    """

    def __init__(self, name: str, subscriber: TestSubscriber[Any]) -> None:
        self.processor = PROCESSORS[name]()
        self.subscriber = subscriber
        self._item: Callable[[], object] = lambda: None

    def join(self) -> Held:
        self.processor.subscribe(self.subscriber)
        return self

    def feed(self) -> Held:
        item = Payload(1)
        self.processor.on_next(item)
        self._item = weakref.ref(item)
        return self

    def let_go(self) -> Any:
        """The subscription, which keeps neither the processor nor its item alive."""
        subscription = emptied(self.subscriber)
        alive = weakref.ref(self.processor)
        del self.processor
        assert alive() is None
        assert self._item() is None
        assert subscription is not None
        return subscription


def emptied(subscriber: TestSubscriber[Any]) -> Any:
    """The subscription, without what the subscriber has noted down."""
    subscriber.items.clear()
    subscriber.signals.clear()
    return subscriber.subscription


@each_processor
@each_end
@pytest.mark.parametrize("demand", [0, 10])
def test_a_finished_subscription_keeps_no_processor(
    name: str, end: Callable[[Any, TestSubscriber[Any]], None], demand: int
) -> None:
    subscriber = TestSubscriber[Any](demand)
    held = Held(name, subscriber).join().feed()
    end(held.processor, subscriber)
    if subscriber.subscription is not None and not subscriber.terminated and end is not cancels:
        subscriber.request(10)  # the items that are kept come before the end
    subscription = held.let_go()
    subscription.request(1)
    subscription.request(-1)
    subscription.cancel()


@each_processor
@pytest.mark.parametrize("error", [None, LookupError("over")])
def test_a_subscriber_that_came_after_the_end_retains_no_processor(
    name: str, error: LookupError | None
) -> None:
    held = Held(name, TestSubscriber[Any](10)).feed()
    if error is None:
        held.processor.on_complete()
    else:
        held.processor.on_error(error)
    held.join()
    assert held.subscriber.terminated
    held.let_go()


@each_processor
def test_a_subscriber_that_cancels_in_on_subscribe_retains_no_processor(name: str) -> None:
    processor = PROCESSORS[name]()
    kept: list[Any] = []

    class Leaving(TestSubscriber[Any]):
        def on_subscribe(self, subscription: Any, /) -> None:
            kept.append(subscription)
            subscription.cancel()

    processor.subscribe(Leaving())
    alive = weakref.ref(processor)
    del processor
    assert alive() is None
    assert len(kept) == 1


def test_a_subscriber_that_was_too_slow_retains_no_processor() -> None:
    held = Held("direct", TestSubscriber[Any](0)).join().feed()
    assert held.subscriber.terminated
    held.let_go()


@each_processor
def test_a_subscriber_that_raised_retains_no_processor(name: str, drops: Drops) -> None:
    if name == "async":
        return  # it sends its item at the end

    def raises(*_: object) -> None:
        raise ArithmeticError("in on_next")

    held = Held(name, TestSubscriber[Any](10, on_item=raises)).join().feed()
    drops.errors.clear()  # which have the frames in their tracebacks
    held.let_go()


SHARED: dict[str, Callable[[Flow[Any]], Any]] = {
    "cache": lambda source: source.pipe(cache()),
    "multicast": lambda source: source.pipe(multicast(ReplayProcessor)),
    "multicast, one processor": lambda source: source.pipe(multicast(ReplayProcessor())),
    "publish": lambda source: source.pipe(publish()),
    "publish, auto_connect": lambda source: source.pipe(publish()).auto_connect(),
    "publish, ref_count": lambda source: source.pipe(publish()).ref_count(),
    "publish, selected": lambda source: source.pipe(publish(lambda shared: shared)),
    "publish_value": lambda source: source.pipe(publish_value(0)),
    "replay": lambda source: source.pipe(replay()),
    "replay, auto_connect": lambda source: source.pipe(replay(size=2)).auto_connect(),
    "replay, ref_count": lambda source: source.pipe(replay()).ref_count(),
    "replay, selected": lambda source: source.pipe(replay(lambda shared: shared)),
    "share": lambda source: source.pipe(share()),
}


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("end", ["cancel", "complete", "fail", "bad request", "dispose"])
@pytest.mark.parametrize("name", SHARED)
def test_a_finished_subscription_keeps_no_connectable(name: str, end: str, early: bool) -> None:
    source = TestPublisher[Any]()
    shared = SHARED[name](Flow(source))
    connects = isinstance(shared, Connectable)
    if (not early or end == "dispose") and not connects:
        return
    subscriber = TestSubscriber[Any](10)
    if early:
        shared.subscribe(subscriber)
    connection = shared.connect() if connects else None
    if not early:
        shared.subscribe(subscriber)
    item = Payload(1)
    source.next(item)
    if end == "cancel":
        subscriber.cancel()
    elif end == "bad request":
        subscriber.request(-1)
    elif end == "dispose":
        connection.dispose()
        subscriber.cancel()  # of a processor that is given, subscribers get nothing
    elif end == "complete":
        source.complete()
    else:
        source.error(LookupError("over"))
    if connection is not None:
        connection.dispose()
    elif not source.terminated and not source.cancelled:
        source.complete()  # the run continues without subscribers
    if name == "replay" or "one processor" in name:
        connection = None  # items that are kept for late subscribers are kept by a handle, too
    subscription = emptied(subscriber)
    alive = weakref.ref(shared), weakref.ref(item)
    del shared, item, source
    assert [each() for each in alive] == [None, None]
    subscription.request(1)
    subscription.cancel()
