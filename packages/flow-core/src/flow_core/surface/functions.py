"""The functions of `flow_core` that other packages execute; written by tools/surface.py."""

# mypy: disable-error-code="no-any-return, import-untyped"
from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, overload

from flow_core.surface.factories import factory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal

    from flow_core.clocks import Clock, Seconds
    from flow_core.executors import Executor
    from flow_core.flow import Flow
    from flow_core.protocols import Publisher
    from flow_core.stages._aggregate import Comparable

__all__ = [
    "PACKAGES",
    "amb",
    "combine_latest",
    "concat",
    "fork_join",
    "interval",
    "interval_range",
    "merge",
    "merge_sequential",
    "ordered_merge",
    "sequence_equal",
    "timer",
    "zip",
]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")
S = TypeVar("S", bound="Comparable")
T = TypeVar("T")
U = TypeVar("U")
PACKAGES: Final = {
    "amb": "flow-ops",
    "combine_latest": "flow-ops",
    "concat": "flow-ops",
    "fork_join": "flow-ops",
    "interval": "flow-ops",
    "interval_range": "flow-ops",
    "merge": "flow-ops",
    "merge_sequential": "flow-ops",
    "ordered_merge": "flow-ops",
    "sequence_equal": "flow-ops",
    "timer": "flow-ops",
    "zip": "flow-ops",
}
"""Which one executes which."""


def amb(*sources: Publisher[T]) -> Flow[T]:
    """The flow that is the first to emit an item or to end; the others are cancelled.

    >>> import flow_core as flow
    >>> list(flow.amb(flow.never(), flow.just("b"), flow.just("c")))
    ['b']

    Without flows the result is empty.

    Demand: passed on to all flows until one is the first, then to that one alone.
    Thread: that of the first one. Fusion: none.
    Errors: those of the first one.

    Args:
        sources: the flows to choose from. They are subscribed in this order, until one has begun.

    Raises:
        TypeError: if a source is not a publisher.

    Executed by flow-ops: `flow_ops.amb`.
    """
    return factory_of("flow_ops.combine.amb:amb")(*sources)


@overload
def combine_latest(
    a: Publisher[A], b: Publisher[B], /, *, prefetch: int = 128, delay_error: bool = False
) -> Flow[tuple[A, B]]: ...
@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C]]: ...
@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D]]: ...
@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D, E]]: ...
@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D, E, F]]: ...
@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D, E, F, G]]: ...
@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    h: Publisher[H],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D, E, F, G, H]]: ...
@overload
def combine_latest(
    *sources: Publisher[T], prefetch: int = 128, delay_error: bool = False
) -> Flow[tuple[T, ...]]: ...
def combine_latest(
    *sources: Publisher[Any], prefetch: int = 128, delay_error: bool = False
) -> Flow[Any]:
    """Each item of any flow, together with the latest items of all the others.

    >>> import flow_core as flow
    >>> list(flow.combine_latest(flow.just(1, 2), flow.just("a", "b")))
    [(2, 'a'), (2, 'b')]

    Nothing comes until each flow has emitted an item. The result completes when all flows have, or
    as soon as one completes without an item. Without flows the result is empty.

    Demand: exact; `prefetch` items are requested of each source, and 75 % of that again whenever as
    many of its items were delivered. Combinations that are not requested yet wait, in the order in
    which they arose.
    Thread: that of the source whose item it is; a combination that had to wait comes on whichever
    thread is at work.
    Fusion: grants ASYNC, across threads, too. Then all combinations wait until the downstream polls
    them. The end comes as soon as the last combination was polled. The sources are not asked for
    fusion.
    Errors: the first one cancels the others, and overtakes the items that wait.

    Args:
        sources: the flows to combine. They are subscribed in this order.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all flows have ended; several are raised as an
            ExceptionGroup.

    Returns:
        A flow that fails with MissingBackpressureError if a source sends more than was requested
        and there is no room.

    Raises:
        TypeError: if a source is not a publisher, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.

    Executed by flow-ops: `flow_ops.combine_latest`.
    """
    return factory_of("flow_ops.combine.combine_latest:combine_latest")(
        *sources, prefetch=prefetch, delay_error=delay_error
    )


def concat(*sources: Publisher[T], delay_error: bool = False) -> Flow[T]:
    """The items of several flows, one flow after the other; completes with the last.

    >>> import flow_core as flow
    >>> list(flow.concat(flow.range(2), flow.just("a")))
    [0, 1, 'a']

    This is a `concat_map` over the flows; `concat_map` itself takes a flow of flows.

    Demand: exact; the next flow gets the demand that the previous one has not used. A flow is
    subscribed when the one before has ended, even without demand.
    Thread: each flow's own. A flow that is an iterator or a function runs where the one before has
    ended, or where items are requested. Iteration: one loop over all flows.
    Fusion: none. A chain of concatenations is flattened when it is assembled, so its length costs
    nothing.
    Errors: the first one ends the flow, and the flows after it are not started.

    Args:
        sources: the flows to concatenate.
        delay_error: whether the other flows still follow when a flow fails; its error comes at the
            end, several errors as an ExceptionGroup.

    Raises:
        TypeError: if one of `sources` is not a publisher.

    Executed by flow-ops: `flow_ops.concat`.
    """
    return factory_of("flow_ops.sequence.concat:concat")(*sources, delay_error=delay_error)


@overload
def fork_join(a: Publisher[A], b: Publisher[B], /) -> Flow[tuple[A, B]]: ...
@overload
def fork_join(a: Publisher[A], b: Publisher[B], c: Publisher[C], /) -> Flow[tuple[A, B, C]]: ...
@overload
def fork_join(
    a: Publisher[A], b: Publisher[B], c: Publisher[C], d: Publisher[D], /
) -> Flow[tuple[A, B, C, D]]: ...
@overload
def fork_join(
    a: Publisher[A], b: Publisher[B], c: Publisher[C], d: Publisher[D], e: Publisher[E], /
) -> Flow[tuple[A, B, C, D, E]]: ...
@overload
def fork_join(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    /,
) -> Flow[tuple[A, B, C, D, E, F]]: ...
@overload
def fork_join(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    /,
) -> Flow[tuple[A, B, C, D, E, F, G]]: ...
@overload
def fork_join(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    h: Publisher[H],
    /,
) -> Flow[tuple[A, B, C, D, E, F, G, H]]: ...
@overload
def fork_join(*sources: Publisher[T]) -> Flow[tuple[T, ...]]: ...
def fork_join(*sources: Publisher[Any]) -> Flow[Any]:
    """One tuple: the last item of each flow, when all have completed.

    >>> import flow_core as flow
    >>> list(flow.fork_join(flow.range(5), flow.just("a", "b")))
    [(4, 'b')]

    As soon as one of the flows completes without an item, the result completes, empty, and the
    other flows are cancelled. Without flows the result is empty.

    Demand: everything is requested of the sources, as soon as they are subscribed; only the last
    item of each is kept. The tuple waits for demand.
    Thread: that of the source that completes last, or of the requester. Fusion: none.
    Errors: the first one cancels the other flows.

    Args:
        sources: the flows to run. They are subscribed in this order.

    Raises:
        TypeError: if a source is not a publisher.

    Executed by flow-ops: `flow_ops.fork_join`.
    """
    return factory_of("flow_ops.combine.fork_join:fork_join")(*sources)


def interval(
    period: Seconds,
    *,
    initial_delay: Seconds | None = None,
    overflow: Literal["error", "drop", "buffer"] = "error",
    clock: Clock | None = None,
) -> Flow[int]:
    """Count 0, 1, 2 and so on, one number in each period, without end.

    >>> import flow_core as flow
    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> clock, seen = VirtualClock(), TestSubscriber[int]()
    >>> flow.interval(0.5, clock=clock).take(3).subscribe(seen)
    >>> clock.advance_by(10)
    >>> seen.items
    [0, 1, 2]

    Demand: exact; see `overflow`. Thread: the clock's; a number that waited for demand comes on the
    thread that requests. Fusion: none.
    Errors: MissingBackpressureError, as `overflow` says; RejectedExecutionError if the clock takes
    no task.

    Args:
        period: how long between two numbers, in seconds, above 0. The delays of timers do not add
            up.
        initial_delay: how long before the first number, in seconds; as long as `period` if None.
        overflow: what happens to a number that was not requested when its time comes. ``"error"``
            fails the flow; ``"drop"`` leaves the number out, and the next number is still that of
            its period; ``"buffer"`` sends it later, on demand (numbers that wait take no memory:
            only their count is kept).
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `period` or `initial_delay` is not a time, or `clock` is not a clock.
        ValueError: if the period is not above 0 and finite, the delay is less than 0, or `overflow`
            is unknown.

    Executed by flow-ops: `flow_ops.interval`.
    """
    return factory_of("flow_ops.time.interval:interval")(
        period, initial_delay=initial_delay, overflow=overflow, clock=clock
    )


def interval_range(
    start: int,
    count: int,
    period: Seconds,
    *,
    initial_delay: Seconds | None = None,
    overflow: Literal["error", "drop", "buffer"] = "error",
    clock: Clock | None = None,
) -> Flow[int]:
    """Send `count` ints from `start` on, one in each period; complete with the last.

    >>> import flow_core as flow
    >>> list(flow.interval_range(5, 3, 0.001))
    [5, 6, 7]

    This is `interval`, followed by `take` and `map`.

    Args:
        start: the first int.
        count: how many ints, at least 0.
        period: how long between two of the ints, in seconds, above 0.
        initial_delay: how long before the first int, in seconds; as long as `period` if None.
        overflow: see `interval`. With ``"drop"`` there are still `count` ints, with gaps.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: as with `interval`, or if `count` is less than 0.

    Executed by flow-ops: `flow_ops.interval_range`.
    """
    return factory_of("flow_ops.time.interval:interval_range")(
        start, count, period, initial_delay=initial_delay, overflow=overflow, clock=clock
    )


@overload
def merge(
    *sources: Publisher[T], concurrency: int = 128, prefetch: int = 128, delay_error: bool = False
) -> Flow[T]: ...
@overload
def merge(
    sources: Iterable[Publisher[T]],
    /,
    *,
    concurrency: int = 128,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[T]: ...
def merge(
    *sources: Publisher[Any] | Iterable[Publisher[Any]],
    concurrency: int = 128,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[Any]:
    """The items of several flows, as they come. The result completes when all flows have.

    >>> import flow_core as flow
    >>> list(flow.merge(flow.range(2), flow.just("a")))
    [0, 1, 'a']

    Demand: exact; `prefetch` items are requested of each source, and 75 % of them again whenever as
    many were taken. Items that wait come in the order in which they arrived.
    Thread: items come on the threads of the sources, one at a time; an item that waited for demand,
    or while another item was sent, comes on whichever thread is at work.
    Fusion: none: an iterator that blocks would stop the other sources. A source that is a constant
    or a function is called instead of subscribed to. Merges within merges, with the same options,
    are flattened: their depth costs nothing. Flows on one cluster are united there.
    Errors: the first one cancels the others, and overtakes the items that wait.

    Args:
        sources: flows to merge, subscribed in this order; or one iterable of flows, which is asked
            for the next flow only when that can run.
        concurrency: how many of the flows run at a time; the others follow as these complete.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all sources have ended; several are raised as an
            ExceptionGroup.

    Raises:
        TypeError: if a source is not a publisher, or a number is not an int.
        ValueError: if `concurrency` or `prefetch` is less than 1.

    Executed by flow-ops: `flow_ops.merge`.
    """
    return factory_of("flow_ops.combine.merge:merge")(
        *sources, concurrency=concurrency, prefetch=prefetch, delay_error=delay_error
    )


@overload
def merge_sequential(
    *sources: Publisher[T], concurrency: int = 128, prefetch: int = 128, delay_error: bool = False
) -> Flow[T]: ...
@overload
def merge_sequential(
    sources: Iterable[Publisher[T]],
    /,
    *,
    concurrency: int = 128,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[T]: ...
def merge_sequential(
    *sources: Publisher[Any] | Iterable[Publisher[Any]],
    concurrency: int = 128,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[Any]:
    """The items of several flows that run at once, but all of one before those of the next.

    >>> import flow_core as flow
    >>> list(flow.merge_sequential(flow.range(2), flow.just("a")))
    [0, 1, 'a']

    Other libraries call it concat_eager. See `concat_map_eager` for demand, thread, fusion and
    errors.

    Args:
        sources: flows to run; or one iterable of flows, which is asked for the next flow only when
            that can run.
        concurrency: how many of them are subscribed at a time, including the one whose items are
            sent.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all sources have ended; several are raised as an
            ExceptionGroup.

    Raises:
        TypeError: if a source is not a publisher, or a number is not an int.
        ValueError: if `concurrency` or `prefetch` is less than 1.

    Executed by flow-ops: `flow_ops.merge_sequential`.
    """
    return factory_of("flow_ops.combine.merge:merge_sequential")(
        *sources, concurrency=concurrency, prefetch=prefetch, delay_error=delay_error
    )


@overload
def ordered_merge(
    *sources: Publisher[S],
    key: None = None,
    executor: Executor | None = None,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[S]: ...
@overload
def ordered_merge(
    *sources: Publisher[T],
    key: Callable[[T], Comparable],
    executor: Executor | None = None,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[T]: ...
def ordered_merge(
    *sources: Publisher[Any],
    key: Callable[[Any], Any] | None = None,
    executor: Executor | None = None,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[Any]:
    """The items of several sorted flows, in order.

    >>> import flow_core as flow
    >>> list(flow.ordered_merge(flow.just(1, 4, 5), flow.just(2, 3, 6)))
    [1, 2, 3, 4, 5, 6]
    >>> list(flow.ordered_merge(flow.just("b", "A"), flow.just("C"), key=lambda s: -ord(s)))
    ['b', 'C', 'A']

    An item is sent when each flow has an item waiting or has ended, and no waiting item is less. Of
    equal items, the one of the earlier flow comes first. If a flow is not sorted, its items still
    keep their order, and none is lost. Comparing costs O(log n) for each item of n flows. Without
    flows the result is empty.

    Demand: exact. `prefetch` items are requested of a source that pushes, and 75 % of that again
    whenever as many were taken. Without demand no item is taken.
    Thread: that of the source whose item was missing, or of the requester. With an `executor`
    everything downstream runs there, as behind `observe_on`: items, the end, and errors. Sources
    keep their threads, but the requests to them are made on the executor. A task is submitted when
    there is something to do and no task is pending. A cancel removes a task that has not begun. It
    does not interrupt a downstream that blocks, but no further item follows. If the executor
    refuses a task, or drops it, the RejectedExecutionError comes on the thread that signalled.
    Fusion: sources with SYNC or ASYNC are polled. Those that call functions of the user, or are
    asynchronous, learn that they may be polled on another thread.
    Errors: the first one cancels the other flows, and overtakes the items that wait.

    Args:
        sources: sorted flows, smallest item first. They are subscribed in this order.
        key: returns the value by which an item is compared, called once for each item; values are
            compared by ``<`` alone.
        executor: runs the merge; see `observe_on`. With None, the merge runs on the threads that
            the items come on.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all flows have ended; several are raised as an
            ExceptionGroup.

    Returns:
        A flow that fails with MissingBackpressureError if a source sends more than was requested
        and there is no room, and with any error that a comparison raises.

    Raises:
        TypeError: if a source is not a publisher, `key` cannot be called, `executor` is not an
            executor, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.

    Executed by flow-ops: `flow_ops.ordered_merge`.
    """
    return factory_of("flow_ops.combine.ordered_merge:ordered_merge")(
        *sources, key=key, executor=executor, prefetch=prefetch, delay_error=delay_error
    )


def sequence_equal(
    first: Publisher[T],
    second: Publisher[U],
    *,
    key: Callable[[T | U], object] | None = None,
    equals: Callable[[T, U], object] | None = None,
    prefetch: int = 128,
) -> Flow[bool]:
    """Emit one item: True if both flows emit the same items and then complete, else False.

    >>> import flow_core as flow
    >>> flow.sequence_equal(flow.range(3), flow.just(0, 1, 2)).single()
    True
    >>> flow.sequence_equal(flow.just("a"), flow.just("A"), key=str.lower).single()
    True

    The result comes as soon as the flows differ; both are cancelled then.

    Demand: `prefetch` items are requested of each flow, and 75 % of that again whenever as many
    were compared. Without demand nothing is compared.
    Thread: that of the flow whose item was missing, or of the requester.
    Fusion: flows with SYNC or ASYNC are polled; an asynchronous one learns that it may be polled on
    another thread.
    Errors: the first one cancels the other flow, and overtakes the items that wait.

    Args:
        first: the flow that is subscribed first.
        second: the flow that is subscribed second.
        key: returns the value by which an item is compared.
        equals: returns something true if two items are equal; None for ``==`` of the items or keys.
            Give `key` or `equals`, not both.
        prefetch: items to request of each ahead, and the most of each that wait.

    Raises:
        TypeError: if a flow is not a publisher, `key` or `equals` cannot be called, or `prefetch`
            is not an int.
        ValueError: if `prefetch` is less than 1, or both `key` and `equals` are given.

    Executed by flow-ops: `flow_ops.sequence_equal`.
    """
    return factory_of("flow_ops.combine.sequence_equal:sequence_equal")(
        first, second, key=key, equals=equals, prefetch=prefetch
    )


def timer(delay: Seconds, *, clock: Clock | None = None) -> Flow[int]:
    """Send the item 0 after a while.

    >>> import flow_core as flow
    >>> list(flow.timer(0.001))
    [0]

    Demand: exact; the item waits for a request. Time runs from the subscription. Thread: the
    clock's, or that of a request that comes later. Fusion: none.
    Errors: RejectedExecutionError if the clock takes no task.

    Args:
        delay: how long to wait, in seconds, at least 0; if it is infinite, the item never comes.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `delay` is not a time, or `clock` is not a clock.
        ValueError: if `delay` is less than 0, or NaN.

    Executed by flow-ops: `flow_ops.timer`.
    """
    return factory_of("flow_ops.time.timer:timer")(delay, clock=clock)


@overload
def zip(
    a: Publisher[A], b: Publisher[B], /, *, prefetch: int = 128, delay_error: bool = False
) -> Flow[tuple[A, B]]: ...
@overload
def zip(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C]]: ...
@overload
def zip(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D]]: ...
@overload
def zip(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D, E]]: ...
@overload
def zip(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D, E, F]]: ...
@overload
def zip(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D, E, F, G]]: ...
@overload
def zip(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    h: Publisher[H],
    /,
    *,
    prefetch: int = 128,
    delay_error: bool = False,
) -> Flow[tuple[A, B, C, D, E, F, G, H]]: ...
@overload
def zip(
    *sources: Publisher[T], prefetch: int = 128, delay_error: bool = False
) -> Flow[tuple[T, ...]]: ...
def zip(*sources: Publisher[Any], prefetch: int = 128, delay_error: bool = False) -> Flow[Any]:
    """The first items of all flows together, then the second ones, and so on.

    >>> import flow_core as flow
    >>> list(flow.zip(flow.range(3), flow.just("a", "b", "c")))
    [(0, 'a'), (1, 'b'), (2, 'c')]
    >>> list(flow.zip(flow.range(9), flow.just("a", "b")).starmap(lambda n, letter: letter * n))
    ['', 'b']

    The result completes as soon as one of the flows has ended and its last item was used; the
    others are cancelled then. Without flows the result is empty.

    Demand: exact. `prefetch` items are requested of a source that pushes, and 75 % of that again
    whenever as many were used. Without demand no item is taken.
    Thread: that of the source whose item was the last one missing, or of the requester. Iteration:
    when all sources are synchronous iterables, they are iterated over side by side, in one loop,
    which ``for`` or the subscription compiles from them and the stages that follow. In such a loop,
    a cancel from another thread takes effect between two rows.
    Fusion: such a loop grants SYNC, and not across threads if it calls functions of the user.
    Otherwise sources with SYNC or ASYNC are polled; an asynchronous one learns that it may be
    polled on another thread.
    Errors: the first one cancels the other flows and overtakes the items that wait, except that an
    iterable fails after its items. An item without a partner is dropped.

    Args:
        sources: the flows to take items from. They are subscribed in this order.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether the error of a flow comes after its items; several are raised as an
            ExceptionGroup.

    Raises:
        TypeError: if a source is not a publisher, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.

    Executed by flow-ops: `flow_ops.zip`.
    """
    return factory_of("flow_ops.combine.zip:zip")(
        *sources, prefetch=prefetch, delay_error=delay_error
    )
