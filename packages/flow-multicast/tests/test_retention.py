"""The objects that a processor keeps alive after its end, or after a subscriber has left."""

from __future__ import annotations

import gc
import traceback
import tracemalloc
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.protocols import Subscriber
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    cache,
    multicast,
    publish,
    replay,
    serialized,
)
from flow_testing import ENDINGS, Ending, Payloads, TestSubscriber, assert_released
from flow_testing.retention import Payload

UPSTREAMS: dict[str, Callable[[Payloads], Flow[Any]]] = {
    "iterable": flow.from_iterable,
    "hidden": lambda payloads: flow.from_iterable(payloads).hide(),
    "publisher": Payloads.pushed,
}


class Multicast:
    """A new processor for each subscriber, which is then fed by the upstream."""

    def __init__(self, upstream: Flow[Any], others: int, ref_count: bool) -> None:
        self.upstream = upstream
        self.others = others
        self.ref_count = ref_count

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        processor = MulticastProcessor[Any](prefetch=2, ref_count=self.ref_count)
        processor.subscribe(subscriber)
        for _ in range(self.others):
            processor.flow.subscribe(lambda _: None, lambda _: None)
        self.upstream.subscribe(processor)


def each_ending() -> list[Any]:
    return [
        pytest.param(upstream, ending, id=f"{upstream}-{ending.name}")
        for upstream in UPSTREAMS
        for ending in ENDINGS
    ]


@pytest.mark.parametrize(("upstream", "ending"), each_ending())
# Without others and without counting, what was not sent waits for the next subscriber.
@pytest.mark.parametrize(("others", "ref_count"), [(0, True), (2, True), (2, False)])
def test_a_multicast_processor_lets_go_of_everything(
    upstream: str, ending: Ending, others: int, ref_count: bool
) -> None:
    def make(payloads: Payloads) -> Flow[Any]:
        return Flow(Multicast(UPSTREAMS[upstream](payloads), others, ref_count))

    assert_released(make, keeps_error=True, only=lambda name: name == ending.name)


HOT: dict[str, Callable[[], Any]] = {
    "async": AsyncProcessor,
    "behavior": BehaviorProcessor,
    "direct": DirectProcessor,
    "replay": ReplayProcessor,
    "replay, 2": lambda: ReplayProcessor(2),
    "serialized": lambda: serialized(DirectProcessor()),
}


class Feeding:
    """A new processor for each subscriber, which is then fed by the upstream."""

    def __init__(self, upstream: Flow[Any], make: Callable[[], Any], others: int) -> None:
        self.upstream = upstream
        self.make = make
        self.others = others

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        processor = self.make()
        processor.subscribe(subscriber)
        for _ in range(self.others):
            processor.flow.subscribe(lambda _: None, lambda _: None)
        self.upstream.subscribe(processor)


@pytest.mark.parametrize("name", ["direct", "serialized"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("others", [0, 2])
def test_a_processor_that_keeps_no_items_lets_go_of_everything(
    name: str, upstream: str, others: int
) -> None:
    assert_released(
        lambda payloads: Flow(Feeding(UPSTREAMS[upstream](payloads), HOT[name], others)),
        keeps_error=True,
    )


@pytest.mark.parametrize("make", list(HOT.values()), ids=list(HOT))
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("fails", [False, True])
def test_items_and_errors_that_are_kept_go_with_the_processor(
    make: Callable[[], Any], upstream: str, fails: bool
) -> None:
    gc.disable()
    try:
        payloads = Payloads(6, fails)
        processor = make()
        early, late = TestSubscriber[Any](), TestSubscriber[Any]()
        processor.subscribe(early)
        UPSTREAMS[upstream](payloads).subscribe(processor)
        processor.subscribe(late)
        assert early.terminated
        assert late.terminated
        watched = [weakref.ref(thing) for thing in (processor, early, late)]
        del processor, early, late
        kept = [*payloads.items, *payloads.chains, *payloads.errors]
        assert [what for what, alive in kept if alive() is not None] == []
        assert [alive() for alive in watched] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.parametrize("make", [*HOT.values(), MulticastProcessor], ids=[*HOT, "multicast"])
def test_a_subscriber_that_leaves_is_released_at_once(make: Callable[[], Any]) -> None:
    gc.disable()
    try:
        processor = make()
        for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
            subscribers = [TestSubscriber[Any](10) for _ in range(3)]
            for subscriber in subscribers:
                processor.subscribe(subscriber)
            processor.on_next(Payload(1))
            alive = [weakref.ref(subscriber) for subscriber in subscribers]
            for index in order:
                subscribers[index].cancel()
            subscriptions = [subscriber.subscription for subscriber in subscribers]
            del subscriber, subscribers
            assert [each() for each in alive] == [None] * 3
            del subscriptions
    finally:
        gc.enable()


@pytest.mark.parametrize("make", [*HOT.values(), MulticastProcessor], ids=[*HOT, "multicast"])
def test_memory_comes_back_when_many_leave(make: Callable[[], Any]) -> None:
    processor = make()
    staying = processor.flow.subscribe(lambda _: None)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        handles = [processor.flow.subscribe(lambda _: None) for _ in range(2_000)]
        processor.on_next(1)
        during = tracemalloc.get_traced_memory()[0] - before
        for handle in handles:
            handle.dispose()
        del handle, handles
        processor.on_next(2)
        gc.collect()  # the interpreter keeps tuples that are free up to then
        after = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert after < during / 8
    staying.dispose()


def fed(make: Callable[[], Any]) -> Callable[[Flow[Any]], Flow[Any]]:
    def through(source: Flow[Any]) -> Flow[Any]:
        processor = make()
        source.subscribe(processor)
        return processor.flow

    return through


def connected(source: Flow[Any]) -> Flow[Any]:
    numbers = source.pipe(replay())
    numbers.connect()
    return numbers.flow


KEEPING: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    **{name: fed(make) for name, make in HOT.items()},
    "multicast": fed(MulticastProcessor),
    "cache()": lambda source: source.pipe(cache()),
    "multicast().auto_connect()": lambda source: source.pipe(
        multicast(DirectProcessor)
    ).auto_connect(),
    "publish().auto_connect()": lambda source: source.pipe(publish()).auto_connect(),
    "replay().auto_connect()": lambda source: source.pipe(replay()).auto_connect(),
    "replay().connect()": connected,
}


@pytest.mark.parametrize("raised", [False, True], ids=["never raised", "raised"])
@pytest.mark.parametrize("name", KEEPING)
def test_a_kept_error_retains_nothing_of_the_subscribers_that_got_it(
    name: str, raised: bool
) -> None:
    error = LookupError("kept")

    def fail() -> None:
        raise error

    failed = KEEPING[name](flow.from_callable(fail) if raised else flow.error(error))
    told: list[weakref.ref[Payload]] = []
    shown: list[list[str]] = []

    def ask() -> None:
        mine = Payload(1)
        told.append(weakref.ref(mine))
        with suppress(LookupError):
            list(failed)
        shown.append([frame.name for frame in traceback.extract_tb(error.__traceback__)])

    for _ in range(5):
        ask()
    gc.collect()
    assert [alive() for alive in told[:-1]] == [None] * 4  # the last one is in the traceback
    assert shown[2:] == shown[1:2] * 3
    # The first subscriber made the source run, and may have got the error before it was kept.
    assert shown[1].count("ask") <= 2
    assert ("fail" in shown[-1]) == raised


def test_amounts_that_are_requested_before_a_run_take_no_room() -> None:
    numbers = flow.range(3).pipe(publish())
    subscriber = TestSubscriber[int](0)
    numbers.subscribe(subscriber)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20_000):
            subscriber.subscription.request(1)  # which is not recorded
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
    numbers.connect()
    assert subscriber.items == [0, 1, 2]
    assert subscriber.completed
