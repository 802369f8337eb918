"""One flow, many subscribers.

>>> from flow_multicast import MulticastProcessor
>>> numbers = MulticastProcessor[int]()
>>> handle = numbers.flow.map(lambda n: n * n).subscribe(print)
>>> numbers.on_next(3)
9
"""

from flow_multicast.processors import (
    MulticastProcessor,
    MulticastStatistics,
    UnicastProcessor,
    UnicastStatistics,
)

__all__ = ["MulticastProcessor", "MulticastStatistics", "UnicastProcessor", "UnicastStatistics"]
