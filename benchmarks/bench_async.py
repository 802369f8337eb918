"""One coroutine per item, ten at a time: this library beside asyncio and other libraries."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from aiostream import pipe
from aiostream import stream as aio
from streamable import stream

import flow_core as flow
from peers import consumed, loose
from rounds import Case, compare, peer, python

ITEMS = 6_000
AT_A_TIME = 10
EAGER = sys.version_info >= (3, 12)
"""True if coroutines that need not wait take no turn of the event loop."""

Work = Callable[[int], Coroutine[object, object, int]]


async def at_once(n: int) -> int:
    return n + 1


async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


def ten_at_a_time(work: Work, waits: str, items: int = ITEMS) -> None:
    """Compare the cost of an item apart from the work of its coroutine."""

    async def gathered() -> int:
        semaphore = asyncio.Semaphore(AT_A_TIME)

        async def one(n: int) -> int:
            async with semaphore:
                return await work(n)

        return sum(await asyncio.gather(*map(one, range(items))))

    async def by_flow(**more: Any) -> int:
        total = 0
        made = flow.range(items).map_concurrent(work, AT_A_TIME, **more)
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

    eager_mark = 1.0 if work is at_once else 1 / 0.95
    mark = round(eager_mark if EAGER else 1 / 0.85, 2)
    best = f"streamable, concurrency={AT_A_TIME}"
    compare(
        f"range | map_concurrent, {AT_A_TIME} at a time, by a coroutine that {waits}",
        python(f"asyncio.Semaphore({AT_A_TIME}), gather", lambda: asyncio.run(gathered())),
        Case("map_concurrent", lambda: asyncio.run(by_flow()), mark, beside=best),
        Case(
            "map_concurrent, ordered=False",
            lambda: asyncio.run(by_flow(ordered=False)),
            mark,
            beside=best,
        ),
        Case(
            "map_concurrent, retry=3",
            lambda: asyncio.run(by_flow(retry=3)),
            2.0,
            beside="map_concurrent",
        ),
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
