"""`on_backpressure_latest`: the last item that is not requested waits."""

from __future__ import annotations

from typing import TypeVar, final

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_ops.coordination import coordinated
from flow_ops.demand.backpressured import Backpressured

__all__ = ["on_backpressure_latest"]

T = TypeVar("T")


def on_backpressure_latest() -> Operator[T, Flow[T]]:
    """Keep only the last of the items that come when there is no demand.

    >>> import flow_core as flow
    >>> list(flow.range(9).on_backpressure_latest().iterate(prefetch=2))
    [0, 1, 8]

    Demand: everything is requested of the upstream, at once; items come on demand. The item that
    waits when the upstream ends is still delivered, before on_complete or on_error.
    Thread: that of the upstream; an item that waited comes on the requester's thread. Fusion: none.
    Errors: the upstream's, after the item that waits. An item that is replaced goes to the
    dropped-items hook.
    """
    return coordinated("on_backpressure_latest", "", Latest)


@final
class Latest(Backpressured[T]):
    """Runs `on_backpressure_latest`."""

    __slots__ = ()

    @override
    def surplus(self, item: T) -> None:
        self.discard()
        self.waiting.append(item)
        self.signal()
