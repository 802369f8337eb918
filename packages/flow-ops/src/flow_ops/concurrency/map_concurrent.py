"""`map_concurrent`: a function of each item, for many items at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, TypeVar, overload

from flow_core.backoff import Backoff, waiting
from flow_core.clocks import Clock, Seconds, in_seconds
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.executors import Executor, as_runner
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber
from flow_core.stages import describe, refuse_coroutine_function
from flow_ops.concurrency._plan import Plan
from flow_ops.concurrency._slots import Slots
from flow_ops.concurrency._tasks import Tasks
from flow_ops.concurrency._threads import Threads
from flow_ops.coordination import coordinated
from flow_ops.time._timed import checked_clock, checked_delay, seconds

__all__ = ["map_concurrent"]

T = TypeVar("T")
R = TypeVar("R")
D = TypeVar("D")


@overload
def map_concurrent(
    function: Callable[[T], Coroutine[Any, Any, R]],
    concurrency: int,
    *,
    ordered: bool = True,
    retry: int | Backoff = 0,
    backoff: Backoff | Seconds | None = None,
    timeout: Seconds | None = None,
    fallback: None = None,
    prefetch: int = DEFAULT_PREFETCH,
    loop: asyncio.AbstractEventLoop | None = None,
    clock: Clock | None = None,
) -> Operator[T, Flow[R]]: ...


@overload
def map_concurrent(
    function: Callable[[T], Coroutine[Any, Any, R]],
    concurrency: int,
    *,
    ordered: bool = True,
    retry: int | Backoff = 0,
    backoff: Backoff | Seconds | None = None,
    timeout: Seconds | None = None,
    fallback: Callable[[T, Exception], D],
    prefetch: int = DEFAULT_PREFETCH,
    loop: asyncio.AbstractEventLoop | None = None,
    clock: Clock | None = None,
) -> Operator[T, Flow[R | D]]: ...


@overload
def map_concurrent(
    function: Callable[[T], R],
    concurrency: int,
    *,
    executor: Executor | None = None,
    ordered: bool = True,
    retry: int | Backoff = 0,
    backoff: Backoff | Seconds | None = None,
    fallback: None = None,
    prefetch: int = DEFAULT_PREFETCH,
    clock: Clock | None = None,
) -> Operator[T, Flow[R]]: ...


@overload
def map_concurrent(
    function: Callable[[T], R],
    concurrency: int,
    *,
    executor: Executor | None = None,
    ordered: bool = True,
    retry: int | Backoff = 0,
    backoff: Backoff | Seconds | None = None,
    fallback: Callable[[T, Exception], D],
    prefetch: int = DEFAULT_PREFETCH,
    clock: Clock | None = None,
) -> Operator[T, Flow[R | D]]: ...


def map_concurrent(
    function: Callable[[T], Any],  # Any: a result, or a coroutine for it
    concurrency: int,
    *,
    executor: Executor | None = None,
    ordered: bool = True,
    retry: int | Backoff = 0,
    backoff: Backoff | Seconds | None = None,
    timeout: Seconds | None = None,
    fallback: Callable[[T, Exception], Any] | None = None,  # Any: becomes an item
    prefetch: int = DEFAULT_PREFETCH,
    loop: asyncio.AbstractEventLoop | None = None,
    clock: Clock | None = None,
) -> Operator[T, Flow[Any]]:
    """The result of a function for each item; several calls run at a time.

    >>> import asyncio
    >>> import flow_core as flow
    >>> async def doubled(n: int) -> int:
    ...     await asyncio.sleep(0)
    ...     return 2 * n
    >>> list(flow.range(5).map_concurrent(doubled, 3))
    [0, 2, 4, 6, 8]

    A function that blocks runs in threads:

    >>> from pathlib import Path
    >>> files = flow.just("a.txt", "b.txt").map(Path)
    >>> list(files.map_concurrent(Path.read_text, 2, fallback=lambda path, error: f"no {path}"))
    ['no a.txt', 'no b.txt']

    An item that fails is tried again, if `retry` says so, while the others continue. If no try is
    left, `fallback` returns an item for it; without one, the flow fails with the error of the last
    try.

    Coroutines run as tasks of the event loop in which the flow was subscribed to, whatever thread
    brings the items. If no loop ran there, they run in one loop for the whole process, in a daemon
    thread. From Python 3.12 on a coroutine runs as soon as its item is there, up to where it first
    waits, as with `asyncio.eager_task_factory`; after 5 ms of such starts, other tasks of the loop
    get their turn. A task factory of the loop is respected. Other functions run in the flow's own
    threads, at most `concurrency`, or in the given executor. They may return a coroutine, which is
    then awaited as above. The context is always a copy of the subscriber's.

    Demand: `concurrency` items are requested of the upstream, and 75 % of that again whenever as
    many were taken. The items that are worked on and the results that wait are at most
    `concurrency` together. If more items are requested, up to `prefetch` are taken, so that a slow
    item does not delay the work on later items.
    Thread: with a coroutine function all signals of a running flow come from the loop's thread.
    Otherwise results come from the threads that make them, one at a time. Where the upstream is
    requested or polled, its code runs on these threads, too.
    Fusion: polls an upstream that grants SYNC or ASYNC across threads.
    Errors: the first one cancels the upstream and the other tasks; it has a note of the errors that
    the other tasks have raised by then. A CancelledError that a coroutine gets from what it awaits
    is an error like others: the flow fails with a `FlowError` whose cause it is. With `ordered`, an
    error comes after the results of the items before it; otherwise it overtakes no result that was
    ready. When the flow is cancelled, all tasks are cancelled, too; a function that runs in a
    thread still runs to its end, since nothing can stop it. Errors that the tasks and functions
    raise then go to the dropped-errors hook.

    Args:
        function: called with an item; returns the result, which is not None. It is a plain function
            or, more often, an ``async def``.
        concurrency: how many items are worked on at a time.
        executor: threads that run functions, but not coroutine functions; `on_processes` is for
            processes. Keep it open as long as the flow runs. None for the flow's own threads.
        ordered: whether results come in the order of the items; otherwise they come as they are
            ready.
        retry: how often an item is tried again: at once, or as `backoff` says.
        backoff: how long to wait before a retry: the time in seconds before the first retry, from
            which the time grows as that of a `Backoff` does; or a `Backoff`, which also selects the
            errors. Without `retry`, an item is tried as often as a `Backoff` says, or any number of
            times.
        timeout: how long each try of a coroutine function may take, in seconds; after that, the try
            is cancelled, and has failed with FlowTimeoutError. A function that runs in a thread
            cannot be stopped.
        fallback: called with an item that has failed and its error; returns an item to send
            instead.
        prefetch: how many items may be worked on, or have results that wait for an earlier result.
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
        "map_concurrent",
        function,
        concurrency,
        executor=executor,
        ordered=ordered,
        retry=retry,
        backoff=backoff,
        timeout=timeout,
        fallback=fallback,
        prefetch=prefetch,
        loop=loop,
        clock=clock,
    )
    return concurrent("map_concurrent", plan, detail)


def planned(
    name: str,
    function: Callable[[T], Any],  # Any: as above
    concurrency: int,
    *,
    executor: Executor | None,
    ordered: bool,
    retry: int | Backoff,
    backoff: Backoff | Seconds | None,
    timeout: Seconds | None,
    fallback: Callable[[T, Exception], Any] | None,
    prefetch: int,
    loop: asyncio.AbstractEventLoop | None,
    clock: Clock | None,
    keeps: bool = False,
) -> tuple[Plan[T], str]:
    """Check the arguments; return the plan of them, and their description for messages."""
    if not callable(function):
        raise TypeError(f"{name}() takes a function or a coroutine function, not {function!r}")
    check_prefetch(concurrency, "concurrency")
    check_prefetch(prefetch)
    by_loop = is_coroutine_function(function)
    if executor is not None and (by_loop or timeout is not None or loop is not None):
        what = f"{describe(function)} is a coroutine function" if by_loop else "timeout= and loop="
        raise TypeError(
            f"{name}(executor=) is for functions that run in threads, which nothing can stop; "
            + (f"{what}: leave executor= out" if by_loop else f"{what} are for coroutine functions")
        )
    if isinstance(retry, Backoff):
        if backoff is not None:
            raise TypeError(f"{name}() takes a Backoff as backoff=, and a number as retry=")
        retry, backoff = 0, retry
    retries = _checked_retry(name, retry)
    waits = None if backoff is None else waiting(name, retries or None, backoff)
    if fallback is not None:
        if not callable(fallback):
            raise TypeError(
                f"{name}(fallback=) takes a function of an item and its error, not {fallback!r}"
            )
        refuse_coroutine_function(
            f"{name}(fallback=)", fallback, "let the function itself catch the error"
        )
    timeout_s = None if timeout is None else checked_delay(timeout, "timeout")
    checked_clock(clock)
    detail = [
        describe(function),
        str(concurrency),
        *([] if executor is None else [f"executor={describe(executor)}"]),
        *([] if ordered else ["ordered=False"]),
        *([] if retries == 0 else [f"retry={retries}"]),
        *([] if waits is None else [f"backoff={seconds(in_seconds(waits.first))}"]),
        *([] if timeout_s is None else [f"timeout={seconds(timeout_s)}"]),
        *([] if fallback is None else [f"fallback={describe(fallback)}"]),
    ]
    if (timeout is not None or loop is not None) and not by_loop:
        function = partial(_given, name, function)
        by_loop = True
    runner = None if executor is None else as_runner(executor)
    plan = Plan(
        function,
        concurrency,
        prefetch,
        ordered,
        retries,
        waits,
        timeout_s,
        fallback,
        keeps,
        clock or (None if waits is None else waits.clock),
        loop,
        runner,
        by_loop,
    )
    return plan, ", ".join(detail)


def concurrent(name: str, plan: Plan[T], detail: str) -> Operator[T, Flow[Any]]:
    """Return the operator that works as `plan` says."""

    def made(flow: Flow[T], downstream: CoreSubscriber[Any], label: str) -> Slots[T, Any, Any]:
        if plan.by_loop:
            return Tasks(flow, plan, downstream, label)
        return Threads(flow, plan, downstream, label)

    return coordinated(name, detail, made, plan.concurrency)


def is_coroutine_function(function: Callable[..., object]) -> bool:
    """Return whether `function`, which may be any callable object, returns a coroutine."""
    return iscoroutinefunction(function) or iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - what it is, not whether
    )


def _checked_retry(name: str, retry: object) -> int:
    if not isinstance(retry, int) or isinstance(retry, bool):
        raise TypeError(f"{name}(retry=) takes a number of times or a Backoff, not {retry!r}")
    if retry < 0:
        raise ValueError(f"{name}(retry=) takes at least 0, not {retry}")
    return retry


async def _given(name: str, function: Callable[[T], Awaitable[R]], item: T) -> R:
    given: object = function(item)
    if not isinstance(given, Awaitable):
        raise TypeError(
            f"{describe(function)} gave {given!r}, which cannot be awaited; {name}(timeout=, "
            "loop=) are for coroutine functions: leave them out, and it runs in threads"
        )
    result: R = await given
    return result
