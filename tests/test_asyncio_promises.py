"""The promises of docs/asyncio.md: one test for each line of its table."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import BlockingInEventLoopError
from flow_core.backoff import Backoff
from flow_core.homes import library_loop
from flow_testing import TIMEOUT_S

PARTS = ("timer", "retry", "time-out", "coroutine", "generator", "stage")


class Places:
    """The threads, and the loops, in which the parts of a flow have run."""

    def __init__(self) -> None:
        self.seen: dict[str, set[tuple[str, Any]]] = {}
        self.failed = False

    def note(self, part: str) -> None:
        try:
            loop: Any = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        self.seen.setdefault(part, set()).add((threading.current_thread().name, loop))

    async def coroutine(self, n: int) -> int:
        self.note("coroutine")
        if not self.failed:
            self.failed = True
            raise OSError("not yet")
        return n

    async def generator(self) -> AsyncIterator[int]:
        self.note("generator")
        yield 1

    def flow(self) -> flow.Flow[int]:
        """A flow with one of everything."""
        again = flow.defer(
            lambda: self._noted("retry", flow.just(1)).map_concurrent(self.coroutine, 1)
        )
        late = flow.never().timeout(0.001, fallback=flow.defer(lambda: self._noted("time-out")))
        inner = (
            flow.timer(0.001).do_on_next(lambda _: self.note("timer")),
            again.retry_when(Backoff(0.001)),
            late,
            flow.defer(lambda: flow.from_async_iterable(self.generator())),
        )
        made = flow.range(4).concat_map(lambda n: inner[n])
        return made.map(lambda n: (self.note("stage"), n)[1])

    def _noted(self, part: str, made: flow.Flow[int] | None = None) -> flow.Flow[int]:
        if part != "retry" or self.failed:  # the first attempt is none
            self.note(part)
        return flow.just(0) if made is None else made

    def consume(self, _: object) -> None:
        self.note("consumer")

    def assert_all_in(self, *parts: str, thread: str, loop: Any) -> None:
        for part in parts:
            assert self.seen[part] == {(thread, loop)}, part


async def by_async_for(places: Places) -> None:
    async for item in places.flow():
        places.consume(item)


async def by_await(places: Places) -> None:
    places.consume(await places.flow().to_list())


async def by_run_async(places: Places) -> None:
    await places.flow().run_async()
    places.consume(None)


async def by_subscribe(places: Places) -> None:
    ended = asyncio.get_running_loop().create_future()
    places.flow().subscribe(places.consume, ended.set_exception, lambda: ended.set_result(None))
    await ended


async def by_future(places: Places) -> None:
    places.consume(await asyncio.wrap_future(places.flow().to_list().to_future()))


@pytest.mark.parametrize(
    "run", [by_async_for, by_await, by_run_async, by_subscribe, by_future], ids=lambda f: f.__name__
)
def test_in_a_coroutine_all_is_in_the_loop(run: Any) -> None:
    async def main() -> None:
        places = Places()
        await run(places)
        here = threading.current_thread().name
        places.assert_all_in(*PARTS, "consumer", thread=here, loop=asyncio.get_running_loop())

    asyncio.run(main())


def iterated(places: Places) -> None:
    for item in places.flow():
        places.consume(item)


def ran(places: Places) -> None:
    places.flow().run()
    places.consume(None)


@pytest.mark.parametrize("run", [iterated, ran], ids=lambda f: f.__name__)
def test_outside_of_a_loop_the_body_is_in_the_thread_of_the_consumer(run: Any) -> None:
    places = Places()
    run(places)
    assert_outside(places)
    here = threading.current_thread().name
    places.assert_all_in("consumer", thread=here, loop=None)


def test_outside_of_a_loop_callbacks_are_where_the_item_is_brought() -> None:
    places = Places()
    places.flow().subscribe(places.consume).wait(TIMEOUT_S)
    assert_outside(places)
    assert places.seen["consumer"] == places.seen["stage"]


def assert_outside(places: Places) -> None:
    places.assert_all_in("timer", "retry", "time-out", thread="flow-clock", loop=None)
    places.assert_all_in("coroutine", "generator", thread="flow-loop", loop=library_loop())
    brought = {thread for thread, _ in places.seen["stage"]}
    assert brought <= {"flow-clock", "flow-loop", threading.current_thread().name}


def test_in_a_coroutine_a_blocking_loop_is_refused_but_for_plain_iteration() -> None:
    async def main() -> None:
        assert list(flow.range(3).map(abs)) == [0, 1, 2]
        with pytest.raises(BlockingInEventLoopError):
            list(Places().flow())

    asyncio.run(main())


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, "pool") as pool:
        yield pool


def test_items_of_a_pool_stay_on_its_thread_up_to_the_next_operator_that_waits(
    pool: ThreadPoolExecutor,
) -> None:
    async def main() -> None:
        places = Places()
        places.failed = True  # no retry here
        moved = flow.just(1).observe_on(pool).do_on_next(lambda _: places.note("moved"))
        mapped = moved.map_concurrent(places.coroutine, 1).do_on_next(
            lambda _: places.note("stage")
        )
        await mapped.run_async()
        places.assert_all_in("moved", thread="pool_0", loop=None)
        here = threading.current_thread().name
        places.assert_all_in("coroutine", "stage", thread=here, loop=asyncio.get_running_loop())

    asyncio.run(main())
