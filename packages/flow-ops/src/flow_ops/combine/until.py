"""`take_until_other` and `skip_until_other`: another flow says when."""

from __future__ import annotations

from typing import TypeVar, final

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher
from flow_core.stages.template import describe
from flow_ops.combine._sources import check_sources
from flow_ops.coordination import Listener, Passing, coordinated

__all__ = ["skip_until_other", "take_until_other"]

T = TypeVar("T")


def take_until_other(other: Publisher[object]) -> Operator[T, Flow[T]]:
    """Items until `other` gives one, or completes.

    >>> import flow_core as flow
    >>> (
    ...     list(flow.range(3).take_until_other(flow.never())),
    ...     list(flow.just(1).take_until_other(flow.just("stop"))),
    ... )
    ([0, 1, 2], [])

    Demand: passed on. One item is requested of `other`, which is subscribed first.
    Thread: items keep that of the upstream; the end may come on that of `other`.
    Fusion: none.
    Errors: those of both flows; each cancels the other.

    Args:
        other: ends the flow.

    Raises:
        TypeError: if `other` is no publisher.
    """
    check_sources("take_until_other", (other,))
    return coordinated(
        "take_until_other",
        describe(other),
        lambda flow, downstream, label: TakeUntil(flow, other, downstream, label),
    )


def skip_until_other(other: Publisher[object]) -> Operator[T, Flow[T]]:
    """Items from when `other` gives its first one; those before are dropped.

    >>> import flow_core as flow
    >>> list(flow.range(3).skip_until_other(flow.just("go")))
    [0, 1, 2]

    If `other` completes without an item, no item comes at all, only the end.

    Demand: passed on; a dropped item is requested again. One item is requested of `other`, which is
    subscribed first, and cancelled when it has come.
    Thread: that of the upstream. Fusion: none.
    Errors: those of both flows; each cancels the other.

    Args:
        other: opens the flow.

    Raises:
        TypeError: if `other` is no publisher.
    """
    check_sources("skip_until_other", (other,))
    return coordinated(
        "skip_until_other",
        describe(other),
        lambda flow, downstream, label: SkipUntil(flow, other, downstream, label),
    )


class _Until(Passing[T]):
    """Passes the signals of a flow on, and listens to another one."""

    __slots__ = ("_other", "_source", "_until")

    def __init__(
        self,
        source: Flow[T],
        other: Publisher[object],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._other = other
        self._until: Listener[object] | None = Listener(self, self._on_other, self._on_other_end, 1)

    def open(self) -> None:
        """See `Coordinator.open`."""
        if self._until is not None:
            self.connect(self._other, self._until)
        self.follow(self._source)

    def closed(self) -> None:
        """See `Coordinator.closed`."""
        super().closed()
        self._until = None

    def _on_other(self, _: object) -> None:
        """The other flow has given an item."""

    def _on_other_end(self, error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)


@final
class TakeUntil(_Until[T]):
    """See `take_until_other`."""

    __slots__ = ()

    def _on_other(self, _: object) -> None:
        self.complete()

    def _on_other_end(self, error: BaseException | None) -> None:
        self.end(error)


@final
class SkipUntil(_Until[T]):
    """See `skip_until_other`."""

    __slots__ = ("_is_open",)

    def __init__(
        self,
        source: Flow[T],
        other: Publisher[object],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(source, other, downstream, label)
        self._main = Listener(self, self._on_item, self.end)
        self._is_open = False

    def _on_item(self, item: T) -> bool:
        return self._is_open and self.emit(item)

    def _on_other(self, _: object) -> None:
        self._is_open = True
        until, self._until = self._until, None
        if until is not None:
            self.disconnect(until)  # it has said all it has to say
