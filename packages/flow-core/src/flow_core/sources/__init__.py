"""Sources: the beginnings of flows."""

from typing import TYPE_CHECKING, Final

from flow_core.exports import exported

if TYPE_CHECKING:
    from flow_core.sources._async_iterables import from_async_iterable, using_when
    from flow_core.sources._calls import (
        ErrorSource,
        defer,
        error,
        from_callable,
        from_publisher,
        never,
    )
    from flow_core.sources._creating import create
    from flow_core.sources._emitter import OVERFLOWS, Emitter, EmitterSubscription, Overflow
    from flow_core.sources._futures import from_future
    from flow_core.sources._generating import generate, repeat_callable, repeat_value
    from flow_core.sources._idle import fail
    from flow_core.sources._items import ItemsSource, RangeSource
    from flow_core.sources._iterables import empty, from_iterable, just, range
    from flow_core.sources._loops import EVER_S, LoopWatch, closed_loop, in_loop
    from flow_core.sources._resources import using

__all__ = [
    "EVER_S",
    "OVERFLOWS",
    "Emitter",
    "EmitterSubscription",
    "ErrorSource",
    "ItemsSource",
    "LoopWatch",
    "Overflow",
    "RangeSource",
    "closed_loop",
    "create",
    "defer",
    "empty",
    "error",
    "fail",
    "from_async_iterable",
    "from_callable",
    "from_future",
    "from_iterable",
    "from_publisher",
    "generate",
    "in_loop",
    "just",
    "never",
    "range",
    "repeat_callable",
    "repeat_value",
    "using",
    "using_when",
]

FUNCTIONS: Final = (
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
)
"""The names of the functions that make flows."""

_PLACES: Final = {
    "._async_iterables": (
        "from_async_iterable",
        "using_when",
    ),
    "._calls": (
        "ErrorSource",
        "defer",
        "error",
        "from_callable",
        "from_publisher",
        "never",
    ),
    "._creating": ("create",),
    "._emitter": (
        "Emitter",
        "EmitterSubscription",
        "OVERFLOWS",
        "Overflow",
    ),
    "._futures": ("from_future",),
    "._generating": (
        "generate",
        "repeat_callable",
        "repeat_value",
    ),
    "._idle": ("fail",),
    "._items": (
        "ItemsSource",
        "RangeSource",
    ),
    "._iterables": (
        "empty",
        "from_iterable",
        "just",
        "range",
    ),
    "._loops": (
        "EVER_S",
        "LoopWatch",
        "closed_loop",
        "in_loop",
    ),
    "._resources": ("using",),
}
"""Modules that make flows. These need classes of this package, so the modules are loaded later."""

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES)
