"""asyncio loops, seen from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, final
from weakref import ref

from flow_core.errors import FlowError
from flow_core.executors import ToldTask
from flow_core.homes import running_loop

__all__ = ["LoopWatch", "closed_loop", "in_loop"]

_EVER_S: Final = 1e9


def in_loop(
    loop: asyncio.AbstractEventLoop | None,
    action: Callable[[], object],
    lost: Callable[[], object] | None = None,
) -> bool:
    """Run `action` in the thread of `loop`: now if that is this thread, or else soon (X12).

    Args:
        loop: None for any thread.
        action: what to run.
        lost: called if the loop is closed before it has come to that.

    Returns:
        False if the loop is closed, so that nothing runs there any more.
    """
    if loop is None or loop is running_loop():
        action()
        return True
    told = None if lost is None else ToldTask(action, lost)
    try:
        loop.call_soon_threadsafe(told or action)
    except RuntimeError:
        if loop.is_closed():
            if told is not None:
                told.forget()  # the caller knows
            return False
        raise
    return True


@final
class LoopWatch:
    """Tells when a loop is closed in which something still waits. All calls are from its thread.

    A loop tells nobody that it is closed, but it lets go of its timers then.

    Args:
        loop: the running loop.
        closed: called then, on a thread of its own; not after `end`.
    """

    __slots__ = ("_handle", "_told")

    def __init__(self, loop: asyncio.AbstractEventLoop, closed: Callable[[], object]) -> None:
        told = ToldTask(_nothing, closed)
        # Only the loop holds them.
        self._told = ref(told)
        self._handle = ref(loop.call_later(_EVER_S, told))

    def end(self) -> None:
        """What waited there is over. Idempotent."""
        told, handle = self._told(), self._handle()
        if told is not None:
            told.forget()
        if handle is not None:
            handle.cancel()


def _nothing() -> None: ...


def closed_loop(source: str) -> FlowError:
    """What a flow fails with whose loop is closed."""
    return FlowError(
        f"{source}: its event loop is closed, so that nothing more can come; end the flow before "
        "its loop, or give it another one by loop=…"
    )
