"""Flows of coroutines, cancelled, timed out, left and forsaken by their loop, at random.

``FLOW_STRESS`` says how many flows are run for each kind of loop; 200 share a loop. What fails
names the seed of its loop: ``FLOW_STRESS_SEED`` runs that one first, and continues from there.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

import flow_core as flow
from flow_core import hooks
from flow_core.backoff import Backoff, RetryExhaustedError
from flow_testing import TIMEOUT_S

FLOWS = int(os.environ.get("FLOW_STRESS", "400"))
SEED = int(os.environ.get("FLOW_STRESS_SEED", "0")) or time.time_ns() % 1_000_000
A_LOOP = 200

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
with suppress(ImportError):
    import uvloop

    LOOPS["uvloop"] = uvloop.new_event_loop


class Works:
    """Coroutines and generators, each of which is left if it was entered."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.entered = self.left = 0

    async def work(self, n: int) -> int:
        self.entered += 1
        try:
            for _ in range(self.chance.randrange(4)):
                await asyncio.sleep(0)
            if self.chance.random() < 0.1:
                await asyncio.sleep(0.001)
            if self.chance.random() < 0.1:
                raise OSError(n)
            return n
        finally:
            self.left += 1
            if self.chance.random() < 0.3:
                await asyncio.sleep(0)

    async def forever(self, _: int) -> int:
        self.entered += 1
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            self.left += 1

    async def items(self, n: int) -> AsyncIterator[int]:
        self.entered += 1
        try:
            for k in range(self.chance.randrange(1, 4)):
                await asyncio.sleep(0)
                yield n + k
        finally:
            self.left += 1
            await asyncio.sleep(0)


SOON = Backoff(0.0005, max=0.001, max_attempts=3)


def late(n: int, error: Exception) -> int:
    """Return the substitute for an item that has failed too often."""
    return -1


SHAPES: tuple[Callable[[Works], flow.Flow[int]], ...] = (
    lambda w: flow.range(20).map_concurrent(w.work, 3),
    lambda w: flow.range(20).map_concurrent(w.work, 5, ordered=False).retry(2),
    lambda w: flow.range(9).flat_map(
        lambda n: flow.just(n).map_concurrent(w.work, 1).retry_when(SOON)
    ),
    lambda w: flow.range(20).map_concurrent(w.work, 3, retry=SOON, timeout=0.0005, fallback=late),
    lambda w: flow.range(9).concat_map(lambda n: flow.from_async_iterable(w.items(n))),
    lambda w: flow.range(9).flat_map(
        lambda n: flow.just(n).map_concurrent(w.work, 1).timeout(0.0005, fallback=flow.just(-1)),
        concurrency=3,
    ),
    lambda w: (
        flow.interval(0.0005).take(9).switch_map(lambda n: flow.just(n).map_concurrent(w.work, 1))
    ),
    lambda w: flow.defer(lambda: flow.from_async_iterable(w.items(0))).share().repeat(3),
    lambda w: flow.range(30).map_concurrent(w.work, 1).buffer_with_time(0.0005).map(len),
)


# What begins a task when the loop has cancelled the others, and none is left, cannot know that the
# loop ends: these have theirs already.
WAITING: tuple[Callable[[Works], flow.Flow[int]], ...] = (
    lambda w: flow.range(3).flat_map(lambda n: flow.just(n).map_concurrent(w.forever, 1)).retry(),
    lambda w: flow.just(0).map_concurrent(w.forever, 1).retry_when(Backoff(0)),
    lambda w: flow.interval(3600),
    lambda w: flow.never().timeout(3600).share(),
)


async def to_the_end(made: flow.Flow[int], chance: random.Random) -> None:
    await made.run_async()


async def cancelled(made: flow.Flow[int], chance: random.Random) -> None:
    task = asyncio.ensure_future(made.run_async())
    for _ in range(chance.randrange(12)):
        await asyncio.sleep(0)
    task.cancel()
    await task


async def timed_out(made: flow.Flow[int], chance: random.Random) -> None:
    async with asyncio.timeout(chance.random() * 0.002):
        await made.to_list()


async def left(made: flow.Flow[int], chance: random.Random) -> None:
    async with made.aiterate(prefetch=chance.choice([None, 1, 5])) as items:
        count = chance.randrange(4)
        async for _ in items:
            count -= 1
            if count <= 0:
                break


async def disposed(made: flow.Flow[int], chance: random.Random) -> None:
    with made.subscribe(lambda _: None, lambda _: None):
        for _ in range(chance.randrange(9)):
            await asyncio.sleep(0)


ENDS = (to_the_end, cancelled, timed_out, left, disposed)


class Forsaken:
    """A flow that runs when its loop ends: it has to get an end."""

    def __init__(self, made: flow.Flow[int]) -> None:
        self.ended = threading.Event()
        made.subscribe(lambda _: None, lambda _: self.ended.set(), self.ended.set)


def run_loop(new_loop: Callable[[], asyncio.AbstractEventLoop], seed: int, flows: int) -> None:
    chance = random.Random(seed)
    works = Works(chance)
    forsaken: list[Forsaken] = []

    async def one() -> None:
        end: Callable[..., Awaitable[None]] = chance.choice(ENDS)
        with suppress(OSError, TimeoutError, asyncio.CancelledError, RetryExhaustedError):
            await end(chance.choice(SHAPES)(works), chance)

    async def main() -> None:
        for _ in range(flows // 4):
            await asyncio.gather(*(one() for _ in range(4)))
        forsaken.extend(Forsaken(made(works)) for made in WAITING)
        for _ in range(chance.randrange(9)):
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert all(one.ended.wait(TIMEOUT_S) for one in forsaken), "a flow did not hear of the end"
    assert works.left == works.entered, f"{works.entered} were entered and {works.left} left"


def threads() -> set[threading.Thread]:
    """Those that are not about to end."""
    for thread in threading.enumerate():
        if thread.name == "flow-dropped-task":
            thread.join(TIMEOUT_S)
    return {thread for thread in threading.enumerate() if thread.is_alive()}


def files() -> int:
    folder = Path("/proc/self/fd")
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_nothing_is_left_of_flows_that_end_at_random(kind: str) -> None:
    if kind not in LOOPS:
        pytest.skip(f"{kind} is not installed")
    dropped: list[BaseException] = []
    with hooks.dropped_errors.scoped("stress", dropped.append):
        run_loop(LOOPS[kind], SEED, 8)  # what is made once for the process
        gc.collect()
        before, open_before = threads(), files()
        for number in range(max(1, FLOWS // A_LOOP)):
            seed = SEED + number
            try:
                run_loop(LOOPS[kind], seed, A_LOOP)
                gc.collect()
                assert threads() <= before
                assert files() <= open_before
            except BaseException as error:
                error.add_note(f"with FLOW_STRESS_SEED={seed}")
                raise
    # Of tasks whose flow had ended, and of flows that a loop has left.
    assert {type(error) for error in dropped} <= {
        OSError,
        flow.FlowError,
        flow.LoopEndedError,
        RetryExhaustedError,
    }
