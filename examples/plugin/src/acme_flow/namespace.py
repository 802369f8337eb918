"""Methods for flows: ``flow.acme.smooth()``."""

from typing import Generic, TypeVar

from acme_flow.operators import every, smoothed
from flow_core import Flow, register_namespace

T_co = TypeVar("T_co", covariant=True)


@register_namespace("acme")
class Acme(Generic[T_co]):
    """The methods that acme-flow adds to a flow."""

    def __init__(self, flow: Flow[T_co]) -> None:
        self._flow = flow

    def every(self, n: int) -> Flow[T_co]:
        """Emit each n-th item."""
        return self._flow.pipe(every(n))

    def smooth(self: "Acme[float]", count: int = 3) -> Flow[float]:
        """Emit the mean of each `count` consecutive items."""
        return self._flow.pipe(lambda flow: smoothed(flow, count))
