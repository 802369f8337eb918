"""`for_each` and `for_each_async` by themselves: a loop over the items."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import BlockingInEventLoopError
from flow_core.homes import library_loop


def test_functions_are_called_in_this_thread_in_order() -> None:
    seen: list[tuple[int, int]] = []
    flow.range(5).hide().for_each(lambda n: seen.append((n, threading.get_ident())))
    assert seen == [(n, threading.get_ident()) for n in range(5)]


def test_coroutines_are_awaited_one_after_the_other() -> None:
    seen: list[tuple[int, object]] = []

    async def note(n: int) -> None:
        await asyncio.sleep(0)
        seen.append((n, asyncio.get_running_loop()))

    flow.range(3).for_each(note)
    flow.range(3).for_each(lambda n: note(n))
    assert seen == [(n, library_loop()) for n in [0, 1, 2, 0, 1, 2]]


def test_in_a_loop_they_are_awaited_there() -> None:
    async def main() -> None:
        task, seen = asyncio.current_task(), list[int]()

        async def note(n: int) -> None:
            await asyncio.sleep(0)
            assert asyncio.current_task() is task
            seen.append(n)

        await flow.range(3).for_each_async(note)
        await flow.range(3).for_each_async(seen.append)
        assert seen == [0, 1, 2, 0, 1, 2]

    asyncio.run(main())


def test_a_future_that_a_function_gives_is_awaited() -> None:
    async def main() -> None:
        loop, given = asyncio.get_running_loop(), list[asyncio.Future[int]]()

        def soon(n: int) -> asyncio.Future[int]:
            assert all(one.done() for one in given)
            given.append(loop.create_future())
            loop.call_soon(given[-1].set_result, n)
            return given[-1]

        await flow.range(3).for_each_async(soon)
        assert [one.result() for one in given] == [0, 1, 2]

    asyncio.run(main())


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_an_error_of_the_action_is_raised_and_the_flow_is_cancelled(is_coroutine: bool) -> None:
    left: list[str] = []

    def numbers() -> Any:
        try:
            yield from range(5)
        finally:
            left.append("left")

    def fail(n: int) -> None:
        if n == 2:
            raise KeyError(n)

    async def fail_later(n: int) -> None:
        await asyncio.sleep(0)
        fail(n)

    action: Any = fail_later if is_coroutine else fail
    with pytest.raises(KeyError):
        flow.defer(numbers).for_each(action)
    assert left == ["left"]
    with pytest.raises(KeyError):
        asyncio.run(flow.defer(numbers).for_each_async(action))
    assert left == ["left", "left"]


def test_the_error_of_the_flow_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        flow.just(0).map(lambda n: 1 // n).for_each(print)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(flow.just(0).map(lambda n: 1 // n).for_each_async(print))


def test_a_coroutine_is_not_waited_for_in_a_running_loop() -> None:
    async def nothing(_: int) -> None: ...

    async def main() -> None:
        with pytest.raises(BlockingInEventLoopError, match="for_each_async"):
            flow.range(3).for_each(nothing)

    asyncio.run(main())


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_value_that_cannot_be_called_is_refused_at_once(concurrency: int) -> None:
    wrong: Any = "print"
    with pytest.raises(TypeError, match=r"for_each\(\) takes a function"):
        flow.empty().for_each(wrong, concurrency)
    with pytest.raises(TypeError, match=r"for_each_async\(\) takes a function"):
        flow.empty().for_each_async(wrong, concurrency)  # type: ignore[unused-coroutine]
