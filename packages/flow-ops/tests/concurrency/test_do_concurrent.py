"""`do_concurrent`, and `for_each` and `for_each_async` where they use it."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import BlockingInEventLoopError, FlowTimeoutError
from flow_ops import Backoff, do_concurrent
from flow_testing import TIMEOUT_S, assert_result


class Store:
    """Counts what comes; each third item fails twice."""

    def __init__(self) -> None:
        self.tries = Counter[int]()
        self.stored: list[int] = []
        self._lock = threading.Lock()

    def call(self, item: int) -> None:
        with self._lock:
            self.tries[item] += 1
        if item % 3 == 0 and self.tries[item] <= 2:
            raise OSError(item)
        self.stored.append(item)

    async def wait(self, item: int) -> None:
        await asyncio.sleep(0)
        self.call(item)

    def give(self, item: int) -> Any:
        return self.wait(item)


WAYS = pytest.mark.parametrize("way", ["call", "wait", "give"])


@WAYS
@pytest.mark.parametrize("ordered", [True, False])
def test_the_items_pass_when_the_action_is_done(way: str, ordered: bool) -> None:
    store = Store()
    made = flow.range(100).do_concurrent(getattr(store, way), 10, retry=2, ordered=ordered)
    items = list(made)
    assert (items if ordered else sorted(items)) == list(range(100))
    assert sorted(store.stored) == list(range(100))


@WAYS
def test_an_action_that_fails_fails_the_flow(way: str) -> None:
    store = Store()
    with pytest.raises(OSError, match="0") as caught:  # of one item only: no other fails later
        list(flow.range(3).do_concurrent(getattr(store, way), 10, retry=1))
    assert any("do_concurrent" in note for note in caught.value.__notes__)


def test_every_form_gives_the_same() -> None:
    with ThreadPoolExecutor(4) as pool:
        operator: flow.Operator[int, flow.Flow[int]] = do_concurrent(print, 4, executor=pool)
        assert_result(lambda: flow.range(5).pipe(operator), range(5))


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="do_concurrent"):
        do_concurrent(None, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="concurrency"):
        do_concurrent(print, 0)


# -- for_each


@WAYS
def test_for_each_runs_to_the_end_with_many_at_work(way: str) -> None:
    store = Store()
    flow.range(100).for_each(getattr(store, way), 10, retry=Backoff(0, max_attempts=2))
    assert sorted(store.stored) == list(range(100))


@WAYS
def test_for_each_async_runs_to_the_end_with_many_at_work(way: str) -> None:
    store = Store()
    asyncio.run(flow.range(100).for_each_async(getattr(store, way), 10, retry=2))
    assert sorted(store.stored) == list(range(100))


def test_for_each_runs_as_many_at_a_time_as_it_may() -> None:
    meeting = threading.Barrier(3)
    flow.range(9).for_each(lambda _: meeting.wait(TIMEOUT_S), 3)
    with ThreadPoolExecutor(3, thread_name_prefix="mine") as pool:
        names: list[str] = []
        flow.range(9).for_each(
            lambda _: names.append(threading.current_thread().name), executor=pool
        )
    assert {name.rpartition("_")[0] for name in names} == {"mine"}


def test_for_each_gives_each_try_its_time() -> None:
    async def for_ever(_: int) -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(FlowTimeoutError):
        flow.range(9).for_each(for_ever, timeout=0.001)
    with pytest.raises(FlowTimeoutError):
        asyncio.run(flow.range(9).for_each_async(for_ever, timeout=0.001))


def test_for_each_with_many_at_work_is_refused_in_a_running_loop() -> None:
    async def main() -> None:
        with pytest.raises(BlockingInEventLoopError):
            flow.range(3).for_each(later, 2)

    asyncio.run(main())


async def later(item: int) -> int:
    await asyncio.sleep(0)
    return item


def test_a_cancelled_for_each_async_leaves_no_task() -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def for_ever(_: int) -> None:
            begun.set()
            await asyncio.get_running_loop().create_future()

        task = asyncio.create_task(flow.range(9).for_each_async(for_ever, 3))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
