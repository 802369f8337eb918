"""Where items come from."""

from typing import TYPE_CHECKING, Final

from flow_core.exports import exported

if TYPE_CHECKING:
    from flow_core.sources.async_iterables import from_async_iterable, using_when
    from flow_core.sources.calls import defer, error, from_callable, from_publisher, never
    from flow_core.sources.creating import create
    from flow_core.sources.futures import from_future
    from flow_core.sources.generating import generate, repeat_callable, repeat_value
    from flow_core.sources.iterables import empty, from_iterable, just, range
    from flow_core.sources.resources import using

__all__ = [
    "create",
    "defer",
    "empty",
    "error",
    "from_async_iterable",
    "from_callable",
    "from_future",
    "from_iterable",
    "from_publisher",
    "generate",
    "just",
    "never",
    "range",
    "repeat_callable",
    "repeat_value",
    "using",
    "using_when",
]

_PLACES: Final = {
    ".async_iterables": ("from_async_iterable", "using_when"),
    ".calls": ("defer", "error", "from_callable", "from_publisher", "never"),
    ".creating": ("create",),
    ".futures": ("from_future",),
    ".generating": ("generate", "repeat_callable", "repeat_value"),
    ".iterables": ("empty", "from_iterable", "just", "range"),
    ".resources": ("using",),
}
"""These make flows, which are made of classes of this package: either has to come first."""

if not TYPE_CHECKING:  # for whom anything would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES)
