"""`fork_join`: the last items of several flows, when all have completed."""

from __future__ import annotations

import builtins
from typing import Any, TypeVar, final, overload

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.protocols import EMPTY, CoreSubscriber, Publisher
from flow_core.sources import empty
from flow_ops.combine._sources import LatestInput, check_sources, described
from flow_ops.coordination import Coordinator, coordinated_source

__all__ = ["fork_join"]

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")


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


def fork_join(*sources: Publisher[Any]) -> Flow[Any]:  # Any: the flows are of many types
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
    """
    check_sources("fork_join", sources)
    if not sources:
        return empty()
    return coordinated_source(
        "fork_join",
        described(len(sources), None),
        lambda downstream, label: ForkJoin(sources, downstream, label),
        upstreams=sources,
    )


@final
class ForkJoin(Coordinator[tuple[Any, ...]]):
    """Runs `fork_join`."""

    __slots__ = ("_flows", "_last", "_left")

    def __init__(
        self,
        flows: tuple[Publisher[Any], ...],
        downstream: CoreSubscriber[tuple[Any, ...]],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._flows = flows
        self._left = len(flows)
        """The number of flows that have not completed."""
        self._last = tuple(LatestInput[Any](self, self._on_end) for _ in flows)

    @override
    def open(self) -> None:
        for source, one in builtins.zip(self._flows, self._last, strict=False):
            if self.over:
                return
            self.connect(source, one)

    @override
    def step(self) -> None:
        if not self._left and self.demand:
            self.emit(tuple(one.value for one in self._last))
            self.complete()

    @override
    def closed(self) -> None:
        self._last = ()

    def _on_end(self, one: LatestInput[Any], error: BaseException | None) -> None:
        self._left -= 1
        if error is not None:
            self.fail(error)
        elif one.value is EMPTY:
            self.complete()
