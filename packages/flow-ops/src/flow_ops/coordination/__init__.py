"""The base of operators with several sources, a clock or a second signal."""

from flow_ops.coordination.assembly import (
    Coordinated,
    coordinated,
    coordinated_source,
)
from flow_ops.coordination.buffered import BufferedInput
from flow_ops.coordination.coordinator import Coordinator, Input, Listener
from flow_ops.coordination.failures import blamed, combined, no_stop, overflow
from flow_ops.coordination.mapper import Mapper, itself
from flow_ops.coordination.passing import Passing
from flow_ops.coordination.polled import PolledInput

__all__ = [
    "BufferedInput",
    "Coordinated",
    "Coordinator",
    "Input",
    "Listener",
    "Mapper",
    "Passing",
    "PolledInput",
    "blamed",
    "combined",
    "coordinated",
    "coordinated_source",
    "itself",
    "no_stop",
    "overflow",
]
