"""The end of a flow whose parts are kept and never read."""

from __future__ import annotations

import gc
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from flow_core.clocks import Clock, home_clock
from flow_core.errors import MissingBackpressureError
from flow_core.protocols import Disposable
from flow_core.serial import HAS_GIL
from flow_ops.time._timed import SLACK_S

if TYPE_CHECKING:
    from flow_ops.group._splitting import Splitting

__all__ = ["PATIENCE_S", "Standstill"]

_log: Final = logging.getLogger("flow_ops")

PATIENCE_S: Final = 1.0
"""The time, in seconds, without any progress after which a flow fails.

A thread or task that gets a part normally reads it some milliseconds later.
"""

_LOOKS_S: Final = PATIENCE_S if HAS_GIL else 0.05
"""The interval, in seconds, at which `Standstill` looks while nothing moves.

With the GIL, a part without references is closed when it is freed. Without the GIL, `Standstill`
has to look for such parts and close them. There, the thread that made a part frees it when that
thread next runs Python code; if the thread waits for this very flow, only the garbage collector can
free the part, so `Standstill` runs it once.
"""


@final
class Standstill:
    """Fails a flow when nothing has moved for a while and nothing in it can move.

    Nothing can move when each item that may wait waits in a part that is not read, and

    * the reader of another part has asked for an item, which cannot come; or
    * no part has been read so far, and all of them were sent.

    Otherwise a reader is at work: it has items to take, or parts to request, and may take any time.
    If a part may end by something other than its items, such as a timer, its reader may be waiting
    for just that: then the standstill is only logged, once.

    Args:
        hub: the operator that splits the flow. All methods but `_glance` are called with its
            permit.
    """

    __slots__ = ("_clock", "_collected", "_hub", "_since_s", "_timer", "_told")

    def __init__(self, hub: Splitting[Any, Any]) -> None:  # Any: its items do not matter
        self._hub = hub
        self._clock: Clock | None = None
        self._timer: Disposable | None = None
        self._since_s = 0.0
        """The time of the last item for which there was room."""
        self._collected = HAS_GIL
        """True once garbage was collected since that time. With a GIL, this is not needed: dropping
        a part frees it at once."""
        self._told = False

    def begin(self) -> None:
        """Start to watch: the last item that there is room for has come."""
        clock = self._clock
        if clock is None:
            clock = self._clock = home_clock(None, self._hub.home)
        self._since_s = clock.now()
        if self._timer is None:
            self._hub.drop_unheld()
            self._collected = HAS_GIL
            self._wait(clock, _LOOKS_S)

    def end(self) -> None:
        """Stop: the flow has ended."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.dispose()

    def _wait(self, clock: Clock, delay_s: float) -> None:
        self._timer = clock.schedule(delay_s, partial(self._glance, clock))

    def _glance(self, clock: Clock) -> None:
        """Look, if it is time.

        This runs without the permit: otherwise a thread with items would leave its work to this
        one.
        """
        left_s = self._since_s + _LOOKS_S - clock.now()
        if left_s > SLACK_S:
            self._wait(clock, left_s)
        else:
            self._hub.post(self._look, clock)

    def _look(self, clock: Clock) -> None:
        hub = self._hub
        self._timer = None
        hub.drop_unheld()
        if not self._collected and hub.full and hub.unread():
            self._collected = True
            self._collect()
        if not hub.full:
            return  # the next item that takes the last room starts the watch again
        left_s = self._since_s + PATIENCE_S - clock.now()
        if left_s > SLACK_S:
            self._wait(clock, min(left_s, _LOOKS_S))
            return
        if hub.unread():
            starves = any(part.starves for part in list(hub.open_parts()))
            if starves or not (hub.read or hub.parts_wait):
                if not HAS_GIL:
                    self._collect()
                if not hub.full:
                    return
                if not (starves and hub.ends_parts):
                    hub.hurry()
                    raise MissingBackpressureError(self._message(""))
                self._tell()
        self._wait(clock, PATIENCE_S if self._told else _LOOKS_S)

    def _collect(self) -> None:
        """Free the parts that were dropped by threads other than those that made them."""
        gc.collect()
        self._hub.drop_unheld()

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            _log.warning("%s", self._message(" until one of its parts ends"))

    def _message(self, how_long: str) -> str:
        hub = self._hub
        names, count = hub.names, sum(bool(part.waiting) for part in list(hub.unsubscribed))
        hold = f"{count} unread {names} hold"
        if count == 1:
            hold = f"1 unread {names.removesuffix('s')} holds"
        return (
            f"{hub.label} stands still{how_long}: {hold} all {hub.prefetch} items that may wait; "
            f"read all {names} at the same time, as flat_map() does with a concurrency as large as "
            f"their number, or keep no reference to {names} that are not wanted, or raise prefetch"
        )
