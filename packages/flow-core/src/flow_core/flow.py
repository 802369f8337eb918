"""`Flow`: a description of where items come from and what happens to them on their way."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Final, Generic, TypeVar, cast, final, overload

from typing_extensions import TypeIs

from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.errors import NoItemError, NoneItemError, TooManyItemsError, throw_if_fatal
from flow_core.operator import Operator
from flow_core.protocols import (
    CallableSource,
    CoreSubscriber,
    IterableSource,
    Publisher,
    ScalarSource,
    Subscriber,
)
from flow_core.stages import aggregate, effects, filtering, transform
from flow_core.stages.compiler import Program
from flow_core.stages.pulled import IteratorSubscription
from flow_core.stages.pushed import subscribe_stages
from flow_core.stages.template import UNSET, Stage, Template
from flow_core.subscribers.awaiting import await_single, iterate_async
from flow_core.subscribers.blocking import check_may_block, iterate_blocking
from flow_core.subscribers.callbacks import CallbackSubscriber
from flow_core.subscribers.strict import core_subscriber

__all__ = ["AbsorbingSource", "DeferredSource", "Flow"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
R = TypeVar("R")

_AnySource = Publisher[Any] | IterableSource[Any]  # Any: of the first item
_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages only fit each other


class AbsorbingSource(Generic[T_co]):
    """A publisher that can run stages where its items are, on a cluster say (macro-fusion)."""

    __slots__ = ()

    @abstractmethod
    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        """See `Publisher.subscribe`."""

    def absorb(
        self, stages: tuple[_AnyStage, ...]
    ) -> tuple[Publisher[Any], tuple[_AnyStage, ...]]:  # Any: the last absorbed stage's type
        """Take a leading run of `stages` over.

        Returns:
            A publisher of what the absorbed stages give, and the stages that are left.

        Raises:
            FlowError: if a stage has no meaning there; says which, and the ways out.
        """
        return self, stages


class DeferredSource(Generic[T_co]):
    """A publisher that only stands for a flow, which is known when it is subscribed."""

    __slots__ = ()

    @abstractmethod
    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        """See `Publisher.subscribe`."""

    @abstractmethod
    def resolve(self) -> Flow[T_co]:
        """The flow for one subscriber."""


@final
class Flow(Publisher[T_co], Generic[T_co]):
    """Items to come: a source, and the operators on their way. Immutable; runs when subscribed.

    >>> import flow_core as flow
    >>> squares = flow.range(10).filter(lambda n: n % 2 == 1).map(lambda n: n * n)
    >>> list(squares)
    [1, 9, 25, 49, 81]

    A flow runs anew for each subscriber. It is run by iterating over it, with ``async for``, or by
    `subscribe`; neighbouring synchronous operators (the methods of this class) are compiled into
    one loop. Everything else, such as crossing a thread, is an `Operator` given to `pipe`.

    Args:
        source: a publisher or an `IterableSource`; functions like `flow_core.range` make one.
    """

    __slots__ = ("__weakref__", "_operator", "_origin", "_parent", "_program", "_source", "_stage")

    def __init__(self, source: Publisher[T_co] | IterableSource[T_co]) -> None:
        self._source: _AnySource = source
        self._parent: Flow[Any] | None = None
        self._stage: _AnyStage | None = None
        self._operator: Operator[Any, Any] | None = None
        # Where an operator that put stages behind a source of its own has this flow from.
        self._origin: tuple[Flow[Any], Operator[Any, Any]] | None = None
        self._program: Program[Any, T_co] | None = None

    # -- assembly

    def pipe(self, operator: Operator[T_co, R]) -> R:
        """Apply `operator`, and return whatever it makes of this flow.

        >>> import flow_core as flow
        >>> list(flow.range(3).pipe(flow.operators.map(lambda n: n + 1)))
        [1, 2, 3]

        Args:
            operator: what a factory like ``observe_on(pool)`` returns.

        Raises:
            TypeError: if it is not an `Operator`.
        """
        if not isinstance(operator, Operator):
            raise TypeError(
                f"pipe() takes an Operator such as observe_on(pool), not {operator!r}; a plain "
                "function becomes one by Operator(name, function)"
            )
        made = operator.apply(self)
        if isinstance(made, Flow):
            # R is a Flow here, of items that only the operator knows.
            return cast("R", _behind(cast("Flow[Any]", made), self, operator))
        return made

    def then(self, stage: Stage[T_co, R]) -> Flow[R]:
        """Put `stage` behind this flow; a user-defined one has the same rights as the built-in.

        Args:
            stage: a `Template` with its arguments.
        """
        return self._then(stage.located(2))

    def _then(self, stage: Stage[Any, R]) -> Flow[R]:  # Any: checked by the public methods
        made: Flow[R] = Flow(self._source)
        made._parent = self
        made._stage = stage
        made._operator = None
        made._program = None
        return made

    def _add(self, template: Template, *args: object) -> Flow[Any]:  # Any: see _then
        stage: _AnyStage = Stage(template, *args)
        frame = sys._getframe(2)
        stage.site = (frame.f_code, frame.f_lasti)
        return self._then(stage)

    # -- structure

    @property
    def source(self) -> Publisher[Any] | IterableSource[Any]:  # Any: of the first item
        """Where the items of the last run of stages come from."""
        return self._source

    @property
    def stages(self) -> tuple[_AnyStage, ...]:
        """The stages since the last boundary, upstream first."""
        stages: list[_AnyStage] = []
        flow: Flow[Any] | None = self
        while flow is not None and flow._stage is not None:
            stages.append(flow._stage)
            flow = flow._parent
        stages.reverse()
        return tuple(stages)

    @property
    def boundary(self) -> tuple[Flow[Any], Operator[Any, Any]] | None:
        """The flow before the last boundary and the operator there, or None at the first source."""
        flow: Flow[Any] = self
        while flow._origin is None and flow._stage is not None and flow._parent is not None:
            flow = flow._parent
        if flow._origin is not None:
            return flow._origin
        if flow._operator is None or flow._parent is None:
            return None
        return flow._parent, flow._operator

    def moved(self, move: Callable[[Flow[Any]], Flow[Any]]) -> Flow[T_co]:
        """The same flow over another first source: what an engine does to run it elsewhere.

        Args:
            move: gets the first source as a flow without stages, and gives what takes its place.
        """
        steps: list[Stage[Any, Any] | Operator[Any, Any]] = []
        flow: Flow[Any] = self
        while flow._origin is not None or flow._parent is not None:
            if flow._origin is not None:
                flow, operator = flow._origin
                steps.append(operator)
                continue
            step = flow._stage if flow._stage is not None else flow._operator
            if step is not None:
                steps.append(step)
            flow = flow._parent or flow
        flow = move(flow)
        for step in reversed(steps):
            flow = flow._then(step) if isinstance(step, Stage) else flow.pipe(step)
        return flow

    def _compiled(self) -> tuple[Publisher[Any] | IterableSource[Any], Program[Any, T_co]]:
        """The source and the program of one run, after whatever the source absorbs."""
        source = self._source
        if isinstance(source, AbsorbingSource):
            absorbed, left = source.absorb(self.stages)
            return absorbed, Program(left)
        program = self._program
        if program is None:
            stages = self.stages
            if not getattr(source, "none_free", True):
                check: _AnyStage = Stage(filtering.CHECK)
                stages = (check, *stages)
            program = self._program = Program(stages)
        return source, program

    # -- running

    @overload
    def subscribe(self, subscriber: Subscriber[T_co], /) -> None: ...

    @overload
    def subscribe(
        self,
        on_next: Callable[[T_co], object] = ...,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
        *,
        prefetch: int | None = None,
    ) -> CallbackSubscriber[T_co]: ...

    def subscribe(
        self,
        on_next: Subscriber[T_co] | Callable[[T_co], object] | object = UNSET,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
        *,
        prefetch: int | None = None,
    ) -> CallbackSubscriber[T_co] | None:
        """Run the flow for a subscriber, or for functions.

        >>> import flow_core as flow
        >>> handle = flow.just(1, 2).subscribe(print)
        1
        2
        >>> handle.disposed
        True

        Args:
            on_next: a subscriber; or a function that gets each item.
            on_error: gets the error. Without it the error goes to the dropped-errors hook.
            on_complete: called at the end.
            prefetch: items to request at a time, refilled at 75 %; None requests without bound.

        Returns:
            For functions: a `Disposable` that cancels, also as a context manager. A synchronous
            flow has already ended when this returns.

        Raises:
            NoneItemError: if the subscriber is None (§1.9).
        """
        if on_next is None:
            raise NoneItemError("subscribe(None): a subscriber is needed (§1.9)")
        if hasattr(on_next, "on_subscribe"):
            # What has on_subscribe is meant to be a subscriber; core_subscriber checks the rest.
            self._run(core_subscriber(cast("Subscriber[T_co]", on_next)))
            return None
        if on_next is not UNSET and not callable(on_next):
            raise TypeError(f"subscribe() takes a subscriber or a function, not {on_next!r}")
        # `callable` narrows to a function of unknown arguments.
        function = None if on_next is UNSET else cast("Callable[[T_co], object]", on_next)
        subscriber = CallbackSubscriber(function, on_error, on_complete, prefetch=prefetch)
        self._run(subscriber)
        return subscriber

    def _run(self, subscriber: CoreSubscriber[T_co]) -> None:
        items: Iterator[Any] | None = None  # Any: of the first item
        flow: Flow[T_co] = self
        try:
            flow = _resolved(self)
            source, program = flow._compiled()
            if isinstance(source, CallableSource):
                item = source.call()
                items = iter(() if item is None else (item,))
            elif isinstance(source, IterableSource) and not hasattr(source, "subscribe"):
                items = source.iterate()
        except BaseException as error:
            throw_if_fatal(error)
            _fail(subscriber, error)
            return
        if items is not None:
            IteratorSubscription(program, items, subscriber).start()
        else:
            # What is no iterator is a publisher; a source that is both is subscribed to.
            cast("Publisher[Any]", source).subscribe(subscribe_stages(program, subscriber))

    def __iter__(self) -> Iterator[T_co]:
        return self.iterate()

    def iterate(self, *, prefetch: int = DEFAULT_PREFETCH) -> Iterator[T_co]:
        """Iterate, saying how many items may wait when the flow is asynchronous.

        Args:
            prefetch: items requested ahead, refilled at 75 %.

        Raises:
            BlockingInEventLoopError: in the thread of a running event loop.
        """
        check_prefetch(prefetch)
        flow = _resolved(self)
        source, program = flow._compiled()
        if isinstance(source, IterableSource):
            return program.iterate(source.iterate())
        check_may_block("iterating over this flow")
        return iterate_blocking(flow, prefetch)

    def __aiter__(self) -> AsyncIterator[T_co]:
        return iterate_async(self, DEFAULT_PREFETCH)

    def first(self) -> T_co:
        """The first item; blocks, and cancels the rest.

        Raises:
            NoItemError: if there is none.
        """
        for item in _closing(iter(self)):
            return item
        raise NoItemError("first(): the flow has no item")

    def last(self) -> T_co:
        """The last item; blocks until the end.

        Raises:
            NoItemError: if there is none.
        """
        found: Any = UNSET  # Any: an item, or UNSET
        for found in self:  # noqa: B007 - the last one is wanted
            pass
        if found is UNSET:
            raise NoItemError("last(): the flow has no item")
        return cast("T_co", found)  # it is not UNSET

    def single(self) -> T_co:
        """The only item; blocks.

        Raises:
            NoItemError: if there is none.
            TooManyItemsError: if there are more.
        """
        found: Any = UNSET  # Any: an item, or UNSET
        for item in _closing(iter(self)):
            if found is not UNSET:
                raise TooManyItemsError("single(): the flow has more than one item")
            found = item
        if found is UNSET:
            raise NoItemError("single(): the flow has no item")
        return cast("T_co", found)  # it is not UNSET

    def to_future(self) -> Future[T_co]:
        """Run for the only item, as a `concurrent.futures.Future`; its cancel cancels the flow."""
        from flow_core.subscribers.futures import single_future

        return single_future(self)

    def __await__(self) -> Generator[Any, Any, T_co]:  # Any: what the loop sends and gets
        return await_single(self).__await__()

    # -- stages

    def map(self, mapper: Callable[[T_co], R]) -> Flow[R]:
        """Each item replaced by ``mapper(item)``.

        >>> import flow_core as flow
        >>> list(flow.range(3).map(str))
        ['0', '1', '2']

        Args:
            mapper: must not return None (§2.13).
        """
        return self._add(transform.MAP, mapper)

    def filter(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """The items for which ``predicate(item)`` is true; others cost no demand.

        Args:
            predicate: decides by the truth of what it returns.
        """
        return self._add(filtering.FILTER, predicate)

    def flat_map_iterable(self, mapper: Callable[[T_co], Iterable[R]]) -> Flow[R]:
        """The items of ``mapper(item)``, one iterable after the other, each only as far as needed.

        >>> import flow_core as flow
        >>> list(flow.just("ab", "c").flat_map_iterable(list))
        ['a', 'b', 'c']

        Args:
            mapper: returns any iterable, a synchronous Flow too; it may be infinite.
        """
        return self._add(transform.FLAT_MAP_ITERABLE, mapper)

    def take(self, count: int) -> Flow[T_co]:
        """The first `count` items; then the upstream is cancelled, and never asked for more.

        Args:
            count: items, at least 0.
        """
        if _count("take", count) == 0:
            from flow_core.sources.iterables import empty

            return empty()
        return self._add(filtering.TAKE, count)

    def skip(self, count: int) -> Flow[T_co]:
        """All but the first `count` items.

        Args:
            count: items, at least 0.
        """
        return self._add(filtering.SKIP, _count("skip", count))

    def take_while(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """Items up to but without the first for which `predicate` is false."""
        return self._add(filtering.TAKE_WHILE, predicate)

    def skip_while(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """Items from the first on for which `predicate` is false."""
        return self._add(filtering.SKIP_WHILE, predicate)

    @overload
    def scan(self, accumulator: Callable[[T_co, T_co], T_co]) -> Flow[T_co]: ...

    @overload
    def scan(self, accumulator: Callable[[A, T_co], A], seed: A) -> Flow[A]: ...

    def scan(self, accumulator: Callable[[Any, Any], Any], seed: Any = UNSET) -> Flow[Any]:
        """Each item replaced by the accumulation up to it.

        >>> import flow_core as flow
        >>> list(flow.range(1, 5).scan(lambda total, n: total + n))
        [1, 3, 6, 10]

        Args:
            accumulator: ``(accumulated, item) -> accumulated``; must not return None.
            seed: what the first item is accumulated onto; itself not an item. Without it the first
                item stands for itself.
        """
        return self._add(transform.SCAN, accumulator, seed)

    @overload
    def reduce(self, accumulator: Callable[[T_co, T_co], T_co]) -> Flow[T_co]: ...

    @overload
    def reduce(self, accumulator: Callable[[A, T_co], A], seed: A) -> Flow[A]: ...

    def reduce(self, accumulator: Callable[[Any, Any], Any], seed: Any = UNSET) -> Flow[Any]:
        """One item: all items accumulated. No item, if there are none and there is no seed.

        >>> import flow_core as flow
        >>> list(flow.range(5).reduce(lambda total, n: total + n))
        [10]

        Args:
            accumulator: ``(accumulated, item) -> accumulated``; the result must not be None.
            seed: what the first item is accumulated onto; shared by all runs, so not to be changed.
                Use `collect` for a container.
        """
        return self._add(aggregate.REDUCE, accumulator, seed)

    def collect(self, supplier: Callable[[], A], collector: Callable[[A, T_co], object]) -> Flow[A]:
        """One item: a container that was filled with all items.

        >>> import flow_core as flow
        >>> list(flow.just("b", "a").collect(set, set.add).map(sorted))
        [['a', 'b']]

        Args:
            supplier: makes the container, once per subscriber.
            collector: ``(container, item)``; changes the container.
        """
        return self._add(aggregate.COLLECT, supplier, collector)

    def to_list(self) -> Flow[list[T_co]]:
        """One item: the list of all items. Memory grows with the flow."""
        return self._add(aggregate.TO_LIST)

    def count(self) -> Flow[int]:
        """One item: how many items there were."""
        source = self._source
        if isinstance(source, ScalarSource) and self._stage is None:
            from flow_core.sources.iterables import just

            return just(0 if source.call() is None else 1)  # macro-fusion (F05)
        return self._add(aggregate.COUNT)

    def distinct(self, key: Callable[[T_co], object] | None = None) -> Flow[T_co]:
        """Items that were not there before. Memory grows with the number of different ones.

        Args:
            key: what is compared, hashable; without it the item itself.
        """
        if key is None:
            return self._add(filtering.DISTINCT)
        return self._add(filtering.DISTINCT_BY, key)

    def distinct_until_changed(
        self,
        key: Callable[[T_co], A] | None = None,
        same: Callable[[A, A], object] | None = None,
    ) -> Flow[T_co]:
        """Items that differ from the one before.

        Args:
            key: what is compared; without it the item itself.
            same: whether two keys count as the same; without it ``==``.
        """
        return self._add(filtering.DISTINCT_UNTIL_CHANGED, key or _identity, same or _equal)

    def do_on_next(self, action: Callable[[T_co], object]) -> Flow[T_co]:
        """Call `action` with each item, and pass the item on."""
        return self._add(effects.DO_ON_NEXT, action)

    def pairwise(self) -> Flow[tuple[T_co, T_co]]:
        """Each item from the second on, with the one before.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b", "c").pairwise())
        [('a', 'b'), ('b', 'c')]
        """
        return self._add(transform.PAIRWISE)

    def buffer_with_count(self, count: int, skip: int | None = None) -> Flow[list[T_co]]:
        """Lists of `count` items; the last may be shorter.

        >>> import flow_core as flow
        >>> list(flow.range(5).buffer_with_count(2))
        [[0, 1], [2, 3], [4]]

        Args:
            count: items in a list, at least 1.
            skip: items from the start of one list to that of the next: less than `count` overlaps,
                more leaves items out; by default `count`.
        """
        if _count("buffer_with_count", count) == 0:
            raise ValueError("buffer_with_count(count): at least 1 item, not 0")
        if skip is None or skip == count:
            return self._add(transform.BUFFER_WITH_COUNT, count)
        if _count("buffer_with_count", skip) == 0:
            raise ValueError("buffer_with_count(skip=): at least 1 item, not 0")
        return self._add(transform.BUFFER_WITH_COUNT_SKIP, count, skip)

    def hide(self) -> Flow[T_co]:
        """The same flow without its identity: neighbours find nothing to fuse with (F36)."""
        return self.pipe(_HIDE)

    def __repr__(self) -> str:
        parts = [repr(stage) for stage in self.stages]
        before = self.boundary
        head = repr(self._source) if before is None else f"{before[0]!r} | {before[1]!r}"
        return " | ".join([head, *parts])


def _behind(made: Flow[T], before: Flow[Any], operator: Operator[Any, Any]) -> Flow[T]:
    """`made`, knowing that `operator` has made it of `before`, if it is a boundary of its own."""
    flow: Flow[Any] = made
    while flow._parent is not None and flow is not before:
        flow = flow._parent
    if flow is before:
        return made  # every step of it is known
    bounded: Flow[T] = Flow(made._source)
    if made._stage is None and made._operator is None:
        bounded._parent = before
        bounded._operator = operator
    else:
        bounded._parent = made._parent
        bounded._stage = made._stage
        bounded._operator = made._operator
        bounded._origin = before, operator
    return bounded


def _resolved(flow: Flow[T]) -> Flow[T]:
    """`flow` with a deferred source replaced by the flow that it makes, so that both fuse."""
    while _is_deferred(source := flow._source):
        made: Flow[Any] = source.resolve()  # Any: of the first item
        for stage in flow.stages:
            made = made._then(stage)
        flow = made
    return flow


def _is_deferred(source: object) -> TypeIs[DeferredSource[Any]]:  # Any: of the first item
    return isinstance(source, DeferredSource)


def _fail(subscriber: CoreSubscriber[T], error: BaseException) -> None:
    from flow_core.sources.calls import fail

    fail(subscriber, error)


def _closing(iterator: Iterator[T]) -> Iterator[T]:
    """`iterator`, closed when it is left early."""
    try:
        yield from iterator
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


def _identity(item: Any) -> Any:  # Any: whatever the item is
    return item


def _equal(left: object, right: object) -> bool:
    return left == right


def _count(operator: str, count: int) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{operator}() takes an int, not {count!r}")
    if count < 0:
        raise ValueError(f"{operator}() takes 0 or more items, not {count}")
    return count


def _hide(flow: Flow[Any]) -> Flow[Any]:  # Any: whatever the items are
    from flow_core.stages.hidden import HiddenSource

    return Flow(HiddenSource(flow))


_HIDE: Final[Operator[Any, Any]] = Operator("hide", _hide)  # Any: see _hide
