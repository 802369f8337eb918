"""What operators with several sources, a clock or a second signal are made of."""

from flow_ops.coordination.assembly import (
    Coordinated,
    coordinated,
    coordinated_source,
    labelled,
)
from flow_ops.coordination.buffered import BufferedInput
from flow_ops.coordination.coordinator import Coordinator, Input, Listener

__all__ = [
    "BufferedInput",
    "Coordinated",
    "Coordinator",
    "Input",
    "Listener",
    "coordinated",
    "coordinated_source",
    "labelled",
]
