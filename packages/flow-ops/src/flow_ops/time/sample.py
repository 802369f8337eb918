"""`sample`, also called `throttle_last`: the newest item at regular times."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar, final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds, check_period
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber, Empty, Publisher
from flow_core.stages import describe
from flow_ops.coordination import coordinated
from flow_ops.time._timed import Newest, NewestInput, checked_clock, nothing, seconds

__all__ = ["sample"]

T = TypeVar("T")


def sample(
    sampler: Seconds | Publisher[object],
    *,
    emit_last: bool = False,
    clock: Clock | None = None,
) -> Operator[T, Flow[T]]:
    """Send the newest item of each period, if there is a new one.

    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> from flow_ops import interval
    >>> clock, seen = VirtualClock(), TestSubscriber[int]()
    >>> interval(1, clock=clock).sample(3.2, clock=clock).subscribe(seen)
    >>> clock.advance_by(10)
    >>> seen.items
    [2, 5, 8]

    `throttle_last` is another name for it.

    Demand: everything is requested of the upstream and of the sampler. A sample that is taken when
    there is no demand waits for a request; if another sample is taken before the request, it
    replaces the waiting one, which goes to the dropped-items hook. The flow completes once the
    sample that waits was sent. Items that are not the newest when a sample is taken are ignored.
    Thread: that of the clock or of the sampler; a sample that waited comes on the thread that
    requests. Fusion: none.
    Errors: those of the upstream and of the sampler, at once: they overtake a sample that waits.

    Args:
        sampler: how long between samples, in seconds, above 0; or a flow: each of its items takes a
            sample, and its end ends this flow.
        emit_last: whether a sample is taken at the end, too.
        clock: the clock, if `sampler` is a period; None for that of the loop that runs the flow, or
            else of the process.

    Raises:
        TypeError: if `sampler` is neither a time nor a flow, or `clock` is not a clock.
        ValueError: if the period is not above 0 and finite.
    """
    telling = checked_clock(clock)
    if isinstance(sampler, (int, float, timedelta)):
        period = check_period(sampler)
        return coordinated(
            "sample",
            seconds(period),
            lambda flow, downstream, label: SampleEach(
                flow, downstream, label, period_s=period, clock=telling, emit_last=emit_last
            ),
        )
    if not hasattr(sampler, "subscribe"):
        raise TypeError(f"sample() takes a time or a flow, not {sampler!r}")
    return coordinated(
        "sample",
        describe(sampler),
        lambda flow, downstream, label: SampleBy(
            flow, downstream, label, sampler=sampler, clock=telling, emit_last=emit_last
        ),
    )


class _Sample(Newest[T, None]):
    """Keeps the newest item until a sample is taken."""

    __slots__ = ("_emit_last", "_newest", "_source")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        clock: Clock | None,
        emit_last: bool,
    ) -> None:
        super().__init__(downstream, label, clock, nothing)
        self._source = source
        self._emit_last = emit_last
        self._newest: T | Empty = EMPTY

    @override
    def open(self) -> None:
        main = self._main
        if main is not None:
            self.connect(self._source, main)

    @override
    def arrived(self, item: T, made: None) -> None:
        self._newest = item

    def take_sample(self) -> None:
        """Send the newest item, if there is a new one. The caller must hold the permit."""
        newest, self._newest = self._newest, EMPTY
        if newest is not EMPTY:
            self.give(newest)

    @override
    def last(self) -> None:
        if self._emit_last:
            self.take_sample()

    @override
    def closed(self) -> None:
        super().closed()
        self._newest = EMPTY


@final
class SampleEach(_Sample[T]):
    """Runs `sample` with a period."""

    __slots__ = ("_period_s", "_tick_s")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        period_s: float,
        clock: Clock | None,
        emit_last: bool,
    ) -> None:
        super().__init__(source, downstream, label, clock=clock, emit_last=emit_last)
        self._period_s = period_s
        self._tick_s = 0.0

    @override
    def open(self) -> None:
        self.post(self._begin, None)
        super().open()

    @override
    def wake(self) -> None:
        # Delays do not add up, and ticks that were missed are not made up for.
        self._tick_s = max(self._tick_s + self._period_s, self.clock.now())
        self.wake_at(self._tick_s)
        self.take_sample()

    def _begin(self, _: object) -> None:
        self._tick_s = self.clock.now() + self._period_s
        self.wake_at(self._tick_s)


@final
class SampleBy(_Sample[T]):
    """Runs `sample` with a flow as the sampler."""

    __slots__ = ("_other", "_sampler")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        sampler: Publisher[object],
        clock: Clock | None,
        emit_last: bool,
    ) -> None:
        super().__init__(source, downstream, label, clock=clock, emit_last=emit_last)
        self._other = sampler
        self._sampler: NewestInput[object, None] | None = NewestInput(self, nothing)

    @override
    def open(self) -> None:
        sampler = self._sampler
        if sampler is not None:
            self.connect(self._other, sampler)
        super().open()

    @override
    def step(self) -> None:
        sampler = self._sampler
        ended = sampler is not None and sampler.done
        super().step()
        if sampler is None or self.over or self._ending:
            return
        if sampler.poll() is not EMPTY:
            self.take_sample()
        if ended and not self.over:
            self.release(sampler)
            error, sampler.error = sampler.error, None
            if error is None:
                self.finish()
                super().step()
            else:
                self.fail(error)

    @override
    def last(self) -> None:
        sampler = self._sampler
        if sampler is not None:
            self.disconnect(sampler)
        super().last()

    @override
    def closed(self) -> None:
        super().closed()
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.close()
