"""Where items come from."""

from flow_core.sources.calls import defer, error, from_callable, from_publisher, never
from flow_core.sources.iterables import empty, from_iterable, just, range

__all__ = [
    "defer",
    "empty",
    "error",
    "from_callable",
    "from_iterable",
    "from_publisher",
    "just",
    "never",
    "range",
]
