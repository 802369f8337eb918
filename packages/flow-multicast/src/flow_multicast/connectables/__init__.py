"""Flows whose subscribers gather first, and which run once for all of them."""

from flow_core.connectable import Connectable
from flow_multicast.connectables.connectable import ConnectableBase
from flow_multicast.connectables.connection import DisconnectedError
from flow_multicast.connectables.publishing import (
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    share,
)

__all__ = [
    "Connectable",
    "ConnectableBase",
    "DisconnectedError",
    "cache",
    "multicast",
    "publish",
    "publish_value",
    "replay",
    "share",
]
