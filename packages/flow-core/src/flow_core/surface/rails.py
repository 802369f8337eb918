"""What a rail of a `ParallelFlow` does; written by tools/surface.py."""

# mypy: disable-error-code="no-any-return, import-untyped"
from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from flow_core.stages._fluent import Rails
from flow_core.stages._template import UNSET

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any, Literal, TypeGuard

    from typing_extensions import TypeIs

    from flow_core.backoff import Backoff
    from flow_core.clocks import Clock, Seconds
    from flow_core.conversion import Convertible
    from flow_core.executors import Executor
    from flow_core.flow import Flow
    from flow_core.notifications import Notification
    from flow_core.parallel import ParallelFlow
    from flow_core.protocols import Publisher
    from flow_core.results import GroupedFlow, TimeInterval, Timestamped
    from flow_core.shutdown import Shutdown
    from flow_core.stages._aggregate import Addable, Comparable
    from flow_core.stages._recovery import ErrorFilter
    from flow_core.stages._sink import SingleSink
    from flow_core.stages._transform import Parts

__all__ = ["RailMethods"]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
K = TypeVar("K")
N = TypeVar("N", bound="Addable")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")
W = TypeVar("W")


class RailMethods(Rails[T_co], Generic[T_co]):
    """The methods of `ParallelFlow` that are those of `Flow`, in each rail."""

    __slots__ = ()

    def all(self, predicate: Callable[[T_co], object]) -> ParallelFlow[bool]:
        """One item: True if `predicate` is true for all items, and False otherwise.

        In each rail; see `Flow.all`.
        """
        return self._each("all", predicate)

    def and_then(self, other: Publisher[R]) -> ParallelFlow[R]:
        """Only the items of `other`, after this flow has completed; the items of this flow are ignored.

        In each rail; see `Flow.and_then`.
        """
        return self._each("and_then", other)

    def average(self: RailMethods[float]) -> ParallelFlow[float]:
        """One item: the arithmetic mean. Without items, the flow fails with a NoItemError.

        In each rail; see `Flow.average`.
        """
        return self._each("average")

    def batch(
        self, size: int | None = None, *, within: Seconds | None = None, clock: Clock | None = None
    ) -> ParallelFlow[list[T_co]]:
        """Lists of `size` items, or of the items within some seconds of the first one.

        In each rail; see `Flow.batch`.
        """
        return self._each("batch", size, within=within, clock=clock)

    def buffer_boundary(
        self, boundary: Publisher[object], *, max_size: int = 65536, max_waiting: int = 128
    ) -> ParallelFlow[list[T_co]]:
        """Lists of the items that come between the items of another flow; they may be empty.

        In each rail; see `Flow.buffer_boundary`.
        """
        return self._each("buffer_boundary", boundary, max_size=max_size, max_waiting=max_waiting)

    def buffer_split(self, predicate: Callable[[T_co], object]) -> ParallelFlow[list[T_co]]:
        """Lists of the items between separators; the separators are left out. A list may be empty.

        In each rail; see `Flow.buffer_split`.
        """
        return self._each("buffer_split", predicate)

    def buffer_toggle(
        self,
        openings: Publisher[W],
        closing_mapper: Callable[[W], Publisher[object]],
        *,
        max_size: int = 65536,
        max_waiting: int = 128,
    ) -> ParallelFlow[list[T_co]]:
        """Lists that begin with items of another flow, each with a flow that ends it.

        In each rail; see `Flow.buffer_toggle`.
        """
        return self._each(
            "buffer_toggle", openings, closing_mapper, max_size=max_size, max_waiting=max_waiting
        )

    def buffer_until(
        self, predicate: Callable[[T_co], object], *, cut_before: bool = False
    ) -> ParallelFlow[list[T_co]]:
        """Lists that each end with an item for which `predicate` is true; the last may lack it.

        In each rail; see `Flow.buffer_until`.
        """
        return self._each("buffer_until", predicate, cut_before=cut_before)

    @overload
    def buffer_until_changed(
        self, key: None = None, same: Callable[[T_co, T_co], object] | None = None
    ) -> ParallelFlow[list[T_co]]: ...
    @overload
    def buffer_until_changed(
        self, key: Callable[[T_co], A], same: Callable[[A, A], object] | None = None
    ) -> ParallelFlow[list[T_co]]: ...
    def buffer_until_changed(
        self,
        key: Callable[[T_co], Any] | None = None,
        same: Callable[[Any, Any], object] | None = None,
    ) -> ParallelFlow[list[T_co]]:
        """Lists of neighbours that have the same key.

        In each rail; see `Flow.buffer_until_changed`.
        """
        return self._each("buffer_until_changed", key, same)

    def buffer_when(
        self,
        closing_supplier: Callable[[], Publisher[object]],
        *,
        max_size: int = 65536,
        max_waiting: int = 128,
    ) -> ParallelFlow[list[T_co]]:
        """Lists that each end with the first item, or the completion, of another flow.

        In each rail; see `Flow.buffer_when`.
        """
        return self._each(
            "buffer_when", closing_supplier, max_size=max_size, max_waiting=max_waiting
        )

    def buffer_while(self, predicate: Callable[[T_co], object]) -> ParallelFlow[list[T_co]]:
        """Lists of neighbours for which `predicate` is true; others end a list, and are left out.

        In each rail; see `Flow.buffer_while`.
        """
        return self._each("buffer_while", predicate)

    def buffer_with_count(self, count: int, skip: int | None = None) -> ParallelFlow[list[T_co]]:
        """Lists of `count` items; the last list may be shorter.

        In each rail; see `Flow.buffer_with_count`.
        """
        return self._each("buffer_with_count", count, skip)

    def buffer_with_time(
        self,
        period: Seconds,
        shift: Seconds | None = None,
        *,
        empty: bool = False,
        clock: Clock | None = None,
        max_size: int = 65536,
        max_waiting: int = 128,
    ) -> ParallelFlow[list[T_co]]:
        """Lists of the items that come within a length of time.

        In each rail; see `Flow.buffer_with_time`.
        """
        return self._each(
            "buffer_with_time",
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
    ) -> ParallelFlow[list[T_co]]:
        """Lists of `count` items, or of the items that have come when a length of time has passed.

        In each rail; see `Flow.buffer_with_time_or_count`.
        """
        return self._each(
            "buffer_with_time_or_count",
            period,
            count,
            empty=empty,
            clock=clock,
            max_waiting=max_waiting,
        )

    def cancel_on(self, executor: Executor) -> ParallelFlow[T_co]:
        """Cancel the upstream on `executor`, if its cancel blocks or must run on a certain thread.

        In each rail; see `Flow.cancel_on`.
        """
        return self._each("cancel_on", executor)

    def cast(self, kind: type[R]) -> ParallelFlow[R]:
        """The same items, typed as instances of a class.

        In each rail; see `Flow.cast`.
        """
        return self._each("cast", kind)

    def checkpoint(self, description: str = "") -> ParallelFlow[T_co]:
        """Add a note to each error that passes this operator: the line that calls `checkpoint`.

        In each rail; see `Flow.checkpoint`.
        """
        return self._each("checkpoint", description)

    def collect(
        self,
        supplier: Callable[[], A],
        collector: Callable[[A, T_co], object],
        combiner: Callable[[A, A], object] | None = None,
    ) -> ParallelFlow[A]:
        """One item: a container into which all items were put.

        In each rail; see `Flow.collect`.
        """
        return self._each("collect", supplier, collector, combiner)

    def concat_all(
        self: RailMethods[Flow[T]], *, prefetch: int = 128, delay_error: bool = False
    ) -> ParallelFlow[T]:
        """The items of the flows that come as items, one flow after the other.

        In each rail; see `Flow.concat_all`.
        """
        return self._each("concat_all", prefetch=prefetch, delay_error=delay_error)

    def concat_map(
        self,
        mapper: Callable[[T_co], Convertible[R]],
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[R]:
        """Each item becomes a flow; all items of one come before those of the next.

        In each rail; see `Flow.concat_map`.
        """
        return self._each("concat_map", mapper, prefetch=prefetch, delay_error=delay_error)

    def concat_map_eager(
        self,
        mapper: Callable[[T_co], Convertible[R]],
        *,
        concurrency: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[R]:
        """Each item becomes a flow.

        In each rail; see `Flow.concat_map_eager`.
        """
        return self._each(
            "concat_map_eager",
            mapper,
            concurrency=concurrency,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def contains(self, item: object) -> ParallelFlow[bool]:
        """One item: True as soon as an item equals `item`; False if the flow completes without one.

        In each rail; see `Flow.contains`.
        """
        return self._each("contains", item)

    def count(self) -> ParallelFlow[int]:
        """One item: the number of items.

        In each rail; see `Flow.count`.
        """
        return self._each("count")

    def count_by_key(self, key: Callable[[T_co], K]) -> ParallelFlow[tuple[K, int]]:
        """One pair for each key: the key, and how many items have it.

        In each rail; see `Flow.count_by_key`.
        """
        return self._each("count_by_key", key)

    def debounce(
        self, quiet: Seconds | Callable[[T_co], Flow[object]], *, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send only items that no other item follows for a while; always send the last one.

        In each rail; see `Flow.debounce`.
        """
        return self._each("debounce", quiet, clock=clock)

    def default_if_empty(self, default: D) -> ParallelFlow[T_co | D]:
        """The items of this flow; `default`, if it completes without any.

        In each rail; see `Flow.default_if_empty`.
        """
        return self._each("default_if_empty", default)

    def delay(
        self, delay: Seconds, *, delay_error: bool = False, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send all signals a while later.

        In each rail; see `Flow.delay`.
        """
        return self._each("delay", delay, delay_error=delay_error, clock=clock)

    def delay_elements(self, delay: Seconds, *, clock: Clock | None = None) -> ParallelFlow[T_co]:
        """Send each item a while after the previous one, or after it came, if that is later.

        In each rail; see `Flow.delay_elements`.
        """
        return self._each("delay_elements", delay, clock=clock)

    def delay_until(
        self,
        mapper: Callable[[T_co], Publisher[object]],
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[T_co]:
        """Each item, once the flow that `mapper` returns for it has completed.

        In each rail; see `Flow.delay_until`.
        """
        return self._each("delay_until", mapper, prefetch=prefetch, delay_error=delay_error)

    def delay_with_mapper(
        self, mapper: Callable[[T_co], Flow[object]], *, concurrency: int = 128
    ) -> ParallelFlow[T_co]:
        """Send each item when the flow that `mapper` returns for it emits an item or completes.

        In each rail; see `Flow.delay_with_mapper`.
        """
        return self._each("delay_with_mapper", mapper, concurrency=concurrency)

    def dematerialize(self: RailMethods[Notification[R]]) -> ParallelFlow[R]:
        """The signals that the items stand for: `materialize` in reverse.

        In each rail; see `Flow.dematerialize`.
        """
        return self._each("dematerialize")

    def distinct(self, key: Callable[[T_co], object] | None = None) -> ParallelFlow[T_co]:
        """Each item that has not come before. Memory grows with the number of different items.

        In each rail; see `Flow.distinct`.
        """
        return self._each("distinct", key)

    @overload
    def distinct_until_changed(
        self, key: None = None, same: Callable[[T_co, T_co], object] | None = None
    ) -> ParallelFlow[T_co]: ...
    @overload
    def distinct_until_changed(
        self, key: Callable[[T_co], A], same: Callable[[A, A], object] | None = None
    ) -> ParallelFlow[T_co]: ...
    def distinct_until_changed(
        self,
        key: Callable[[T_co], Any] | None = None,
        same: Callable[[Any, Any], object] | None = None,
    ) -> ParallelFlow[T_co]:
        """Items that differ from the item that was sent before them.

        In each rail; see `Flow.distinct_until_changed`.
        """
        return self._each("distinct_until_changed", key, same)

    def do_action(
        self,
        on_next: Callable[[T_co], object] | None = None,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
        *,
        on_subscribe: Callable[[], object] | None = None,
        on_cancel: Callable[[], object] | None = None,
        on_close: Callable[[], object] | None = None,
    ) -> ParallelFlow[T_co]:
        """Call functions for several signals: the methods named ``do_…`` in one.

        In each rail; see `Flow.do_action`.
        """
        return self._each(
            "do_action",
            on_next,
            on_error,
            on_complete,
            on_subscribe=on_subscribe,
            on_cancel=on_cancel,
            on_close=on_close,
        )

    def do_after_next(self, action: Callable[[T_co], object]) -> ParallelFlow[T_co]:
        """Call `action` with each item after it was passed on.

        In each rail; see `Flow.do_after_next`.
        """
        return self._each("do_after_next", action)

    def do_after_terminate(self, action: Callable[[], object]) -> ParallelFlow[T_co]:
        """Call `action` after the subscriber has got on_complete or on_error.

        In each rail; see `Flow.do_after_terminate`.
        """
        return self._each("do_after_terminate", action)

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
    ) -> ParallelFlow[T_co]:
        """Each item unchanged, once an action on it is done; several actions run at a time.

        In each rail; see `Flow.do_concurrent`.
        """
        return self._each(
            "do_concurrent",
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

    def do_on_cancel(self, action: Callable[[], object]) -> ParallelFlow[T_co]:
        """Call `action` when the flow is cancelled from downstream: by the subscriber or a stage.

        In each rail; see `Flow.do_on_cancel`.
        """
        return self._each("do_on_cancel", action)

    def do_on_complete(self, action: Callable[[], object]) -> ParallelFlow[T_co]:
        """Call `action` when the flow completes, before the subscriber gets on_complete.

        In each rail; see `Flow.do_on_complete`.
        """
        return self._each("do_on_complete", action)

    def do_on_error(self, action: Callable[[BaseException], object]) -> ParallelFlow[T_co]:
        """Call `action` with the error when the flow fails, before the subscriber gets the error.

        In each rail; see `Flow.do_on_error`.
        """
        return self._each("do_on_error", action)

    def do_on_next(self, action: Callable[[T_co], object]) -> ParallelFlow[T_co]:
        """Call `action` with each item before it is passed on.

        In each rail; see `Flow.do_on_next`.
        """
        return self._each("do_on_next", action)

    def do_on_request(self, action: Callable[[int], object]) -> ParallelFlow[T_co]:
        """Call `action` with each amount that the downstream requests, in the requesting thread.

        In each rail; see `Flow.do_on_request`.
        """
        return self._each("do_on_request", action)

    def do_on_subscribe(self, action: Callable[[], object]) -> ParallelFlow[T_co]:
        """Call `action` for each subscriber, before the first item is requested.

        In each rail; see `Flow.do_on_subscribe`.
        """
        return self._each("do_on_subscribe", action)

    def do_on_terminate(self, action: Callable[[], object]) -> ParallelFlow[T_co]:
        """Call `action` when the flow ends, before the subscriber gets on_complete or on_error.

        In each rail; see `Flow.do_on_terminate`.
        """
        return self._each("do_on_terminate", action)

    def element_at(self, index: int) -> ParallelFlow[T_co]:
        """The item at `index`, counted from 0; then the upstream is cancelled.

        In each rail; see `Flow.element_at`.
        """
        return self._each("element_at", index)

    def element_at_or_default(self, index: int, default: D) -> ParallelFlow[T_co | D]:
        """The item at `index`, counted from 0, or `default` if there is no such item.

        In each rail; see `Flow.element_at_or_default`.
        """
        return self._each("element_at_or_default", index, default)

    def end_with(self, *items: D) -> ParallelFlow[T_co | D]:
        """The items of this flow; if it completes, then the given `items`.

        In each rail; see `Flow.end_with`.
        """
        return self._each("end_with", *items)

    def exhaust_map(
        self, mapper: Callable[[T_co], Convertible[R]], *, delay_error: bool = False
    ) -> ParallelFlow[R]:
        """Each item becomes a flow; items that come while such a flow runs are dropped.

        In each rail; see `Flow.exhaust_map`.
        """
        return self._each("exhaust_map", mapper, delay_error=delay_error)

    def expand(
        self,
        mapper: Callable[[T_co], Flow[T_co]],
        *,
        depth_first: bool = False,
        capacity: int = 65536,
    ) -> ParallelFlow[T_co]:
        """Walk a tree: each item, the items of the flow that `mapper` returns for it, and so on.

        In each rail; see `Flow.expand`.
        """
        return self._each("expand", mapper, depth_first=depth_first, capacity=capacity)

    @overload
    def filter_indexed(self, predicate: Callable[[T_co, int], TypeIs[R]]) -> ParallelFlow[R]: ...
    @overload
    def filter_indexed(self, predicate: Callable[[T_co, int], TypeGuard[R]]) -> ParallelFlow[R]: ...
    @overload
    def filter_indexed(self, predicate: Callable[[T_co, int], object]) -> ParallelFlow[T_co]: ...
    def filter_indexed(self, predicate: Callable[[T_co, int], object]) -> ParallelFlow[Any]:
        """The items for which ``predicate(item, index)`` is true; the index counts from 0.

        In each rail; see `Flow.filter_indexed`.
        """
        return self._each("filter_indexed", predicate)

    def filter_when(
        self,
        predicate: Callable[[T_co], Flow[bool]],
        *,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[T_co]:
        """Items for which the first item of the flow that `predicate` returns is true.

        In each rail; see `Flow.filter_when`.
        """
        return self._each("filter_when", predicate, prefetch=prefetch, delay_error=delay_error)

    def finally_action(self, action: Callable[[], object]) -> ParallelFlow[T_co]:
        """Call `action` once when the flow has ended: completed, failed or cancelled.

        In each rail; see `Flow.finally_action`.
        """
        return self._each("finally_action", action)

    def first_or_default(self, default: D) -> ParallelFlow[T_co | D]:
        """The first item, or `default` if there is none; then the upstream is cancelled.

        In each rail; see `Flow.first_or_default`.
        """
        return self._each("first_or_default", default)

    def first_or_error(self) -> ParallelFlow[T_co]:
        """The first item; then the upstream is cancelled. Fails with a NoItemError without one.

        In each rail; see `Flow.first_or_error`.
        """
        return self._each("first_or_error")

    def flat_map(
        self,
        mapper: Callable[[T_co], Convertible[R]],
        *,
        concurrency: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[R]:
        """Each item becomes a flow; the items of all these flows come as they arrive.

        In each rail; see `Flow.flat_map`.
        """
        return self._each(
            "flat_map", mapper, concurrency=concurrency, prefetch=prefetch, delay_error=delay_error
        )

    def flat_map_iterable(self, mapper: Callable[[T_co], Iterable[R]]) -> ParallelFlow[R]:
        """The items of ``mapper(item)``, one iterable after the other, each read as far as needed.

        In each rail; see `Flow.flat_map_iterable`.
        """
        return self._each("flat_map_iterable", mapper)

    @overload
    def group_by(
        self,
        key: Callable[[T_co], K],
        *,
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[GroupedFlow[K, T_co]]: ...
    @overload
    def group_by(
        self,
        key: Callable[[T_co], K],
        *,
        value: Callable[[T_co], V],
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[GroupedFlow[K, V]]: ...
    def group_by(
        self,
        key: Callable[[T_co], K],
        *,
        value: Callable[[T_co], Any] | None = None,
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[GroupedFlow[K, Any]]:
        """A flow of flows, one for each key, with the items of that key.

        In each rail; see `Flow.group_by`.
        """
        return self._each(
            "group_by",
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
    ) -> ParallelFlow[GroupedFlow[K, T_co]]: ...
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
    ) -> ParallelFlow[GroupedFlow[K, V]]: ...
    def group_by_until(
        self,
        key: Callable[[T_co], K],
        until: Callable[[GroupedFlow[K, Any]], Convertible[object]],
        *,
        value: Callable[[T_co], Any] | None = None,
        max_groups: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[GroupedFlow[K, Any]]:
        """A flow of flows, one for each key, each of which ends when another flow emits an item.

        In each rail; see `Flow.group_by_until`.
        """
        return self._each(
            "group_by_until",
            key,
            until,
            value=value,
            max_groups=max_groups,
            prefetch=prefetch,
            delay_error=delay_error,
        )

    def handle(self, handler: Callable[[T_co, SingleSink[R]], object]) -> ParallelFlow[R]:
        """Map, filter, complete and fail in one function: `handler` gets an item and a sink.

        In each rail; see `Flow.handle`.
        """
        return self._each("handle", handler)

    def ignore_elements(self) -> ParallelFlow[T_co]:
        """No item, only the end of the flow. All items are requested of the upstream.

        In each rail; see `Flow.ignore_elements`.
        """
        return self._each("ignore_elements")

    def is_empty(self) -> ParallelFlow[bool]:
        """One item: True if the flow has no item. False is sent with the first item.

        In each rail; see `Flow.is_empty`.
        """
        return self._each("is_empty")

    def last_or_default(self, default: D) -> ParallelFlow[T_co | D]:
        """The last item, or `default` if there is none, when the upstream has completed.

        In each rail; see `Flow.last_or_default`.
        """
        return self._each("last_or_default", default)

    def last_or_error(self) -> ParallelFlow[T_co]:
        """The last item, when the upstream has completed. Fails with a NoItemError without one.

        In each rail; see `Flow.last_or_error`.
        """
        return self._each("last_or_error")

    def log(
        self, name: str = "flow", *, logger: str = "flow", level: int = logging.INFO
    ) -> ParallelFlow[T_co]:
        """Log each signal that passes this operator.

        In each rail; see `Flow.log`.
        """
        return self._each("log", name, logger=logger, level=level)

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
    ) -> ParallelFlow[R]: ...
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
    ) -> ParallelFlow[R | D]: ...
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
    ) -> ParallelFlow[R]: ...
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
    ) -> ParallelFlow[R | D]: ...
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
    ) -> ParallelFlow[Any]:
        """The result of a function for each item; several calls run at a time.

        In each rail; see `Flow.map_concurrent`.
        """
        return self._each(
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

    def map_indexed(self, mapper: Callable[[T_co, int], R]) -> ParallelFlow[R]:
        """The result of ``mapper(item, index)`` for each item; the index counts from 0.

        In each rail; see `Flow.map_indexed`.
        """
        return self._each("map_indexed", mapper)

    def map_optional(self, mapper: Callable[[T_co], R | None]) -> ParallelFlow[R]:
        """The result of ``mapper(item)`` for each item; if the result is None, there is no item.

        In each rail; see `Flow.map_optional`.
        """
        return self._each("map_optional", mapper)

    def map_when(
        self, mapper: Callable[[T_co], Flow[R]], *, prefetch: int = 128, delay_error: bool = False
    ) -> ParallelFlow[R]:
        """The first item of the flow that `mapper` returns for each item: an asynchronous map.

        In each rail; see `Flow.map_when`.
        """
        return self._each("map_when", mapper, prefetch=prefetch, delay_error=delay_error)

    def materialize(self) -> ParallelFlow[Notification[T_co]]:
        """Each signal as an item: `OnNext`, and at the end `OnError` or `OnComplete`.

        In each rail; see `Flow.materialize`.
        """
        return self._each("materialize")

    @overload
    def max(self: RailMethods[Comparable]) -> ParallelFlow[T_co]: ...
    @overload
    def max(self, key: Callable[[T_co], Comparable]) -> ParallelFlow[T_co]: ...
    def max(self, key: Callable[[Any], Any] | None = None) -> ParallelFlow[Any]:
        """One item: the greatest; of equal ones, the first. No item, if the flow has none.

        In each rail; see `Flow.max`.
        """
        return self._each("max", key)

    def merge_all(
        self: RailMethods[Flow[T]],
        *,
        concurrency: int = 128,
        prefetch: int = 128,
        delay_error: bool = False,
    ) -> ParallelFlow[T]:
        """The items of the flows that a flow emits, as they come.

        In each rail; see `Flow.merge_all`.
        """
        return self._each(
            "merge_all", concurrency=concurrency, prefetch=prefetch, delay_error=delay_error
        )

    @overload
    def min(self: RailMethods[Comparable]) -> ParallelFlow[T_co]: ...
    @overload
    def min(self, key: Callable[[T_co], Comparable]) -> ParallelFlow[T_co]: ...
    def min(self, key: Callable[[Any], Any] | None = None) -> ParallelFlow[Any]:
        """One item: the least; of equal ones, the first. No item, if the flow has none.

        In each rail; see `Flow.min`.
        """
        return self._each("min", key)

    def name(self, name: str) -> ParallelFlow[T_co]:
        """Name the flow up to this point; `flow explain`, statistics and notes on errors show it.

        In each rail; see `Flow.name`.
        """
        return self._each("name", name)

    def of_type(self, kind: type[R]) -> ParallelFlow[R]:
        """The items that are instances of a class.

        In each rail; see `Flow.of_type`.
        """
        return self._each("of_type", kind)

    def on_backpressure_buffer(
        self,
        capacity: int,
        *,
        overflow: Literal["error", "drop_oldest", "drop_latest"] = "error",
        on_overflow: Callable[[T_co], object] | None = None,
        timeout: Seconds | None = None,
        clock: Clock | None = None,
    ) -> ParallelFlow[T_co]:
        """Keep up to `capacity` items that come without demand, until they are requested.

        In each rail; see `Flow.on_backpressure_buffer`.
        """
        return self._each(
            "on_backpressure_buffer",
            capacity,
            overflow=overflow,
            on_overflow=on_overflow,
            timeout=timeout,
            clock=clock,
        )

    def on_backpressure_drop(
        self, on_drop: Callable[[T_co], object] | None = None
    ) -> ParallelFlow[T_co]:
        """Drop items that come when there is no demand.

        In each rail; see `Flow.on_backpressure_drop`.
        """
        return self._each("on_backpressure_drop", on_drop)

    def on_backpressure_error(self) -> ParallelFlow[T_co]:
        """Fail with MissingBackpressureError if an item comes when there is no demand.

        In each rail; see `Flow.on_backpressure_error`.
        """
        return self._each("on_backpressure_error")

    def on_backpressure_latest(self) -> ParallelFlow[T_co]:
        """Keep only the last of the items that come when there is no demand.

        In each rail; see `Flow.on_backpressure_latest`.
        """
        return self._each("on_backpressure_latest")

    def on_backpressure_reduce(self, reducer: Callable[[T_co, T_co], T_co]) -> ParallelFlow[T_co]:
        """Reduce the items that come when there is no demand to one item.

        In each rail; see `Flow.on_backpressure_reduce`.
        """
        return self._each("on_backpressure_reduce", reducer)

    def on_error_complete(self, when: ErrorFilter = Exception) -> ParallelFlow[T_co]:
        """Complete instead of failing with an error.

        In each rail; see `Flow.on_error_complete`.
        """
        return self._each("on_error_complete", when)

    def on_error_map(
        self, mapper: Callable[[BaseException], BaseException], when: ErrorFilter = Exception
    ) -> ParallelFlow[T_co]:
        """Fail with another error, whose cause is the error with which the flow fails.

        In each rail; see `Flow.on_error_map`.
        """
        return self._each("on_error_map", mapper, when)

    def on_error_resume(
        self,
        fallback: Publisher[D] | Callable[[BaseException], Publisher[D]],
        when: ErrorFilter = Exception,
    ) -> ParallelFlow[T_co | D]:
        """The items of this flow, and if it fails, those of another flow instead of the error.

        In each rail; see `Flow.on_error_resume`.
        """
        return self._each("on_error_resume", fallback, when)

    def on_error_return(self, item: D, when: ErrorFilter = Exception) -> ParallelFlow[T_co | D]:
        """Send `item` and complete, if the flow fails.

        In each rail; see `Flow.on_error_return`.
        """
        return self._each("on_error_return", item, when)

    def pairwise(self) -> ParallelFlow[tuple[T_co, T_co]]:
        """Pairs of neighbours: from the second item on, each item with the one before it.

        In each rail; see `Flow.pairwise`.
        """
        return self._each("pairwise")

    def rate_limit(
        self, n: int, per: Seconds = 1.0, *, burst: int = 1, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send at most `n` items in `per` seconds; items that come too early wait, none is dropped.

        In each rail; see `Flow.rate_limit`.
        """
        return self._each("rate_limit", n, per, burst=burst, clock=clock)

    def rebatch_requests(self, prefetch: int) -> ParallelFlow[T_co]:
        """Ask the upstream for `prefetch` items at a time, whatever the downstream asks for.

        In each rail; see `Flow.rebatch_requests`.
        """
        return self._each("rebatch_requests", prefetch)

    @overload
    def reduce_by_key(
        self, key: Callable[[T_co], K], accumulator: Callable[[T_co, T_co], T_co]
    ) -> ParallelFlow[tuple[K, T_co]]: ...
    @overload
    def reduce_by_key(
        self, key: Callable[[T_co], K], accumulator: Callable[[V, V], V], value: Callable[[T_co], V]
    ) -> ParallelFlow[tuple[K, V]]: ...
    def reduce_by_key(
        self,
        key: Callable[[Any], Any],
        accumulator: Callable[[Any, Any], Any],
        value: Callable[[Any], Any] | None = None,
    ) -> ParallelFlow[tuple[Any, Any]]:
        """One pair for each key: the key, and its items, accumulated.

        In each rail; see `Flow.reduce_by_key`.
        """
        return self._each("reduce_by_key", key, accumulator, value)

    def sample(
        self,
        sampler: Seconds | Publisher[object],
        *,
        emit_last: bool = False,
        clock: Clock | None = None,
    ) -> ParallelFlow[T_co]:
        """Send the newest item of each period, if there is a new one.

        In each rail; see `Flow.sample`.
        """
        return self._each("sample", sampler, emit_last=emit_last, clock=clock)

    @overload
    def scan(self, accumulator: Callable[[T_co, T_co], T_co]) -> ParallelFlow[T_co]: ...
    @overload
    def scan(self, accumulator: Callable[[A, T_co], A], seed: A) -> ParallelFlow[A]: ...
    def scan(self, accumulator: Callable[[Any, Any], Any], seed: Any = UNSET) -> ParallelFlow[Any]:
        """The accumulated value after each item.

        In each rail; see `Flow.scan`.
        """
        return self._each("scan", accumulator, seed)

    def session_buffer(
        self, gap: Seconds, *, limit: Seconds | None = None, clock: Clock | None = None
    ) -> ParallelFlow[list[T_co]]:
        """Lists of items that come with less than `gap` seconds between two neighbours.

        In each rail; see `Flow.session_buffer`.
        """
        return self._each("session_buffer", gap, limit=limit, clock=clock)

    def session_window(
        self, gap: Seconds, *, limit: Seconds | None = None, clock: Clock | None = None
    ) -> ParallelFlow[Flow[T_co]]:
        """Windows that begin with an item, and end when no item has come for `gap` seconds.

        In each rail; see `Flow.session_window`.
        """
        return self._each("session_window", gap, limit=limit, clock=clock)

    def single_or_default(self, default: D) -> ParallelFlow[T_co | D]:
        """The only item, or `default` if there is none, when the upstream has completed.

        In each rail; see `Flow.single_or_default`.
        """
        return self._each("single_or_default", default)

    def single_or_error(self) -> ParallelFlow[T_co]:
        """The only item, when the upstream has completed.

        In each rail; see `Flow.single_or_error`.
        """
        return self._each("single_or_error")

    def skip(self, count: int) -> ParallelFlow[T_co]:
        """All but the first `count` items.

        In each rail; see `Flow.skip`.
        """
        return self._each("skip", count)

    def skip_last(self, count: int) -> ParallelFlow[T_co]:
        """All but the last `count` items; each waits until `count` more have come.

        In each rail; see `Flow.skip_last`.
        """
        return self._each("skip_last", count)

    def skip_last_with_time(
        self, duration: Seconds, *, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send all items but those of the last `duration` before the end.

        In each rail; see `Flow.skip_last_with_time`.
        """
        return self._each("skip_last_with_time", duration, clock=clock)

    def skip_until_other(self, other: Publisher[object]) -> ParallelFlow[T_co]:
        """The items that come after the first item of `other`; earlier items are dropped.

        In each rail; see `Flow.skip_until_other`.
        """
        return self._each("skip_until_other", other)

    def skip_until_with_time(
        self, time: float, *, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send items from when the clock shows a time; drop earlier ones. See `skip_with_time`.

        In each rail; see `Flow.skip_until_with_time`.
        """
        return self._each("skip_until_with_time", time, clock=clock)

    def skip_while(self, predicate: Callable[[T_co], object]) -> ParallelFlow[T_co]:
        """All items from the first one on for which `predicate` is false.

        In each rail; see `Flow.skip_while`.
        """
        return self._each("skip_while", predicate)

    def skip_with_time(
        self, duration: Seconds, *, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send the items after the first `duration`; earlier items are dropped.

        In each rail; see `Flow.skip_with_time`.
        """
        return self._each("skip_with_time", duration, clock=clock)

    def slice(
        self, start: int | None = None, stop: int | None = None, step: int | None = None
    ) -> ParallelFlow[T_co]:
        """The items that ``list(flow)[start:stop:step]`` would contain.

        In each rail; see `Flow.slice`.
        """
        return self._each("slice", start, stop, step)

    def sliding(self, size: int, step: int = 1) -> ParallelFlow[list[T_co]]:
        """Lists of `size` neighbours, which overlap: each begins `step` items after the one before.

        In each rail; see `Flow.sliding`.
        """
        return self._each("sliding", size, step)

    def some(self, predicate: Callable[[T_co], object]) -> ParallelFlow[bool]:
        """One item: True if `predicate` is true for at least one item, and False otherwise.

        In each rail; see `Flow.some`.
        """
        return self._each("some", predicate)

    @overload
    def sort(self: RailMethods[Comparable], *, reverse: bool = False) -> ParallelFlow[T_co]: ...
    @overload
    def sort(
        self, key: Callable[[T_co], Comparable], *, reverse: bool = False
    ) -> ParallelFlow[T_co]: ...
    def sort(
        self, key: Callable[[Any], Any] | None = None, *, reverse: bool = False
    ) -> ParallelFlow[Any]:
        """All items in order, when the upstream has completed; stable. Memory grows with the flow.

        In each rail; see `Flow.sort`.
        """
        return self._each("sort", key, reverse=reverse)

    def starmap(
        self: RailMethods[tuple[*Parts,]], function: Callable[[*Parts], R]
    ) -> ParallelFlow[R]:
        """The result of ``function(*item)`` for each item, which is a tuple.

        In each rail; see `Flow.starmap`.
        """
        return self._each("starmap", function)

    def start_with(self, *items: D) -> ParallelFlow[T_co | D]:
        """The given `items`, then those of this flow.

        In each rail; see `Flow.start_with`.
        """
        return self._each("start_with", *items)

    @overload
    def sum(self: RailMethods[int]) -> ParallelFlow[int]: ...
    @overload
    def sum(self: RailMethods[float]) -> ParallelFlow[float]: ...
    @overload
    def sum(self: RailMethods[N], start: N) -> ParallelFlow[N]: ...
    def sum(self, start: Any = 0) -> ParallelFlow[Any]:
        """One item: all items added up; only `start`, if there are no items.

        In each rail; see `Flow.sum`.
        """
        return self._each("sum", start)

    def switch_if_empty(self, other: Publisher[D]) -> ParallelFlow[T_co | D]:
        """The items of this flow or, if it completes without items, the items of `other`.

        In each rail; see `Flow.switch_if_empty`.
        """
        return self._each("switch_if_empty", other)

    def switch_latest(self: RailMethods[Flow[T]], *, delay_error: bool = False) -> ParallelFlow[T]:
        """The items of the latest flow that has come: each new flow replaces the one before.

        In each rail; see `Flow.switch_latest`.
        """
        return self._each("switch_latest", delay_error=delay_error)

    def switch_map(
        self, mapper: Callable[[T_co], Convertible[R]], *, delay_error: bool = False
    ) -> ParallelFlow[R]:
        """Each item becomes a flow, which replaces the one before and cancels it.

        In each rail; see `Flow.switch_map`.
        """
        return self._each("switch_map", mapper, delay_error=delay_error)

    def switch_on_first(
        self, transformer: Callable[[Notification[T_co], Flow[T_co]], Flow[R]]
    ) -> ParallelFlow[R]:
        """Let the first signal decide what the whole flow becomes.

        In each rail; see `Flow.switch_on_first`.
        """
        return self._each("switch_on_first", transformer)

    def tag(self, key: str, value: str) -> ParallelFlow[T_co]:
        """Tag the flow up to this point; `flow explain` and statistics show the tag.

        In each rail; see `Flow.tag`.
        """
        return self._each("tag", key, value)

    def take(self, count: int) -> ParallelFlow[T_co]:
        """The first `count` items; then the upstream is cancelled, and no more is requested of it.

        In each rail; see `Flow.take`.
        """
        return self._each("take", count)

    def take_last(self, count: int) -> ParallelFlow[T_co]:
        """The last `count` items, when the upstream has completed. All items are requested of it.

        In each rail; see `Flow.take_last`.
        """
        return self._each("take_last", count)

    def take_last_with_time(
        self, duration: Seconds, *, max_items: int | None = None, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send the items of the last `duration` before the end.

        In each rail; see `Flow.take_last_with_time`.
        """
        return self._each("take_last_with_time", duration, max_items=max_items, clock=clock)

    def take_until(self, predicate: Callable[[T_co], object] | Shutdown) -> ParallelFlow[T_co]:
        """The items up to the first for which `predicate` is true, with it; or until a shutdown.

        In each rail; see `Flow.take_until`.
        """
        return self._each("take_until", predicate)

    def take_until_other(self, other: Publisher[object]) -> ParallelFlow[T_co]:
        """Items until `other` emits an item or completes.

        In each rail; see `Flow.take_until_other`.
        """
        return self._each("take_until_other", other)

    def take_until_with_time(
        self, time: float, *, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send items until the clock shows a time, then complete. See `take_with_time`.

        In each rail; see `Flow.take_until_with_time`.
        """
        return self._each("take_until_with_time", time, clock=clock)

    @overload
    def take_while(self, predicate: Callable[[T_co], TypeIs[R]]) -> ParallelFlow[R]: ...
    @overload
    def take_while(self, predicate: Callable[[T_co], TypeGuard[R]]) -> ParallelFlow[R]: ...
    @overload
    def take_while(self, predicate: Callable[[T_co], object]) -> ParallelFlow[T_co]: ...
    def take_while(self, predicate: Callable[[T_co], object]) -> ParallelFlow[Any]:
        """The items before the first one for which `predicate` is false.

        In each rail; see `Flow.take_while`.
        """
        return self._each("take_while", predicate)

    def take_with_time(
        self, duration: Seconds, *, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send the items of the first `duration`, then complete.

        In each rail; see `Flow.take_with_time`.
        """
        return self._each("take_with_time", duration, clock=clock)

    def throttle_first(self, period: Seconds, *, clock: Clock | None = None) -> ParallelFlow[T_co]:
        """Send an item, then none for a period; items that come meanwhile are left out.

        In each rail; see `Flow.throttle_first`.
        """
        return self._each("throttle_first", period, clock=clock)

    def throttle_last(
        self,
        sampler: Seconds | Publisher[object],
        *,
        emit_last: bool = False,
        clock: Clock | None = None,
    ) -> ParallelFlow[T_co]:
        """Send the newest item of each period, if there is a new one: another name of `sample`.

        In each rail; see `Flow.throttle_last`.
        """
        return self._each("throttle_last", sampler, emit_last=emit_last, clock=clock)

    def throttle_latest(
        self, period: Seconds, *, emit_last: bool = False, clock: Clock | None = None
    ) -> ParallelFlow[T_co]:
        """Send an item at once, then the newest one of each period, if there is a new one.

        In each rail; see `Flow.throttle_latest`.
        """
        return self._each("throttle_latest", period, emit_last=emit_last, clock=clock)

    def time_interval(self, *, clock: Clock | None = None) -> ParallelFlow[TimeInterval[T_co]]:
        """Pair each item with the seconds since the previous one, or since the subscription.

        In each rail; see `Flow.time_interval`.
        """
        return self._each("time_interval", clock=clock)

    def timeout(
        self,
        limit: Seconds | None = None,
        *,
        first: Seconds | None = None,
        selector: Callable[[T_co], Flow[object]] | None = None,
        fallback: Publisher[T_co] | None = None,
        clock: Clock | None = None,
    ) -> ParallelFlow[T_co]:
        """Fail, or continue with another flow, when an item does not come in time.

        In each rail; see `Flow.timeout`.
        """
        return self._each(
            "timeout", limit, first=first, selector=selector, fallback=fallback, clock=clock
        )

    def timestamp(self, *, clock: Clock | None = None) -> ParallelFlow[Timestamped[T_co]]:
        """Pair each item with the time at which it came.

        In each rail; see `Flow.timestamp`.
        """
        return self._each("timestamp", clock=clock)

    @overload
    def to_dict(self, key: Callable[[T_co], K]) -> ParallelFlow[dict[K, T_co]]: ...
    @overload
    def to_dict(
        self, key: Callable[[T_co], K], value: Callable[[T_co], V]
    ) -> ParallelFlow[dict[K, V]]: ...
    def to_dict(
        self, key: Callable[[T_co], Any], value: Callable[[T_co], Any] | None = None
    ) -> ParallelFlow[dict[Any, Any]]:
        """One item: a dict of all items. If several items have the same key, the last one counts.

        In each rail; see `Flow.to_dict`.
        """
        return self._each("to_dict", key, value)

    def to_list(self) -> ParallelFlow[list[T_co]]:
        """One item: the list of all items. Memory grows with the flow.

        In each rail; see `Flow.to_list`.
        """
        return self._each("to_list")

    @overload
    def to_multidict(self, key: Callable[[T_co], K]) -> ParallelFlow[dict[K, list[T_co]]]: ...
    @overload
    def to_multidict(
        self, key: Callable[[T_co], K], value: Callable[[T_co], V]
    ) -> ParallelFlow[dict[K, list[V]]]: ...
    def to_multidict(
        self, key: Callable[[T_co], Any], value: Callable[[T_co], Any] | None = None
    ) -> ParallelFlow[dict[Any, list[Any]]]:
        """One item: a dict with the list of all items of each key.

        In each rail; see `Flow.to_multidict`.
        """
        return self._each("to_multidict", key, value)

    def to_set(self) -> ParallelFlow[set[T_co]]:
        """One item: the set of all items, which must be hashable. Memory grows with the set.

        In each rail; see `Flow.to_set`.
        """
        return self._each("to_set")

    def window_boundary(
        self, boundary: Publisher[object], *, prefetch: int = 128, max_waiting: int = 128
    ) -> ParallelFlow[Flow[T_co]]:
        """Windows between the items of another flow. The first one begins at once.

        In each rail; see `Flow.window_boundary`.
        """
        return self._each("window_boundary", boundary, prefetch=prefetch, max_waiting=max_waiting)

    def window_toggle(
        self,
        openings: Publisher[W],
        closing_mapper: Callable[[W], Publisher[object]],
        *,
        prefetch: int = 128,
        max_waiting: int = 128,
    ) -> ParallelFlow[Flow[T_co]]:
        """Windows that begin with items of another flow, each with a flow that ends it.

        In each rail; see `Flow.window_toggle`.
        """
        return self._each(
            "window_toggle", openings, closing_mapper, prefetch=prefetch, max_waiting=max_waiting
        )

    def window_when(
        self,
        closing_supplier: Callable[[], Publisher[object]],
        *,
        prefetch: int = 128,
        max_waiting: int = 128,
    ) -> ParallelFlow[Flow[T_co]]:
        """Windows that each end with the first item, or the completion, of another flow.

        In each rail; see `Flow.window_when`.
        """
        return self._each(
            "window_when", closing_supplier, prefetch=prefetch, max_waiting=max_waiting
        )

    def window_with_count(
        self, count: int, skip: int | None = None, *, prefetch: int = 128
    ) -> ParallelFlow[Flow[T_co]]:
        """Windows of `count` items each; the last one may have fewer.

        In each rail; see `Flow.window_with_count`.
        """
        return self._each("window_with_count", count, skip, prefetch=prefetch)

    def window_with_time(
        self,
        period: Seconds,
        shift: Seconds | None = None,
        *,
        clock: Clock | None = None,
        prefetch: int = 128,
        max_waiting: int = 128,
    ) -> ParallelFlow[Flow[T_co]]:
        """Windows of a length of time. The first one begins at once.

        In each rail; see `Flow.window_with_time`.
        """
        return self._each(
            "window_with_time",
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
    ) -> ParallelFlow[Flow[T_co]]:
        """Windows that end when they have `count` items, or after a time. The first begins at once.

        In each rail; see `Flow.window_with_time_or_count`.
        """
        return self._each(
            "window_with_time_or_count",
            period,
            count,
            clock=clock,
            prefetch=prefetch,
            max_waiting=max_waiting,
        )

    @overload
    def with_latest_from(self, a: Publisher[A], /) -> ParallelFlow[tuple[T_co, A]]: ...
    @overload
    def with_latest_from(
        self, a: Publisher[A], b: Publisher[B], /
    ) -> ParallelFlow[tuple[T_co, A, B]]: ...
    @overload
    def with_latest_from(
        self, a: Publisher[A], b: Publisher[B], c: Publisher[C], /
    ) -> ParallelFlow[tuple[T_co, A, B, C]]: ...
    @overload
    def with_latest_from(
        self, a: Publisher[A], b: Publisher[B], c: Publisher[C], d: Publisher[D], /
    ) -> ParallelFlow[tuple[T_co, A, B, C, D]]: ...
    @overload
    def with_latest_from(
        self, a: Publisher[A], b: Publisher[B], c: Publisher[C], d: Publisher[D], e: Publisher[E], /
    ) -> ParallelFlow[tuple[T_co, A, B, C, D, E]]: ...
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
    ) -> ParallelFlow[tuple[T_co, A, B, C, D, E, F]]: ...
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
    ) -> ParallelFlow[tuple[T_co, A, B, C, D, E, F, G]]: ...
    @overload
    def with_latest_from(self, *others: Publisher[A]) -> ParallelFlow[tuple[T_co | A, ...]]: ...
    def with_latest_from(self, *others: Publisher[Any]) -> ParallelFlow[Any]:
        """Each item together with the latest items of other flows, which alone trigger nothing.

        In each rail; see `Flow.with_latest_from`.
        """
        return self._each("with_latest_from", *others)
