"""One flow, many subscribers.

>>> from flow_multicast import MulticastProcessor
>>> numbers = MulticastProcessor[int]()
>>> handle = numbers.flow.map(lambda n: n * n).subscribe(print)
>>> numbers.on_next(3)
9
"""

from typing import TYPE_CHECKING

from flow_core.errors import no_such_name
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

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then

    def __getattr__(name: str) -> object:
        no_such_name(__name__, name)
