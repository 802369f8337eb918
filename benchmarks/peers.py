"""What the benchmarks need to run other libraries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from aiostream.core import Stream

T = TypeVar("T")
R = TypeVar("R")


def loose(function: Callable[..., R]) -> Callable[..., R]:
    """The same function; aiostream says that it gives more arguments than it does."""
    return function


def consumed(stream: Stream[T], on_next: Callable[[T], object]) -> None:
    """Give what a stream of aiostream has to a callback, in a loop of its own."""

    async def consume() -> None:
        async with stream.stream() as streamer:
            async for item in streamer:
                on_next(item)

    asyncio.run(consume())
