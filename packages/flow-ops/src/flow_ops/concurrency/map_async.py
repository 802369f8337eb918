"""`map_async`: each item replaced by what a coroutine makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from flow_core.demand import check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages.template import describe
from flow_ops.concurrency._plan import Plan
from flow_ops.concurrency.map_concurrent import concurrent

__all__ = ["map_async"]

T = TypeVar("T")
R = TypeVar("R")


def map_async(
    function: Callable[[T], Awaitable[R]],
    *,
    concurrency: int = 1,
    ordered: bool = True,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Operator[T, Flow[R]]:
    """Each item replaced by the result of a coroutine, several of which may run at a time.

    >>> import asyncio
    >>> import flow_core as flow
    >>> async def doubled(n: int) -> int:
    ...     await asyncio.sleep(0)
    ...     return 2 * n
    >>> async def main() -> list[int]:
    ...     return [n async for n in flow.range(3).map_async(doubled, concurrency=2)]
    >>> asyncio.run(main())
    [0, 2, 4]

    The coroutines run as tasks of the given loop; or else of the loop in which the flow was
    subscribed to, whatever thread brings the items; or else, where none ran, of one loop for the
    process, in a daemon thread. Each task has a copy of the context of who subscribes.

    From Python 3.12 on a coroutine runs as soon as its item is there, up to where it first waits,
    as with `asyncio.eager_task_factory`; so one that needs not wait costs no turn of the loop.
    After 5 ms of that, others in the loop have their turn. A task factory of the loop is respected.

    Demand: exact; `concurrency` items are requested of the upstream, and 75 % of that again
    whenever as many were taken. A coroutine runs when its item is there, and counts until its
    result was given on.
    Thread: all signals of a running flow come from the loop's thread, whatever the upstream's is;
    what an upstream does when it is requested or polled happens there, too.
    Fusion: polls an upstream that grants SYNC or ASYNC across threads.
    Errors: the first one cancels the upstream and the other tasks. With `ordered` it comes after
    the results of the items before, and otherwise overtakes nothing that was ready. When the flow
    is cancelled, all tasks are; what they raise then goes to the dropped-errors hook.
    Source: checklist O26, X06, X12.

    Args:
        function: makes an awaitable of an item; mostly an ``async def``. Its result is not None.
        concurrency: how many coroutines run, or have results that wait, at a time.
        ordered: whether results come in the order of the items; otherwise as they are ready.
        loop: where the coroutines have to run.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with FlowError if one of its tasks is cancelled
        from outside, or if its loop was closed.

    Raises:
        TypeError: if `function` cannot be called, or `concurrency` is no int.
        ValueError: if `concurrency` is less than 1.
    """
    if not callable(function):
        raise TypeError(f"map_async() takes a coroutine function, not {function!r}")
    check_prefetch(concurrency, "concurrency")
    detail = describe(function)
    if concurrency != 1:
        detail += f", concurrency={concurrency}"
    if not ordered:
        detail += ", ordered=False"

    work: Any = function if iscoroutinefunction(function) else partial(_awaited, function)
    plan: Plan[T] = Plan(work, concurrency, concurrency, ordered, loop=loop)
    return concurrent("map_async", plan, detail)


async def _awaited(function: Callable[[T], Awaitable[R]], item: T) -> R:
    awaitable: object = function(item)
    del item
    if not isinstance(awaitable, Awaitable):
        raise TypeError(
            f"{describe(function)} gave {awaitable!r}, which cannot be awaited; map() is for "
            "functions that give the result itself"
        )
    result: R = await awaitable
    return result
