"""A subscription belongs to the event loop that ran where it was made."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core.homes import Home, current_home, in_turn, turns
from flow_core.operators import lift, serialize
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber
from flow_testing import TIMEOUT_S, TestPublisher, TestSubscriber


class Visited(Publisher[int]):
    """Sends one item, and remembers where another thread finds its subscribers at home."""

    def __init__(self) -> None:
        self.homes: list[Home | None] = []

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        assert isinstance(subscriber, CoreSubscriber)
        with ThreadPoolExecutor(1) as pool:
            self.homes.append(pool.submit(subscriber.home).result(TIMEOUT_S))
        flow.just(1).subscribe(subscriber)


class Foreign:
    """A subscriber that knows nothing of homes."""

    def on_subscribe(self, subscription: Any) -> None:
        subscription.request(9)

    def on_next(self, item: Any) -> None: ...
    def on_error(self, error: BaseException) -> None: ...
    def on_complete(self) -> None: ...


WAYS: dict[str, Callable[[flow.Flow[int]], object]] = {
    "callbacks": lambda made: made.subscribe(lambda _: None),
    "a foreign subscriber": lambda made: made.subscribe(Foreign()),
    "a future": lambda made: made.to_future().result(TIMEOUT_S),
}
each_way = pytest.mark.parametrize("way", WAYS)


def test_there_is_no_home_where_no_loop_runs() -> None:
    assert current_home() is None


@each_way
def test_without_a_loop_a_subscription_is_at_home_nowhere(way: str) -> None:
    source = Visited()
    WAYS[way](flow.Flow(source).map(abs))
    assert source.homes == [None]


@each_way
def test_a_subscription_keeps_the_loop_in_which_it_was_made(way: str) -> None:
    source = Visited()

    async def main() -> None:
        WAYS[way](flow.Flow(source).map(abs))
        (home,) = source.homes
        assert home is not None
        assert home.loop is asyncio.get_running_loop()

    asyncio.run(main())


def test_an_iteration_in_a_loop_has_its_home_there() -> None:
    source = Visited()

    async def main() -> None:
        assert [n async for n in flow.Flow(source).hide()] == [1]
        (home,) = source.homes
        assert home is not None
        assert home.loop is asyncio.get_running_loop()

    asyncio.run(main())


def test_an_iteration_in_a_thread_has_no_home() -> None:
    source = Visited()
    assert list(flow.Flow(source).hide()) == [1]
    assert source.homes == [None]


class Pass(CoreSubscriber[int]):
    """Everything is that of the downstream."""

    def __init__(self, downstream: CoreSubscriber[int]) -> None:
        self._downstream = downstream

    def __getattribute__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_downstream"), name)


def test_links_hand_it_on_one_to_the_other(home: Home) -> None:
    class AtHome(TestSubscriber[int]):
        def home(self) -> Home | None:
            return home

    source = Visited()
    made = flow.Flow(source).map(abs).hide().context_capture().pipe(serialize())
    made.pipe(lift("pass", Pass)).filter(bool).subscribe(AtHome())
    assert source.homes == [home]


@pytest.fixture
def home() -> Home:
    loop = asyncio.new_event_loop()
    loop.close()
    return Home(loop)


def test_only_what_a_task_or_a_marked_callback_does_is_in_the_turn_of_its_loop() -> None:
    seen: dict[str, bool] = {}

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def see(where: str) -> None:
            seen[where] = in_turn(loop)

        def marked() -> None:
            turns.add(loop)
            see("marked")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(see, "marked, of another thread").result(TIMEOUT_S)
            turns.discard(loop)

        see("task")
        loop.call_soon(see, "callback")
        loop.call_soon(marked)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert [where for where, found in seen.items() if found] == ["task", "marked"]
    assert len(seen) == 4


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs the timers of POSIX")
def test_a_signal_handler_wakes_a_loop_that_sleeps() -> None:
    source = TestPublisher[int]()

    async def main() -> list[int]:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        return await asyncio.wait_for(flow.Flow(source).take(1).to_list(), TIMEOUT_S)

    before = signal.signal(signal.SIGALRM, lambda *_: source.next(1))
    try:
        assert asyncio.run(main()) == [1]
    finally:
        signal.signal(signal.SIGALRM, before)
