"""`parallel`: the items of a flow, dealt out to rails that run at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor as Pool
from heapq import merge as merge_sorted
from typing import Any, Generic, TypeVar, final, overload

from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.executors import Executor
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher, Subscriber
from flow_core.results import FailureHandling, FailurePolicy
from flow_core.sources import defer, from_iterable
from flow_core.stages.aggregate import Comparable
from flow_core.stages.template import UNSET
from flow_ops.coordination import Mapper, itself
from flow_ops.parallel.dispatch import Dispatcher, RailSource
from flow_ops.parallel.failures import filter_rail, map_rail
from flow_ops.threads.observe_on import observe_on
from flow_ops.threads.processes import is_process_pool, on_processes
from flow_ops.transform._flat import FlatMap
from flow_ops.transform._mapping import DEFAULT_CONCURRENCY, Limits, mapped
from flow_ops.transform.concat_map import concat_map
from flow_ops.transform.flat_map import flat_map

__all__ = ["ParallelFlow", "parallel"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
R = TypeVar("R")


def parallel(
    rails: int | None = None, *, prefetch: int = DEFAULT_PREFETCH
) -> Operator[T, ParallelFlow[T]]:
    """Deal the items out to rails, which may run at the same time.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import flow_core as flow
    >>> with ThreadPoolExecutor(2) as pool:
    ...     squares = flow.range(4).pipe(parallel(2)).run_on(pool).map(lambda n: n * n)
    ...     print(sorted(squares.sequential()))
    [0, 1, 4, 9]

    Each rail is a flow of its own. An item goes to the next rail, round and round, that has demand:
    a slow rail does not hold up the others. Nothing runs at the same time before `run_on`.

    Demand: `prefetch` items are requested of the upstream, and 75 % of that again whenever as many
    went to a rail.
    Thread: items come to a rail on the upstream's thread or on that which requests of a rail.
    Fusion: polls an upstream that grants SYNC or ASYNC across threads. None downstream.
    Errors: all rails fail, after the items that came before.

    Args:
        rails: how many; None for as many as there are processors.
        prefetch: items to request ahead, and the most that wait for a rail.

    Returns:
        An operator for `Flow.pipe`, which makes a `ParallelFlow`.

    Raises:
        TypeError: if `rails` or `prefetch` is no int.
        ValueError: if one of them is less than 1.
    """
    count = os.cpu_count() or 1 if rails is None else check_prefetch(rails, "rails")
    check_prefetch(prefetch)
    detail = str(count)
    if prefetch != DEFAULT_PREFETCH:
        detail += f", prefetch={prefetch}"
    label = labelled("parallel", detail)

    def apply(flow: Flow[T]) -> ParallelFlow[T]:
        return ParallelFlow(flow, count, prefetch, label, Flow(_Prototype[T]()))

    return Operator("parallel", apply, detail)


@final
class _Prototype(Publisher[T]):
    """Stands for a rail in the flow that all rails are made like."""

    __slots__ = ()

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Never called: each run puts its rails in the place of this."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "rail"


@final
class ParallelFlow(Generic[T_co]):
    """A flow whose items are dealt out to rails; made by `parallel`. Immutable.

    Its operators are put into every rail; `sequential`, `sorted` and `reduce` make one flow of the
    rails again. Neighbouring synchronous operators of a rail are compiled into one loop, as those
    of a `Flow`.

    Args:
        source: the flow whose items are dealt out.
        rails: how many rails there are.
        prefetch: items to request of it ahead.
        label: the operator and its place, for messages.
        rail: what all rails are like.
    """

    __slots__ = ("_label", "_prefetch", "_rail", "_source", "rails")

    def __init__(
        self,
        source: Flow[Any],  # Any: the first item's type is the rails' affair
        rails: int,
        prefetch: int,
        label: str,
        rail: Flow[T_co],
    ) -> None:
        self._source = source
        self._prefetch = prefetch
        self._label = label
        self._rail = rail
        self.rails = rails
        """How many rails there are."""

    def _like(self, rail: Flow[R]) -> ParallelFlow[R]:
        return ParallelFlow(self._source, self.rails, self._prefetch, self._label, rail)

    # -- operators of each rail

    def pipe_rails(self, operator: Operator[T_co, Flow[R]]) -> ParallelFlow[R]:
        """Put any operator into every rail.

        >>> import flow_core as flow
        >>> rails = flow.range(6).pipe(parallel(2)).pipe_rails(flow.operators.take(1))
        >>> sorted(rails.sequential())
        [0, 1]

        Args:
            operator: has to subscribe to its upstream as soon as it is subscribed to: the rails
                start when all are subscribed. A second time, as `retry` does, it gets
                ProtocolViolationError: what a rail has got is not dealt out again.

        Raises:
            TypeError: if it is no operator, or makes something else than a flow.
        """
        made: object = self._rail.pipe(operator)
        if not isinstance(made, Flow):
            raise TypeError(
                f"{operator!r} makes no flow of a rail, but {type(made).__name__}; call "
                "sequential() first"
            )
        return self._like(made)

    def run_on(self, executor: Executor, *, prefetch: int = DEFAULT_PREFETCH) -> ParallelFlow[T_co]:
        """Run the rest of each rail on `executor`: see `observe_on`, `on_processes` for processes.

        Args:
            executor: what `observe_on` takes, or a ProcessPoolExecutor. It has to have as many
                threads or processes as there are rails for these to run at the same time.
            prefetch: items that a rail requests ahead.
        """
        if isinstance(executor, Pool) and is_process_pool(executor):
            # One batch that runs, and one that waits for the same worker.
            return self.pipe_rails(on_processes(executor, concurrency=2, prefetch=prefetch))
        return self.pipe_rails(observe_on(executor, prefetch=prefetch))

    def map(
        self, mapper: Callable[[T_co], R], *, on_error: FailurePolicy = FailureHandling.ERROR
    ) -> ParallelFlow[R]:
        """Each item replaced by ``mapper(item)``.

        >>> import flow_core as flow
        >>> halves = flow.just(1, 0, 2).pipe(parallel(2))
        >>> sorted(halves.map(lambda n: 2 / n, on_error=FailureHandling.SKIP).sequential())
        [1.0, 2.0]

        Args:
            mapper: never gives None.
            on_error: what the rail does when it raises, or gives None; or a function of how often
                it has been tried with this item, and of the error, that says so.
        """
        return self._like(map_rail(self._rail, mapper, on_error))

    def filter(
        self,
        predicate: Callable[[T_co], object],
        *,
        on_error: FailurePolicy = FailureHandling.ERROR,
    ) -> ParallelFlow[T_co]:
        """Items for which ``predicate(item)`` is true.

        Args:
            predicate: tells which items stay.
            on_error: what the rail does when it raises; see `map`.
        """
        return self._like(filter_rail(self._rail, predicate, on_error))

    def flat_map_iterable(self, mapper: Callable[[T_co], Iterable[R]]) -> ParallelFlow[R]:
        """Each item replaced by those of ``mapper(item)``; see `Flow.flat_map_iterable`."""
        return self._like(self._rail.flat_map_iterable(mapper))

    def concat_map(
        self,
        mapper: Callable[[T_co], Flow[R]],
        *,
        prefetch: int = DEFAULT_PREFETCH,
        delay_error: bool = False,
    ) -> ParallelFlow[R]:
        """Each item becomes a flow; those of a rail follow one another. See `concat_map`."""
        return self.pipe_rails(concat_map(mapper, prefetch=prefetch, delay_error=delay_error))

    def flat_map(
        self,
        mapper: Callable[[T_co], Flow[R]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        prefetch: int = DEFAULT_PREFETCH,
        delay_error: bool = False,
    ) -> ParallelFlow[R]:
        """Each item becomes a flow; those of a rail run at a time. See `flat_map`."""
        return self.pipe_rails(
            flat_map(
                mapper,
                concurrency=concurrency,
                prefetch=prefetch,
                delay_error=delay_error,
            )
        )

    def do_on_next(self, action: Callable[[T_co], object]) -> ParallelFlow[T_co]:
        """Call `action` with each item; by several threads at once, after `run_on`."""
        return self._like(self._rail.do_on_next(action))

    def collect(
        self, supplier: Callable[[], A], collector: Callable[[A, T_co], object]
    ) -> ParallelFlow[A]:
        """One item per rail: a container that was filled with its items.

        Args:
            supplier: makes the container of a rail.
            collector: gets the container and an item, and puts the item in.
        """
        return self._like(self._rail.collect(supplier, collector))

    # -- one flow again

    @overload
    def reduce(self, accumulator: Callable[[T_co, T_co], T_co]) -> Flow[T_co]: ...

    @overload
    def reduce(self, accumulator: Callable[[A, T_co], A], seed: A) -> ParallelFlow[A]: ...

    def reduce(
        self,
        accumulator: Callable[[Any, Any], Any],  # Any: see the overloads
        seed: Any = UNSET,
    ) -> Flow[Any] | ParallelFlow[Any]:
        """All items accumulated, by each rail and then over the rails; with a seed, by each rail.

        >>> import flow_core as flow
        >>> list(flow.range(10).pipe(parallel(3)).reduce(lambda a, b: a + b))
        [45]
        >>> rails = flow.range(10).pipe(parallel(3)).reduce(lambda count, _: count + 1, 0)
        >>> sorted(rails.sequential())
        [3, 3, 4]

        Args:
            accumulator: without a seed it is associative and commutative: which items meet is not
                known before.
            seed: what each rail begins with; it gives one item then, if it has none itself, too.

        Returns:
            Without a seed a flow of one item, or of none if there is none. With a seed one item per
            rail, since `accumulator` does not say how to put two results together.
        """
        if seed is not UNSET:
            return self._like(self._rail.reduce(accumulator, seed))
        return self._like(self._rail.reduce(accumulator)).sequential(prefetch=1).reduce(accumulator)

    @overload
    def sorted(
        self: ParallelFlow[Comparable], *, key: None = ..., reverse: bool = ...
    ) -> Flow[T_co]: ...

    @overload
    def sorted(self, *, key: Callable[[T_co], Comparable], reverse: bool = ...) -> Flow[T_co]: ...

    def sorted(
        self,
        *,
        key: Callable[[Any], Any] | None = None,  # Any: see the overloads
        reverse: bool = False,
    ) -> Flow[Any]:
        """All items in order: each rail sorts its own, and the rails are merged at the end.

        >>> import flow_core as flow
        >>> list(flow.just(3, 1, 2).pipe(parallel(2)).sorted())
        [1, 2, 3]

        Memory grows with the flow. Equal items of different rails come in any order.

        Args:
            key: what is compared of an item.
            reverse: the greatest first.
        """
        order: Any = key  # Any: what it gives can be compared, as the overloads say

        def sort(items: list[Any]) -> None:
            items.sort(key=order, reverse=reverse)

        def merge(lists: list[list[Any]]) -> Iterable[Any]:
            return merge_sorted(*lists, key=order, reverse=reverse)

        rails = self._like(self._rail.to_list().do_on_next(sort))
        return rails.sequential(prefetch=1).to_list().flat_map_iterable(merge)

    def sequential(
        self, *, prefetch: int = DEFAULT_PREFETCH, delay_error: bool = False
    ) -> Flow[T_co]:
        """The items of all rails, as they come: not in the order of the source.

        What keeps that order: `on_processes`, `map_async`, `concat_map_eager`.

        Demand: exact; `prefetch` items are requested of each rail, and 75 % of that again whenever
        as many were taken.
        Thread: items come on the threads of the rails, one at a time; put `observe_on` behind it
        for a certain one. Fusion: none.
        Errors: the first one cancels the other rails, and overtakes what waits. An error of the
        upstream, which all rails pass on, counts once.

        Args:
            prefetch: items to request of each rail ahead, and the most of each that wait.
            delay_error: whether errors come when all rails have ended; several as an
                ExceptionGroup.
        """
        limits = Limits(self.rails, prefetch, delay_error)
        label, count, ahead, rail = self._label, self.rails, self._prefetch, self._rail
        mapper: Mapper[Flow[T_co], T_co] = Mapper(itself, label)

        def apply(flow: Flow[Any]) -> Flow[T_co]:
            def run() -> Flow[T_co]:
                dispatcher = Dispatcher(flow, count, ahead, label)
                # An error of the upstream comes out of every rail, and is one error all the same.
                whole = rail.on_error_complete(dispatcher.was_told)
                rails = [_over(Flow(RailSource(dispatcher)), whole) for _ in range(count)]
                return mapped(from_iterable(rails), mapper, limits, FlatMap)

            return defer(run)

        return self._source.pipe(Operator("parallel", apply, f"{count}: {rail!r}"))

    def __repr__(self) -> str:
        return f"{self._source!r} | parallel({self.rails}: {self._rail!r})"


def _over(source: Flow[Any], rail: Flow[T]) -> Flow[T]:
    """`rail` over another source than the prototype."""
    return rail.moved(lambda _: source)
