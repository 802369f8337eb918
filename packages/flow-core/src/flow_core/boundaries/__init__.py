"""Operators that are separate publishers: the loops before and after them are separate."""

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
"""Names that are loaded when they are first used: some of their modules make flows, which import
others."""

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES)
