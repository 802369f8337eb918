"""Waits in a loop are notified when it is closed."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flow_core.sources._loops import LoopWatch
from flow_testing import TIMEOUT_S, Drops
from flow_testing.interleave import Scenario, explore_all


class Told:
    """Says that its loop was closed."""

    def __init__(self, log: list[str], name: str, raises: BaseException | None = None) -> None:
        self.log = log
        self.name = name
        self.raises = raises
        self.happened = threading.Event()

    def __call__(self) -> None:
        self.log.append(self.name)
        self.happened.set()
        if self.raises is not None:
            raise self.raises

    def wait(self) -> None:
        assert self.happened.wait(TIMEOUT_S), f"{self.name} was not told"


class CountingLoop(asyncio.SelectorEventLoop):
    """Knows its timers."""

    def __init__(self) -> None:
        super().__init__()
        self.handles: list[asyncio.TimerHandle] = []

    def call_at(self, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        self.handles.append(super().call_at(*args, **kwargs))
        return self.handles[-1]

    @property
    def pending(self) -> int:
        return sum(not handle.cancelled() for handle in self.handles)

    def turn(self) -> None:
        """Run what is due."""
        self.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def loop() -> Iterator[CountingLoop]:
    loop = CountingLoop()
    yield loop
    loop.handles.clear()
    loop.close()


def closed(loop: CountingLoop) -> None:
    loop.handles.clear()  # only the loop has them
    loop.close()


def test_all_are_notified_in_the_order_in_which_they_came(loop: CountingLoop) -> None:
    log: list[str] = []
    told = [Told(log, name) for name in "abc"]
    watches = [LoopWatch(loop, one) for one in told]
    loop.turn()
    assert loop.pending == 1
    closed(loop)
    told[-1].wait()
    assert log == ["a", "b", "c"]
    del watches


def test_one_that_raises_does_not_keep_the_others_from_being_notified(
    loop: CountingLoop, drops: Drops
) -> None:
    log: list[str] = []
    error = ValueError("told")
    told = [Told(log, "a", error), Told(log, "b")]
    watches = [LoopWatch(loop, one) for one in told]
    loop.turn()
    closed(loop)
    told[-1].wait()
    assert drops.take_errors() == [error]
    del watches


def test_a_watch_that_has_ended_is_not_notified(loop: CountingLoop) -> None:
    log: list[str] = []
    told = [Told(log, name) for name in "ab"]
    first, second = (LoopWatch(loop, one) for one in told)
    loop.turn()
    first.end()
    first.end()
    closed(loop)
    told[1].wait()
    assert log == ["b"]
    del second


def test_when_all_have_ended_there_is_no_timer_left(loop: CountingLoop) -> None:
    watches = [LoopWatch(loop, Told([], "a")) for _ in range(3)]
    loop.turn()
    assert loop.pending == 1
    for watch in watches:
        watch.end()
    loop.turn()
    assert loop.pending == 0
    again = LoopWatch(loop, Told([], "b"))
    loop.turn()
    assert loop.pending == 1
    again.end()


def test_a_loop_that_is_closed_before_it_comes_to_its_next_turn_tells_too(
    loop: CountingLoop,
) -> None:
    told = Told([], "a")
    watch = LoopWatch(loop, told)
    closed(loop)
    told.wait()
    del watch


class Waiting:
    """Keeps its loop, and is kept by its watch, as an operator is."""

    def __init__(self, told: Told) -> None:
        self.loop = asyncio.new_event_loop()
        self.told = told
        self.watch = LoopWatch(self.loop, self.lost)

    def lost(self) -> None:
        self.told()


@pytest.mark.filterwarnings("ignore:unclosed event loop:ResourceWarning")
def test_a_loop_that_is_never_closed_is_not_kept() -> None:
    told = Told([], "a")
    waiting = Waiting(told)
    waiting.loop.run_until_complete(asyncio.sleep(0))
    gone = weakref.ref(waiting.loop)
    del waiting
    gc.collect()
    told.wait()
    while gone() is not None:  # the thread that told has not ended
        gc.collect()


# -- under every schedule


class PlayedLoop:
    """As much of a loop as a watch needs. A thread of the explorer's runs its callbacks."""

    def __init__(self, others: int) -> None:
        self.others = [None] * others
        self.ready: deque[Callable[[], object]] = deque()
        self.timers: list[PlayedTimer] = []

    def call_later(self, _: float, callback: Callable[[], object]) -> PlayedTimer:
        self.timers.append(PlayedTimer(self, callback))
        return self.timers[-1]

    def call_soon_threadsafe(self, callback: Callable[[], object]) -> None:
        self.ready.append(callback)

    def is_closed(self) -> bool:
        return False

    def drain(self) -> None:
        while self.ready:
            self.ready.popleft()()

    def run(self) -> None:
        while self.others or self.ready:  # in this order: nothing is added later
            self.drain()
            if self.others:
                time.sleep(1)  # virtual: until nobody else can go on


class PlayedTimer:
    def __init__(self, loop: PlayedLoop, callback: Callable[[], object]) -> None:
        self.loop = loop
        self.callback = callback

    def cancel(self) -> None:
        self.loop.timers.remove(self)


@pytest.mark.interleave
@pytest.mark.parametrize("stay", [False, True])
def test_there_is_a_timer_as_long_as_a_watch_exists(stay: bool) -> None:
    def body() -> Scenario:
        loop: Any = PlayedLoop(others=2)
        leaving = LoopWatch(loop, list)
        loop.drain()
        kept: list[LoopWatch] = []

        def leaves() -> None:
            leaving.end()
            loop.others.pop()

        def comes() -> None:
            watch = LoopWatch(loop, list)
            if stay:
                kept.append(watch)
            else:
                watch.end()
            loop.others.pop()

        def check() -> None:
            assert len(loop.timers) == stay
            for watch in kept:
                watch.end()
            loop.drain()
            assert loop.timers == []

        return Scenario(loop.run, leaves, comes, check=check)

    explore_all(body, modules=["flow_core.sources._loops", __name__])
