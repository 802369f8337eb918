"""Operators that are publishers of their own: the loops before and after them are separate."""

from typing import TYPE_CHECKING, Final

from flow_core.exports import exported

if TYPE_CHECKING:
    from flow_core.boundaries._lifting import lift, serialize

__all__ = [
    "lift",
    "serialize",
]

_PLACES: Final = {
    "._lifting": (
        "lift",
        "serialize",
    ),
}
"""Loaded when they are first used: some make flows, which are made of others."""

if not TYPE_CHECKING:  # for whom anything would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES)
