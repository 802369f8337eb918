"""In an event loop, the functions of `subscribe` are called in that loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial
from threading import get_ident
from typing import Any

import pytest

from flow_core import Flow, Operator
from flow_core.errors import FlowError, LoopEndedError
from flow_core.homes import Home
from flow_core.subscribers import CallbackSubscriber
from flow_core.subscribers._homing import HomingSubscriber
from flow_testing import TIMEOUT_S, Drops, TestPublisher
from flow_testing.interleave import Scenario, explore_all, step


class Seen:
    """Functions for `subscribe`, and what they were called with, and where."""

    def __init__(self, raises: BaseException | None = None) -> None:
        self.signals: list[Any] = []
        self.threads: set[int] = set()
        self.ended = threading.Event()
        self.raises = raises

    def on_next(self, item: Any) -> None:
        self._called(item)
        if self.raises is not None:
            raise self.raises

    def on_error(self, error: BaseException) -> None:
        self._called(error)
        self.ended.set()

    def on_complete(self) -> None:
        self._called("completed")
        self.ended.set()

    def _called(self, signal: Any) -> None:
        self.signals.append(signal)
        self.threads.add(get_ident())

    async def end(self) -> None:
        assert await asyncio.to_thread(self.ended.wait, TIMEOUT_S)

    def subscribe_to(self, made: Flow[Any], **options: Any) -> CallbackSubscriber[Any]:
        return made.subscribe(self.on_next, self.on_error, self.on_complete, **options)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


ERROR = OSError("lost")
ENDS: dict[str, tuple[Callable[[TestPublisher[int]], object], Any]] = {
    "completed": (lambda source: source.complete(), "completed"),
    "failed": (lambda source: source.error(ERROR), ERROR),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("prefetch", [None, 2])
def test_signals_of_another_thread_come_in_the_loop(
    end: str, prefetch: int | None, pool: ThreadPoolExecutor
) -> None:
    send, told = ENDS[end]

    async def main() -> None:
        seen, source = Seen(), TestPublisher[int]()
        seen.subscribe_to(Flow(source).map(lambda n: n * 10), prefetch=prefetch)
        for n in (1, 2):
            pool.submit(source.next, n).result(TIMEOUT_S)
        assert seen.signals == []
        await asyncio.sleep(0)
        pool.submit(source.next, 3).result(TIMEOUT_S)
        pool.submit(send, source).result(TIMEOUT_S)
        await seen.end()
        assert (seen.signals, seen.threads) == ([10, 20, 30, told], {get_ident()})

    asyncio.run(main())


def test_signals_of_the_loop_itself_come_at_once() -> None:
    async def main() -> None:
        seen, source = Seen(), TestPublisher[int]()
        handle = seen.subscribe_to(Flow(source))
        source.next(1)
        assert seen.signals == [1]
        source.complete()
        assert seen.signals == [1, "completed"]
        assert handle.disposed

    asyncio.run(main())


def test_signals_from_the_loop_do_not_overtake_signals_that_wait(pool: ThreadPoolExecutor) -> None:
    async def main() -> None:
        seen, source = Seen(), TestPublisher[int]()
        seen.subscribe_to(Flow(source))
        pool.submit(source.next, 1).result(TIMEOUT_S)
        source.next(2)
        source.complete()
        await seen.end()
        assert seen.signals == [1, 2, "completed"]

    asyncio.run(main())


def test_without_a_loop_they_come_where_they_are_sent(pool: ThreadPoolExecutor) -> None:
    seen, source = Seen(), TestPublisher[int]()
    seen.subscribe_to(Flow(source))
    pool.submit(source.next, 1).result(TIMEOUT_S)
    assert seen.threads == {pool.submit(get_ident).result(TIMEOUT_S)}


@pytest.mark.parametrize("moves", [False, True])
def test_behind_an_operator_that_says_where_they_come_there(
    moves: bool, pool: ThreadPoolExecutor
) -> None:
    async def main() -> None:
        seen, source = Seen(), TestPublisher[int]()
        made = Flow(source).pipe(Operator("moved", lambda f: Flow(Through(f)), moves=moves))
        seen.subscribe_to(made.map(abs).filter(bool))
        pool.submit(source.next, 1).result(TIMEOUT_S)
        pool.submit(source.complete).result(TIMEOUT_S)
        await seen.end()
        where = pool.submit(get_ident).result(TIMEOUT_S) if moves else get_ident()
        assert seen.threads == {where}

    asyncio.run(main())


class Through:
    """A publisher that is another one."""

    def __init__(self, source: Flow[int]) -> None:
        self.source = source

    def subscribe(self, subscriber: Any, /) -> None:
        self.source.subscribe(subscriber)


def test_after_a_dispose_nothing_comes_and_what_waits_is_dropped(
    pool: ThreadPoolExecutor, drops: Drops
) -> None:
    async def main() -> None:
        seen, source = Seen(), TestPublisher[int]()
        handle = seen.subscribe_to(Flow(source))
        pool.submit(source.next, 1).result(TIMEOUT_S)
        handle.dispose()
        source.assert_cancelled()
        await asyncio.sleep(0)
        assert seen.signals == []

    asyncio.run(main())
    assert drops.take_items() == [1]


def test_a_function_that_raises_ends_the_flow(pool: ThreadPoolExecutor, drops: Drops) -> None:
    async def main() -> None:
        seen, source = Seen(ValueError("told")), TestPublisher[int]()
        seen.subscribe_to(Flow(source))
        for n in (1, 2):
            pool.submit(source.next, n).result(TIMEOUT_S)
        await seen.end()
        source.assert_cancelled()
        assert seen.signals == [1, seen.raises]

    asyncio.run(main())
    assert drops.take_items() == [2]


def test_a_loop_that_is_closed_ends_the_flow(pool: ThreadPoolExecutor, drops: Drops) -> None:
    seen, source = Seen(), TestPublisher[int]()

    async def main() -> None:
        seen.subscribe_to(Flow(source))

        def late() -> None:
            pool.submit(source.next, 1).result(TIMEOUT_S)

        asyncio.get_running_loop().call_soon(late)

    asyncio.run(main())
    assert seen.ended.wait(TIMEOUT_S)
    source.assert_cancelled()
    assert isinstance(seen.signals[-1], FlowError)


def test_a_signal_that_finds_the_loop_closed_ends_the_flow() -> None:
    loop = asyncio.new_event_loop()
    seen, source = Seen(), TestPublisher[int]()
    downstream = CallbackSubscriber[int](seen.on_next, seen.on_error, seen.on_complete)
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(HomingSubscriber, downstream, Home(loop)).result(TIMEOUT_S)
    source.subscribe(made)
    loop.close()
    source.next(1)
    assert seen.ended.wait(TIMEOUT_S)
    source.assert_cancelled()
    assert [type(signal) for signal in seen.signals] == [LoopEndedError]


def test_many_signals_leave_the_loop_its_turns(pool: ThreadPoolExecutor) -> None:
    async def main() -> None:
        turns: list[str] = []
        source = TestPublisher[int]()

        def on_next(_: int) -> None:
            turns.append("item")
            if len(turns) == 1:
                asyncio.get_running_loop().call_soon(turns.append, "another")
                for n in (2, 3):
                    pool.submit(source.next, n).result(TIMEOUT_S)

        with Flow(source).subscribe(on_next):
            pool.submit(source.next, 1).result(TIMEOUT_S)
            while len(turns) < 4:
                await asyncio.sleep(0)
        assert turns == ["item", "another", "item", "item"]

    asyncio.run(main())


# -- under every schedule


class PlayedLoop:
    """As much of a loop as is needed. A thread of the explorer's runs its callbacks."""

    def __init__(self, others: int) -> None:
        self.others = [None] * others
        self.ready: deque[Callable[[], object]] = deque()
        self.timers: list[Callable[[], object]] = []

    def call_later(self, _: float, callback: Callable[[], object]) -> PlayedLoop:
        self.timers.append(callback)
        return self

    def cancel(self) -> None:
        """As the only timer."""
        self.timers.clear()

    def call_soon_threadsafe(
        self, callback: Callable[[], object], *, context: Context | None = None
    ) -> None:
        self.ready.append(callback if context is None else partial(context.run, callback))

    call_soon = call_soon_threadsafe

    def run(self) -> None:
        while self.others or self.ready:  # in this order: nothing is added later
            while self.ready:
                self.ready.popleft()()
            if self.others:
                time.sleep(1)  # virtual: until nobody else can go on


@pytest.mark.interleave
@pytest.mark.parametrize("disposes", [False, True])
def test_no_signal_is_lost_and_none_comes_after_the_end(disposes: bool) -> None:
    def body() -> Scenario:
        loop: Any = PlayedLoop(others=1 + disposes)
        got: list[Any] = []
        source = TestPublisher[int]()

        def on_next(item: int) -> None:
            step()
            got.append(item)

        downstream = CallbackSubscriber[int](on_next, got.append, lambda: got.append("completed"))
        homing: HomingSubscriber[int] = HomingSubscriber(downstream, Home(loop))
        homing._thread = 0  # none of these
        source.subscribe(homing)

        def send() -> None:
            source.next(1)
            source.next(2)
            source.complete()
            loop.others.pop()

        def dispose() -> None:
            downstream.dispose()
            loop.others.pop()

        def check() -> None:
            whole = [1, 2, "completed"]
            if disposes:
                assert got == whole[: len(got)]
            else:
                assert got == whole
            assert not homing._signals
            loop.run()
            assert loop.timers == []

        return Scenario(loop.run, send, *([dispose] if disposes else ()), check=check)

    explore_all(body, modules=["flow_core.subscribers._homing", __name__])
