"""Coroutines for items, ten at a time: this library beside asyncio and other libraries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from aiostream import pipe
from aiostream import stream as aio
from streamable import stream

import flow_core as flow
from peers import consumed, loose
from rounds import Case, compare, peer, python

ITEMS = 6_000
AT_A_TIME = 10
MARK = 1.17
"""Of the best of the others: 0.85 of its rate."""

Work = Callable[[int], Coroutine[object, object, int]]


async def at_once(n: int) -> int:
    return n + 1


async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


def ten_at_a_time(work: Work, waits: str, items: int = ITEMS) -> None:
    """What costs an item beside the work of its coroutine."""

    async def gathered() -> int:
        semaphore = asyncio.Semaphore(AT_A_TIME)

        async def one(n: int) -> int:
            async with semaphore:
                return await work(n)

        return sum(await asyncio.gather(*map(one, range(items))))

    async def by_flow(ordered: bool) -> int:
        total = 0
        made = flow.range(items).map_async(work, concurrency=AT_A_TIME, ordered=ordered)
        async for n in made:
            total += n
        return total

    async def by_streamable() -> int:
        total = 0
        async for n in stream(range(items)).map(work, concurrency=AT_A_TIME):
            total += n
        return total

    def by_aiostream() -> int:
        results: list[int] = []
        mapped = aio.range(items) | pipe.map(loose(work), task_limit=AT_A_TIME)
        consumed(mapped, results.append)
        return sum(results)

    best = f"streamable, concurrency={AT_A_TIME}"
    compare(
        f"range | map_async, {AT_A_TIME} at a time, by a coroutine that {waits}",
        python(f"asyncio.Semaphore({AT_A_TIME}), gather", lambda: asyncio.run(gathered())),
        Case("map_async", lambda: asyncio.run(by_flow(True)), MARK, beside=best),
        Case("map_async, ordered=False", lambda: asyncio.run(by_flow(False)), MARK),
        peer(best, lambda: asyncio.run(by_streamable())),
        peer(f"aiostream, task_limit={AT_A_TIME}", by_aiostream),
        items=items,
        key="ten-at-a-time" if work is later else "ten-at-a-time-at-once",
    )


def main() -> None:
    ten_at_a_time(at_once, "returns at once")
    ten_at_a_time(later, "waits for a turn of the loop")


if __name__ == "__main__":
    main()
