"""Calls an action for each item, one after the other, in the code that iterates over the flow."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from flow_core.errors import cancelled_inside
from flow_core.homes import library_loop
from flow_core.late import later
from flow_core.stages._template import describe
from flow_core.subscribers._blocking import check_may_block, wait_for

if TYPE_CHECKING:
    import asyncio

    from flow_core.flow import Flow
else:
    asyncio = later("asyncio", globals())

__all__ = ["do_each", "do_each_async"]

T = TypeVar("T")


def do_each(flow: Flow[T], action: Callable[[T], object]) -> None:
    """Call `action` for each item, in this thread; if it returns a coroutine, wait for its end."""
    items = iter(flow)
    try:
        for item in items:
            given = action(item)
            if given is not None and asyncio.iscoroutine(given):
                _wait(given)
            del given
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


async def do_each_async(flow: Flow[T], action: Callable[[T], object]) -> None:
    """Call `action` for each item, in the running loop; if it returns an awaitable, await it."""
    async with flow.aiterate() as items:
        async for item in items:
            given = action(item)
            if asyncio.iscoroutine(given) or asyncio.isfuture(given):
                try:
                    await given
                except asyncio.CancelledError as cancelled:
                    task = asyncio.current_task()
                    if task is None or task.cancelling():
                        raise
                    raise cancelled_inside(describe(action), cancelled) from cancelled


# Any: only it and the loop know the type.
def _wait(coroutine: Coroutine[Any, Any, object]) -> None:
    try:
        check_may_block("for_each()", "use `await flow.for_each_async(function)`")
    except BaseException:
        coroutine.close()
        raise
    running = asyncio.run_coroutine_threadsafe(coroutine, library_loop())
    ended = SimpleQueue[object]()
    running.add_done_callback(ended.put)
    try:
        wait_for(ended)
        running.result()
    except BaseException:
        running.cancel()
        raise
