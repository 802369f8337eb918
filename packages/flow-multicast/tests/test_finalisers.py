"""A finaliser or a signal handler calls in, at any moment, in the thread that is at work."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import flow_core as flow
from flow_multicast import (
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    UnicastProcessor,
    cache,
    publish,
    share,
)
from flow_testing import Drops, TestSubscriber

TRIALS = 100
PROCESSORS: dict[
    str, Callable[[], MulticastProcessor[int] | DirectProcessor[int] | ReplayProcessor[int]]
] = {
    "multicast": MulticastProcessor[int],
    "direct": DirectProcessor[int],
    "replay": ReplayProcessor[int],
    "replay, 64": lambda: ReplayProcessor(64),
}


class Widget:
    """Subscribes, is part of a cycle, and leaves when the collector finds it."""

    def __init__(self, source: flow.Flow[int]) -> None:
        self.me = self
        self.handle = source.subscribe(lambda _: None, prefetch=4)

    def __del__(self) -> None:
        self.handle.dispose()


@contextmanager
def collecting() -> Iterator[None]:
    """Let the collector come as often as it can."""
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_collector_may_find_a_subscriber_while_items_are_sent(name: str) -> None:
    processor = PROCESSORS[name]()
    stays = TestSubscriber[int]()
    processor.subscribe(stays)
    with collecting():
        for n in range(TRIALS):
            Widget(processor.flow)
            for k in range(5):
                processor.on_next(5 * n + k)
    gc.collect()
    stays.assert_items(*range(5 * TRIALS))
    assert processor.statistics().subscribers == 1


SHARED: dict[str, Callable[[flow.Flow[int]], flow.Flow[int]]] = {
    "share": lambda source: source.pipe(share()),
    "auto_connect": lambda source: source.pipe(publish()).auto_connect(),
    "cache": lambda source: source.pipe(cache(size=4)),
    "selected": lambda source: source.pipe(publish(lambda items: items)),
}


@pytest.mark.parametrize("name", SHARED)
def test_the_collector_may_find_a_subscriber_of_a_shared_flow(name: str) -> None:
    source = DirectProcessor[int]()
    shared = SHARED[name](source.flow)
    stays = TestSubscriber[int]()
    shared.subscribe(stays)
    with collecting():
        for n in range(TRIALS):
            Widget(shared)
            for k in range(5):
                source.on_next(5 * n + k)
    gc.collect()
    stays.assert_items(*range(5 * TRIALS)).cancel()
    if name in {"share", "selected"}:
        assert not source.has_subscribers


class Reader:
    """Has begun to read, and is part of a cycle."""

    def __init__(self, source: flow.Flow[int]) -> None:
        self.me = self
        self.items = iter(source)


@pytest.mark.parametrize("size", [None, 8])
def test_the_collector_may_find_an_iterator_while_items_are_sent(size: int | None) -> None:
    processor = ReplayProcessor[int](size)
    with collecting():
        for n in range(TRIALS):
            processor.on_next(n)
            assert next(Reader(processor.flow).items) == (
                0 if size is None else max(0, n + 1 - size)
            )
    gc.collect()
    assert not processor.has_subscribers


@contextmanager
def interrupted(handler: Callable[[], object]) -> Iterator[list[None]]:
    """Have `handler` called by a signal, soon; the list says whether it was."""
    called: list[None] = []
    begun: list[None] = []

    def handle(*_: object) -> None:
        if not begun:
            begun.append(None)
            handler()
            called.append(None)

    before = signal.signal(signal.SIGALRM, handle)
    # Again later: on a busy machine, CPython 3.11 and 3.12 forget a signal once in a while.
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.1)
    try:
        yield called
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no setitimer")
@pytest.mark.parametrize("what", ["completes", "leaves"])
@pytest.mark.parametrize("name", PROCESSORS)
def test_a_signal_handler_may_call_while_items_are_sent(drops: Drops, name: str, what: str) -> None:
    for _ in range(TRIALS):
        processor = PROCESSORS[name]()
        stays, leaves = TestSubscriber[int](), TestSubscriber[int]()
        processor.subscribe(stays)
        processor.subscribe(leaves)
        taken = 0
        with interrupted(processor.on_complete if what == "completes" else leaves.cancel) as done:
            while not done:
                taken += processor.offer(taken)
        if what == "completes":  # what was just offered comes before the end, or is dropped
            stays.assert_result(*range(taken - len(drops.items)))
            leaves.assert_result(*stays.items)
            assert drops.items in ([], [taken - 1])
            drops.items.clear()
        else:
            stays.assert_items(*range(taken)).assert_not_terminated()
            leaves.assert_items(*range(len(leaves.items))).assert_not_terminated()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no setitimer")
def test_a_signal_handler_may_come_and_go_while_others_do() -> None:
    source = DirectProcessor[int]()
    shared = source.flow.pipe(share())
    stays = TestSubscriber[int]()

    def come_and_go() -> None:
        shared.subscribe(passing := TestSubscriber[int]())
        passing.cancel()

    for _ in range(TRIALS):
        with interrupted(come_and_go) as done:
            while not done:
                come_and_go()
    assert not source.has_subscribers
    shared.subscribe(stays)
    source.on_next(1)
    stays.assert_items(1)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no setitimer")
def test_a_signal_handler_may_end_a_queue_while_items_are_offered() -> None:
    for _ in range(TRIALS):
        processor = UnicastProcessor[int](8)
        processor.subscribe(subscriber := TestSubscriber[int]())
        taken = 0
        with interrupted(processor.on_complete) as done:
            while not done:
                taken += processor.offer(taken)
        subscriber.assert_result(*range(taken))
