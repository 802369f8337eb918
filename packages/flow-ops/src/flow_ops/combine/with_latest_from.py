"""`with_latest_from`: each item with the latest items of other flows."""

from __future__ import annotations

import builtins
from typing import Any, TypeVar, final, overload

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber, Publisher
from flow_ops.combine._sources import LatestInput, check_sources, described
from flow_ops.coordination import Coordinator, Listener, coordinated

__all__ = ["with_latest_from"]

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")


@overload
def with_latest_from(a: Publisher[A], /) -> Operator[T, Flow[tuple[T, A]]]: ...


@overload
def with_latest_from(a: Publisher[A], b: Publisher[B], /) -> Operator[T, Flow[tuple[T, A, B]]]: ...


@overload
def with_latest_from(
    a: Publisher[A], b: Publisher[B], c: Publisher[C], /
) -> Operator[T, Flow[tuple[T, A, B, C]]]: ...


@overload
def with_latest_from(
    a: Publisher[A], b: Publisher[B], c: Publisher[C], d: Publisher[D], /
) -> Operator[T, Flow[tuple[T, A, B, C, D]]]: ...


@overload
def with_latest_from(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    /,
) -> Operator[T, Flow[tuple[T, A, B, C, D, E]]]: ...


@overload
def with_latest_from(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    /,
) -> Operator[T, Flow[tuple[T, A, B, C, D, E, F]]]: ...


@overload
def with_latest_from(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    /,
) -> Operator[T, Flow[tuple[T, A, B, C, D, E, F, G]]]: ...


@overload
def with_latest_from(*others: Publisher[A]) -> Operator[T, Flow[tuple[T | A, ...]]]: ...


def with_latest_from(
    *others: Publisher[Any],  # Any, here and below: the flows are of many types
) -> Operator[Any, Flow[Any]]:
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
    """
    check_sources("with_latest_from", others)
    if not others:
        raise ValueError("with_latest_from() takes at least one flow; for none use map()")
    return coordinated(
        "with_latest_from",
        described(len(others), None),
        lambda flow, downstream, label: WithLatestFrom(flow, others, downstream, label),
        others=others,
    )


@final
class WithLatestFrom(Coordinator[tuple[Any, ...]]):
    """Runs `with_latest_from`."""

    __slots__ = ("_flows", "_main", "_others", "_ready", "_source")

    def __init__(
        self,
        source: Flow[Any],
        flows: tuple[Publisher[Any], ...],
        downstream: CoreSubscriber[tuple[Any, ...]],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._flows = flows
        self._main: Listener[Any] | None = Listener(self, self._on_item, self.end)
        self._others = tuple(LatestInput[Any](self, self._on_other_end) for _ in flows)
        self._ready = False
        """True once each of the others has emitted an item."""

    @override
    def open(self) -> None:
        for source, one in builtins.zip(self._flows, self._others, strict=False):
            if self.over:
                return
            self.connect(source, one)
        main = self._main
        if main is not None:
            self.connect(self._source, main)

    @override
    def requested(self, n: int) -> None:
        main = self._main
        if main is not None:
            main.request(n)

    @override
    def closed(self) -> None:
        self._main = None
        self._others = ()

    def _on_item(self, item: Any) -> bool:
        row = [item]
        row += [one.value for one in self._others]
        if not self._ready:
            for value in row:
                if value is EMPTY:
                    return False
            self._ready = True
        return self.emit(tuple(row))

    def _on_other_end(self, one: LatestInput[Any], error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)
        elif one.value is EMPTY:
            self.complete()  # there will never be an item
