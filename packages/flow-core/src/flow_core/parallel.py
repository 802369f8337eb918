"""`ParallelFlow`: a flow whose items are dealt out to rails, which may run at the same time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from heapq import merge as merge_sorted
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from flow_core.errors import no_such_name
from flow_core.executors import Executor
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.results import FailureHandling, FailurePolicy
from flow_core.stages._aggregate import Comparable
from flow_core.stages._template import UNSET
from flow_core.surface.rails import RailMethods

if TYPE_CHECKING:
    from typing import TypeGuard

    from typing_extensions import TypeIs

__all__ = ["ParallelFlow"]

T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
R = TypeVar("R")


class ParallelFlow(RailMethods[T_co], Generic[T_co]):
    """A flow whose items are dealt out to rails, as made by `Flow.parallel`. Immutable.

    Its operators are put into every rail; `sequential`, `sorted` and `reduce` make the rails one
    flow again. Neighbouring synchronous operators of a rail are compiled into one loop, like those
    of a `Flow`.

    A rail has to start as soon as it is subscribed to, and only once. Operators that subscribe to
    their upstream later or several times, such as `retry`, belong before `Flow.parallel` or behind
    `sequential`.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then

        def __getattr__(self, name: str) -> object:
            """Raise an error that says what is missing, and where to find it."""
            no_such_name("ParallelFlow", name)

    @property
    @abstractmethod
    def rails(self) -> int:
        """The number of rails."""

    @abstractmethod
    def pipe_rails(self, operator: Operator[T_co, Flow[R]]) -> ParallelFlow[R]:
        """Put any operator into every rail.

        >>> import flow_core as flow
        >>> halves = flow.Operator("halves", lambda numbers: numbers.map(lambda n: n / 2))
        >>> sorted(flow.range(3).parallel(2).pipe_rails(halves).sequential())
        [0.0, 0.5, 1.0]

        Args:
            operator: an operator that subscribes to its upstream as soon as it is subscribed to:
                the rails start when all of them are subscribed. If it subscribes a second time, as
                `retry` does, it gets a ProtocolViolationError: items that a rail has got are not
                dealt out again.

        Raises:
            TypeError: if `operator` is not an operator, or does not return a flow.
        """

    @abstractmethod
    def run_on(self, executor: Executor, *, prefetch: int = 128) -> ParallelFlow[T_co]:
        """Run the rest of each rail on `executor`; see `observe_on` and `on_processes`.

        Args:
            executor: as for `observe_on` or `on_processes`. For all rails to run at the same time,
                it needs as many threads, processes or interpreters as there are rails.
            prefetch: how many items a rail requests ahead.
        """

    @abstractmethod
    def map(
        self, mapper: Callable[[T_co], R], *, on_error: FailurePolicy = FailureHandling.ERROR
    ) -> ParallelFlow[R]:
        """The result of ``mapper(item)`` for each item.

        >>> import flow_core as flow
        >>> halves = flow.just(1, 0, 2).parallel(2)
        >>> sorted(halves.map(lambda n: 2 / n, on_error=FailureHandling.SKIP).sequential())
        [1.0, 2.0]

        Args:
            mapper: must not return None.
            on_error: what the rail does when `mapper` raises, or returns None; or a function that
                decides this: it is called with the number of tries so far for this item, and with
                the error.
        """

    @overload
    def filter(
        self, predicate: Callable[[T_co], TypeIs[R]], *, on_error: FailurePolicy = ...
    ) -> ParallelFlow[R]: ...

    @overload
    def filter(
        self, predicate: Callable[[T_co], TypeGuard[R]], *, on_error: FailurePolicy = ...
    ) -> ParallelFlow[R]: ...

    @overload
    def filter(
        self, predicate: Callable[[T_co], object], *, on_error: FailurePolicy = ...
    ) -> ParallelFlow[T_co]: ...

    def filter(
        self,
        predicate: Callable[[T_co], object],
        *,
        on_error: FailurePolicy = FailureHandling.ERROR,
    ) -> ParallelFlow[Any]:
        """Items for which ``predicate(item)`` is true.

        Args:
            predicate: returns something true for items that stay. If it is declared to return a
                TypeGuard or a TypeIs, the rails have the type that this declares.
            on_error: what the rail does when `predicate` raises; see `map`.
        """
        return self._filter(predicate, on_error)

    @abstractmethod
    def _filter(
        self, predicate: Callable[[T_co], object], on_error: FailurePolicy
    ) -> ParallelFlow[T_co]: ...

    @overload
    def reduce(self, accumulator: Callable[[T_co, T_co], T_co]) -> Flow[T_co]: ...

    @overload
    def reduce(self, accumulator: Callable[[A, T_co], A], seed: A) -> ParallelFlow[A]: ...

    def reduce(
        self,
        accumulator: Callable[[Any, Any], Any],  # Any: see the overloads
        seed: Any = UNSET,
    ) -> Flow[Any] | ParallelFlow[Any]:
        """All items accumulated: by each rail, and then, without a seed, over the rails.

        >>> import flow_core as flow
        >>> list(flow.range(10).parallel(3).reduce(lambda a, b: a + b))
        [45]
        >>> rails = flow.range(10).parallel(3).reduce(lambda count, _: count + 1, 0)
        >>> sorted(rails.sequential())
        [3, 3, 4]

        Args:
            accumulator: without a seed, it has to be associative and commutative, because it is not
                known which items will meet.
            seed: the first value of each rail; a rail without items emits the seed.

        Returns:
            Without a seed, a flow of at most one item. With a seed, a flow of one item per rail,
            since `accumulator` does not say how to combine two results.
        """
        if seed is not UNSET:
            return self._each("reduce", accumulator, seed)
        return self._each("reduce", accumulator).sequential(prefetch=1).reduce(accumulator)

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
        """All items in order: each rail sorts its items, and the rails are merged at the end.

        >>> import flow_core as flow
        >>> list(flow.just(3, 1, 2).parallel(2).sorted())
        [1, 2, 3]

        Memory grows with the flow. Equal items of different rails come in any order.

        Args:
            key: returns the value by which an item is compared.
            reverse: whether the greatest item comes first.
        """
        order: Any = key  # Any: its results can be compared, as the overloads say

        def sort(items: list[Any]) -> None:
            items.sort(key=order, reverse=reverse)

        def merge(lists: list[list[Any]]) -> Iterable[Any]:
            return merge_sorted(*lists, key=order, reverse=reverse)

        rails = self.to_list().do_on_next(sort)
        return rails.sequential(prefetch=1).to_list().flat_map_iterable(merge)

    @abstractmethod
    def sequential(self, *, prefetch: int = 128, delay_error: bool = False) -> Flow[T_co]:
        """The items of all rails, in the order in which they come, not in that of the source.

        The operators `on_processes`, `map_concurrent` and `concat_map_eager` keep the order of the
        source.

        Demand: exact; `prefetch` items are requested of each rail; whenever 75 % of that number
        were taken, that many are requested again.
        Thread: items come on the threads of the rails, one at a time; put `observe_on` behind
        `sequential` to get them on a certain thread. Fusion: none.
        Errors: the first error cancels the other rails, and overtakes items that wait. If the
        upstream fails, all rails pass the same error on, which counts once.

        Args:
            prefetch: how many items are requested of each rail ahead, and the most of each rail
                that wait.
            delay_error: whether errors wait until all rails have ended; several errors are then
                raised as an ExceptionGroup.
        """
