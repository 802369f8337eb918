"""`parallel`: the items of a flow, dealt out to rails that run at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor as Pool
from typing import Any, Generic, TypeVar, final

from typing_extensions import override

from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.executors import Executor, pickles_tasks
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.parallel import ParallelFlow
from flow_core.protocols import Publisher, Subscriber
from flow_core.results import FailureHandling, FailurePolicy
from flow_core.sources import from_iterable
from flow_core.structure import DeferredSource, moved, source_of
from flow_core.subscribers import core_subscriber
from flow_ops.coordination import Mapper, itself
from flow_ops.parallel.dispatch import Dispatcher, RailSource
from flow_ops.parallel.failures import filter_rail, map_rail
from flow_ops.transform._flat import FlatMap
from flow_ops.transform._mapping import Limits, mapped

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
    """
    count = os.cpu_count() or 1 if rails is None else check_prefetch(rails, "rails")
    check_prefetch(prefetch)
    detail = str(count)
    if prefetch != DEFAULT_PREFETCH:
        detail += f", prefetch={prefetch}"
    label = labelled("parallel", detail)

    def apply(flow: Flow[T]) -> ParallelFlow[T]:
        return ParallelRails(flow, count, prefetch, label, Flow(_Prototype[T]()))

    return Operator("parallel", apply, detail)


@final
class _Prototype(Publisher[T]):
    """Stands for a rail in the flow that describes all rails."""

    __slots__ = ()

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Do not call this: each run puts its own rails in place of this publisher."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "rail"


@final
class ParallelRails(ParallelFlow[T_co], Generic[T_co]):
    """The result of `parallel`.

    Args:
        source: the flow whose items are dealt out.
        rails: the number of rails.
        prefetch: items to request of `source` ahead.
        label: the operator and where it was assembled, for messages.
        rail: the flow that describes each rail.
    """

    __slots__ = ("_label", "_prefetch", "_rail", "_rails", "_source")

    def __init__(
        self,
        source: Flow[Any],  # Any: only the rails know the type of the first item
        rails: int,
        prefetch: int,
        label: str,
        rail: Flow[T_co],
    ) -> None:
        self._source = source
        self._prefetch = prefetch
        self._label = label
        self._rail = rail
        self._rails = rails

    @property
    @override
    def rails(self) -> int:
        return self._rails

    def _like(self, rail: Flow[R]) -> ParallelRails[R]:
        return ParallelRails(self._source, self._rails, self._prefetch, self._label, rail)

    def _each(
        self, name: str, /, *args: object, **options: object
    ) -> ParallelFlow[Any]:  # Any: see Rails._each
        method: Callable[..., Flow[Any]] = getattr(self._rail, name)
        return self._like(method(*args, **options))

    @override
    def pipe_rails(self, operator: Operator[T_co, Flow[R]]) -> ParallelFlow[R]:
        made: object = self._rail.pipe(operator)
        if not isinstance(made, Flow):
            raise TypeError(
                f"{operator!r} makes no flow of a rail, but {type(made).__name__}; call "
                "sequential() first"
            )
        return self._like(made)

    @override
    def run_on(self, executor: Executor, *, prefetch: int = DEFAULT_PREFETCH) -> ParallelFlow[T_co]:
        if isinstance(executor, Pool) and pickles_tasks(executor):
            # One batch that runs, and one that waits for the same worker.
            return self._each("on_processes", executor, concurrency=2, prefetch=prefetch)
        return self._each("observe_on", executor, prefetch=prefetch)

    @override
    def map(
        self, mapper: Callable[[T_co], R], *, on_error: FailurePolicy = FailureHandling.ERROR
    ) -> ParallelFlow[R]:
        return self._like(map_rail(self._rail, mapper, on_error))

    def _filter(
        self, predicate: Callable[[T_co], object], on_error: FailurePolicy
    ) -> ParallelFlow[T_co]:
        return self._like(filter_rail(self._rail, predicate, on_error))

    @override
    def sequential(
        self, *, prefetch: int = DEFAULT_PREFETCH, delay_error: bool = False
    ) -> Flow[T_co]:
        limits = Limits(self._rails, prefetch, delay_error)
        label, count, ahead, rail = self._label, self._rails, self._prefetch, self._rail
        mapper: Mapper[Flow[T_co], T_co] = Mapper(itself, label)

        def apply(flow: Flow[Any]) -> Flow[T_co]:
            def run() -> Flow[T_co]:
                dispatcher = Dispatcher(flow, count, ahead, label)
                # An error of the upstream comes out of every rail, and is still one error.
                whole = rail.on_error_complete(dispatcher.was_told)
                rails = [_over(Flow(RailSource(dispatcher)), whole) for _ in range(count)]
                return mapped(from_iterable(rails), mapper, limits, FlatMap)

            return Flow(_Sequential(run, count, rail))

        return self._source.pipe(Operator("parallel", apply, f"{count}: {rail!r}"))

    def __repr__(self) -> str:
        return f"{self._source!r} | parallel({self._rails}: {self._rail!r})"


@final
class _Sequential(DeferredSource[R]):
    """The items of all rails, which are made for each subscriber.

    Args:
        run: makes rails, deals the items out to them, and returns what they give.
        rails: the number of rails.
        rail: the flow that describes each rail.
    """

    __slots__ = ("_rail", "_rails", "_run")

    def __init__(self, run: Callable[[], Flow[R]], rails: int, rail: Flow[R]) -> None:
        self._run = run
        self._rails = rails
        self._rail = rail

    @property
    def inside(self) -> tuple[tuple[str, Flow[R]], ...]:
        """The flow of each rail; for `flow explain`."""
        return ((f"each of {self._rails} rails", self._rail),)

    @override
    def resolve(self) -> Flow[R]:
        return self._run()

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        itself: Flow[R] = Flow(self)
        itself.subscribe(core_subscriber(subscriber))

    def __repr__(self) -> str:
        return f"sequential({self._rails} rails)"


def _over(source: Flow[Any], rail: Flow[T]) -> Flow[T]:
    """Return `rail` with `source` in place of the prototype.

    Some flows, such as take(0), have no prototype to replace.
    """
    return moved(rail, lambda first: source if isinstance(source_of(first), _Prototype) else first)
