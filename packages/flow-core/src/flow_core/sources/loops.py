"""asyncio loops, seen from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from flow_core.errors import FlowError

__all__ = ["closed_loop", "in_loop", "running_loop"]


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def in_loop(loop: asyncio.AbstractEventLoop | None, action: Callable[[], object]) -> bool:
    """Run `action` in the thread of `loop`: now if that is this thread, or else soon (X12).

    Args:
        loop: None for any thread.
        action: what to run.

    Returns:
        False if the loop is closed, so that nothing runs there any more.
    """
    if loop is None or loop is running_loop():
        action()
        return True
    try:
        loop.call_soon_threadsafe(action)
    except RuntimeError:
        if loop.is_closed():
            return False
        raise
    return True


def closed_loop(source: str) -> FlowError:
    """What a flow fails with whose loop is closed."""
    return FlowError(
        f"{source}: its event loop is closed, so that nothing more can come; end the flow before "
        "its loop, or give it another one by loop=…"
    )
