"""A shared flow belongs to the event loop of its first subscriber."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.clocks import AsyncioClock
from flow_core.errors import FlowError
from flow_core.homes import Home
from flow_multicast import MulticastProcessor
from flow_testing import TIMEOUT_S, TestPublisher, TestSubscriber

SHARED: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "auto_connect": lambda source: source.publish().auto_connect(),
    "cache": lambda source: source.cache(),
    "multicast": lambda source: source.multicast(MulticastProcessor).ref_count(),
    "ref_count": lambda source: source.publish().ref_count(),
    "replay": lambda source: source.replay().ref_count(),
    "share": lambda source: source.share(),
}
each = pytest.mark.parametrize("shared", SHARED.values(), ids=SHARED)


class AtHome(TestSubscriber[Any]):
    def __init__(self, at: Home) -> None:
        super().__init__()
        self.at = at

    def home(self) -> Home | None:
        return self.at


async def where() -> AsyncIterator[asyncio.AbstractEventLoop]:
    yield asyncio.get_running_loop()


async def forever(entered: Callable[[], object]) -> AsyncIterator[int]:
    entered()
    await asyncio.get_running_loop().create_future()
    yield 0


@each
def test_the_source_is_at_home_where_its_subscriber_is(
    shared: Callable[[Flow[Any]], Flow[Any]],
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        subscriber = AtHome(Home(loop))
        made = shared(flow.from_async_iterable(where()))
        await asyncio.to_thread(made.subscribe, subscriber)
        await asyncio.to_thread(subscriber.await_terminal)
        subscriber.assert_result(loop)

    asyncio.run(main())


def test_of_two_subscribers_in_two_loops_the_first_one_counts() -> None:
    connectable = flow.from_async_iterable(where()).publish()

    async def gather(connects: bool) -> tuple[Any, Any]:
        if not connects:
            items = asyncio.ensure_future(connectable.flow.to_list())
            await asyncio.sleep(0)
            await asyncio.to_thread(asyncio.run, gather(True))
            return asyncio.get_running_loop(), await items
        waiting = connectable.flow.to_future()
        connectable.connect()
        return None, await asyncio.wrap_future(waiting)

    loop, items = asyncio.run(gather(False))
    assert items == [loop]


def test_without_a_subscriber_it_runs_in_the_loop_of_the_caller_of_connect() -> None:
    connectable = flow.from_async_iterable(where()).replay()

    async def main() -> None:
        connectable.connect()
        assert await connectable.flow.to_list() == [asyncio.get_running_loop()]

    asyncio.run(main())


@each
def test_when_that_loop_is_closed_subscribers_in_other_loops_get_the_error(
    shared: Callable[[Flow[Any]], Flow[Any]],
) -> None:
    entered = threading.Event()
    made = shared(flow.from_async_iterable(forever(entered.set)))
    first, second = TestSubscriber[int](), TestSubscriber[int]()

    async def main() -> None:
        made.subscribe(first)
        await asyncio.to_thread(entered.wait, TIMEOUT_S)
        await asyncio.to_thread(made.subscribe, second)

    asyncio.run(main())
    for subscriber in (first, second):
        subscriber.await_terminal()
        assert isinstance(subscriber.error, FlowError)


def test_a_remaining_subscriber_that_retries_connects_it_in_its_own_loop() -> None:
    entered = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def source() -> AsyncIterator[asyncio.AbstractEventLoop]:
        loops.append(asyncio.get_running_loop())
        entered.set()
        if len(loops) == 1:
            await loops[0].create_future()
        yield loops[-1]

    made = flow.defer(lambda: flow.from_async_iterable(source())).share()

    async def begin() -> None:
        made.subscribe(TestSubscriber[Any]())
        await asyncio.to_thread(entered.wait, TIMEOUT_S)
        told.append(pool.submit(asyncio.run, stay()))
        await asyncio.to_thread(joined.wait, TIMEOUT_S)

    async def stay() -> bool:
        with pytest.raises(FlowError):
            await made.do_on_subscribe(joined.set).to_list()
        return await made.to_list() == [asyncio.get_running_loop()]

    told: list[Any] = []
    joined = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asyncio.run(begin())
        assert told[0].result(TIMEOUT_S)
    assert len(loops) == 2


class TestGrace:
    """The time that a source continues without subscribers."""

    def test_it_ends_in_the_loop_of_the_first_subscriber(self) -> None:
        async def main() -> None:
            cancelled = asyncio.get_running_loop().create_future()
            source = flow.never().do_on_cancel(lambda: cancelled.set_result(threading.get_ident()))
            shared = source.share(grace=0.001)
            with ThreadPoolExecutor(1) as pool:
                handle = shared.subscribe(print)
                pool.submit(handle.dispose).result(TIMEOUT_S)
                assert await cancelled == threading.get_ident()

        asyncio.run(main())

    @pytest.mark.parametrize("given", [False, True])
    def test_it_ends_with_that_loop(self, given: bool) -> None:
        cancelled = threading.Event()

        async def main() -> None:
            clock = AsyncioClock(asyncio.get_running_loop()) if given else None
            source = flow.never().do_on_cancel(cancelled.set)
            source.share(grace=3600, clock=clock).subscribe(print).dispose()
            assert not cancelled.is_set()

        asyncio.run(main())
        assert cancelled.wait(TIMEOUT_S)

    def test_it_ends_at_once_if_that_loop_is_already_closed(self, drops: Any) -> None:
        source = TestPublisher[int]()
        shared = Flow(source).share(grace=3600)

        subscriber = TestSubscriber[Any]()

        async def main() -> None:
            shared.subscribe(subscriber)

        asyncio.run(main())
        subscriber.cancel()
        source.assert_cancelled()
        (error,) = drops.take_errors()
        assert "closed" in str(error)
