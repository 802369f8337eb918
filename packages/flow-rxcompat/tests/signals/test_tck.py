"""R5: the rules of Reactive Streams, tried on signals and on the converters."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber
from flow_rxcompat.agera import TestLoop
from flow_rxcompat.converters import from_repository, to_repository, to_signals, to_subscriber
from flow_rxcompat.signals import Dispatcher, MutableRepository, Signal, merge
from flow_testing.tck import PublisherVerification, SubscriberVerification

pytestmark = [pytest.mark.tck, pytest.mark.checklist("A17")]

ERROR = LookupError("why")


class Fed(Publisher[Signal]):
    """Something hot, made for each subscriber and fed when it has subscribed."""

    def __init__(self, count: int) -> None:
        self.count = count

    def subscribe(self, subscriber: Subscriber[Signal], /) -> None:
        dispatcher = Dispatcher()
        dispatcher.subscribe(subscriber)
        for _ in range(self.count):
            dispatcher.update()
        dispatcher.complete()


class Signals(PublisherVerification[Signal]):
    quiet_s = 0
    refcounted = True
    failure = ERROR

    def create_failed_publisher(self) -> Publisher[Signal] | None:
        dispatcher = Dispatcher()
        dispatcher.error(ERROR)
        return dispatcher


class TestDispatcher(Signals):
    def create_publisher(self, count: int) -> Publisher[Signal]:
        return Fed(count)


class TestSignalsOfAFlow(Signals):
    def create_publisher(self, count: int) -> Publisher[Signal]:
        return to_signals(flow.range(count))

    def create_failed_publisher(self) -> Publisher[Signal] | None:
        return to_signals(flow.error(ERROR))


class TestMerge(Signals):
    def create_publisher(self, count: int) -> Publisher[Signal]:
        half = count // 2
        return merge(to_signals(flow.range(half)), to_signals(flow.range(count - half)))

    def create_failed_publisher(self) -> Publisher[Signal] | None:
        return merge(to_signals(flow.error(ERROR)), Dispatcher())


class TestFlatMap(Signals):
    chain = 10_000  # each of them is a subscription

    def create_publisher(self, count: int) -> Publisher[Signal]:
        return to_signals(flow.range(count)).flat_map(lambda: to_signals(flow.just(1)))

    def create_failed_publisher(self) -> Publisher[Signal] | None:
        return to_signals(flow.error(ERROR)).flat_map(Dispatcher)


class TestTakeUntil(Signals):
    def create_publisher(self, count: int) -> Publisher[Signal]:
        return to_signals(flow.range(count)).take_until(Dispatcher())

    def create_failed_publisher(self) -> Publisher[Signal] | None:
        return to_signals(flow.error(ERROR)).take_until(Dispatcher())


class TestObserveOnInline(Signals):
    def create_publisher(self, count: int) -> Publisher[Signal]:
        return to_signals(flow.range(count)).observe_on(lambda task: task())

    def create_failed_publisher(self) -> Publisher[Signal] | None:
        return to_signals(flow.error(ERROR)).observe_on(lambda task: task())


class TestSubscribeOnInline(Signals):
    def create_publisher(self, count: int) -> Publisher[Signal]:
        return to_signals(flow.range(count)).subscribe_on(lambda task: task())

    def create_failed_publisher(self) -> Publisher[Signal] | None:
        return to_signals(flow.error(ERROR)).subscribe_on(lambda task: task())


class TestStages(Signals):
    def create_publisher(self, count: int) -> Publisher[Signal]:
        source = Fed(count + 1)
        return to_signals(source).skip(1).do_on_update(lambda: None).filter(lambda: True)

    def create_failed_publisher(self) -> Publisher[Signal] | None:
        return to_signals(flow.error(ERROR)).filter(lambda: True)


class Values(Publisher[int]):
    """The values of a repository that has had a number of them."""

    def __init__(self, count: int) -> None:
        self.count = count

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        repository = MutableRepository(-1)
        repository.values(strategy="buffer", capacity=10**6, current=False).subscribe(subscriber)
        for n in range(self.count):
            repository.accept(n)
        repository.complete()


class TestValuesOfARepository(PublisherVerification[int]):
    quiet_s = 0
    refcounted = True
    max_items = 10**6
    failure = ERROR

    def create_publisher(self, count: int) -> Publisher[int]:
        return Values(count)

    def create_failed_publisher(self) -> Publisher[int] | None:
        repository = MutableRepository(0)
        repository.error(ERROR)
        return repository.values()


class OnALoop(PublisherVerification[int]):
    """Agera between two flows. The test's thread is in the loop, and drains it."""

    quiet_s = 0
    max_items = 10**6
    failure = ERROR

    @pytest.fixture(autouse=True)
    def _within_a_loop(self) -> object:
        with TestLoop() as loop:
            self.loop = loop
            yield
            loop.drain()


class Through(Publisher[int]):
    """A run is shared, and over when the first one has got it: so each subscriber gets its own."""

    def __init__(self, items: flow.Flow[int]) -> None:
        self.items = items

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        repository = to_repository(self.items, -1)
        from_repository(repository, strategy="buffer", capacity=10**6, current=False).subscribe(
            subscriber
        )


class TestThroughARepository(OnALoop):
    def create_publisher(self, count: int) -> Publisher[int]:
        return Through(flow.range(count))

    def create_failed_publisher(self) -> Publisher[int] | None:
        return Through(flow.error(ERROR))


class TestUpdatableAsASubscriber(SubscriberVerification[object]):
    def create_subscriber(self) -> CoreSubscriber[object]:
        return to_subscriber(lambda: None, on_error=lambda _: None)

    def create_item(self, n: int) -> object:
        return n
