"""`on_backpressure_drop`: items that are not requested are dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber
from flow_core.stages import describe
from flow_ops.coordination import coordinated
from flow_ops.demand.backpressured import NothingWaits

__all__ = ["on_backpressure_drop"]

T = TypeVar("T")


def on_backpressure_drop(
    on_drop: Callable[[T], object] | None = None,
) -> Operator[T, Flow[T]]:
    """Drop items that come when there is no demand.

    >>> import flow_core as flow
    >>> list(flow.range(5).on_backpressure_drop(print).iterate(prefetch=2))
    2
    3
    4
    [0, 1]

    Demand: everything is requested of the upstream, at once; items come on demand.
    Thread: that of the upstream; `on_drop` runs there, too. Fusion: none.
    Errors: an error raised by `on_drop` fails the flow and cancels the upstream.

    Args:
        on_drop: called with each item that is dropped. These items go to the dropped-items hook,
            too.

    Raises:
        TypeError: if `on_drop` cannot be called.
    """
    if on_drop is not None and not callable(on_drop):
        raise TypeError(f"on_backpressure_drop() takes a function of an item, not {on_drop!r}")
    return coordinated(
        "on_backpressure_drop",
        "" if on_drop is None else describe(on_drop),
        lambda flow, downstream, label: Dropping(flow, on_drop, downstream, label),
    )


@final
class Dropping(NothingWaits[T]):
    """Runs `on_backpressure_drop`."""

    __slots__ = ("_on_drop",)

    def __init__(
        self,
        source: Flow[T],
        on_drop: Callable[[T], object] | None,
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(source, downstream, label)
        self._on_drop = on_drop

    @override
    def surplus(self, item: T) -> None:
        self.lose(item, self._on_drop)
