"""`on_backpressure_error`: an item that is not requested fails the flow."""

from __future__ import annotations

from typing import TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import MissingBackpressureError
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_ops.coordination import coordinated
from flow_ops.demand.backpressured import NothingWaits

__all__ = ["on_backpressure_error"]

T = TypeVar("T")


def on_backpressure_error() -> Operator[T, Flow[T]]:
    """Fail with MissingBackpressureError if an item comes when there is no demand.

    >>> import flow_core as flow
    >>> list(flow.range(3).on_backpressure_error())
    [0, 1, 2]

    Demand: everything is requested of the upstream, at once; items come on demand.
    Thread: that of the upstream. Fusion: none.
    Errors: the MissingBackpressureError, which cancels the upstream. The item goes to the
    dropped-items hook.
    """
    return coordinated("on_backpressure_error", "", Failing)


@final
class Failing(NothingWaits[T]):
    """Runs `on_backpressure_error`."""

    __slots__ = ()

    @override
    def surplus(self, item: T) -> BaseException | None:
        hooks.drop_item(item)
        if self.over:
            return None
        return MissingBackpressureError(
            f"{self.label}: an item came that was not requested; request more, or use another "
            "back-pressure operator: buffer, drop, latest or reduce"
        )
