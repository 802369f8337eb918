"""A flow or bridge that has ended lets go of everything, by reference counts alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

import flow_core as flow
from flow_core import Flow
from flow_rxcompat.agera import BaseObservable, TestLoop, repositories
from flow_rxcompat.converters import from_agera, from_repository, to_signals
from flow_rxcompat.signals import Dispatcher, MutableRepository, Observable, merge
from flow_testing import Drops, TestSubscriber
from flow_testing.retention import Payloads, assert_released


@pytest.mark.parametrize(
    "make",
    [
        lambda source: source,
        lambda source: source.skip(1).filter(lambda: True).do_on_update(lambda: None),
        lambda source: source.take_until(Dispatcher()),
        lambda source: merge(source, source),
        lambda source: source.flat_map(lambda: to_signals(flow.just(1, 2))),
        lambda source: source.observe_on(lambda task: task()),
        lambda source: source.subscribe_on(lambda task: task()),
    ],
    ids=["signals", "stages", "take_until", "merge", "flat_map", "observe_on", "subscribe_on"],
)
def test_operators_of_signals_let_go(make: Callable[[Observable], Observable]) -> None:
    def signals(payloads: Payloads) -> Flow[object]:
        return make(to_signals(payloads.pushed())).flow

    assert_released(signals)


class Watched:
    """Something that an updatable refers to."""

    def update(self) -> None: ...


@pytest.mark.parametrize("operator", ["take", "take_until", "merge_with", "observe_on", "flat_map"])
def test_a_removed_updatable_dies_at_once(operator: str) -> None:
    dispatcher = Dispatcher()
    argument = {"take": 5, "observe_on": lambda task: task(), "flat_map": Dispatcher}
    made = getattr(dispatcher, operator)(argument.get(operator, Dispatcher()))
    watched = Watched()
    alive = weakref.ref(watched)
    handle = made.register(watched.update)
    dispatcher.update()
    del watched
    gc.disable()
    try:
        assert alive() is not None
        handle.remove()
        assert alive() is None
    finally:
        gc.enable()


def test_a_cancelled_subscriber_of_a_repository_dies_with_its_values(drops: Drops) -> None:
    class Value:
        pass

    gc.disable()
    try:
        for values in ("agera", "signals"):
            with TestLoop() as loop:
                subscriber, first, second = TestSubscriber[Value](0), Value(), Value()
                dead = weakref.ref(subscriber), weakref.ref(first)
                if values == "agera":
                    shim = repositories.mutable_repository(first)
                    from_repository(shim, strategy="buffer").subscribe(subscriber)
                    shim.accept(second)
                else:
                    redesigned = MutableRepository(first)
                    redesigned.values(strategy="buffer").subscribe(subscriber)
                    redesigned.accept(second)
                del first
                assert all(each() is not None for each in dead)
                subscriber.cancel()
                loop.drain()
                assert len(drops.take_items()) == 2  # the hook has them
                del subscriber
                assert [each() for each in dead] == [None, None]
    finally:
        gc.enable()


def test_an_observable_without_a_listener_dies_with_its_bridge() -> None:
    class Source(BaseObservable):
        pass

    gc.disable()
    try:
        with TestLoop() as loop:
            source, subscriber = Source(), TestSubscriber[object]()
            alive = weakref.ref(source)
            from_agera(source).subscribe(subscriber)
            source.dispatch_update()
            loop.drain()
            subscriber.cancel()
            loop.drain()
            del source
            assert alive() is None
    finally:
        gc.enable()
