"""`do_concurrent`: an action for each item, for many items at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from flow_core.backoff import Backoff
from flow_core.clocks import Clock, Seconds
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.executors import Executor
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_ops.concurrency.map_concurrent import concurrent, planned

__all__ = ["do_concurrent"]

T = TypeVar("T")


def do_concurrent(
    action: Callable[[T], object],
    concurrency: int,
    *,
    executor: Executor | None = None,
    ordered: bool = True,
    retry: int | Backoff = 0,
    backoff: Backoff | Seconds | None = None,
    timeout: Seconds | None = None,
    prefetch: int = DEFAULT_PREFETCH,
    loop: asyncio.AbstractEventLoop | None = None,
    clock: Clock | None = None,
) -> Operator[T, Flow[T]]:
    """Each item unchanged, once an action on it is done; several actions run at a time.

    >>> import asyncio
    >>> import flow_core as flow
    >>> async def store(n: int) -> None:
    ...     await asyncio.sleep(0)
    >>> list(flow.range(3).do_concurrent(store, 2))
    [0, 1, 2]

    This is `map_concurrent` for the effect of a function, whose result is ignored and may be None.
    An item that fails is tried again, if `retry` says so. If no try is left, the flow fails with
    the error of the last one.

    Demand, thread, fusion and errors: as with `map_concurrent`.

    Args:
        action: called with an item: a coroutine function, or a function that runs in a thread.
        concurrency: how many items are worked on at a time.
        executor: threads that run functions, but not coroutine functions; `on_processes` is for
            processes. Keep it open as long as the flow runs. None for the flow's own threads.
        ordered: whether the items keep their order; otherwise an item comes as soon as its action
            is done.
        retry: how often an item is tried again: at once, or as `backoff` says.
        backoff: how long to wait before a retry: the time in seconds before the first retry, from
            which the time grows as that of a `Backoff` does; or a `Backoff`, which also selects the
            errors. Without `retry`, an item is tried as often as a `Backoff` says, or any number of
            times.
        timeout: how long each try of a coroutine function may take, in seconds; after that, the try
            is cancelled, and has failed with FlowTimeoutError. A function that runs in a thread
            cannot be stopped.
        prefetch: how many items may be worked on, or be done and wait for an earlier item.
        loop: the loop for coroutines.
        clock: the clock of `timeout` and `retry`; None for that of the loop that runs the flow, or
            else of the process.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with FlowError if one of its tasks is cancelled
        from outside, or if its loop was closed; with RejectedExecutionError if the executor takes
        no function.

    Raises:
        TypeError: if an argument is of the wrong type, if `executor` is given with a coroutine
            function, or `timeout` or `loop` with an executor.
        ValueError: if `concurrency` or `prefetch` is less than 1, or `retry`, `backoff` or
            `timeout` less than 0.
    """
    plan, detail = planned(
        "do_concurrent",
        action,
        concurrency,
        executor=executor,
        ordered=ordered,
        retry=retry,
        backoff=backoff,
        timeout=timeout,
        fallback=None,
        prefetch=prefetch,
        loop=loop,
        clock=clock,
        keeps=True,
    )
    return concurrent("do_concurrent", plan, detail)
