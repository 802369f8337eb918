"""In debug mode: reports which part of a flow has held its event loop for a long time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Generator, Iterator
from time import perf_counter
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flow_core.late import later
from flow_core.stages._closing import close_iterator

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = later("asyncio", globals())

__all__ = ["watched", "watched_items"]

T = TypeVar("T")

_log: Final = logging.getLogger("flow")


async def watched(awaited: Awaitable[T], label: str) -> T:
    """Await something, and log a warning for each step that holds the loop for a long time.

    A long time is more than ``loop.slow_callback_duration``, which is 0.1 seconds unless it is set.

    Args:
        awaited: a coroutine, or another awaitable.
        label: the operator and where it was assembled, for the message.
    """
    return await _steps(awaited, label)


@coroutine
# Any: the loop's own types.
def _steps(awaited: Awaitable[T], label: str) -> Generator[Any, Any, T]:
    steps = awaited.__await__()
    given: Any = None
    raised: BaseException | None = None
    while True:
        began = perf_counter()
        try:
            wants = steps.send(given) if raised is None else steps.throw(raised)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            _look(began, label)
            raised = None
        try:
            given = yield wants
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:
            raised = error


def watched_items(items: Iterator[T], label: str) -> Iterator[T]:
    """Yield items that an event loop pulls; log a warning for each that holds the loop for long.

    Args:
        items: the items.
        label: the flow and where it was assembled, for the message.
    """
    try:
        while True:
            began = perf_counter()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                _look(began, label)
            yield item
    finally:
        close_iterator(items)


def _look(began: float, label: str) -> None:
    held = perf_counter() - began
    if held >= asyncio.get_running_loop().slow_callback_duration:
        _log.warning(
            "%s held the event loop for %.2f s, so that no other task ran; let it await, or have "
            "map_concurrent() call a plain function, which it does in a thread",
            label,
            held,
        )
