"""`skip_until_other`: items after another flow has emitted one."""

from __future__ import annotations

from typing import TypeVar, final

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher
from flow_core.stages import describe
from flow_ops.combine._sources import check_sources
from flow_ops.combine._until import Until
from flow_ops.coordination import Listener, coordinated

__all__ = ["SkipUntil", "skip_until_other"]

T = TypeVar("T")


def skip_until_other(other: Publisher[object]) -> Operator[T, Flow[T]]:
    """The items that come after the first item of `other`; earlier items are dropped.

    >>> import flow_core as flow
    >>> list(flow.range(3).skip_until_other(flow.just("go")))
    [0, 1, 2]

    If `other` completes without an item, no item comes at all, only the end.

    Demand: passed on; a dropped item is requested again. One item is requested of `other`, which is
    subscribed first, and cancelled when its item has come.
    Thread: that of the upstream. Fusion: none.
    Errors: those of both flows; each cancels the other.

    Args:
        other: its first item lets items through.

    Raises:
        TypeError: if `other` is not a publisher.
    """
    check_sources("skip_until_other", (other,))
    return coordinated(
        "skip_until_other",
        describe(other),
        lambda flow, downstream, label: SkipUntil(flow, other, downstream, label),
        others=(other,),
    )


@final
class SkipUntil(Until[T]):
    """Runs `skip_until_other`."""

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
            self.disconnect(until)  # it is no longer needed
