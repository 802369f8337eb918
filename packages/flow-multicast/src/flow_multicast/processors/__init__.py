"""Processors: publishers that are fed by hand, or by being subscribed to another publisher."""

from flow_multicast.processors.multicast import MulticastProcessor, MulticastStatistics

__all__ = ["MulticastProcessor", "MulticastStatistics"]
