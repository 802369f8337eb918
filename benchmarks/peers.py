"""Helpers to run other libraries in the benchmarks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from aiostream.core import Stream

T = TypeVar("T")
R = TypeVar("R")


def loose(function: Callable[..., R]) -> Callable[..., R]:
    """Return the same function; aiostream declares more arguments than it passes."""
    return function


def consumed(stream: Stream[T], on_next: Callable[[T], object]) -> None:
    """Pass the items of a stream of aiostream to a callback, in its own event loop."""

    async def consume() -> None:
        async with stream.stream() as streamer:
            async for item in streamer:
                on_next(item)

    asyncio.run(consume())
