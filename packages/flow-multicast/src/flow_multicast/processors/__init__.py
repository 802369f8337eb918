"""Processors: publishers that are fed by hand, or by being subscribed to another publisher."""

from flow_multicast.processors.async_ import AsyncProcessor
from flow_multicast.processors.behavior import BehaviorProcessor
from flow_multicast.processors.direct import DirectProcessor
from flow_multicast.processors.multicast import MulticastProcessor
from flow_multicast.processors.replay import ReplayProcessor
from flow_multicast.processors.serialized import SerializedProcessor, serialized
from flow_multicast.processors.unicast import UnicastProcessor

__all__ = [
    "AsyncProcessor",
    "BehaviorProcessor",
    "DirectProcessor",
    "MulticastProcessor",
    "ReplayProcessor",
    "SerializedProcessor",
    "UnicastProcessor",
    "serialized",
]
