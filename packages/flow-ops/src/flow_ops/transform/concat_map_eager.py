"""`concat_map_eager`: each item becomes a flow; the flows run at the same time, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

from typing_extensions import override

from flow_core.conversion import Convertible
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.introspection import snapshot
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber, Publisher
from flow_ops.coordination import BufferedInput, Input, Mapper
from flow_ops.transform._mapping import (
    DEFAULT_CONCURRENCY,
    Limits,
    Mapping,
    One,
    mapping_operator,
)

__all__ = ["ConcatMapEager", "concat_map_eager"]

T = TypeVar("T")
R = TypeVar("R")


def concat_map_eager(
    mapper: Callable[[T], Convertible[R]],
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[R]]:
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
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if the mapper returns None,
        and with MissingBackpressureError if the upstream or an inner flow sends more than was
        requested.

    Raises:
        TypeError: if `mapper` cannot be called, or a number is not an int.
        ValueError: if `concurrency` or `prefetch` is less than 1.
    """
    return mapping_operator(
        "concat_map_eager",
        mapper,
        Limits(concurrency, prefetch, delay_error),
        ConcatMapEager,
    )


@final
class ConcatMapEager(Mapping[T, R], Generic[T, R]):
    """Sends the items of inner flows in the order of these flows.

    Args:
        source: the upstream.
        downstream: gets the signals.
        mapper: returns the inner flows.
        limits: how many run at a time, and how much they prefetch.
    """

    __slots__ = ("_failing", "_line")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        mapper: Mapper[T, R],
        limits: Limits,
    ) -> None:
        super().__init__(source, downstream, mapper, limits)
        self._line: deque[BufferedInput[R] | One[R]] = deque()
        """The inner flows; the first one has its turn. The upstream's thread appends to it."""
        self._failing = False

    @override
    def add(self, flow: Publisher[R]) -> bool:
        inner: BufferedInput[R] = BufferedInput(self, self.prefetch)
        self._line.append(inner)
        self.connect(flow, inner)
        if self.over:
            self.signal()  # `closed` may have run before
        return False

    @override
    def push(self, item: R) -> bool:
        if self.alone(self._pass, item) is True:
            return True
        self._line.append(One(item))
        self.signal()
        return False

    def _pass(self, item: R) -> bool:
        if self._line or self._emitted >= self._requested:
            return False
        self.emit(item)
        return True

    @override
    def ending(self, one: Input[Any]) -> None:  # Any: see `Coordinator.ending`
        if isinstance(one, BufferedInput) and one.error is not None:
            self._failing = True

    @override
    def step(self) -> None:
        line = self._line
        if self._failing and not self._delay_error:
            self._fail_first()
        while not self.over:
            exhausted = self.exhausted  # read before looking: the line is complete by then
            if not line:
                if exhausted:
                    self.finish()
                return
            head = line[0]
            while self._emitted < self._requested:
                item = head.poll()
                if item is EMPTY:
                    break
                self.emit(item)
                if self.over:
                    return
            if not head.ended():
                return
            line.popleft()
            self.slots.freed += 1
            if isinstance(head, BufferedInput):
                self.release(head)
                error, head.error = head.error, None
                if error is not None:
                    self.keep(error)

    @override
    def closed(self) -> None:
        line = self._line
        while line:
            line.popleft().close()
        super().closed()

    @property
    @override
    def buffered(self) -> int:
        return sum(inner.waiting for inner in snapshot(self._line))

    def _fail_first(self) -> None:
        """Fail: an error of an inner flow overtakes the items that wait."""
        self._failing = False
        for inner in tuple(self._line):
            if isinstance(inner, BufferedInput) and inner.error is not None:
                error, inner.error = inner.error, None
                self.keep(error)
                return
