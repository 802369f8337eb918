"""In debug mode, a function that holds an event loop for long is named; otherwise not."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, hooks
from flow_core.held import watched

HELD_S = 0.02


async def blocking() -> int:
    await asyncio.sleep(0)
    time.sleep(HELD_S)  # as a client does that was not written for asyncio
    return 1


async def pages() -> AsyncIterator[int]:
    yield await blocking()


def load(number: int) -> int:
    time.sleep(HELD_S)
    return number


async def run(made: Flow[Any], long_s: float = HELD_S / 2) -> list[Any]:
    asyncio.get_running_loop().slow_callback_duration = long_s
    return [item async for item in made]


MADE: dict[str, Callable[[], Flow[int]]] = {
    "from_async_iterable(pages)": lambda: flow.from_async_iterable(pages()),
    "from_future(": lambda: flow.from_future(blocking()),
    "just(1) | map(load)": lambda: flow.just(1).map(load),
}


@pytest.mark.parametrize("name", MADE)
def test_a_function_that_holds_the_loop_is_named_in_debug_mode(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with hooks.debug():
        assert asyncio.run(run(MADE[name]())) == [1]
    (record,) = caplog.records
    assert record.name == "flow"
    assert record.getMessage().startswith(name)
    held = re.search(r"held the event loop for (\d+\.\d\d) s", record.getMessage())
    assert held is not None
    assert float(held[1]) >= HELD_S  # more on a machine that is busy


@pytest.mark.parametrize("name", MADE)
def test_a_held_loop_is_not_reported_in_other_modes(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert asyncio.run(run(MADE[name]())) == [1]
    assert not caplog.records


def test_a_coroutine_that_gives_the_loop_back_is_not_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    long_s = 0.3  # what no step takes, even on a machine that is busy

    async def patient() -> int:
        await asyncio.sleep(2 * long_s)
        return 1

    with hooks.debug():
        assert asyncio.run(run(flow.from_future(patient()), long_s)) == [1]
    assert not caplog.records


def test_a_watched_coroutine_is_cancelled_and_fails_as_without_the_watch() -> None:
    log: list[str] = []

    async def patient() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            log.append("cleaned up")
            raise

    async def main() -> None:
        task = asyncio.create_task(watched(patient(), "patient"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(KeyError, match="no page"):
            await watched(failing(), "failing")

    async def failing() -> None:
        raise KeyError("no page")

    asyncio.run(main())
    assert log == ["cleaned up"]


def test_leaving_an_iteration_early_closes_the_watched_source() -> None:
    log: list[str] = []

    def items() -> Any:
        try:
            yield from range(9)
        finally:
            log.append("closed")

    async def main() -> None:
        async with flow.from_iterable(items()).aiterate() as left:
            async for item in left:
                assert item == 0
                break

    with hooks.debug():
        asyncio.run(main())
    assert log == ["closed"]
