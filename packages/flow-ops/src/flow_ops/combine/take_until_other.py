"""`take_until_other`: items until another flow emits one."""

from __future__ import annotations

from typing import TypeVar, final

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.stages import describe
from flow_ops.combine._sources import check_sources
from flow_ops.combine._until import Until
from flow_ops.coordination import coordinated

__all__ = ["TakeUntil", "take_until_other"]

T = TypeVar("T")


def take_until_other(other: Publisher[object]) -> Operator[T, Flow[T]]:
    """Items until `other` emits an item or completes.

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
        other: its first item, or its completion, ends the flow.

    Raises:
        TypeError: if `other` is not a publisher.
    """
    check_sources("take_until_other", (other,))
    return coordinated(
        "take_until_other",
        describe(other),
        lambda flow, downstream, label: TakeUntil(flow, other, downstream, label),
        others=(other,),
    )


@final
class TakeUntil(Until[T]):
    """Runs `take_until_other`."""

    __slots__ = ()

    def _on_other(self, _: object) -> None:
        self.complete()

    def _on_other_end(self, error: BaseException | None) -> None:
        self.end(error)
