"""One flow, many subscribers.

>>> from flow_multicast import MulticastProcessor
>>> numbers = MulticastProcessor[int]()
>>> handle = numbers.flow.map(lambda n: n * n).subscribe(print)
>>> numbers.on_next(3)
9
"""

from flow_multicast.connectables import (
    Connectable,
    ConnectableStatistics,
    DisconnectedError,
    multicast,
    publish,
    share,
)
from flow_multicast.processors import (
    MulticastProcessor,
    MulticastStatistics,
    UnicastProcessor,
    UnicastStatistics,
)

__all__ = [
    "Connectable",
    "ConnectableStatistics",
    "DisconnectedError",
    "MulticastProcessor",
    "MulticastStatistics",
    "UnicastProcessor",
    "UnicastStatistics",
    "multicast",
    "publish",
    "share",
]
