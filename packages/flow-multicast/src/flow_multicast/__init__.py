"""One flow, many subscribers.

>>> from flow_multicast import MulticastProcessor
>>> numbers = MulticastProcessor[int]()
>>> handle = numbers.flow.map(lambda n: n * n).subscribe(print)
>>> numbers.on_next(3)
9
"""

from flow_multicast.connectables import (
    Connectable,
    ConnectableBase,
    DisconnectedError,
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    share,
)
from flow_multicast.processors import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    SerializedProcessor,
    UnicastProcessor,
    serialized,
)
from flow_multicast.sink import EmitError, EmitResult, Sink

__all__ = [
    "AsyncProcessor",
    "BehaviorProcessor",
    "Connectable",
    "ConnectableBase",
    "DirectProcessor",
    "DisconnectedError",
    "EmitError",
    "EmitResult",
    "MulticastProcessor",
    "ReplayProcessor",
    "SerializedProcessor",
    "Sink",
    "UnicastProcessor",
    "cache",
    "multicast",
    "publish",
    "publish_value",
    "replay",
    "serialized",
    "share",
]
