"""`rate_limit`: at most a number of items in a length of time."""

from __future__ import annotations

from typing import Final, TypeVar, final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds, check_period
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber
from flow_ops.coordination import BufferedInput, coordinated
from flow_ops.time._timed import SLACK_S, Timed, checked_clock, seconds

__all__ = ["rate_limit"]

T = TypeVar("T")

_LATE_S: Final = 0.1
"""A timer that is late by up to this time, in seconds, is compensated for."""


def rate_limit(
    n: int, per: Seconds = 1.0, *, burst: int = 1, clock: Clock | None = None
) -> Operator[T, Flow[T]]:
    """Send at most `n` items in `per` seconds; items that come too early wait, none is dropped.

    >>> import flow_core as flow
    >>> from flow_testing import VirtualClock
    >>> clock = VirtualClock()
    >>> limited = flow.range(5).rate_limit(2, clock=clock).timestamp(clock=clock)
    >>> handle = limited.subscribe(lambda item: print(item.item, "at", item.time_s))
    0 at 0.0
    >>> clock.run()
    1 at 0.5
    2 at 1.0
    3 at 1.5
    4 at 2.0

    By default, items are at least ``per / n`` seconds apart. With a `burst` of 5, five items may
    come at once after a pause, as with a bucket that holds five tokens, is full at first, and gets
    `n` tokens in `per` seconds. A timer that is late, by up to a tenth of a second, is compensated
    for: the next item is due as if the timer had been on time.

    Demand: exact; `burst` items, or 128 if that is less, are requested of the upstream ahead, and
    wait for their time. Time without demand counts as a pause.
    Thread: the upstream's, or that of the request, for items that need not wait; the clock's for
    the others. Fusion: polls an upstream that grants SYNC or ASYNC across threads.
    Errors: those of the upstream, after the items that came before them. RejectedExecutionError if
    the clock takes no task.

    Args:
        n: how many items may come in `per` seconds.
        per: the length of time, in seconds.
        burst: how many items may come at once after a pause.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if a number is of the wrong type, or `clock` is not a clock.
        ValueError: if `n` or `burst` is less than 1, or `per` not above 0 and finite.
    """
    check_prefetch(n, "n")
    per_s = check_period(per)
    check_prefetch(burst, "burst")
    telling = checked_clock(clock)
    detail = f"{n}, {seconds(per_s)}" + (f", burst={burst}" if burst != 1 else "")
    return coordinated(
        "rate_limit",
        detail,
        lambda flow, downstream, label: RateLimit(
            flow, downstream, label, pause_s=per_s / n, burst=burst, clock=telling
        ),
        min(burst, DEFAULT_PREFETCH),
    )


@final
class RateLimit(Timed[T]):
    """Runs `rate_limit`, by the generic cell rate algorithm, which counts no tokens.

    Args:
        source: the upstream.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
        pause_s: how long between two items.
        burst: how many may come at once.
        clock: the clock; see `home_clock`.
    """

    __slots__ = ("_early_s", "_full_s", "_items", "_pause_s", "_source", "_waited")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        pause_s: float,
        burst: int,
        clock: Clock | None,
    ) -> None:
        super().__init__(downstream, label, clock)
        self._source: Flow[T] | None = source
        self._pause_s = pause_s
        self._early_s = (burst - 1) * pause_s
        """The time by which an item may come early, in seconds."""
        self._full_s = self.clock.now()
        """The time from which on the next item is not early: the bucket is full again by then."""
        self._waited = False
        """True if the next item has waited for nothing but the timer."""
        self._items: BufferedInput[T] | None = BufferedInput(self, min(burst, DEFAULT_PREFETCH))

    @override
    def open(self) -> None:
        source, self._source = self._source, None
        items = self._items
        if source is not None and items is not None:
            self.connect(source, items)

    @override
    def step(self) -> None:
        items = self._items
        while not (self.over or items is None):
            if items.ended():
                error, items.error = items.error, None
                self.end(error)
                return
            if not self.demand:
                self._waited = False
                return
            now_s = self.clock.now()
            due_s = self._full_s - self._early_s
            if due_s - now_s > SLACK_S:
                self._waited = True
                self.wake_at(due_s)
                return
            item = items.poll()
            if item is EMPTY:
                if items.done:  # it has ended meanwhile
                    continue
                self._waited = False
                return
            earliest_s = now_s - _LATE_S if self._waited else now_s
            self._full_s = max(self._full_s, earliest_s) + self._pause_s
            self.emit(item)

    @override
    def closed(self) -> None:
        super().closed()
        self._source = None
        items, self._items = self._items, None
        if items is not None:
            items.close()

    @property
    @override
    def buffered(self) -> int:
        items = self._items  # read once: the end of the flow clears it
        return 0 if items is None else items.waiting
