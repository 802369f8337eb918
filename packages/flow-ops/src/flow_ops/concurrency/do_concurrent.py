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
    """Each item as it is, once an action for it is done; several are at work at a time.

    >>> import asyncio
    >>> import flow_core as flow
    >>> async def store(n: int) -> None:
    ...     await asyncio.sleep(0)
    >>> list(flow.range(3).do_concurrent(store, 2))
    [0, 1, 2]

    It is `map_concurrent` for what a function does, and not for what it gives; that may be None. An
    item that fails is tried again, if `retry` says so. If no try is left, the flow fails with what
    the last one has raised.

    Demand, thread, fusion and errors: as with `map_concurrent`.

    Args:
        action: is given an item: a coroutine function, or a function that runs in a thread.
        concurrency: how many items are worked on at a time.
        executor: where functions run; no coroutine functions. It stays open as long as the flow
            runs. None for threads of the flow's own.
        ordered: whether the items keep their order; otherwise they come as they are done.
        retry: how often an item is tried again: at once, or as `backoff` says.
        backoff: how long to wait before that: the time before the first retry, from which it grows
            as that of a `Backoff` does; or a `Backoff`, which says for which errors, too. Without
            `retry`, an item is tried as often as a `Backoff` says, or any number of times.
        timeout: how long each try may take, of a coroutine function: it is cancelled then, and has
            failed with FlowTimeoutError. A function that runs in a thread cannot be stopped.
        prefetch: how many items may be worked on, or be done and wait for an earlier one.
        loop: where coroutines have to run.
        clock: tells the time for `timeout` and `retry`; None for that of the loop that runs the
            flow, or else of the process.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with FlowError if one of its tasks is cancelled
        from outside, or if its loop was closed; with RejectedExecutionError if the executor takes
        no function.

    Raises:
        TypeError: if an argument is not of its type, if `executor` goes with a coroutine function,
            or `timeout` or `loop` with an executor.
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
