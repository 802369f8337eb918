"""The ends of flows: callbacks, blocking and asynchronous iteration, a guard for others."""

from typing import TYPE_CHECKING, Final

from flow_core.exports import exported

if TYPE_CHECKING:
    from flow_core.subscribers._blocking import check_may_block, wait_for
    from flow_core.subscribers._callbacks import CallbackSubscriber
    from flow_core.subscribers._strict import StrictSubscriber, core_subscriber

__all__ = [
    "CallbackSubscriber",
    "StrictSubscriber",
    "check_may_block",
    "core_subscriber",
    "wait_for",
]

_PLACES: Final = {
    "._blocking": ("check_may_block", "wait_for"),
    "._callbacks": ("CallbackSubscriber",),
    "._strict": (
        "StrictSubscriber",
        "core_subscriber",
    ),
}
"""Names that are loaded when they are first used: some of their modules make flows, which import
others."""

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES)
