"""What flow-ops does with a flow; written by tools/surface.py."""

# mypy: disable-error-code="no-any-return, import-untyped"
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, overload

from flow_core.stages._fluent import Fluent

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Executor as Pool
    from typing import Any, Literal

    from flow_core.backoff import Backoff
    from flow_core.clocks import Clock, Seconds
    from flow_core.conversion import Convertible
    from flow_core.executors import Executor
    from flow_core.flow import Flow
    from flow_core.notifications import Notification
    from flow_core.parallel import ParallelFlow
    from flow_core.protocols import Publisher
    from flow_core.results import GroupedFlow, TimeInterval, Timestamped
    from flow_core.stages._aggregate import Comparable
    from flow_core.stages._recovery import ErrorFilter

__all__ = ["OpsMethods"]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")
K = TypeVar("K")
R = TypeVar("R")
S = TypeVar("S", bound="Comparable")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")


class OpsMethods(Fluent[T_co], Generic[T_co]):
    """The methods of `Flow` that flow-ops executes."""

    _package: ClassVar[str] = "flow-ops"
    __slots__ = ()

    def amb(self, *others: Publisher[D]) -> Flow[T_co | D]:
        """The flow that is the first to emit an item or to end; the others are cancelled.

        >>> import flow_core as flow
        >>> list(flow.never().amb(flow.just("b"), flow.just("c")))
        ['b']

        Without flows the result is empty.

        Demand: passed on to all flows until one is the first, then to that one alone.
        Thread: that of the first one. Fusion: none.
        Errors: those of the first one.

        Args:
            others: the flows to choose from. They are subscribed in this order, until one has begun.

        Raises:
            TypeError: if a source is not a publisher.

        Executed by flow-ops: `flow_ops.amb`.
        """
        return self._combined("flow_ops.combine.amb:amb", *others)

    def and_then(self, other: Publisher[R]) -> Flow[R]:
        """Only the items of `other`, after this flow has completed; the items of this flow are ignored.

        >>> import flow_core as flow
        >>> list(flow.range(2).do_on_next(print).and_then(flow.just("done")))
        0
        1
        ['done']

        This is what RxJava calls andThen and Reactor thenMany. To keep the items, use `concat`.

        Demand: exact, for the items of `other`. The first request runs this flow to its end, if this
        flow needs a request.
        Thread, fusion: as with `concat`.
        Errors: if this flow fails, `other` is not started.

        Args:
            other: the flow that follows.

        Raises:
            TypeError: if `other` is not a publisher.

        Executed by flow-ops: `flow_ops.and_then`.
        """
        return self._plugged("flow_ops.sequence.and_then:and_then", other)

    def batch(
        self, size: int | None = None, *, within: Seconds | None = None, clock: Clock | None = None
    ) -> Flow[list[T_co]]:
        """Lists of `size` items, or of the items within some seconds of the first one.

        >>> import flow_core as flow
        >>> list(flow.range(5).batch(2))
        [[0, 1], [2, 3], [4]]
        >>> list(flow.range(5).batch(3, within=60))
        [[0, 1, 2], [3, 4]]

        No list is empty: the time starts with an item. The last list is sent when the upstream
        completes.

        Demand: exact. With a time, `size` items are requested of the upstream ahead, or 65,536 without
        a size; the upstream pauses when a full list waits for demand. 128 lists that are not full may
        wait; one more fails the flow with `MissingBackpressureError`.
        Thread: that of the upstream for full lists, the clock's for others.
        Fusion: with a time, ASYNC is granted for the lists that wait, and the upstream is not asked for
        fusion; without a time, the fusion of `buffer_with_count`, which does the work.
        Errors: those of the upstream come at once; items that were not sent are dropped.

        Args:
            size: items in a list, at most; None for any number.
            within: how long after its first item a list is sent, at the latest, in seconds; None for no
                limit.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if neither `size` nor `within` is given, or one of them is of the wrong type; if
                `clock` is not a clock.
            ValueError: if `size` is less than 1, or `within` not above 0 and finite.

        Executed by flow-ops: `flow_ops.batch`.
        """
        return self._plugged("flow_ops.group.batch:batch", size, within=within, clock=clock)

    def buffer_boundary(
        self, boundary: Publisher[object], *, max_size: int = 65536, max_waiting: int = 128
    ) -> Flow[list[T_co]]:
        """Lists of the items that come between the items of another flow; they may be empty.

        >>> import flow_core as flow
        >>> list(flow.range(3).buffer_boundary(flow.never()))
        [[0, 1, 2]]

        When the upstream or `boundary` completes, the last list is sent, if it has items; then the flow
        completes.

        Demand: see `flow_ops.group.buffer`. `boundary` is subscribed before the upstream.
        Thread: that of `boundary`; the last list comes on that of the flow that completes.
        Fusion: grants ASYNC, for the buffers that wait; no flow is asked for fusion.
        Errors: those of both flows come at once; buffers that are open or wait for demand are dropped.

        Args:
            boundary: each of its items ends a buffer and begins the next one.
            max_size: items to request ahead, and the most that are kept.
            max_waiting: how many buffers may wait for demand.

        Raises:
            TypeError: if `boundary` is not a publisher, or a number is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.buffer_boundary`.
        """
        return self._plugged(
            "flow_ops.group.buffer:buffer_boundary",
            boundary,
            max_size=max_size,
            max_waiting=max_waiting,
        )

    def buffer_toggle(
        self,
        openings: Publisher[W],
        closing_mapper: Callable[[W], Publisher[object]],
        *,
        max_size: int = 65536,
        max_waiting: int = 128,
    ) -> Flow[list[T_co]]:
        """Lists that begin with items of another flow, each with a flow that ends it.

        >>> import flow_core as flow
        >>> list(flow.range(3).buffer_toggle(flow.just(1, 2), lambda _: flow.never()))
        [[0, 1, 2], [0, 1, 2]]

        Buffers may overlap; items that come when no buffer is open are left out. Open buffers are sent
        when the upstream completes, if they have items. When `openings` has completed and no buffer is
        open, the flow completes.

        Demand: see `flow_ops.group.buffer`. `openings` is subscribed before the upstream.
        Thread: those of the flows that end buffers; `closing_mapper` is called where openings come, one
        call at a time. The last lists come on that of the upstream.
        Fusion: grants ASYNC, for the buffers that wait; no flow is asked for fusion.
        Errors: those of all flows and of `closing_mapper` come at once; buffers that are open or wait
        for demand are dropped.

        Args:
            openings: each of its items begins a buffer.
            closing_mapper: called with that item; returns the flow whose first item or completion ends
                the buffer.
            max_size: items to request ahead, and the most that are kept.
            max_waiting: how many buffers may wait for demand.

        Raises:
            TypeError: if `openings` is not a publisher, `closing_mapper` cannot be called, or a number
                is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.buffer_toggle`.
        """
        return self._plugged(
            "flow_ops.group.buffer:buffer_toggle",
            openings,
            closing_mapper,
            max_size=max_size,
            max_waiting=max_waiting,
        )

    def buffer_when(
        self,
        closing_supplier: Callable[[], Publisher[object]],
        *,
        max_size: int = 65536,
        max_waiting: int = 128,
    ) -> Flow[list[T_co]]:
        """Lists that each end with the first item, or the completion, of another flow.

        >>> import flow_core as flow
        >>> list(flow.range(3).buffer_when(flow.never))
        [[0, 1, 2]]

        The first list begins at once, and each further list when the one before it ends. Lists may be
        empty; the last one is sent when the upstream completes, if it has items.

        Demand: see `flow_ops.group.buffer`.
        Thread: those of the flows that end buffers, where `closing_supplier` is called, too; the last
        list comes on that of the upstream.
        Fusion: grants ASYNC, for the buffers that wait; no flow is asked for fusion.
        Errors: as with `buffer_toggle`.

        Args:
            closing_supplier: returns the flow that ends a buffer; called when the buffer begins.
            max_size: items to request ahead, and the most that are kept.
            max_waiting: how many buffers may wait for demand.

        Raises:
            TypeError: if `closing_supplier` cannot be called, or a number is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.buffer_when`.
        """
        return self._plugged(
            "flow_ops.group.buffer:buffer_when",
            closing_supplier,
            max_size=max_size,
            max_waiting=max_waiting,
        )

    def buffer_with_time(
        self,
        period: Seconds,
        shift: Seconds | None = None,
        *,
        empty: bool = False,
        clock: Clock | None = None,
        max_size: int = 65536,
        max_waiting: int = 128,
    ) -> Flow[list[T_co]]:
        """Lists of the items that come within a length of time.

        >>> import flow_core as flow
        >>> list(flow.range(3).buffer_with_time(60))
        [[0, 1, 2]]

        The last list is sent when the upstream completes, if it has items. A period without items adds
        no list, unless `empty` is true.

        Demand: see `flow_ops.group.buffer`.
        Thread: the clock's; the last lists come on that of the upstream.
        Fusion: grants ASYNC, for the buffers that wait; the upstream is not asked for fusion.
        Errors: those of the upstream come at once; buffers that are open or wait for demand are
        dropped.

        Args:
            period: how long from the beginning of a buffer to its end, in seconds.
            shift: how long from the beginning of one buffer to that of the next, in seconds: less than
                `period` makes buffers overlap, more leaves items out; `period` by default.
            empty: whether there are lists without items, too.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.
            max_size: items to request ahead, and the most that are kept.
            max_waiting: how many buffers may wait for demand.

        Raises:
            TypeError: if a number is of the wrong type, or `clock` is not a clock.
            ValueError: if a time is not above 0 and finite, or another number is less than 1.

        Executed by flow-ops: `flow_ops.buffer_with_time`.
        """
        return self._plugged(
            "flow_ops.group.buffer:buffer_with_time",
            period,
            shift,
            empty=empty,
            clock=clock,
            max_size=max_size,
            max_waiting=max_waiting,
        )

    def buffer_with_time_or_count(
        self,
        period: Seconds,
        count: int,
        *,
        empty: bool = False,
        clock: Clock | None = None,
        max_waiting: int = 128,
    ) -> Flow[list[T_co]]:
        """Lists of `count` items, or of the items that have come when a length of time has passed.

        >>> import flow_core as flow
        >>> list(flow.range(5).buffer_with_time_or_count(60, 2))
        [[0, 1], [2, 3], [4]]

        A new period begins with each buffer. The last list is sent when the upstream completes, if it
        has items. A period without items adds no list, unless `empty` is true. (`batch` suits most uses
        better: there, the time runs from the first item of a list.)

        Demand: see `flow_ops.group.buffer`; `max_size` is `count`, so that the upstream pauses when a
        full buffer waits.
        Thread: that of the upstream for full lists, the clock's for others.
        Fusion: grants ASYNC, for the buffers that wait; the upstream is not asked for fusion.
        Errors: as with `buffer_with_time`.

        Args:
            period: how long from the beginning of a buffer to its end, in seconds.
            count: items in a buffer, at most.
            empty: whether there are lists without items, too.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.
            max_waiting: how many buffers may wait for demand.

        Raises:
            TypeError: if a number is of the wrong type, or `clock` is not a clock.
            ValueError: if the time is not above 0 and finite, or another number is less than 1.

        Executed by flow-ops: `flow_ops.buffer_with_time_or_count`.
        """
        return self._plugged(
            "flow_ops.group.buffer:buffer_with_time_or_count",
            period,
            count,
            empty=empty,
            clock=clock,
            max_waiting=max_waiting,
        )

    def cancel_on(self, executor: Executor) -> Flow[T_co]:
        """Cancel the upstream on `executor`, if its cancel blocks or must run on a certain thread.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from threading import current_thread
        >>> import flow_core as flow
        >>> pool, places = ThreadPoolExecutor(1, thread_name_prefix="closer"), []
        >>> ticks = flow.never().do_on_cancel(lambda: places.append(current_thread().name))
        >>> ticks.cancel_on(pool).subscribe(print).dispose()
        >>> pool.shutdown()  # waits until the cancel has run
        >>> places
        ['closer_0']

        After a cancel no more items come, though the upstream is cancelled a little later: until then,
        its items go to the dropped-items hook.

        Demand: passed on. Thread: that of the upstream; only the cancel moves to another thread. If the
        executor refuses the task, the upstream is cancelled on the thread that cancels; if the executor
        drops the task later, on a separate thread.
        Fusion: none. It is conditional (see the glossary).

        Args:
            executor: see `subscribe_on`.

        Raises:
            TypeError: if `executor` is not an executor.

        Executed by flow-ops: `flow_ops.cancel_on`.
        """
        return self._plugged("flow_ops.threads.cancel_on:cancel_on", executor)

    @overload
    def combine_latest(
        self, b: Publisher[B], /, *, prefetch: int = 128, delay_error: bool = False
    ) -> Flow[tuple[T_co, B]]: ...
    @overload
    def combine_latest(
        self, b: Publisher[B], c: Publisher[C], /, *, prefetch: int = 128, delay_error: bool = False
    ) -> Flow[tuple[T_co, B, C]]: ...
    @overload
    def combine_latest(
        self,
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        /,
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[tuple[T_co, B, C, D]]: ...
    @overload
    def combine_latest(
        self,
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        e: Publisher[E],
        /,
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[tuple[T_co, B, C, D, E]]: ...
    @overload
    def combine_latest(
        self,
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        e: Publisher[E],
        f: Publisher[F],
        /,
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[tuple[T_co, B, C, D, E, F]]: ...
    @overload
    def combine_latest(
        self,
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
    ) -> Flow[tuple[T_co, B, C, D, E, F, G]]: ...
    @overload
    def combine_latest(
        self,
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
    ) -> Flow[tuple[T_co, B, C, D, E, F, G, H]]: ...
    @overload
    def combine_latest(
        self, *others: Publisher[D], prefetch: int = 128, delay_error: bool = False
    ) -> Flow[tuple[T_co | D, ...]]: ...
    def combine_latest(
        self, *others: Publisher[Any], prefetch: int = 128, delay_error: bool = False
    ) -> Flow[Any]:
        """Each item of any flow, together with the latest items of all the others.

        >>> import flow_core as flow
        >>> list(flow.just(1, 2).combine_latest(flow.just("a", "b")))
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
            others: the flows to combine. They are subscribed in this order.
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
        return self._combined(
            "flow_ops.combine.combine_latest:combine_latest",
            *others,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def concat(self, *others: Publisher[D], delay_error: bool = False) -> Flow[T_co | D]:
        """The items of several flows, one flow after the other; completes with the last.

        >>> import flow_core as flow
        >>> list(flow.range(2).concat(flow.just("a")))
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
            others: the flows to concatenate.
            delay_error: whether the other flows still follow when a flow fails; its error comes at the
                end, several errors as an ExceptionGroup.

        Raises:
            TypeError: if one of `others` is not a publisher.

        Executed by flow-ops: `flow_ops.concat`.
        """
        return self._combined("flow_ops.sequence.concat:concat", *others, delay_error=delay_error)

    def concat_all(
        self: OpsMethods[Flow[T]], *, prefetch: int = 128, delay_error: bool = False
    ) -> Flow[T]:
        """The items of the flows that come as items, one flow after the other.

        >>> import flow_core as flow
        >>> list(flow.just(flow.range(2), flow.just(7)).concat_all())
        [0, 1, 7]

        Demand, thread, iteration, fusion and errors are those of `concat_map`.

        Args:
            prefetch: flows to request ahead of an upstream that pushes, and the most that wait.
            delay_error: whether the other flows still follow when a flow fails; its error comes at the
                end, several errors as an ExceptionGroup.

        Raises:
            TypeError: if `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.concat_all`.
        """
        return self._plugged(
            "flow_ops.transform.concat_all:concat_all", prefetch=prefetch, delay_error=delay_error
        )

    def concat_map(
        self,
        mapper: Callable[[T_co], Convertible[R]],
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[R]:
        """Each item becomes a flow; all items of one come before those of the next.

        >>> import flow_core as flow
        >>> list(flow.range(3).concat_map(lambda n: flow.range(n).map(lambda m: (n, m))))
        [(1, 0), (2, 0), (2, 1)]

        Demand: exact; the next inner flow gets the demand that the previous one has not used. Without
        demand the mapper is not called and no inner flow is started. `prefetch` items are requested of
        an upstream that pushes, and 75 % of that again whenever as many were mapped.
        Thread: the mapper runs where the previous inner flow has ended; if the mapper had to wait for
        demand, where the request came. An inner flow whose source is an iterator or a function runs
        right there, in the operator's own loop; any other is subscribed to, and its items keep its
        thread. Iteration: over a synchronous upstream, ``for`` makes one loop of all flows, in its own
        thread, where it waits for an inner flow that is asynchronous.
        Fusion: an upstream with SYNC or ASYNC is polled; an asynchronous one learns that it may be
        polled on another thread: then it still runs the user's code on its own thread. If the upstream
        is a constant or a function, there is no operator at all: the subscription goes to the mapped
        flow.
        Errors: an error of the upstream comes in its place, after the inner flows of the items before
        it.

        Args:
            mapper: called with an item, when it is that item's turn; returns a flow, not None.
            prefetch: items to request of an upstream that pushes, and the most that wait for their
                turn.
            delay_error: whether the other inner flows still follow when one fails; its error comes at
                the end, several errors as an ExceptionGroup. Otherwise the error ends the flow at once.
                An error of the mapper itself or of the upstream ends the flow, with the errors that
                were delayed.

        Returns:
            A flow that fails with NoneItemError if the mapper returns None,
            and with MissingBackpressureError if the upstream sends more than was requested.

        Raises:
            TypeError: if `mapper` cannot be called, or `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.concat_map`.
        """
        return self._plugged(
            "flow_ops.transform.concat_map:concat_map",
            mapper,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def concat_map_eager(
        self,
        mapper: Callable[[T_co], Convertible[R]],
        *,
        concurrency: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[R]:
        """Each item becomes a flow.

        These flows run at the same time, but all items of one come before those of the next.

        >>> import flow_core as flow
        >>> list(flow.range(3).concat_map_eager(lambda n: flow.range(n).map(lambda m: (n, m))))
        [(1, 0), (2, 0), (2, 1)]

        The result is that of `concat_map`, sooner. Other libraries call it flat_map_sequential.

        Demand: exact. `concurrency` items are requested of the upstream, and one more for each inner
        flow whose items were all sent; `prefetch` items are requested of each inner flow, and wait for
        its turn; 75 % of them are requested again whenever as many were taken.
        Thread: the mapper runs where the upstream's item comes. Items come on the thread of the inner
        flow whose turn it is, or on whichever thread is at work.
        Fusion: an inner flow with SYNC or ASYNC is polled when it is its turn, so a synchronous one
        runs no earlier; it learns that it may be polled on another thread. An inner flow that is a
        constant or a function is called where the mapper runs, and not subscribed to. If the upstream
        is a constant or a function, there is no operator at all: the subscription goes to the mapped
        flow.
        Errors: the first one cancels everything else, and overtakes the items that wait.

        Args:
            mapper: called with an item; returns a flow, not None.
            concurrency: how many inner flows are subscribed at a time, including the one whose turn it
                is, and those that have ended before their turn.
            prefetch: items to request of each inner flow ahead, and the most of each that wait.
            delay_error: whether errors (also those of the upstream and of the mapper) come when all
                inner flows have ended; several are raised as an ExceptionGroup. An upstream whose item
                cannot be mapped is cancelled.

        Returns:
            A flow that fails with NoneItemError if the mapper returns None,
            and with MissingBackpressureError if the upstream or an inner flow sends more than was
            requested.

        Raises:
            TypeError: if `mapper` cannot be called, or a number is not an int.
            ValueError: if `concurrency` or `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.concat_map_eager`.
        """
        return self._plugged(
            "flow_ops.transform.concat_map_eager:concat_map_eager",
            mapper,
            concurrency=concurrency,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def debounce(
        self, quiet: Seconds | Callable[[T_co], Flow[object]], *, clock: Clock | None = None
    ) -> Flow[T_co]:
        """Send only items that no other item follows for a while; always send the last one.

        >>> import flow_core as flow
        >>> list(flow.range(100).debounce(60))
        [99]

        Demand: everything is requested of the upstream. An item that is due when there is no demand
        waits for a request; if another item is due before the request, it replaces the waiting one,
        which goes to the dropped-items hook. The flow completes once the item that waits was sent.
        Thread: the clock's, or that of the flow that `quiet` returns; the last item comes on the
        upstream's thread, and an item that waited on the thread that requests. `quiet` runs in the
        upstream's thread. Fusion: none.
        Errors: those of the upstream, of `quiet` and of its flows, at once: they overtake an item that
        waits.

        Args:
            quiet: how long no other item must follow, in seconds, at least 0; or a function that
                returns a flow for an item: the item is due when that flow emits its first item, or
                completes.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `quiet` is neither a time nor a function, or `clock` is not a clock.
            ValueError: if the time is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.debounce`.
        """
        return self._plugged("flow_ops.time.debounce:debounce", quiet, clock=clock)

    def delay(
        self, delay: Seconds, *, delay_error: bool = False, clock: Clock | None = None
    ) -> Flow[T_co]:
        """Send all signals a while later.

        >>> import flow_core as flow
        >>> list(flow.range(3).delay(0.001))
        [0, 1, 2]

        Demand: passed on; items that wait count as requested. So no more items wait than were
        requested; if everything is requested, these are the items that the upstream sends within
        `delay`.
        Thread: the clock's. Fusion: none.
        Errors: those of the upstream, at once: they overtake the items that wait, unless `delay_error`
        is True. RejectedExecutionError if the clock takes no task.

        Args:
            delay: the time between the arrival of an item and its sending, in seconds, at least 0.
            delay_error: whether the upstream's error is delayed, too, and comes after the items before
                it.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `delay` is not a time, or `clock` is not a clock.
            ValueError: if `delay` is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.delay`.
        """
        return self._plugged(
            "flow_ops.time.delay:delay", delay, delay_error=delay_error, clock=clock
        )

    def delay_elements(self, delay: Seconds, *, clock: Clock | None = None) -> Flow[T_co]:
        """Send each item a while after the previous one, or after it came, if that is later.

        >>> import flow_core as flow
        >>> list(flow.range(3).delay_elements(0.001))
        [0, 1, 2]

        This is a `concat_map` with a `timer` for each item.

        Demand: exact; the delay of an item begins when there is demand for it. One item is requested
        ahead and waits for its turn.
        Thread: the clock's. Fusion: that of `concat_map`.
        Errors: those of the upstream, after the items that came before them. RejectedExecutionError if
        the clock takes no task.

        Args:
            delay: how long between two items, in seconds, at least 0; also before the first one.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `delay` is not a time, or `clock` is not a clock.
            ValueError: if `delay` is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.delay_elements`.
        """
        return self._plugged("flow_ops.time.delay:delay_elements", delay, clock=clock)

    def delay_subscription(
        self, delay: Seconds | Publisher[object], *, clock: Clock | None = None
    ) -> Flow[T_co]:
        """Subscribe to the upstream later: after a while, or when another flow emits an item.

        >>> import flow_core as flow
        >>> list(flow.range(3).delay_subscription(0.001))
        [0, 1, 2]

        Demand: passed on; demand that comes earlier is requested as soon as the upstream is subscribed
        to. One item is requested of the other flow. The subscription does not wait for demand.
        Thread: the upstream is subscribed to on the clock's thread, or where the other flow sends its
        first item or completes. Items keep the upstream's thread. Fusion: none.
        Errors: those of both flows. RejectedExecutionError if the clock takes no task.

        Args:
            delay: how long to wait, in seconds, at least 0; or a flow whose first item or completion
                starts the subscription.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `delay` is neither a time nor a flow, or `clock` is not a clock.
            ValueError: if the time is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.delay_subscription`.
        """
        return self._plugged("flow_ops.time.delay:delay_subscription", delay, clock=clock)

    def delay_until(
        self,
        mapper: Callable[[T_co], Publisher[object]],
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[T_co]:
        """Each item, once the flow that `mapper` returns for it has completed.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b").delay_until(lambda _: flow.range(3)))
        ['a', 'b']

        The items of these flows are dropped. The operator handles one item at a time, in order.

        Demand, thread and fusion are those of `concat_map`; a flow is asked for all of its items.
        Errors: those of the flows, and those that `mapper` raises. The item of a flow that fails is
        dropped.

        Args:
            mapper: called with an item; returns a flow, not None.
            prefetch: items to request of an upstream that pushes, and the most that wait.
            delay_error: whether the other items follow when one of these flows has failed; its error
                comes at the end.

        Returns:
            A flow that fails with NoneItemError if `mapper` returns None.

        Raises:
            TypeError: if `mapper` cannot be called, or `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.delay_until`.
        """
        return self._plugged(
            "flow_ops.transform.delay_until:delay_until",
            mapper,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def delay_with_mapper(
        self, mapper: Callable[[T_co], Flow[object]], *, concurrency: int = 128
    ) -> Flow[T_co]:
        """Send each item when the flow that `mapper` returns for it emits an item or completes.

        >>> import flow_core as flow
        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> clock, seen = VirtualClock(), TestSubscriber[int]()
        >>> flow.just(3, 2).delay_with_mapper(lambda n: flow.timer(n, clock=clock)).subscribe(seen)
        >>> clock.advance_by(10)
        >>> seen.items
        [2, 3]

        This is a `flat_map` whose inner flows only mark a moment, by their first item or completion. It
        has the demand, threads and fusion of `flat_map`. Items need not keep their order.
        Errors: those of the upstream, of `mapper` and of its flows; the first one ends the flow.

        Args:
            mapper: returns a flow for an item.
            concurrency: how many items may wait for their flows.

        Raises:
            TypeError: if `mapper` cannot be called, or `concurrency` is not an int.
            ValueError: if `concurrency` is less than 1.

        Executed by flow-ops: `flow_ops.delay_with_mapper`.
        """
        return self._plugged(
            "flow_ops.time.delay_with_mapper:delay_with_mapper", mapper, concurrency=concurrency
        )

    def do_concurrent(
        self,
        action: Callable[[T_co], object],
        concurrency: int,
        *,
        executor: Executor | None = None,
        ordered: bool = True,
        retry: int | Backoff = 0,
        backoff: Backoff | Seconds | None = None,
        timeout: Seconds | None = None,
        prefetch: int = 128,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Clock | None = None,
    ) -> Flow[T_co]:
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
            A flow that fails with FlowError if one of its tasks is cancelled
            from outside, or if its loop was closed; with RejectedExecutionError if the executor takes
            no function.

        Raises:
            TypeError: if an argument is of the wrong type, if `executor` is given with a coroutine
                function, or `timeout` or `loop` with an executor.
            ValueError: if `concurrency` or `prefetch` is less than 1, or `retry`, `backoff` or
                `timeout` less than 0.

        Executed by flow-ops: `flow_ops.do_concurrent`.
        """
        return self._plugged(
            "flow_ops.concurrency.do_concurrent:do_concurrent",
            action,
            concurrency,
            executor=executor,
            ordered=ordered,
            retry=retry,
            backoff=backoff,
            timeout=timeout,
            prefetch=prefetch,
            loop=loop,
            clock=clock,
        )

    def exhaust_map(
        self, mapper: Callable[[T_co], Convertible[R]], *, delay_error: bool = False
    ) -> Flow[R]:
        """Each item becomes a flow; items that come while such a flow runs are dropped.

        >>> import flow_core as flow
        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> clock, seen = VirtualClock(), TestSubscriber()
        >>> clicks = flow.interval(1, clock=clock).take(6)
        >>> clicks.exhaust_map(lambda n: flow.timer(2.5, clock=clock).map(lambda _: n)).subscribe(
        ...     seen
        ... )
        >>> clock.run()
        >>> seen.items
        [0, 3]

        It suits a click that starts something: while that runs, a second click changes nothing. For two
        clicks, `flat_map` would run both flows at once, `concat_map` one after the other, and
        `switch_map` would cancel the first one for the second.

        Demand: everything is requested of the upstream, and 128 items ahead of an inner flow. An inner
        flow counts as running while its items wait.
        Thread: the mapper runs where the upstream's item comes. Fusion: none.
        Errors: the first one cancels everything else. Items that are dropped go to the dropped-items
        hook.

        Args:
            mapper: called with an item; returns a flow, or anything that `flow_core.from_` converts;
                not None.
            delay_error: whether an error of the upstream or of the inner flow comes only when the other
                one has ended.

        Raises:
            TypeError: if `mapper` cannot be called.

        Executed by flow-ops: `flow_ops.exhaust_map`.
        """
        return self._plugged(
            "flow_ops.transform.exhaust_map:exhaust_map", mapper, delay_error=delay_error
        )

    def expand(
        self,
        mapper: Callable[[T_co], Flow[T_co]],
        *,
        depth_first: bool = False,
        capacity: int = 65536,
    ) -> Flow[T_co]:
        """Walk a tree: each item, the items of the flow that `mapper` returns for it, and so on.

        >>> import flow_core as flow
        >>> children = {"a": "bc", "b": "de", "c": "f"}
        >>> def below(name: str) -> flow.Flow[str]:
        ...     return flow.from_iterable(children.get(name, ""))
        >>> print(*flow.just("a").expand(below))
        a b c d e f
        >>> print(*flow.just("a").expand(below, depth_first=True))
        a b d e c f

        Breadth first, the items of the upstream come first, then the items of the flows that `mapper`
        returns for these, in order, one flow at a time. Depth first, an item is followed by all its
        descendants; then the next item is requested of the flow that it came from, which has been
        waiting.

        Demand: exact. Breadth first, a flow is asked for as many items as the downstream wants, and the
        next flow starts when this one has ended; depth first, one item is requested of each flow that
        waits, and without demand the mapper is not called. Memory: breadth first, each item waits until
        it is expanded: that is a whole level of the tree, at most `capacity` items. Depth first, each
        level has one flow that waits, and at most `capacity` levels are entered. More than that ends
        the flow with MissingBackpressureError: a tree cannot be slowed down.
        Thread: the mapper runs where the previous flow has ended, where the item came, or where the
        request came. Items keep the thread of their flow.
        Fusion: depth first, a flow with SYNC or ASYNC is polled; breadth first, fusion is that of
        `concat`.
        Errors: the first one ends the flow.

        Args:
            mapper: returns a flow for each item, an empty flow for a leaf; not None.
            depth_first: whether the descendants of an item come before its siblings.
            capacity: how many items may wait to be expanded; depth first, how many levels the tree may
                have.

        Returns:
            A flow that fails with NoneItemError if the mapper returns None.

        Raises:
            TypeError: if `mapper` cannot be called, or `capacity` is not an int.
            ValueError: if `capacity` is less than 1.

        Executed by flow-ops: `flow_ops.expand`.
        """
        return self._plugged(
            "flow_ops.transform.expand:expand", mapper, depth_first=depth_first, capacity=capacity
        )

    def filter_when(
        self,
        predicate: Callable[[T_co], Flow[bool]],
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[T_co]:
        """Items for which the first item of the flow that `predicate` returns is true.

        >>> import flow_core as flow
        >>> list(flow.range(4).filter_when(lambda n: flow.just(n % 2 == 1)))
        [1, 3]

        An item whose flow is empty is dropped. The operator handles one item at a time, in order; a
        flow is cancelled after its first item.

        Demand, thread and fusion are those of `concat_map`.
        Errors: those of the flows, and those that `predicate` raises.

        Args:
            predicate: called with an item; returns a flow, not None.
            prefetch: items to request of an upstream that pushes, and the most that wait.
            delay_error: whether the other items follow when one of these flows has failed; its error
                comes at the end.

        Returns:
            A flow that fails with NoneItemError if `predicate` returns None.

        Raises:
            TypeError: if `predicate` cannot be called, or `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.filter_when`.
        """
        return self._plugged(
            "flow_ops.transform.filter_when:filter_when",
            predicate,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def flat_map(
        self,
        mapper: Callable[[T_co], Convertible[R]],
        *,
        concurrency: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[R]:
        """Each item becomes a flow; the items of all these flows come as they arrive.

        >>> import flow_core as flow
        >>> list(flow.range(3).flat_map(lambda n: flow.range(n).map(lambda m: (n, m))))
        [(1, 0), (2, 0), (2, 1)]

        Demand: exact. `concurrency` items are requested of the upstream, and one more for each inner
        flow that has ended; for those that ended as soon as they were subscribed to, the requests are
        made together, at 75 % of `concurrency`. `prefetch` items are requested of each inner flow, and
        75 % of that again whenever as many were taken. Items that wait for demand come in the order in
        which they arrived. Iteration over synchronous flows takes items one by one.
        Thread: the mapper runs where the upstream's item comes; no other thread waits for the mapper.
        Items come on the threads of the inner flows, one at a time; an item that waited for demand, or
        while another thread's item was sent, comes on whichever thread is at work.
        Fusion: none: an inner flow whose iterator blocks would stop the others. An inner flow that is a
        constant or a function is called where the mapper runs, and not subscribed to. If the upstream
        is a constant or a function, there is no operator at all: the subscription goes to the mapped
        flow.
        Errors: the first one cancels everything else, and overtakes the items that wait.

        Args:
            mapper: called with an item; returns a flow, not None.
            concurrency: how many inner flows run at a time.
            prefetch: items to request of each inner flow ahead, and the most of each that wait.
            delay_error: whether errors (also those of the upstream and of the mapper) come when all
                inner flows have ended; several are raised as an ExceptionGroup. An upstream whose item
                cannot be mapped is cancelled.

        Returns:
            A flow that fails with NoneItemError if the mapper returns None,
            and with MissingBackpressureError if the upstream or an inner flow sends more than was
            requested.

        Raises:
            TypeError: if `mapper` cannot be called, or a number is not an int.
            ValueError: if `concurrency` or `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.flat_map`.
        """
        return self._plugged(
            "flow_ops.transform.flat_map:flat_map",
            mapper,
            concurrency=concurrency,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    @overload
    def fork_join(self, b: Publisher[B], /) -> Flow[tuple[T_co, B]]: ...
    @overload
    def fork_join(self, b: Publisher[B], c: Publisher[C], /) -> Flow[tuple[T_co, B, C]]: ...
    @overload
    def fork_join(
        self, b: Publisher[B], c: Publisher[C], d: Publisher[D], /
    ) -> Flow[tuple[T_co, B, C, D]]: ...
    @overload
    def fork_join(
        self, b: Publisher[B], c: Publisher[C], d: Publisher[D], e: Publisher[E], /
    ) -> Flow[tuple[T_co, B, C, D, E]]: ...
    @overload
    def fork_join(
        self, b: Publisher[B], c: Publisher[C], d: Publisher[D], e: Publisher[E], f: Publisher[F], /
    ) -> Flow[tuple[T_co, B, C, D, E, F]]: ...
    @overload
    def fork_join(
        self,
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        e: Publisher[E],
        f: Publisher[F],
        g: Publisher[G],
        /,
    ) -> Flow[tuple[T_co, B, C, D, E, F, G]]: ...
    @overload
    def fork_join(
        self,
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        e: Publisher[E],
        f: Publisher[F],
        g: Publisher[G],
        h: Publisher[H],
        /,
    ) -> Flow[tuple[T_co, B, C, D, E, F, G, H]]: ...
    @overload
    def fork_join(self, *others: Publisher[D]) -> Flow[tuple[T_co | D, ...]]: ...
    def fork_join(self, *others: Publisher[Any]) -> Flow[Any]:
        """One tuple: the last item of each flow, when all have completed.

        >>> import flow_core as flow
        >>> list(flow.range(5).fork_join(flow.just("a", "b")))
        [(4, 'b')]

        As soon as one of the flows completes without an item, the result completes, empty, and the
        other flows are cancelled. Without flows the result is empty.

        Demand: everything is requested of the sources, as soon as they are subscribed; only the last
        item of each is kept. The tuple waits for demand.
        Thread: that of the source that completes last, or of the requester. Fusion: none.
        Errors: the first one cancels the other flows.

        Args:
            others: the flows to run. They are subscribed in this order.

        Raises:
            TypeError: if a source is not a publisher.

        Executed by flow-ops: `flow_ops.fork_join`.
        """
        return self._combined("flow_ops.combine.fork_join:fork_join", *others)

    @overload
    def group_by(
        self,
        key: Callable[[T_co], K],
        *,
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[GroupedFlow[K, T_co]]: ...
    @overload
    def group_by(
        self,
        key: Callable[[T_co], K],
        *,
        value: Callable[[T_co], V],
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[GroupedFlow[K, V]]: ...
    def group_by(
        self,
        key: Callable[[T_co], K],
        *,
        value: Callable[[T_co], Any] | None = None,
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[GroupedFlow[K, Any]]:
        """A flow of flows, one for each key, with the items of that key.

        >>> import flow_core as flow
        >>> words = flow.just("to", "be", "or", "not", "to", "be")
        >>> lengths = words.group_by(len)
        >>> lengths.subscribe(lambda group: group.to_list().subscribe(print)).disposed
        ['to', 'be', 'or', 'to', 'be']
        ['not']
        True

        A group begins with the first item of its key. It has one subscriber, which may come late; a
        second one gets `ProtocolViolationError`. All groups end when the upstream does. When a group is
        cancelled, the next item of its key opens a new group. When the flow of groups is cancelled, the
        groups that have a subscriber continue, and the upstream is cancelled when the last of these is
        cancelled. Items of other keys are dropped, and so are items that wait in groups without a
        subscriber: subscribers that come later get `ProtocolViolationError`.

        When there is no reference to a group any more, its items are dropped. When there are references
        to groups that are not read, these groups hold all of the prefetch, and nothing has moved for a
        second, the flow fails with `MissingBackpressureError`.

        Demand: exact, for groups and for the items of each. `prefetch` items are requested. For each
        item that its group's subscriber has consumed (or that was dropped), another one is requested;
        these requests are made 75 % of the prefetch at a time, if enough items are still to come.
        Groups and their items wait for demand: at most `prefetch` items altogether. So read all groups
        at the same time, with ``flat_map(…, concurrency=max_groups)``: with ``concat_map``, a first
        group that does not end keeps the others waiting.
        Thread: that of the upstream; an item that waited comes on the thread that requests it.
        Fusion: the flow of groups and each group grant ASYNC, even to a subscriber that polls on
        another thread. The upstream is not asked for fusion.
        Errors: those of the upstream, of `key` and of `value` end all groups and then the flow of
        groups. If more than `max_groups` groups are open, the flow fails, too, with
        `MissingBackpressureError`.

        Args:
            key: returns the key of an item; it must be hashable, and may be None.
            value: returns the item of a group for an item; the item itself by default.
            max_groups: how many groups may be open at a time: groups that have begun and were not
                cancelled, even if they were dropped. Pass the same number to the ``flat_map`` that runs
                the groups.
            prefetch: items to request ahead, and the most that wait in all groups together.
            delay_error: whether errors come after the items and groups that wait. Otherwise errors
                overtake these items and groups, which are dropped.

        Returns:
            A flow that fails with NoneItemError if `value` returns None.

        Raises:
            TypeError: if `key` or `value` cannot be called, or a number is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.group_by`.
        """
        return self._plugged(
            "flow_ops.group.group_by:group_by",
            key,
            value=value,
            max_groups=max_groups,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    @overload
    def group_by_until(
        self,
        key: Callable[[T_co], K],
        until: Callable[[GroupedFlow[K, T_co]], Convertible[object]],
        *,
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[GroupedFlow[K, T_co]]: ...
    @overload
    def group_by_until(
        self,
        key: Callable[[T_co], K],
        until: Callable[[GroupedFlow[K, V]], Convertible[object]],
        *,
        value: Callable[[T_co], V],
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[GroupedFlow[K, V]]: ...
    def group_by_until(
        self,
        key: Callable[[T_co], K],
        until: Callable[[GroupedFlow[K, Any]], Convertible[object]],
        *,
        value: Callable[[T_co], Any] | None = None,
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[GroupedFlow[K, Any]]:
        """A flow of flows, one for each key, each of which ends when another flow emits an item.

        >>> import flow_core as flow
        >>> words = flow.just("to", "be", "or", "not", "to", "be")
        >>> pairs = words.group_by_until(len, lambda group: group.skip(1))
        >>> list(pairs.flat_map(lambda group: group.to_list()))
        [['to', 'be'], ['or', 'to'], ['not'], ['be']]

        This is like `group_by`, but a group also ends when the flow that `until` returns for it emits
        an item or completes. The next item of its key opens a new group. `until` gets a flow with the
        key and the items as they come, which it may use or not: ``lambda group: group.debounce(5)``
        ends a group when no item of its key has come for five seconds, ``lambda group: flow.timer(60)``
        after a minute. That flow only watches the group: it does not see items that it does not
        request.

        When there is no reference to a group any more, its items are dropped. When there are references
        to groups that are not read, these groups hold all of the prefetch, and nothing has moved for a
        second, the flow fails with `MissingBackpressureError`. If a group that `until` may end is being
        read, this is logged instead.

        Demand, fusion: as with `group_by`. One item is requested of the flow that ends a group.
        Thread: that of the upstream; groups end on the thread of the flow that ends them.
        Errors: as with `group_by`; those of `until` and of its flows end all groups, too.

        Args:
            key: returns the key of an item; it must be hashable, and may be None.
            until: called with each group when it begins; returns the flow that ends it.
            value: returns the item of a group for an item; the item itself by default.
            max_groups: how many groups may be open at a time.
            prefetch: items to request ahead, and the most that wait in all groups together.
            delay_error: whether errors come after the items and groups that wait. Otherwise errors
                overtake these items and groups, which are dropped.

        Returns:
            A flow that fails with NoneItemError if `value` returns None.

        Raises:
            TypeError: if `key`, `until` or `value` cannot be called, or a number is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.group_by_until`.
        """
        return self._plugged(
            "flow_ops.group.group_by_until:group_by_until",
            key,
            until,
            value=value,
            max_groups=max_groups,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    @overload
    def map_concurrent(
        self,
        function: Callable[[T_co], Coroutine[Any, Any, R]],
        concurrency: int,
        *,
        ordered: bool = True,
        retry: int | Backoff = 0,
        backoff: Backoff | Seconds | None = None,
        timeout: Seconds | None = None,
        fallback: None = None,
        prefetch: int = 128,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Clock | None = None,
    ) -> Flow[R]: ...
    @overload
    def map_concurrent(
        self,
        function: Callable[[T_co], Coroutine[Any, Any, R]],
        concurrency: int,
        *,
        ordered: bool = True,
        retry: int | Backoff = 0,
        backoff: Backoff | Seconds | None = None,
        timeout: Seconds | None = None,
        fallback: Callable[[T_co, Exception], D],
        prefetch: int = 128,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Clock | None = None,
    ) -> Flow[R | D]: ...
    @overload
    def map_concurrent(
        self,
        function: Callable[[T_co], R],
        concurrency: int,
        *,
        executor: Executor | None = None,
        ordered: bool = True,
        retry: int | Backoff = 0,
        backoff: Backoff | Seconds | None = None,
        fallback: None = None,
        prefetch: int = 128,
        clock: Clock | None = None,
    ) -> Flow[R]: ...
    @overload
    def map_concurrent(
        self,
        function: Callable[[T_co], R],
        concurrency: int,
        *,
        executor: Executor | None = None,
        ordered: bool = True,
        retry: int | Backoff = 0,
        backoff: Backoff | Seconds | None = None,
        fallback: Callable[[T_co, Exception], D],
        prefetch: int = 128,
        clock: Clock | None = None,
    ) -> Flow[R | D]: ...
    def map_concurrent(
        self,
        function: Callable[[T_co], Any],
        concurrency: int,
        *,
        executor: Executor | None = None,
        ordered: bool = True,
        retry: int | Backoff = 0,
        backoff: Backoff | Seconds | None = None,
        timeout: Seconds | None = None,
        fallback: Callable[[T_co, Exception], Any] | None = None,
        prefetch: int = 128,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Clock | None = None,
    ) -> Flow[Any]:
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
            A flow that fails with FlowError if one of its tasks is cancelled
            from outside, or if its loop was closed; with RejectedExecutionError if the executor takes
            no function.

        Raises:
            TypeError: if an argument is of the wrong type, if `executor` is given with a coroutine
                function, or `timeout` or `loop` with an executor.
            ValueError: if `concurrency` or `prefetch` is less than 1, or `retry`, `backoff` or
                `timeout` less than 0.

        Executed by flow-ops: `flow_ops.map_concurrent`.
        """
        return self._plugged(
            "flow_ops.concurrency.map_concurrent:map_concurrent",
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

    def map_when(
        self, mapper: Callable[[T_co], Flow[R]], *, prefetch: int = 128, delay_error: bool = False
    ) -> Flow[R]:
        """The first item of the flow that `mapper` returns for each item: an asynchronous map.

        >>> import flow_core as flow
        >>> list(flow.range(4).map_when(lambda n: flow.range(n, 2 * n).map(lambda m: (n, m))))
        [(1, 1), (2, 2), (3, 3)]

        An item whose flow is empty is dropped. The operator handles one item at a time, in order; a
        flow is cancelled after its first item.

        Demand, thread and fusion are those of `concat_map`.
        Errors: those of the flows, and those that `mapper` raises.

        Args:
            mapper: called with an item; returns a flow, not None.
            prefetch: items to request of an upstream that pushes, and the most that wait.
            delay_error: whether the other items follow when one of these flows has failed; its error
                comes at the end.

        Returns:
            A flow that fails with NoneItemError if `mapper` returns None.

        Raises:
            TypeError: if `mapper` cannot be called, or `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.map_when`.
        """
        return self._plugged(
            "flow_ops.transform.map_when:map_when",
            mapper,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def merge(
        self,
        *others: Publisher[D],
        concurrency: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[T_co | D]:
        """The items of several flows, as they come. The result completes when all flows have.

        >>> import flow_core as flow
        >>> list(flow.range(2).merge(flow.just("a")))
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
            others: flows to merge, subscribed in this order; or one iterable of flows, which is asked
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
        return self._combined(
            "flow_ops.combine.merge:merge",
            *others,
            concurrency=concurrency,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def merge_all(
        self: OpsMethods[Flow[T]],
        *,
        concurrency: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[T]:
        """The items of the flows that a flow emits, as they come.

        >>> import flow_core as flow
        >>> list(flow.just(flow.range(2), flow.just(7)).merge_all())
        [0, 1, 7]

        Demand, thread, fusion and errors are those of `flat_map`.

        Args:
            concurrency: how many of the flows run at a time; with 1, one runs after the other.
            prefetch: items to request of each flow ahead, and the most of each that wait.
            delay_error: whether errors come when all flows have ended; several are raised as an
                ExceptionGroup.

        Raises:
            TypeError: if a number is not an int.
            ValueError: if `concurrency` or `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.merge_all`.
        """
        return self._plugged(
            "flow_ops.combine.merge:merge_all",
            concurrency=concurrency,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def merge_sequential(
        self,
        *others: Publisher[D],
        concurrency: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[T_co | D]:
        """The items of several flows that run at once, but all of one before those of the next.

        >>> import flow_core as flow
        >>> list(flow.range(2).merge_sequential(flow.just("a")))
        [0, 1, 'a']

        Other libraries call it concat_eager. See `concat_map_eager` for demand, thread, fusion and
        errors.

        Args:
            others: flows to run; or one iterable of flows, which is asked for the next flow only when
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
        return self._combined(
            "flow_ops.combine.merge:merge_sequential",
            *others,
            concurrency=concurrency,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def observe_on(
        self, executor: Executor, *, prefetch: int = 128, delay_error: bool = True
    ) -> Flow[T_co]:
        """Run everything downstream on `executor`: items, the end, and errors.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from threading import current_thread
        >>> import flow_core as flow
        >>> pool = ThreadPoolExecutor(1, thread_name_prefix="worker")
        >>> list(flow.range(2).observe_on(pool).map(lambda n: (n, current_thread().name)))
        [(0, 'worker_0'), (1, 'worker_0')]
        >>> pool.shutdown()

        The order of items is kept, and they come one at a time, however many threads the executor has.
        A task is submitted when there is work and no task is pending. It continues while there are
        items and demand for them, for a tenth of a second, after which it submits the next task: so
        other tasks of the executor get their turn, and a pool can be shut down.

        Demand: `prefetch` items are requested of the upstream, and 75 % of that again whenever as many
        were delivered; the downstream's demand only decides when they are delivered.
        Thread: the upstream keeps its thread, but requests to it are made on the executor's, so a
        source that works when it is requested continues there. A cancel does not interrupt a downstream
        that blocks, but no further item follows. If the executor is an event loop, it does nothing else
        for the tenth of a second that a task may take: there, subscribe with a prefetch, or use ``async
        for``. If the executor refuses a task, the RejectedExecutionError comes on the thread that
        submitted it, the upstream's or the requester's; if the executor drops the task later, the error
        comes on a separate thread.
        Fusion: polls an upstream that grants SYNC or ASYNC across threads, and needs no queue then. It
        is conditional if the downstream is. It grants ASYNC itself, also with a fused upstream: then
        the downstream polls the one queue there is, on its own thread, and the executor only brings
        wake-ups and the end. No function of the user runs on another thread because of that.

        Args:
            executor: an object with ``submit``, like a `concurrent.futures.ThreadPoolExecutor`, or a
                callable that gets a task to run: ``loop.call_soon_threadsafe``, ``lambda task:
                task()``. Keep it open as long as the flow runs.
            prefetch: items to request ahead, and the most that wait for the executor.
            delay_error: whether an error of the upstream comes after the items that came before it;
                otherwise it overtakes the items that wait, which go to the dropped-items hook.

        Returns:
            A flow that fails with MissingBackpressureError if the upstream
            sends more than was requested and there is no room.

        Raises:
            TypeError: if `executor` is not an executor, or `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.observe_on`.
        """
        return self._plugged(
            "flow_ops.threads.observe_on:observe_on",
            executor,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def on_backpressure_buffer(
        self,
        capacity: int,
        *,
        overflow: Literal["error", "drop_oldest", "drop_latest"] = "error",
        on_overflow: Callable[[T_co], object] | None = None,
        timeout: Seconds | None = None,
        clock: Clock | None = None,
    ) -> Flow[T_co]:
        """Keep up to `capacity` items that come without demand, until they are requested.

        >>> import flow_core as flow
        >>> newest = flow.range(9).on_backpressure_buffer(2, overflow="drop_oldest")
        >>> list(newest.iterate(prefetch=3))
        [0, 1, 2, 7, 8]

        Demand: everything is requested of the upstream, at once; items come on demand. A requested item
        passes without a queue, if no other item waits. Items that wait when the upstream ends are still
        delivered, before on_complete or on_error.
        Thread: that of the upstream, where `on_overflow` runs, too. Items that waited come on whichever
        thread is at work, mostly the requester's. Items that time out are dropped on the clock's
        thread.
        Fusion: grants ASYNC, across threads, too, if no item is ever dropped from the buffer: there is
        no timeout, and `overflow` is not ``"drop_oldest"``. Items that the downstream has requested and
        not polled take none of the capacity.
        Errors: the upstream's, and MissingBackpressureError, come after the items that wait; an error
        raised by `on_overflow` comes at once. Each cancels the upstream.

        Args:
            capacity: how many items may wait.
            overflow: what to do when there is no room: see `BufferOverflow`.
            on_overflow: called with each item that is dropped, because there is no room, or because it
                has waited too long. These items go to the dropped-items hook, too.
            timeout: how long an item may wait before it is dropped, in seconds; None for any time.
            clock: the clock of the timeout; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if an argument is of the wrong type.
            ValueError: if `capacity` is less than 1, `overflow` is unknown, or `timeout` is not above
                0 and finite.

        Executed by flow-ops: `flow_ops.on_backpressure_buffer`.
        """
        return self._plugged(
            "flow_ops.demand.on_backpressure_buffer:on_backpressure_buffer",
            capacity,
            overflow=overflow,
            on_overflow=on_overflow,
            timeout=timeout,
            clock=clock,
        )

    def on_backpressure_drop(self, on_drop: Callable[[T_co], object] | None = None) -> Flow[T_co]:
        """Drop items that come when there is no demand.

        >>> import flow_core as flow
        >>> list(flow.range(5).on_backpressure_drop(print).iterate(prefetch=2))
        2
        3
        4
        [0, 1]

        Demand: everything is requested of the upstream, at once; items come on demand.
        Thread: that of the upstream; `on_drop` runs there, too. Fusion: none.
        Errors: an error raised by `on_drop` fails the flow and cancels the upstream.

        Args:
            on_drop: called with each item that is dropped. These items go to the dropped-items hook,
                too.

        Raises:
            TypeError: if `on_drop` cannot be called.

        Executed by flow-ops: `flow_ops.on_backpressure_drop`.
        """
        return self._plugged("flow_ops.demand.on_backpressure_drop:on_backpressure_drop", on_drop)

    def on_backpressure_error(self) -> Flow[T_co]:
        """Fail with MissingBackpressureError if an item comes when there is no demand.

        >>> import flow_core as flow
        >>> list(flow.range(3).on_backpressure_error())
        [0, 1, 2]

        Demand: everything is requested of the upstream, at once; items come on demand.
        Thread: that of the upstream. Fusion: none.
        Errors: the MissingBackpressureError, which cancels the upstream. The item goes to the
        dropped-items hook.

        Executed by flow-ops: `flow_ops.on_backpressure_error`.
        """
        return self._plugged("flow_ops.demand.on_backpressure_error:on_backpressure_error")

    def on_backpressure_latest(self) -> Flow[T_co]:
        """Keep only the last of the items that come when there is no demand.

        >>> import flow_core as flow
        >>> list(flow.range(9).on_backpressure_latest().iterate(prefetch=2))
        [0, 1, 8]

        Demand: everything is requested of the upstream, at once; items come on demand. The item that
        waits when the upstream ends is still delivered, before on_complete or on_error.
        Thread: that of the upstream; an item that waited comes on the requester's thread. Fusion: none.
        Errors: the upstream's, after the item that waits. An item that is replaced goes to the
        dropped-items hook.

        Executed by flow-ops: `flow_ops.on_backpressure_latest`.
        """
        return self._plugged("flow_ops.demand.on_backpressure_latest:on_backpressure_latest")

    def on_backpressure_reduce(self, reducer: Callable[[T_co, T_co], T_co]) -> Flow[T_co]:
        """Reduce the items that come when there is no demand to one item.

        >>> import flow_core as flow
        >>> list(flow.range(9).on_backpressure_reduce(lambda a, b: a + b).iterate(prefetch=2))
        [0, 1, 35]

        Demand: everything is requested of the upstream, at once; items come on demand. The item that
        waits when the upstream ends is still delivered, before on_complete or on_error.
        Thread: that of the upstream, where the reducer runs; an item that waited comes on the
        requester's thread.
        Fusion: none.
        Errors: the upstream's, after the item that waits; an error raised by the reducer, at once.

        Args:
            reducer: combines the item that waits and the item that has come; must not return None. It
                is not called for an item that is requested, nor for the first one that waits.

        Returns:
            A flow that fails with NoneItemError if the reducer returns None.

        Raises:
            TypeError: if `reducer` cannot be called.

        Executed by flow-ops: `flow_ops.on_backpressure_reduce`.
        """
        return self._plugged(
            "flow_ops.demand.on_backpressure_reduce:on_backpressure_reduce", reducer
        )

    def on_error_resume(
        self,
        fallback: Publisher[D] | Callable[[BaseException], Publisher[D]],
        when: ErrorFilter = Exception,
    ) -> Flow[T_co | D]:
        """The items of this flow, and if it fails, those of another flow instead of the error.

        >>> import flow_core as flow
        >>> shares = flow.just(2, 1, 0).map(lambda n: 4 // n)
        >>> list(shares.on_error_resume(flow.just("cake")))
        [2, 4, 'cake']
        >>> list(shares.on_error_resume(lambda error: flow.just(type(error).__name__)))
        [2, 4, 'ZeroDivisionError']

        (`Flow.on_error_return` takes an item instead of a flow, `Flow.on_error_complete` nothing.)

        Demand: exact; the other flow gets the demand that was not used.
        Thread: that of the flow whose items they are; the function runs where the failure came.
        Fusion: none.
        Errors: those of this flow that `when` does not select, those of the other flow, and an error
        that the function raises, whose context is the failure.

        Args:
            fallback: the flow that follows; or a function that makes that flow from the error.
            when: selects the errors to handle; other errors pass.

        Raises:
            TypeError: if `fallback` is neither a flow nor a function, or `when` is not a filter of
                errors.

        Executed by flow-ops: `flow_ops.on_error_resume`.
        """
        return self._plugged("flow_ops.sequence.on_error_resume:on_error_resume", fallback, when)

    def on_processes(
        self, pool: Pool, *, concurrency: int | None = None, batch: int = 64, prefetch: int = 128
    ) -> Flow[T_co]:
        """Run the stages that follow in the processes or interpreters of `pool`, in order.

        A function that computes holds the GIL, so threads do not help. Processes do, and from Python
        3.14 on the interpreters of an InterpreterPoolExecutor, which share one process:

        >>> import math
        >>> from concurrent.futures import ProcessPoolExecutor
        >>> import flow_core as flow
        >>> def digits(numbers: flow.Flow[int], pool: ProcessPoolExecutor) -> flow.Flow[int]:
        ...     return numbers.on_processes(pool).map(math.factorial).map(str).map(len)

        A subscription cannot cross to another process. A sequence of stages can, since its description
        is pickled. So the stages that directly follow and work on each item by itself (`map`, `filter`,
        `flat_map_iterable`, `do_on_next` …) run in the worker, as one loop for a batch of items. From
        the first stage on that counts or collects (`scan`, `take`, `reduce` …), or the next boundary,
        the flow continues in this process, with the results.

        Batches begin with one item, and double in size while one takes less than 10 ms. An item waits
        for a batch to fill up only if as many batches are under way as are allowed.

        Demand: exact; `prefetch` items are requested of the upstream, and 75 % of that again whenever
        as many were sent to workers. No more than `concurrency` batches are under way or have results
        that wait; all results of `flat_map_iterable` for an item are sent back together.
        Thread: results come on the thread on which the pool receives them from its workers, or on that
        of the upstream or the requester; if the subscriber takes long, put ``observe_on(threads)``
        behind `on_processes`. If the pool fails, the error comes on a separate thread. Cancelling the
        flow cancels the batches that have not begun.
        Fusion: polls an upstream that grants SYNC or ASYNC across threads; absorbs stages (see the
        glossary).
        Errors: an error of a stage comes after the results before it, with the worker's traceback as a
        note. The error of an item that cannot be pickled comes after them, too, without a note. If a
        stage's error cannot be pickled, a FlowError describes it. A worker that dies fails the flow
        with BrokenProcessPool; a pool that was shut down, with RejectedExecutionError.

        Args:
            pool: a `concurrent.futures.ProcessPoolExecutor`, an `InterpreterPoolExecutor`, or another
                pool with the same ``submit``. Keep it open as long as the flow runs.
            concurrency: how many batches are under way; None for two batches per processor.
            batch: how many items are sent at a time, at most.
            prefetch: items to request ahead, and the most that wait to be sent.

        Returns:
            A flow that fails with FlowError if no stage follows that can run
            elsewhere, or one cannot be pickled: lambdas and functions within functions cannot.

        Raises:
            TypeError: if `pool` has no ``submit``, or one of the other arguments is not an int.
            ValueError: if one of the other arguments is less than 1.

        Executed by flow-ops: `flow_ops.on_processes`.
        """
        return self._plugged(
            "flow_ops.threads.on_processes:on_processes",
            pool,
            concurrency=concurrency,
            batch=batch,
            prefetch=prefetch,
        )

    @overload
    def ordered_merge(
        self: OpsMethods[Comparable],
        *others: Publisher[S],
        key: None = None,
        executor: Executor | None = None,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[T_co | S]: ...
    @overload
    def ordered_merge(
        self,
        *others: Publisher[D],
        key: Callable[[T_co | D], Comparable],
        executor: Executor | None = None,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[T_co | D]: ...
    def ordered_merge(
        self,
        *others: Publisher[Any],
        key: Callable[[Any], Any] | None = None,
        executor: Executor | None = None,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[Any]:
        """The items of several sorted flows, in order.

        >>> import flow_core as flow
        >>> list(flow.just(1, 4, 5).ordered_merge(flow.just(2, 3, 6)))
        [1, 2, 3, 4, 5, 6]
        >>> list(flow.just("b", "A").ordered_merge(flow.just("C"), key=lambda s: -ord(s)))
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
            others: sorted flows, smallest item first. They are subscribed in this order.
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
        return self._combined(
            "flow_ops.combine.ordered_merge:ordered_merge",
            *others,
            key=key,
            executor=executor,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def parallel(self, rails: int | None = None, *, prefetch: int = 128) -> ParallelFlow[T_co]:
        """Deal the items out to rails, which may run at the same time.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> import flow_core as flow
        >>> with ThreadPoolExecutor(2) as pool:
        ...     squares = flow.range(4).parallel(2).run_on(pool).map(lambda n: n * n)
        ...     print(sorted(squares.sequential()))
        [0, 1, 4, 9]

        Each rail is a flow. An item goes to the next rail in turn that has demand: a slow rail does not
        hold the others up. The rails run at the same time only after `run_on`.

        Demand: `prefetch` items are requested of the upstream, and 75 % of that again whenever as many
        went to a rail.
        Thread: items come to a rail on the upstream's thread, or on the thread that makes a request to
        a rail.
        Fusion: polls an upstream that grants SYNC or ASYNC across threads. The rails grant no fusion.
        Errors: all rails fail, after the items that came before the error.

        Args:
            rails: how many rails; None for one per processor.
            prefetch: items to request ahead, and the most that wait for a rail.

        Returns:
            An operator for `Flow.pipe`, which makes a `ParallelFlow`.

        Raises:
            TypeError: if `rails` or `prefetch` is not an int.
            ValueError: if `rails` or `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.parallel`.
        """
        return self._plugged("flow_ops.parallel.parallel:parallel", rails, prefetch=prefetch)

    def rate_limit(
        self, n: int, per: Seconds = 1.0, *, burst: int = 1, clock: Clock | None = None
    ) -> Flow[T_co]:
        """Send at most `n` items in `per` seconds; items that come too early wait, none is dropped.

        >>> import flow_core as flow
        >>> from flow_testing import VirtualClock
        >>> clock = VirtualClock()
        >>> limited = flow.range(5).rate_limit(2, clock=clock).timestamp(clock=clock)
        >>> handle = limited.subscribe(lambda item: print(item.item, "at", item.time_s))
        0 at 0.0
        >>> clock.run()
        1 at 0.5
        2 at 1.0
        3 at 1.5
        4 at 2.0

        By default, items are at least ``per / n`` seconds apart. With a `burst` of 5, five items may
        come at once after a pause, as with a bucket that holds five tokens, is full at first, and gets
        `n` tokens in `per` seconds. A timer that is late, by up to a tenth of a second, is compensated
        for: the next item is due as if the timer had been on time.

        Demand: exact; `burst` items, or 128 if that is less, are requested of the upstream ahead, and
        wait for their time. Time without demand counts as a pause.
        Thread: the upstream's, or that of the request, for items that need not wait; the clock's for
        the others. Fusion: polls an upstream that grants SYNC or ASYNC across threads.
        Errors: those of the upstream, after the items that came before them. RejectedExecutionError if
        the clock takes no task.

        Args:
            n: how many items may come in `per` seconds.
            per: the length of time, in seconds.
            burst: how many items may come at once after a pause.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if a number is of the wrong type, or `clock` is not a clock.
            ValueError: if `n` or `burst` is less than 1, or `per` not above 0 and finite.

        Executed by flow-ops: `flow_ops.rate_limit`.
        """
        return self._plugged(
            "flow_ops.time.rate_limit:rate_limit", n, per, burst=burst, clock=clock
        )

    def rebatch_requests(self, prefetch: int) -> Flow[T_co]:
        """Ask the upstream for `prefetch` items at a time, whatever the downstream asks for.

        It suits an upstream for which each request is costly, or must not be too large, such as a
        remote service that returns its items page by page. To limit the number of items in all, use
        `Flow.take`.

        >>> import flow_core as flow
        >>> asked = flow.range(8).do_on_request(print)
        >>> list(asked.rebatch_requests(4))
        4
        3
        3
        [0, 1, 2, 3, 4, 5, 6, 7]

        Demand: `prefetch` items are requested of the upstream, and 75 % of that again whenever as many
        were delivered. The downstream's demand only decides when they are delivered.
        Thread: that of the upstream; an item that waited for demand comes on the requester's thread.
        Fusion: an upstream with SYNC or ASYNC is polled, if it may be polled on another thread.
        Errors: the upstream's, after the items that wait.

        Args:
            prefetch: items to request ahead, and the most that wait.

        Returns:
            A flow that fails with MissingBackpressureError if the upstream
            sends more than was requested and there is no room.

        Raises:
            TypeError: if `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.rebatch_requests`.
        """
        return self._plugged("flow_ops.demand.rebatch_requests:rebatch_requests", prefetch)

    def repeat(self, times: int | None = None) -> Flow[T_co]:
        """Run the flow `times` times, one run after the other.

        >>> import flow_core as flow
        >>> list(flow.range(2).repeat(3))
        [0, 1, 0, 1, 0, 1]
        >>> list(flow.range(2).repeat().take(5))
        [0, 1, 0, 1, 0]

        Demand: exact; the next run gets the demand that the previous one has not used. The flow is
        subscribed again at once, even without demand.
        Thread, iteration, fusion: as with `concat`, which it is built on.
        Errors: an error ends the flow.

        Args:
            times: the number of runs; with 0, the flow is empty; with None, it is repeated for ever. (A
                flow without items then never ends, and never returns from its thread.)

        Raises:
            TypeError: if `times` is neither an int nor None.
            ValueError: if `times` is less than 0.

        Executed by flow-ops: `flow_ops.repeat`.
        """
        return self._plugged("flow_ops.sequence.repeat:repeat", times)

    def repeat_until(self, stop: Callable[[], object]) -> Flow[T_co]:
        """Run the flow again and again, until `stop()` returns true after it has completed.

        >>> import flow_core as flow
        >>> left = [1, 2]
        >>> list(flow.just("a").repeat_until(lambda: not left or not left.pop()))
        ['a', 'a', 'a']

        Demand: exact; the next run gets the demand that the previous one has not used. The flow is
        subscribed again at once, even without demand.
        Thread: the upstream's; `stop` is called where a run has ended. Fusion: none.
        Errors: an error ends the flow, and so does an error raised by `stop`.

        Args:
            stop: called each time the flow has completed.

        Raises:
            TypeError: if `stop` cannot be called.

        Executed by flow-ops: `flow_ops.repeat_until`.
        """
        return self._plugged("flow_ops.sequence.repeat:repeat_until", stop)

    def repeat_when(self, handler: Callable[[Flow[int]], Publisher[object]]) -> Flow[T_co]:
        """Run the flow again for each item of another flow.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b").repeat_when(lambda runs: runs.take(3)))
        ['a', 'b', 'a', 'b', 'a', 'b']

        For each subscriber, `handler` gets a flow with an item for each run that has completed: the
        number of items of that run. `handler` returns the other flow, each item of which starts the
        next run. When the other flow ends, this flow ends, too, at once, even during a run: with
        ``take(3)`` the third item is the last, and no run follows it.

        Demand: exact; the next run gets the demand that the previous one has not used. One item is
        requested of the other flow for each run.
        Thread: the upstream's; a run begins where the other flow sends its item. Fusion: none.
        Errors: an error ends the flow; so does an error of the other flow, or an error raised by
        `handler`.

        Args:
            handler: called once per subscriber, when it subscribes; its result need not use its
                argument. Of the argument's items that are not requested, only the last one is kept.

        Raises:
            TypeError: if `handler` cannot be called.

        Executed by flow-ops: `flow_ops.repeat_when`.
        """
        return self._plugged("flow_ops.sequence.repeat:repeat_when", handler)

    def retry(
        self,
        times: int | None = None,
        *,
        backoff: Backoff | Seconds | None = None,
        when: ErrorFilter = Exception,
    ) -> Flow[T_co]:
        """Subscribe again to a flow that has failed, at once or after a while; its items are kept.

        >>> import flow_core as flow
        >>> left = [0, 0]
        >>> once = flow.just(1, 2).map(lambda n: n // (left.pop() if left else 1))
        >>> list(once.retry(2))
        [1, 2]

        The whole flow begins again. `map_concurrent` has a ``retry`` for each of its items.

        Demand: exact; the next attempt gets the demand that the previous one has not used. The flow is
        subscribed again even without demand.
        Thread: the upstream's; an attempt begins where the one before has failed, or on the clock's
        thread.
        Fusion: none.
        Errors: the last one, when no attempt is left, or `when` does not select it.

        Args:
            times: how often to try again after the first failure; None for any number of times, or for
                the number that the Backoff has.
            backoff: how long to wait before an attempt: the time in seconds before the first attempt,
                from which the time grows as that of a `Backoff` does; or a `Backoff`. None to try again
                at once.
            when: selects the errors after which to try again: a class, a tuple of classes, or a
                function that returns something true.

        Raises:
            TypeError: if `times` is neither an int nor None, `backoff` is neither a time nor a Backoff,
                or `when` is not a filter of errors.
            ValueError: if `times` or a time is less than 0.

        Executed by flow-ops: `flow_ops.retry`.
        """
        return self._plugged("flow_ops.sequence.retry:retry", times, backoff=backoff, when=when)

    def retry_when(
        self, handler: Callable[[Flow[BaseException]], Publisher[object]] | Backoff
    ) -> Flow[T_co]:
        """Subscribe again to a flow that has failed: after a while, or for each item of another flow.

        >>> import flow_core as flow
        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> from flow_core import Backoff
        >>> clock = VirtualClock()
        >>> failing = flow.from_callable(lambda: print(f"at {clock.now()} s") or 1 // 0)
        >>> subscriber = TestSubscriber()
        >>> backoff = Backoff(1, factor=3, jitter=0, max_attempts=2, clock=clock)
        >>> failing.retry_when(backoff).subscribe(subscriber)
        at 0.0 s
        >>> clock.run()
        at 1.0 s
        at 4.0 s
        >>> subscriber.error
        RetryExhaustedError("retries exhausted: 2 of 2; the last failure: ZeroDivisionError('...')")

        A `Backoff` says how long to wait. For each subscriber, a handler gets the flow of the errors,
        and returns another flow, each item of which starts the next attempt. When the other flow ends,
        this flow ends, too, at once, even during an attempt: with ``errors.take(3)`` the third item is
        the last, and no attempt follows it.

        Demand: exact; the next attempt gets the demand that the previous one has not used. One item is
        requested of the other flow for each attempt.
        Thread: the upstream's; an attempt begins on the clock's thread, or where the other flow sends
        its item. Fusion: none.
        Errors: those that a Backoff does not retry; `RetryExhaustedError`; those of the other flow, and
        those that the handler raises.

        Args:
            handler: a `Backoff`; or a function, called once per subscriber, when it subscribes. Its
                result need not use its argument. Of the argument's errors that are not requested, only
                the last one is kept.

        Raises:
            TypeError: if `handler` is neither a Backoff nor a function.

        Executed by flow-ops: `flow_ops.retry_when`.
        """
        return self._plugged("flow_ops.sequence.retry:retry_when", handler)

    def sample(
        self,
        sampler: Seconds | Publisher[object],
        *,
        emit_last: bool = False,
        clock: Clock | None = None,
    ) -> Flow[T_co]:
        """Send the newest item of each period, if there is a new one.

        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> from flow_ops import interval
        >>> clock, seen = VirtualClock(), TestSubscriber[int]()
        >>> interval(1, clock=clock).sample(3.2, clock=clock).subscribe(seen)
        >>> clock.advance_by(10)
        >>> seen.items
        [2, 5, 8]

        `throttle_last` is another name for it.

        Demand: everything is requested of the upstream and of the sampler. A sample that is taken when
        there is no demand waits for a request; if another sample is taken before the request, it
        replaces the waiting one, which goes to the dropped-items hook. The flow completes once the
        sample that waits was sent. Items that are not the newest when a sample is taken are ignored.
        Thread: that of the clock or of the sampler; a sample that waited comes on the thread that
        requests. Fusion: none.
        Errors: those of the upstream and of the sampler, at once: they overtake a sample that waits.

        Args:
            sampler: how long between samples, in seconds, above 0; or a flow: each of its items takes a
                sample, and its end ends this flow.
            emit_last: whether a sample is taken at the end, too.
            clock: the clock, if `sampler` is a period; None for that of the loop that runs the flow, or
                else of the process.

        Raises:
            TypeError: if `sampler` is neither a time nor a flow, or `clock` is not a clock.
            ValueError: if the period is not above 0 and finite.

        Executed by flow-ops: `flow_ops.sample`.
        """
        return self._plugged(
            "flow_ops.time.sample:sample", sampler, emit_last=emit_last, clock=clock
        )

    def sequence_equal(
        self,
        second: Publisher[U],
        *,
        key: Callable[[T_co | U], object] | None = None,
        equals: Callable[[T_co, U], object] | None = None,
        prefetch: int = 128,
    ) -> Flow[bool]:
        """Emit one item: True if both flows emit the same items and then complete, else False.

        >>> import flow_core as flow
        >>> flow.range(3).sequence_equal(flow.just(0, 1, 2)).single()
        True
        >>> flow.just("a").sequence_equal(flow.just("A"), key=str.lower).single()
        True

        The result comes as soon as the flows differ; both are cancelled then.

        Demand: `prefetch` items are requested of each flow, and 75 % of that again whenever as many
        were compared. Without demand nothing is compared.
        Thread: that of the flow whose item was missing, or of the requester.
        Fusion: flows with SYNC or ASYNC are polled; an asynchronous one learns that it may be polled on
        another thread.
        Errors: the first one cancels the other flow, and overtakes the items that wait.

        Args:
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
        return self._combined(
            "flow_ops.combine.sequence_equal:sequence_equal",
            second,
            key=key,
            equals=equals,
            prefetch=prefetch,
        )

    def session_buffer(
        self, gap: Seconds, *, limit: Seconds | None = None, clock: Clock | None = None
    ) -> Flow[list[T_co]]:
        """Lists of items that come with less than `gap` seconds between two neighbours.

        >>> import flow_core as flow
        >>> list(flow.range(3).session_buffer(60))
        [[0, 1, 2]]

        No list is empty. With a `limit`, a list is sent that long after its first item at the latest,
        and a list of 65,536 items is sent at once.

        Demand: exact; 65,536 items are requested of the upstream ahead, and 128 lists may wait for
        demand: one more fails the flow with `MissingBackpressureError`.
        Thread: the clock's; the last list comes on that of the upstream.
        Fusion: grants ASYNC, for the lists that wait; the upstream is not asked for fusion.
        Errors: those of the upstream come at once; items that were not sent are dropped.

        Args:
            gap: the length of the pause without items, in seconds, after which a list is sent.
            limit: how long a list is filled at most, in seconds; None for any length of time.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if a time is of the wrong type, or `clock` is not a clock.
            ValueError: if a time is not above 0 and finite.

        Executed by flow-ops: `flow_ops.session_buffer`.
        """
        return self._plugged("flow_ops.group.session:session_buffer", gap, limit=limit, clock=clock)

    def session_window(
        self, gap: Seconds, *, limit: Seconds | None = None, clock: Clock | None = None
    ) -> Flow[Flow[T_co]]:
        """Windows that begin with an item, and end when no item has come for `gap` seconds.

        >>> import flow_core as flow
        >>> from flow_testing import VirtualClock
        >>> clock, seen = VirtualClock(), []
        >>> times = flow.just(1, 2, 3, 10, 11)
        >>> clicks = times.flat_map(lambda n: flow.timer(n, clock=clock).map(lambda _: n))
        >>> sessions = clicks.session_window(5, clock=clock).flat_map(lambda window: window.count())
        >>> handle = sessions.subscribe(seen.append)
        >>> clock.run()
        >>> seen
        [3, 2]

        No window is empty. With a `limit`, a window ends that long after its first item at the latest;
        the next item begins another window. When the subscriber of a window cancels, the other items of
        the session are dropped.

        When there is no reference to a window any more, its items are dropped. When there are
        references to windows that are not read, these windows hold all of the prefetch, and nothing has
        moved for a second, the flow fails with `MissingBackpressureError`.

        Demand: see `flow_ops.group.window`: 128 items are requested ahead, and 128 windows may wait for
        demand.
        Thread: that of the upstream for items; windows begin on that thread, and end on the clock's.
        Fusion: the flow of windows and each window grant ASYNC; the upstream is not asked for fusion.
        Errors: as with `window_with_time`.

        Args:
            gap: the length of the pause without items, in seconds, that ends a window.
            limit: how long a window lasts at most, in seconds; None for any length of time.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if a time is of the wrong type, or `clock` is not a clock.
            ValueError: if a time is not above 0 and finite.

        Executed by flow-ops: `flow_ops.session_window`.
        """
        return self._plugged("flow_ops.group.session:session_window", gap, limit=limit, clock=clock)

    def skip_last_with_time(self, duration: Seconds, *, clock: Clock | None = None) -> Flow[T_co]:
        """Send all items but those of the last `duration` before the end.

        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> from flow_ops import interval
        >>> clock, seen = VirtualClock(), TestSubscriber[int]()
        >>> interval(1, clock=clock).take(5).skip_last_with_time(1.5, clock=clock).subscribe(seen)
        >>> clock.advance_by(5)
        >>> seen.items
        [0, 1, 2]

        An item is sent as soon as another item, a request or the end comes at least `duration` after
        it.

        Demand: passed on; while there is demand, another item is requested for each item that has to
        wait. So the items of the last `duration` wait. Thread: that of the upstream, or the one that
        requests. Fusion: none.
        Errors: those of the upstream, at once; items that wait are dropped.

        Args:
            duration: how long before the completion of the upstream, in seconds, at least 0.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `duration` is not a time, or `clock` is not a clock.
            ValueError: if `duration` is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.skip_last_with_time`.
        """
        return self._plugged("flow_ops.time.skip:skip_last_with_time", duration, clock=clock)

    def skip_until_other(self, other: Publisher[object]) -> Flow[T_co]:
        """The items that come after the first item of `other`; earlier items are dropped.

        >>> import flow_core as flow
        >>> list(flow.range(3).skip_until_other(flow.just("go")))
        [0, 1, 2]

        If `other` completes without an item, no item comes at all, only the end.

        Demand: passed on; a dropped item is requested again. One item is requested of `other`, which is
        subscribed first, and cancelled when its item has come.
        Thread: that of the upstream. Fusion: none.
        Errors: those of both flows; each cancels the other.

        Args:
            other: its first item lets items through.

        Raises:
            TypeError: if `other` is not a publisher.

        Executed by flow-ops: `flow_ops.skip_until_other`.
        """
        return self._plugged("flow_ops.combine.skip_until_other:skip_until_other", other)

    def skip_until_with_time(self, time: float, *, clock: Clock | None = None) -> Flow[T_co]:
        """Send items from when the clock shows a time; drop earlier ones. See `skip_with_time`.

        >>> import flow_core as flow
        >>> list(flow.range(3).skip_until_with_time(flow.system_clock().now() + 60))
        []

        Args:
            time: seconds of the clock, as its `now` returns them. A time in the past means at once.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `time` is not a number, or `clock` is not a clock.
            ValueError: if `time` is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.skip_until_with_time`.
        """
        return self._plugged("flow_ops.time.skip:skip_until_with_time", time, clock=clock)

    def skip_with_time(self, duration: Seconds, *, clock: Clock | None = None) -> Flow[T_co]:
        """Send the items after the first `duration`; earlier items are dropped.

        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> from flow_ops import interval
        >>> clock, seen = VirtualClock(), TestSubscriber[int]()
        >>> interval(1, clock=clock).skip_with_time(2.5, clock=clock).subscribe(seen)
        >>> clock.advance_by(4)
        >>> seen.items
        [2, 3]

        This is `skip_until_other` with a `timer`.

        Demand: passed on; a dropped item is requested again. Thread: that of the upstream. Fusion:
        none.
        Errors: those of the upstream. RejectedExecutionError if the clock takes no task.

        Args:
            duration: how long, from the subscription on, in seconds, at least 0.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `duration` is not a time, or `clock` is not a clock.
            ValueError: if `duration` is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.skip_with_time`.
        """
        return self._plugged("flow_ops.time.skip:skip_with_time", duration, clock=clock)

    def start_with_flows(self, *others: Publisher[D], delay_error: bool = False) -> Flow[T_co | D]:
        """The items of the other flows, then those of this flow.

        >>> import flow_core as flow
        >>> list(flow.just("b").start_with_flows(flow.range(2), flow.just("a")))
        [0, 1, 'a', 'b']

        Demand, thread, fusion and errors are those of `concat`. (`Flow.start_with` takes items.)

        Args:
            others: the flows that come first.
            delay_error: see `concat`.

        Raises:
            TypeError: if one of `others` is not a publisher.

        Executed by flow-ops: `flow_ops.start_with_flows`.
        """
        return self._plugged(
            "flow_ops.sequence.start_with_flows:start_with_flows", *others, delay_error=delay_error
        )

    def subscribe_on(self, executor: Executor, *, request_on: bool = True) -> Flow[T_co]:
        """Subscribe to the upstream on `executor`, and request there, so that a source works there.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from threading import current_thread
        >>> import flow_core as flow
        >>> pool = ThreadPoolExecutor(1, thread_name_prefix="reader")
        >>> lines = flow.defer(lambda: flow.just(current_thread().name))
        >>> list(lines.subscribe_on(pool))
        ['reader_0']
        >>> pool.shutdown()

        This affects the whole flow upstream of the operator, up to an operator with its own threads. To
        move the downstream, use `observe_on`.

        Demand: passed on. Demand that comes before the upstream is subscribed to is requested with the
        subscription. Later requests wait for the executor; at most one task waits there, which requests
        their sum. A request from the executor's own thread, where the upstream was last subscribed to
        or requested, needs no task: it is passed on at once.
        Thread: items come on the thread on which the upstream sends them, which is the executor's if it
        sends within `subscribe` or `request`. If the executor refuses a task, the
        RejectedExecutionError comes on the thread that has subscribed or requested; if the executor
        drops the task later, the error comes on a separate thread. A cancel stops a task that has not
        begun; the upstream is cancelled on the thread that cancels: see `cancel_on`.
        Fusion: none. It is conditional (see the glossary).
        Errors: the upstream's, and RejectedExecutionError, which cancels the upstream.

        Args:
            executor: an object with ``submit``, like a `concurrent.futures.ThreadPoolExecutor`, or a
                callable that gets a task to run: ``loop.call_soon_threadsafe``, ``lambda task:
                task()``. Keep it open as long as the flow runs.
            request_on: False to pass requests on in the thread that requests. Use this for a source
                that keeps its thread busy as long as it sends, and counts its demand meanwhile: with an
                executor of one thread, requests would wait until the source is done.

        Raises:
            TypeError: if `executor` is not an executor.

        Executed by flow-ops: `flow_ops.subscribe_on`.
        """
        return self._plugged(
            "flow_ops.threads.subscribe_on:subscribe_on", executor, request_on=request_on
        )

    def switch_if_empty(self, other: Publisher[D]) -> Flow[T_co | D]:
        """The items of this flow or, if it completes without items, the items of `other`.

        >>> import flow_core as flow
        >>> [list(flow.range(n).switch_if_empty(flow.just("none"))) for n in range(3)]
        [['none'], [0], [0, 1]]

        (`Flow.default_if_empty` takes an item instead of a flow.)

        Demand: exact; `other` gets all of it. Thread: that of the flow whose items they are.
        Fusion: none. Errors: an error ends the flow; `other` is not started then.

        Args:
            other: the flow that takes its place.

        Raises:
            TypeError: if `other` is not a publisher.

        Executed by flow-ops: `flow_ops.switch_if_empty`.
        """
        return self._plugged("flow_ops.sequence.switch_if_empty:switch_if_empty", other)

    def switch_latest(self: OpsMethods[Flow[T]], *, delay_error: bool = False) -> Flow[T]:
        """The items of the latest flow that has come: each new flow replaces the one before.

        >>> import flow_core as flow
        >>> list(flow.just(flow.never(), flow.range(3)).switch_latest())
        [0, 1, 2]

        This is `switch_map` for items that are flows, with the same demand, thread, fusion and errors.

        Args:
            delay_error: see `switch_map`.

        Executed by flow-ops: `flow_ops.switch_latest`.
        """
        return self._plugged(
            "flow_ops.transform.switch_latest:switch_latest", delay_error=delay_error
        )

    def switch_map(
        self, mapper: Callable[[T_co], Convertible[R]], *, delay_error: bool = False
    ) -> Flow[R]:
        """Each item becomes a flow, which replaces the one before and cancels it.

        >>> import flow_core as flow
        >>> pages = flow.range(3).switch_map(lambda n: flow.just(f"page {n}").hide())
        >>> list(pages)
        ['page 0', 'page 1', 'page 2']
        >>> list(pages.iterate(prefetch=1))
        ['page 0', 'page 2']

        An inner flow sends no item once the upstream has sent its next item, so the items that it sends
        depend on its speed and on demand. The result completes when the upstream and the last inner
        flow have completed.

        Demand: exact; an inner flow is asked for all outstanding items when it begins, and for no more:
        none of its items waits here. Everything is requested of the upstream: its items never wait,
        either.
        Thread: the mapper runs in the thread of the upstream, which also subscribes to the inner flow;
        items keep the thread of their flow. An inner flow that is a constant or a function is called in
        the upstream's thread, and its item comes there, or waits for demand. If the upstream is a
        constant or a function, there is no operator at all: the subscription goes to the mapped flow.
        Fusion: none.
        Errors: the first one, of the upstream or of the current inner flow, cancels the other. An error
        of an inner flow that was cancelled goes to the dropped-errors hook.

        Args:
            mapper: called with an item; returns a flow, not None.
            delay_error: whether errors come when the upstream and the last inner flow have ended;
                several are raised as an ExceptionGroup. An error of the mapper itself ends the flow at
                once, with the errors that were delayed.

        Returns:
            A flow that fails with NoneItemError if the mapper returns None.

        Raises:
            TypeError: if `mapper` cannot be called.

        Executed by flow-ops: `flow_ops.switch_map`.
        """
        return self._plugged(
            "flow_ops.transform.switch_map:switch_map", mapper, delay_error=delay_error
        )

    def switch_on_first(
        self, transformer: Callable[[Notification[T_co], Flow[T_co]], Flow[R]]
    ) -> Flow[R]:
        """Let the first signal decide what the whole flow becomes.

        >>> import flow_core as flow
        >>> from flow_core.notifications import OnNext
        >>> def scaled(first, whole):
        ...     match first:
        ...         case OnNext(unit):
        ...             return whole.skip(1).map(lambda n: n * unit)
        ...     return whole
        >>> list(flow.just(10, 1, 2).switch_on_first(scaled))
        [10, 20]

        The transformer gets the first signal and the whole flow, including the first item; the
        downstream gets the flow that the transformer returns. The whole flow can be subscribed to once,
        by the transformer or later, or not at all: its source is cancelled when the returned flow has
        ended.

        Demand: one item is requested of the upstream at first, for the decision; what follows depends
        on the flow that was returned. If that is the whole flow, demand is passed on: apart from the
        first item, no more items are requested than the downstream requests.
        Thread: the transformer runs in the thread of the upstream, which also subscribes to the
        returned flow.
        Fusion: none.
        Errors: those of the returned flow, and those that the transformer raises. An error of the
        upstream may be the first signal; otherwise it comes in the whole flow or, if the whole flow has
        no subscriber, goes to the dropped-errors hook.

        Args:
            transformer: called once for each subscriber, with the first signal (`OnNext`, `OnError` or
                `OnComplete`) and the whole flow; returns a flow.

        Returns:
            A flow that fails with NoneItemError if the transformer returns
            None.

        Raises:
            TypeError: if `transformer` cannot be called.

        Executed by flow-ops: `flow_ops.switch_on_first`.
        """
        return self._plugged("flow_ops.transform.switch_on_first:switch_on_first", transformer)

    def take_last_with_time(
        self, duration: Seconds, *, max_items: int | None = None, clock: Clock | None = None
    ) -> Flow[T_co]:
        """Send the items of the last `duration` before the end.

        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> from flow_ops import interval
        >>> clock, seen = VirtualClock(), TestSubscriber[int]()
        >>> interval(1, clock=clock).take(5).take_last_with_time(1.5, clock=clock).subscribe(seen)
        >>> clock.advance_by(5)
        >>> seen.items
        [3, 4]

        Demand: everything is requested of the upstream; its last items wait for demand. Thread: that of
        the upstream, or the one that requests. Fusion: none.
        Errors: those of the upstream; the items that wait are dropped then.

        Args:
            duration: how long before the completion of the upstream, in seconds, at least 0.
            max_items: the most items that are kept; older ones are left out. If None, all items of that
                time are kept.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if an argument is of a wrong type.
            ValueError: if `duration` is less than 0, or NaN, or `max_items` less than 1.

        Executed by flow-ops: `flow_ops.take_last_with_time`.
        """
        return self._plugged(
            "flow_ops.time.take:take_last_with_time", duration, max_items=max_items, clock=clock
        )

    def take_until_other(self, other: Publisher[object]) -> Flow[T_co]:
        """Items until `other` emits an item or completes.

        >>> import flow_core as flow
        >>> (
        ...     list(flow.range(3).take_until_other(flow.never())),
        ...     list(flow.just(1).take_until_other(flow.just("stop"))),
        ... )
        ([0, 1, 2], [])

        Demand: passed on. One item is requested of `other`, which is subscribed first.
        Thread: items keep that of the upstream; the end may come on that of `other`.
        Fusion: none.
        Errors: those of both flows; each cancels the other.

        Args:
            other: its first item, or its completion, ends the flow.

        Raises:
            TypeError: if `other` is not a publisher.

        Executed by flow-ops: `flow_ops.take_until_other`.
        """
        return self._plugged("flow_ops.combine.take_until_other:take_until_other", other)

    def take_until_with_time(self, time: float, *, clock: Clock | None = None) -> Flow[T_co]:
        """Send items until the clock shows a time, then complete. See `take_with_time`.

        >>> import flow_core as flow
        >>> list(flow.range(3).take_until_with_time(flow.system_clock().now() + 60))
        [0, 1, 2]

        Args:
            time: seconds of the clock, as its `now` returns them. If it has passed, the flow completes
                at once.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `time` is not a number, or `clock` is not a clock.
            ValueError: if `time` is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.take_until_with_time`.
        """
        return self._plugged("flow_ops.time.take:take_until_with_time", time, clock=clock)

    def take_with_time(self, duration: Seconds, *, clock: Clock | None = None) -> Flow[T_co]:
        """Send the items of the first `duration`, then complete.

        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> from flow_ops import interval
        >>> clock, seen = VirtualClock(), TestSubscriber[int]()
        >>> interval(1, clock=clock).take_with_time(2.5, clock=clock).subscribe(seen)
        >>> clock.advance_by(10)
        >>> seen.items, seen.completed
        ([0, 1], True)

        This is `take_until_other` with a `timer`.

        Demand: passed on. Thread: items keep that of the upstream; the end may come on the clock's
        thread.
        Fusion: none.
        Errors: those of the upstream. RejectedExecutionError if the clock takes no task.

        Args:
            duration: how long, from the subscription on, in seconds, at least 0.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `duration` is not a time, or `clock` is not a clock.
            ValueError: if `duration` is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.take_with_time`.
        """
        return self._plugged("flow_ops.time.take:take_with_time", duration, clock=clock)

    def throttle_first(self, period: Seconds, *, clock: Clock | None = None) -> Flow[T_co]:
        """Send an item, then none for a period; items that come meanwhile are left out.

        >>> import flow_core as flow
        >>> list(flow.range(100).throttle_first(60))
        [0]

        This is a `filter` that looks at the clock.

        Demand: passed on; an item that is left out is requested again. Thread: that of the upstream; no
        timer runs. Fusion: that of `filter`.
        Errors: those of the upstream.

        Args:
            period: how long from an item that is sent to the next one, in seconds, above 0.
            clock: the clock of the operator; None for that of the process.

        Raises:
            TypeError: if `period` is not a time, or `clock` is not a clock.
            ValueError: if `period` is not above 0 and finite.

        Executed by flow-ops: `flow_ops.throttle_first`.
        """
        return self._plugged("flow_ops.time.throttle:throttle_first", period, clock=clock)

    def throttle_last(
        self,
        sampler: Seconds | Publisher[object],
        *,
        emit_last: bool = False,
        clock: Clock | None = None,
    ) -> Flow[T_co]:
        """Send the newest item of each period, if there is a new one: another name of `sample`.

        >>> import flow_core as flow
        >>> list(flow.range(100).throttle_last(60, emit_last=True))
        [99]

        Demand, thread, fusion and errors are those of `sample`.

        Args:
            sampler: how long a period is, in seconds, above 0; or a flow: each of its items ends a
                period.
            emit_last: whether the end of the flow ends a period, too.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `sampler` is neither a time nor a flow, or `clock` is not a clock.
            ValueError: if the period is not above 0 and finite.

        Executed by flow-ops: `flow_ops.throttle_last`.
        """
        return self._plugged(
            "flow_ops.time.throttle:throttle_last", sampler, emit_last=emit_last, clock=clock
        )

    def throttle_latest(
        self, period: Seconds, *, emit_last: bool = False, clock: Clock | None = None
    ) -> Flow[T_co]:
        """Send an item at once, then the newest one of each period, if there is a new one.

        >>> import flow_core as flow
        >>> list(flow.range(100).throttle_latest(60, emit_last=True))
        [0, 99]

        A period begins with each item that is sent. If no item comes in a period, the next item is sent
        at once.

        Demand: everything is requested of the upstream. An item that is due when there is no demand
        waits for a request; if another item is due before the request, it replaces the waiting one,
        which goes to the dropped-items hook. The flow completes once the item that waits was sent.
        Thread: that of the upstream or the clock's; an item that waited comes on the thread that
        requests. Fusion: none.
        Errors: those of the upstream, at once: they overtake an item that waits.

        Args:
            period: how long between two items, in seconds, above 0.
            emit_last: whether the newest item of the last period is sent when the flow ends within that
                period.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Raises:
            TypeError: if `period` is not a time, or `clock` is not a clock.
            ValueError: if `period` is not above 0 and finite.

        Executed by flow-ops: `flow_ops.throttle_latest`.
        """
        return self._plugged(
            "flow_ops.time.throttle:throttle_latest", period, emit_last=emit_last, clock=clock
        )

    def time_interval(self, *, clock: Clock | None = None) -> Flow[TimeInterval[T_co]]:
        """Pair each item with the seconds since the previous one, or since the subscription.

        >>> from flow_testing import TestSubscriber, VirtualClock
        >>> from flow_ops import TimeInterval, interval
        >>> clock, seen = VirtualClock(), TestSubscriber[TimeInterval[int]]()
        >>> interval(2, clock=clock).time_interval(clock=clock).subscribe(seen)
        >>> clock.advance_by(4)
        >>> [(n, passed_s) for n, passed_s in seen.items]
        [(0, 2.0), (1, 2.0)]

        This is a `map` with a state for each subscriber; demand, threads and fusion are those of `map`.

        Args:
            clock: the clock of the operator; None for that of the process.

        Raises:
            TypeError: if `clock` is not a clock.

        Executed by flow-ops: `flow_ops.time_interval`.
        """
        return self._plugged("flow_ops.time.time_interval:time_interval", clock=clock)

    def timeout(
        self,
        limit: Seconds | None = None,
        *,
        first: Seconds | None = None,
        selector: Callable[[T_co], Flow[object]] | None = None,
        fallback: Publisher[T_co] | None = None,
        clock: Clock | None = None,
    ) -> Flow[T_co]:
        """Fail, or continue with another flow, when an item does not come in time.

        >>> import flow_core as flow
        >>> list(flow.never().timeout(0.001, fallback=flow.just("too late")))
        ['too late']

        The time runs from the subscription to the first item, and after that from the moment when the
        downstream has handled an item to the next item. The end of the flow has to come in time, too.
        Time runs whether or not there is demand: a downstream that does not request makes its flow
        late.

        Demand: passed on; the demand that is left when the upstream is too late goes to `fallback`.
        Thread: that of the upstream. The error comes on the clock's thread, or on that of the
        selector's flow. `fallback` is subscribed to on that thread, too, and must not block it.
        `selector` runs in the upstream's thread, before the item is sent. Fusion: none.
        Errors: those of the upstream, of `selector` and of its flows, and of `fallback`.
        RejectedExecutionError if the clock takes no task.

        Args:
            limit: the time from the subscription to the first item, and from each item to the next, in
                seconds, at least 0. None if only the first item has a time limit, or with a `selector`.
            first: the time limit for the first item, in seconds, if it differs from `limit`.
            selector: returns a flow for an item; if that flow emits an item or completes before the
                next item comes, the next item is too late.
            fallback: the flow that replaces a flow that is late; it has no time limit. If None, the
                flow fails.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.

        Returns:
            A flow that fails with FlowTimeoutError if an item is late and
            there is no `fallback`.

        Raises:
            TypeError: if there is no limit at all, or both `limit` and `selector` are given; if an
                argument is of the wrong type.
            ValueError: if a time is less than 0, or NaN.

        Executed by flow-ops: `flow_ops.timeout`.
        """
        return self._plugged(
            "flow_ops.time.timeout:timeout",
            limit,
            first=first,
            selector=selector,
            fallback=fallback,
            clock=clock,
        )

    def timestamp(self, *, clock: Clock | None = None) -> Flow[Timestamped[T_co]]:
        """Pair each item with the time at which it came.

        >>> import flow_core as flow
        >>> from flow_testing import VirtualClock
        >>> flow.just("a").timestamp(clock=VirtualClock(7)).single()
        Timestamped(item='a', time_s=7.0)

        This is a `map`, with the demand, threads and fusion of `map`. On a cluster, the time is that of
        the machine that handles the item.

        Args:
            clock: the clock of the operator; None for that of the process.

        Raises:
            TypeError: if `clock` is not a clock.

        Executed by flow-ops: `flow_ops.timestamp`.
        """
        return self._plugged("flow_ops.time.timestamp:timestamp", clock=clock)

    def window_boundary(
        self, boundary: Publisher[object], *, prefetch: int = 128, max_waiting: int = 128
    ) -> Flow[Flow[T_co]]:
        """Windows between the items of another flow. The first one begins at once.

        >>> import flow_core as flow
        >>> whole = flow.range(3).window_boundary(flow.never())
        >>> list(whole.concat_map(lambda window: window.to_list()))
        [[0, 1, 2]]

        When `boundary` completes, the last window and the flow of windows complete, too.

        When there is no reference to a window any more, its items are dropped. When there are
        references to windows that are not read, these windows hold all of the prefetch, and nothing has
        moved for a second, the flow fails with `MissingBackpressureError`.

        Demand: see `flow_ops.group.window`. A boundary does not wait for demand; up to `max_waiting`
        windows do. `boundary` is subscribed before the upstream.
        Thread: that of the upstream for items; windows begin and end on that of `boundary`.
        Fusion: the flow of windows and each window grant ASYNC; no flow is asked for fusion.
        Errors: those of both flows end the open window, after the items that wait, and the flow of
        windows at once: windows that wait for demand are dropped. `MissingBackpressureError` if a
        window begins while `max_waiting` windows wait for demand.

        Args:
            boundary: each of its items ends a window and begins the next one.
            prefetch: items to request ahead, and the most that wait in all windows together.
            max_waiting: how many windows may wait for demand.

        Raises:
            TypeError: if `boundary` is not a publisher, or a number is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.window_boundary`.
        """
        return self._plugged(
            "flow_ops.group.window:window_boundary",
            boundary,
            prefetch=prefetch,
            max_waiting=max_waiting,
        )

    def window_toggle(
        self,
        openings: Publisher[W],
        closing_mapper: Callable[[W], Publisher[object]],
        *,
        prefetch: int = 128,
        max_waiting: int = 128,
    ) -> Flow[Flow[T_co]]:
        """Windows that begin with items of another flow, each with a flow that ends it.

        >>> import flow_core as flow
        >>> two = flow.range(3).window_toggle(flow.just(1, 2), lambda _: flow.never())
        >>> seen = [list(window) for window in two.to_list().single()]
        >>> seen
        [[0, 1, 2], [0, 1, 2]]

        Windows may overlap; items that come when no window is open are left out. When `openings` has
        completed and no window is open, the flow of windows completes.

        When there is no reference to a window any more, its items are dropped. When there are
        references to windows that are not read, these windows hold all of the prefetch, and nothing has
        moved for a second, the flow fails with `MissingBackpressureError`.

        Demand: see `flow_ops.group.window`. Openings do not wait for demand; up to `max_waiting`
        windows do. `openings` is subscribed before the upstream.
        Thread: that of the upstream for items; windows begin and end on those of the other flows, where
        `closing_mapper` is called, too: one call at a time.
        Fusion: the flow of windows and each window grant ASYNC; no flow is asked for fusion.
        Errors: those of all flows and of `closing_mapper` end the open windows, after the items that
        wait, and the flow of windows at once: windows that wait for demand are dropped.
        `MissingBackpressureError` if a window begins while `max_waiting` windows wait for demand.

        Args:
            openings: each of its items begins a window.
            closing_mapper: called with that item; returns the flow whose first item or completion ends
                the window.
            prefetch: items to request ahead, and the most that wait in all windows together.
            max_waiting: how many windows may wait for demand.

        Raises:
            TypeError: if `openings` is not a publisher, `closing_mapper` cannot be called, or a number
                is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.window_toggle`.
        """
        return self._plugged(
            "flow_ops.group.window:window_toggle",
            openings,
            closing_mapper,
            prefetch=prefetch,
            max_waiting=max_waiting,
        )

    def window_when(
        self,
        closing_supplier: Callable[[], Publisher[object]],
        *,
        prefetch: int = 128,
        max_waiting: int = 128,
    ) -> Flow[Flow[T_co]]:
        """Windows that each end with the first item, or the completion, of another flow.

        >>> import flow_core as flow
        >>> whole = flow.range(3).window_when(flow.never)
        >>> list(whole.concat_map(lambda window: window.to_list()))
        [[0, 1, 2]]

        The first window begins at once, and each further window when the one before it ends.

        When there is no reference to a window any more, its items are dropped. When there are
        references to windows that are not read, these windows hold all of the prefetch, and nothing has
        moved for a second, the flow fails with `MissingBackpressureError`.

        Demand: see `flow_ops.group.window`. The flows that end windows do not wait for demand; up to
        `max_waiting` windows do.
        Thread: that of the upstream for items; windows begin and end on those of the flows that end
        them, where `closing_supplier` is called, too.
        Fusion: the flow of windows and each window grant ASYNC; no flow is asked for fusion.
        Errors: as with `window_toggle`.

        Args:
            closing_supplier: returns the flow that ends a window; called when the window begins.
            prefetch: items to request ahead, and the most that wait in all windows together.
            max_waiting: how many windows may wait for demand.

        Raises:
            TypeError: if `closing_supplier` cannot be called, or a number is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.window_when`.
        """
        return self._plugged(
            "flow_ops.group.window:window_when",
            closing_supplier,
            prefetch=prefetch,
            max_waiting=max_waiting,
        )

    def window_with_count(
        self, count: int, skip: int | None = None, *, prefetch: int = 128
    ) -> Flow[Flow[T_co]]:
        """Windows of `count` items each; the last one may have fewer.

        >>> import flow_core as flow
        >>> list(flow.range(5).window_with_count(2).concat_map(lambda w: w.to_list()))
        [[0, 1], [2, 3], [4]]

        A window begins with its first item, and ends with its last one.

        When there is no reference to a window any more, its items are dropped. When there are
        references to windows that are not read, these windows hold all of the prefetch, and nothing has
        moved for a second, the flow fails with `MissingBackpressureError`.

        Demand: see `flow_ops.group.window`. Windows wait for demand, and their items with them.
        Thread: that of the upstream; an item that waited comes on the thread that requests it.
        Fusion: the flow of windows and each window grant ASYNC; the upstream is not asked for fusion.
        Errors: those of the upstream end the open windows, after the items that wait, and the flow of
        windows at once: windows that wait for demand are dropped.

        Args:
            count: items in a window.
            skip: the number of items from the first item of a window to the first item of the next
                window: fewer than `count` make windows overlap, more leave items out; `count` by
                default.
            prefetch: items to request ahead, and the most that wait in all windows together.

        Raises:
            TypeError: if a number is not an int.
            ValueError: if a number is less than 1.

        Executed by flow-ops: `flow_ops.window_with_count`.
        """
        return self._plugged(
            "flow_ops.group.window:window_with_count", count, skip, prefetch=prefetch
        )

    def window_with_time(
        self,
        period: Seconds,
        shift: Seconds | None = None,
        *,
        clock: Clock | None = None,
        prefetch: int = 128,
        max_waiting: int = 128,
    ) -> Flow[Flow[T_co]]:
        """Windows of a length of time. The first one begins at once.

        >>> import flow_core as flow
        >>> list(flow.range(3).window_with_time(60).concat_map(lambda w: w.to_list()))
        [[0, 1, 2]]

        When there is no reference to a window any more, its items are dropped. When there are
        references to windows that are not read, these windows hold all of the prefetch, and nothing has
        moved for a second, the flow fails with `MissingBackpressureError`.

        Demand: see `flow_ops.group.window`. Time does not wait for demand; up to `max_waiting` windows
        do.
        Thread: that of the upstream for items; windows begin and end on the clock's.
        Fusion: the flow of windows and each window grant ASYNC; the upstream is not asked for fusion.
        Errors: those of the upstream end the open windows, after the items that wait, and the flow of
        windows at once: windows that wait for demand are dropped. `MissingBackpressureError` if a
        window begins while `max_waiting` windows wait for demand.

        Args:
            period: how long from the beginning of a window to its end, in seconds.
            shift: how long from the beginning of one window to that of the next, in seconds: less than
                `period` makes windows overlap, more leaves items out; `period` by default.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.
            prefetch: items to request ahead, and the most that wait in all windows together.
            max_waiting: how many windows may wait for demand.

        Raises:
            TypeError: if a number is of the wrong type, or `clock` is not a clock.
            ValueError: if a time is not above 0 and finite, or another number is less than 1.

        Executed by flow-ops: `flow_ops.window_with_time`.
        """
        return self._plugged(
            "flow_ops.group.window:window_with_time",
            period,
            shift,
            clock=clock,
            prefetch=prefetch,
            max_waiting=max_waiting,
        )

    def window_with_time_or_count(
        self,
        period: Seconds,
        count: int,
        *,
        clock: Clock | None = None,
        prefetch: int = 128,
        max_waiting: int = 128,
    ) -> Flow[Flow[T_co]]:
        """Windows that end when they have `count` items, or after a time. The first begins at once.

        >>> import flow_core as flow
        >>> pairs = flow.range(3).window_with_time_or_count(60, 2)
        >>> list(pairs.concat_map(lambda window: window.to_list()))
        [[0, 1], [2]]

        The next window begins when one ends, and a new period begins with it. A window that was
        cancelled gets no items, and ends when its time has passed.

        When there is no reference to a window any more, its items are dropped. When there are
        references to windows that are not read, these windows hold all of the prefetch, and nothing has
        moved for a second, the flow fails with `MissingBackpressureError`.

        Demand: see `flow_ops.group.window`. Full windows wait for demand, with their items. Time does
        not wait: when a window's time has passed, at most `max_waiting` windows may wait.
        Thread: that of the upstream for items; windows begin and end on that thread and on the clock's.
        Fusion: the flow of windows and each window grant ASYNC; the upstream is not asked for fusion.
        Errors: as with `window_with_time`.

        Args:
            period: how long from the beginning of a window to its end, in seconds.
            count: items in a window, at most.
            clock: the clock of the operator; None for the clock of the loop that runs the flow or,
                without a loop, the clock of the process.
            prefetch: items to request ahead, and the most that wait in all windows together.
            max_waiting: how many windows may wait for demand.

        Raises:
            TypeError: if a number is of the wrong type, or `clock` is not a clock.
            ValueError: if the time is not above 0 and finite, or another number is less than 1.

        Executed by flow-ops: `flow_ops.window_with_time_or_count`.
        """
        return self._plugged(
            "flow_ops.group.window:window_with_time_or_count",
            period,
            count,
            clock=clock,
            prefetch=prefetch,
            max_waiting=max_waiting,
        )

    @overload
    def with_latest_from(self, a: Publisher[A], /) -> Flow[tuple[T_co, A]]: ...
    @overload
    def with_latest_from(self, a: Publisher[A], b: Publisher[B], /) -> Flow[tuple[T_co, A, B]]: ...
    @overload
    def with_latest_from(
        self, a: Publisher[A], b: Publisher[B], c: Publisher[C], /
    ) -> Flow[tuple[T_co, A, B, C]]: ...
    @overload
    def with_latest_from(
        self, a: Publisher[A], b: Publisher[B], c: Publisher[C], d: Publisher[D], /
    ) -> Flow[tuple[T_co, A, B, C, D]]: ...
    @overload
    def with_latest_from(
        self, a: Publisher[A], b: Publisher[B], c: Publisher[C], d: Publisher[D], e: Publisher[E], /
    ) -> Flow[tuple[T_co, A, B, C, D, E]]: ...
    @overload
    def with_latest_from(
        self,
        a: Publisher[A],
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        e: Publisher[E],
        f: Publisher[F],
        /,
    ) -> Flow[tuple[T_co, A, B, C, D, E, F]]: ...
    @overload
    def with_latest_from(
        self,
        a: Publisher[A],
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        e: Publisher[E],
        f: Publisher[F],
        g: Publisher[G],
        /,
    ) -> Flow[tuple[T_co, A, B, C, D, E, F, G]]: ...
    @overload
    def with_latest_from(self, *others: Publisher[A]) -> Flow[tuple[T_co | A, ...]]: ...
    def with_latest_from(self, *others: Publisher[Any]) -> Flow[Any]:
        """Each item together with the latest items of other flows, which alone trigger nothing.

        >>> import flow_core as flow
        >>> list(flow.range(3).with_latest_from(flow.just("a", "b")))
        [(0, 'b'), (1, 'b'), (2, 'b')]

        Items that come before all of the other flows have emitted an item are dropped. The result
        completes with the upstream, or as soon as one of the others completes without an item.

        Demand: passed on; a dropped item is requested again. Everything is requested of the others,
        which are subscribed first; only the last item of each is kept.
        Thread: that of the upstream. Fusion: none.
        Errors: those of all flows; each cancels the others.

        Args:
            others: the flows whose latest items are added.

        Raises:
            TypeError: if one of `others` is not a publisher.
            ValueError: if there are no others.

        Executed by flow-ops: `flow_ops.with_latest_from`.
        """
        return self._plugged("flow_ops.combine.with_latest_from:with_latest_from", *others)

    @overload
    def zip(
        self, b: Publisher[B], /, *, prefetch: int = 128, delay_error: bool = False
    ) -> Flow[tuple[T_co, B]]: ...
    @overload
    def zip(
        self, b: Publisher[B], c: Publisher[C], /, *, prefetch: int = 128, delay_error: bool = False
    ) -> Flow[tuple[T_co, B, C]]: ...
    @overload
    def zip(
        self,
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        /,
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[tuple[T_co, B, C, D]]: ...
    @overload
    def zip(
        self,
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        e: Publisher[E],
        /,
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[tuple[T_co, B, C, D, E]]: ...
    @overload
    def zip(
        self,
        b: Publisher[B],
        c: Publisher[C],
        d: Publisher[D],
        e: Publisher[E],
        f: Publisher[F],
        /,
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> Flow[tuple[T_co, B, C, D, E, F]]: ...
    @overload
    def zip(
        self,
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
    ) -> Flow[tuple[T_co, B, C, D, E, F, G]]: ...
    @overload
    def zip(
        self,
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
    ) -> Flow[tuple[T_co, B, C, D, E, F, G, H]]: ...
    @overload
    def zip(
        self, *others: Publisher[D], prefetch: int = 128, delay_error: bool = False
    ) -> Flow[tuple[T_co | D, ...]]: ...
    def zip(
        self, *others: Publisher[Any], prefetch: int = 128, delay_error: bool = False
    ) -> Flow[Any]:
        """The first items of all flows together, then the second ones, and so on.

        >>> import flow_core as flow
        >>> list(flow.range(3).zip(flow.just("a", "b", "c")))
        [(0, 'a'), (1, 'b'), (2, 'c')]
        >>> list(flow.range(9).zip(flow.just("a", "b")).starmap(lambda n, letter: letter * n))
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
            others: the flows to take items from. They are subscribed in this order.
            prefetch: items to request of each ahead, and the most of each that wait.
            delay_error: whether the error of a flow comes after its items; several are raised as an
                ExceptionGroup.

        Raises:
            TypeError: if a source is not a publisher, or `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-ops: `flow_ops.zip`.
        """
        return self._combined(
            "flow_ops.combine.zip:zip", *others, prefetch=prefetch, delay_error=delay_error
        )
