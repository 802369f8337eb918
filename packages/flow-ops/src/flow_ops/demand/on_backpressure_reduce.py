"""`on_backpressure_reduce`: items that are not requested are reduced to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import NoneItemError
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber
from flow_core.stages import describe
from flow_ops.coordination import coordinated
from flow_ops.demand.backpressured import Backpressured

__all__ = ["on_backpressure_reduce"]

T = TypeVar("T")


def on_backpressure_reduce(reducer: Callable[[T, T], T]) -> Operator[T, Flow[T]]:
    """Reduce the items that come when there is no demand to one item.

    >>> import flow_core as flow
    >>> list(flow.range(9).on_backpressure_reduce(lambda a, b: a + b).iterate(prefetch=2))
    [0, 1, 35]

    Demand: everything is requested of the upstream, at once; items come on demand. The item that
    waits when the upstream ends is still delivered, before on_complete or on_error.
    Thread: that of the upstream, where the reducer runs; an item that waited comes on the
    requester's thread.
    Fusion: none.
    Errors: the upstream's, after the item that waits; an error raised by the reducer, at once.

    Args:
        reducer: combines the item that waits and the item that has come; must not return None. It
            is not called for an item that is requested, nor for the first one that waits.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if the reducer returns None.

    Raises:
        TypeError: if `reducer` cannot be called.
    """
    if not callable(reducer):
        raise TypeError(f"on_backpressure_reduce() takes a function of two items, not {reducer!r}")
    return coordinated(
        "on_backpressure_reduce",
        describe(reducer),
        lambda flow, downstream, label: Reduced(flow, reducer, downstream, label),
    )


@final
class Reduced(Backpressured[T]):
    """Runs `on_backpressure_reduce`."""

    __slots__ = ("_reducer",)

    def __init__(
        self,
        source: Flow[T],
        reducer: Callable[[T, T], T],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(source, downstream, label)
        self._reducer = reducer

    @override
    def surplus(self, item: T) -> None:
        if self.over:
            hooks.drop_item(item)
            return
        waiting = self.waiting
        try:
            before: T = waiting.popleft()  # delivered or reduced, whichever is first
        except IndexError:
            pass
        else:
            item = self._reducer(before, item)
            if item is None:
                raise NoneItemError(f"{self.label}: the reducer gave None, which is not an item")
        waiting.append(item)
        self.signal()
