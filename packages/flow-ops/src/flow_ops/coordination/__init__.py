"""What operators with several sources, a clock or a second signal are made of."""

from flow_ops.coordination.assembly import (
    Coordinated,
    coordinated,
    coordinated_source,
    labelled,
)
from flow_ops.coordination.buffered import BufferedInput
from flow_ops.coordination.coordinator import Coordinator, Input, Listener
from flow_ops.coordination.failures import blamed, combined, no_stop, overflow
from flow_ops.coordination.passing import Passing

__all__ = [
    "BufferedInput",
    "Coordinated",
    "Coordinator",
    "Input",
    "Listener",
    "Passing",
    "blamed",
    "combined",
    "coordinated",
    "coordinated_source",
    "labelled",
    "no_stop",
    "overflow",
]
