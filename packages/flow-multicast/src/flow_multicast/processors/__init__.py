"""Processors: publishers that are fed by hand, or by being subscribed to another publisher."""

from flow_multicast.processors.multicast import MulticastProcessor, MulticastStatistics
from flow_multicast.processors.unicast import UnicastProcessor, UnicastStatistics

__all__ = ["MulticastProcessor", "MulticastStatistics", "UnicastProcessor", "UnicastStatistics"]
