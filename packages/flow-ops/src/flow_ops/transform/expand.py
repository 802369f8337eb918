"""`expand`: each item becomes a flow, and so does each item of that flow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import ClassVar, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core.assembly import labelled
from flow_core.demand import check_prefetch
from flow_core.errors import MissingBackpressureError
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber, Empty, IterableSource
from flow_core.sources import defer
from flow_core.stages import describe
from flow_core.structure import call_of
from flow_ops.coordination import BufferedInput, Coordinated, Coordinator, Mapper
from flow_ops.sequence.concat import follow_one_another
from flow_ops.transform._mapping import One

__all__ = ["expand"]

T = TypeVar("T")

CAPACITY: Final = 65_536
"""The number of items that may wait to be expanded, unless the user sets it."""


def expand(
    mapper: Callable[[T], Flow[T]], *, depth_first: bool = False, capacity: int = CAPACITY
) -> Operator[T, Flow[T]]:
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
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if the mapper returns None.

    Raises:
        TypeError: if `mapper` cannot be called, or `capacity` is not an int.
        ValueError: if `capacity` is less than 1.
    """
    if not callable(mapper):
        raise TypeError(f"expand() takes a function from an item to a Flow, not {mapper!r}")
    check_prefetch(capacity, "capacity")
    detail = describe(mapper)
    if depth_first:
        detail += ", depth_first=True"
    if capacity != CAPACITY:
        detail += f", capacity={capacity}"
    mapping = Mapper(mapper, labelled("expand", detail))

    def broad(flow: Flow[T]) -> Flow[T]:
        return defer(lambda: _by_level(flow, mapping, capacity))

    def deep(flow: Flow[T]) -> Flow[T]:
        def made(downstream: CoreSubscriber[T], _: str) -> ExpandDepth[T]:
            return ExpandDepth(flow, downstream, mapping, capacity)

        return Flow(Coordinated(made, mapping.label, 1))

    return Operator("expand", deep if depth_first else broad, detail)


def _by_level(flow: Flow[T], mapper: Mapper[T, T], capacity: int) -> Flow[T]:
    """Return a walk by levels: flows follow one another, one for each item that has come."""
    waiting: deque[T] = deque()

    def remember(item: T) -> None:
        if len(waiting) >= capacity:
            raise MissingBackpressureError(
                f"{capacity} items wait to be expanded in {mapper.label}; raise the capacity, or "
                "walk depth first"
            )
        waiting.append(item)

    walk = follow_one_another(mapper.label, _Levels(flow, mapper, waiting))
    return walk.do_on_next(remember).finally_action(waiting.clear)


@final
class _Levels(IterableSource[Flow[T]]):
    """The flows of a walk by levels: the next one is requested when the one before has ended."""

    __slots__ = ("_flow", "_mapper", "_waiting")

    none_free: ClassVar[bool] = True

    calls_user_code = True

    def __init__(self, flow: Flow[T], mapper: Mapper[T, T], waiting: deque[T]) -> None:
        self._flow = flow
        self._mapper = mapper
        self._waiting = waiting

    @override
    def iterate(self) -> Iterator[Flow[T]]:
        yield self._flow
        waiting = self._waiting
        while waiting:
            try:
                item = waiting.popleft()
            except IndexError:  # it was cancelled, and the items that waited were dropped
                return
            yield _made(self._mapper, item)

    def __repr__(self) -> str:
        return "levels"


def _made(mapper: Mapper[T, T], item: T) -> Flow[T]:
    try:
        flow = mapper.function(item)
        return flow if isinstance(flow, Flow) else mapper.flow_of(flow)
    except BaseException as error:
        raise mapper.failed(error)  # noqa: B904 - the same error, with a note


@final
class ExpandDepth(Coordinator[T], Generic[T]):
    """Runs a walk depth first, with a stack of flows; items are requested of the last one.

    The mapper is called with the permit: nothing else happens meanwhile.

    Args:
        source: the upstream.
        downstream: gets the signals.
        mapper: returns the flows.
        capacity: how many flows the stack may have, without the upstream.
    """

    __slots__ = ("_capacity", "_last", "_mapper", "_source", "_stack")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        mapper: Mapper[T, T],
        capacity: int,
    ) -> None:
        super().__init__(downstream, mapper.label)
        self._source: Flow[T] | None = source
        """The upstream, until it is on the stack."""
        self._mapper = mapper
        self._capacity = capacity
        self._stack: list[BufferedInput[T] | One[T]] = []
        self._last: T | Empty = EMPTY
        """The item that was sent last, and was not expanded yet."""

    @override
    def open(self) -> None:
        source = self._source
        if source is not None:
            self._enter(source)

    @override
    def step(self) -> None:
        stack = self._stack
        while not self.over and (stack or self._source is None):
            if self._last is not EMPTY:
                if self._emitted >= self._requested:
                    return
                item, self._last = self._last, EMPTY
                self._expand(item)
                continue
            if not stack:
                self.complete()
                return
            top = stack[-1]
            if self._emitted < self._requested:
                got = top.poll()
                if got is not EMPTY:
                    self._last = got
                    self.emit(got)
                    continue
            if not top.ended():
                return
            stack.pop()
            if isinstance(top, BufferedInput):
                self.release(top)
                error, top.error = top.error, None
                if error is not None:
                    self.fail(error)

    @override
    def closed(self) -> None:
        self._last = EMPTY  # it was sent
        self._source = None
        stack = self._stack
        while stack:
            stack.pop().close()

    @property
    @override
    def buffered(self) -> int:
        return sum(level.waiting for level in tuple(self._stack))

    def _expand(self, item: T) -> None:
        flow = _made(self._mapper, item)
        called = call_of(flow)
        only: T | None = None
        if called is not None:
            only = called.call()
            if only is None:
                return
        if len(self._stack) > self._capacity:
            raise MissingBackpressureError(
                f"{self._capacity} levels were entered by {self.label}; raise the capacity, or "
                "walk breadth first"
            )
        if only is None:
            self._enter(flow)
        else:
            self._stack.append(One(only))

    def _enter(self, flow: Flow[T]) -> None:
        level: BufferedInput[T] = BufferedInput(self, 1)
        self._stack.append(level)
        self._source = None  # not before: a walk that has neither has ended
        self.connect(flow, level)
        if self.over:
            level.close()
