"""`amb` and `amb_with`: the first of several flows to emit an item or to end."""

from __future__ import annotations

import builtins
from functools import partial
from typing import TypeVar, final

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher
from flow_core.sources import empty
from flow_core.stages import describe
from flow_ops.combine._sources import check_sources, described
from flow_ops.coordination import Coordinator, Listener, coordinated, coordinated_source

__all__ = ["amb", "amb_with"]

T = TypeVar("T")
U = TypeVar("U")


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
    """
    check_sources("amb", sources)
    if not sources:
        return empty()
    return coordinated_source(
        "amb",
        described(len(sources), None),
        lambda downstream, label: Amb(sources, downstream, label),
        upstreams=sources,
    )


def amb_with(other: Publisher[U]) -> Operator[T, Flow[T | U]]:
    """This flow or `other`, whichever is the first to emit an item or to end; see `amb`.

    >>> import flow_core as flow
    >>> list(flow.never().pipe(amb_with(flow.just("b"))))
    ['b']

    Args:
        other: the other flow; it is subscribed second.

    Raises:
        TypeError: if `other` is not a publisher.
    """
    check_sources("amb_with", (other,))

    def make(flow: Flow[T], downstream: CoreSubscriber[T | U], label: str) -> Amb[T | U]:
        return Amb((flow, other), downstream, label)

    return coordinated("amb_with", describe(other), make, others=(other,))


@final
class Amb(Coordinator[T]):
    """Runs `amb`."""

    __slots__ = ("_flows", "_inputs_left", "_won")

    def __init__(
        self,
        flows: tuple[Publisher[T], ...],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._flows = flows
        self._won = False
        self._inputs_left: tuple[Listener[T], ...] = tuple(
            Listener(self, partial(self._on_item, place), partial(self._on_end, place))
            for place in range(len(flows))
        )
        """The inputs that demand is passed to: all, or the first one alone."""

    @override
    def open(self) -> None:
        for source, one in builtins.zip(self._flows, self._inputs_left, strict=False):
            if self.over or self._won:
                return
            self.connect(source, one)

    @override
    def requested(self, n: int) -> None:
        for one in self._inputs_left:  # read once: whichever flow is the first, it is among them
            one.request(n)

    @override
    def closed(self) -> None:
        self._inputs_left = ()

    def _on_item(self, place: int, item: T) -> bool:
        if not self._won:
            self._choose(place)
        return self.emit(item)

    def _on_end(self, place: int, error: BaseException | None) -> None:
        if not self._won:
            self._choose(place)
        self.end(error)

    def _choose(self, place: int) -> None:
        """Choose the flow at `place`, which was the first to emit an item or to end."""
        self._won = True
        every = self._inputs_left
        first = every[place]
        self._inputs_left = (first,)
        for one in every:
            if one is not first:
                self.disconnect(one)
