"""A task that runs a flow in an event loop continues when all tasks of the flow have ended."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

import flow_core as flow
from flow_core.backoff import Backoff
from flow_testing import TIMEOUT_S, TestSubscriber

USER = ContextVar("USER", default="nobody")


class Work:
    """Coroutines that wait, and take several turns of the loop to clean up."""

    def __init__(self) -> None:
        self.entered = 0
        self.left = 0
        self.begun = asyncio.Event()
        """Three wait."""

    async def wait(self, n: int = 0) -> int:
        self.entered += 1
        if self.entered == 3:
            self.begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            self.left += 1
        return n

    async def items(self, n: int) -> AsyncIterator[int]:
        yield await self.wait(n)

    async def fail(self, n: int) -> int:
        """Wait, but for the last one, which fails when the others do."""
        if n < 3:
            return await self.wait(n)
        await self.begun.wait()
        raise OSError(n)

    def assert_over(self) -> None:
        assert self.entered >= 3
        assert self.left == self.entered, "tasks are not over"
        assert asyncio.all_tasks() == {asyncio.current_task()}


SHAPES: dict[str, Callable[[Work, Any], flow.Flow[Any]]] = {
    "map_concurrent": lambda work, pool: flow.range(9).map_concurrent(work.wait, 3),
    "map_concurrent, unordered": lambda work, pool: flow.range(9).map_concurrent(
        work.wait, 3, ordered=False
    ),
    "inner map_concurrent": lambda work, pool: flow.range(3).flat_map(
        lambda n: flow.just(n).map_concurrent(work.wait, 1)
    ),
    "inner map_concurrent, subscribed to on another thread": lambda work, pool: (
        flow.range(3)
        .hide()
        .observe_on(pool)
        .flat_map(lambda n: flow.just(n).map_concurrent(work.wait, 1).retry(3))
    ),
    "inner async generators": lambda work, pool: flow.range(3).flat_map(
        lambda n: flow.from_async_iterable(work.items(n))
    ),
    "retries": lambda work, pool: flow.range(3).flat_map(
        lambda n: flow.just(n).map_concurrent(work.wait, 1).retry_when(Backoff(0.001)).timeout(3600)
    ),
}


async def cancelled(made: flow.Flow[Any], work: Work, run: Callable[..., Awaitable[Any]]) -> None:
    task = asyncio.ensure_future(run(made))
    await work.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def iterate(made: flow.Flow[Any]) -> None:
    async for _ in made:
        pass


async def awaited(made: flow.Flow[Any]) -> Any:
    return await made.to_list()


async def timed_out(made: flow.Flow[Any], work: Work) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as scope:
            asyncio.get_running_loop().call_soon(asyncio.ensure_future, expire(work, scope))
            await made.run_async()


async def expire(work: Work, scope: asyncio.Timeout) -> None:
    await work.begun.wait()
    scope.reschedule(0)


async def left_block(made: flow.Flow[Any], work: Work) -> None:
    async with made.start_with(0).aiterate(prefetch=9) as items:
        async for _ in items:
            await work.begun.wait()
            break


async def took_enough(made: flow.Flow[Any], work: Work) -> None:
    async def begun() -> AsyncIterator[int]:
        await work.begun.wait()
        yield -1

    assert await made.merge(flow.from_async_iterable(begun())).take(1).to_list() == [-1]


ENDS: dict[str, Callable[[flow.Flow[Any], Work], Awaitable[None]]] = {
    "async for, cancelled": lambda made, work: cancelled(made, work, iterate),
    "await, cancelled": lambda made, work: cancelled(made, work, awaited),
    "run_async, cancelled": lambda made, work: cancelled(made, work, lambda f: f.run_async()),
    "timeout": timed_out,
    "block": left_block,
    "take": took_enough,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("end", ENDS)
def test_it_continues_when_all_tasks_have_cleaned_up(shape: str, end: str) -> None:
    async def main() -> None:
        work = Work()
        with ThreadPoolExecutor(1) as pool:
            await ENDS[end](SHAPES[shape](work, pool), work)
            work.assert_over()

    asyncio.run(main())


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("run", [iterate, awaited, lambda made: made.run_async()])
def test_an_error_comes_when_all_tasks_have_cleaned_up(ordered: bool, run: Any) -> None:
    async def main() -> None:
        work = Work()
        with pytest.raises(OSError, match="3"):
            await run(backwards(work, ordered))
        work.assert_over()

    asyncio.run(main())


def backwards(work: Work, ordered: bool) -> flow.Flow[int]:
    """The item that fails comes first, so that no other one is waited for."""
    return flow.just(3, 0, 1, 2).map_concurrent(work.fail, 4, ordered=ordered)


def test_ctrl_c_comes_out_when_all_tasks_have_cleaned_up() -> None:
    work: list[Work] = []

    async def main() -> None:
        work.append(Work())
        asyncio.ensure_future(interrupt()).add_done_callback(list)
        await flow.range(9).map_concurrent(work[0].wait, 3).run_async()

    async def interrupt() -> None:
        await work[0].begun.wait()
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert work[0].left == work[0].entered == 3


def test_a_second_cancel_does_not_keep_it_from_waiting() -> None:
    async def main() -> None:
        work = Work()
        task = asyncio.ensure_future(flow.range(3).map_concurrent(work.wait, 3).run_async())
        await work.begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        work.assert_over()

    asyncio.run(main())


def test_tasks_have_the_context_of_the_running_task_and_the_name_of_the_operator() -> None:
    async def seen(_: int) -> tuple[str, str]:
        task = asyncio.current_task()
        return USER.get(), "" if task is None else task.get_name()

    async def generated() -> AsyncIterator[tuple[str, str]]:
        yield await seen(0)

    async def main() -> None:
        USER.set("me")
        with ThreadPoolExecutor(1) as pool:
            moved = flow.range(2).hide().observe_on(pool)
            mapped = moved.concat_map(lambda n: flow.just(n).map_concurrent(seen, 1))
            items = moved.concat_map(lambda n: flow.from_async_iterable(generated()))
            ((user, name), _), ((also, other), _) = await mapped.to_list(), await items.to_list()
        assert (user, also) == ("me", "me")
        assert name.startswith("map_concurrent(")
        assert "assembled" not in name
        assert other.startswith("from_async_iterable(")

    asyncio.run(main())


TRIES: dict[str, Callable[[flow.Flow[Any]], flow.Flow[Any]]] = {
    "retry": lambda made: made.retry(),
    "retry_when": lambda made: made.retry_when(lambda errors: errors),
    "backoff": lambda made: made.retry_when(Backoff(0)),
}


@pytest.mark.parametrize("tries", TRIES)
@pytest.mark.parametrize("shape", ["map_concurrent", "inner async generators"])
def test_when_the_loop_ends_nothing_is_tried_again(tries: str, shape: str) -> None:
    seen: list[BaseException] = []
    ended = threading.Event()

    def on_error(error: BaseException) -> None:
        seen.append(error)
        ended.set()

    async def main() -> Work:
        work = Work()
        TRIES[tries](SHAPES[shape](work, None)).subscribe(print, on_error)
        await work.begun.wait()
        return work

    work = asyncio.run(main())
    assert ended.wait(TIMEOUT_S)
    assert [type(error) for error in seen] == [flow.LoopEndedError]
    assert work.entered == work.left == 3


def test_nothing_is_logged_as_never_retrieved(dropped: Any) -> None:
    logged: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))

        async def fail(n: int) -> int:
            await asyncio.sleep(0)
            raise OSError(n)

        for concurrency in (1, 3):
            with pytest.raises(OSError, match="0"):
                await flow.range(3).map_concurrent(fail, concurrency).run_async()

    asyncio.run(main())
    assert logged == []
    assert dropped.errors == []  # the first one tells of those that failed together with it


def test_run_raises_what_the_flow_fails_with() -> None:
    seen: list[int] = []
    flow.range(3).do_on_next(seen.append).run()
    assert seen == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        flow.range(3).map(lambda n: 1 // n).run()


@pytest.mark.parametrize("cancelled", ["before a thread has it", "when a thread has it"])
def test_an_item_whose_function_never_began_goes_to_the_hook(cancelled: str, dropped: Any) -> None:
    tasks: list[Callable[[], object]] = []
    called: list[int] = []
    seen = TestSubscriber[None](0)

    def begin(task: Callable[[], object]) -> None:
        tasks.append(task)
        if cancelled == "when a thread has it":
            seen.cancel()
            task()

    flow.range(3).map_concurrent(called.append, 1, executor=begin).subscribe(seen)
    seen.request(1)
    seen.cancel()
    for task in tasks:
        task()
    assert called == []
    assert dropped.items == [0]
