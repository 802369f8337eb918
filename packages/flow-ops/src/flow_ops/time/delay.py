"""`delay` and its relatives: items, or the subscription, come later."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.clocks import Clock, Seconds
from flow_core.errors import none_given
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Disposable, Publisher
from flow_core.stages import describe
from flow_ops.coordination import Coordinator, Input, Passing, coordinated, overflow
from flow_ops.time._timed import SLACK_S, Timed, checked_clock, checked_delay, seconds
from flow_ops.time.timer import timer
from flow_ops.transform.concat_map import concat_map

__all__ = ["delay", "delay_elements", "delay_subscription"]

T = TypeVar("T")


def delay(
    delay: Seconds, *, delay_error: bool = False, clock: Clock | None = None
) -> Operator[T, Flow[T]]:
    """Send all signals a while later.

    >>> import flow_core as flow
    >>> list(flow.range(3).delay(0.001))
    [0, 1, 2]

    Demand: passed on; items that wait count as requested. So no more items wait than were
    requested; if everything is requested, these are the items that the upstream sends within
    `delay`.
    Thread: the clock's. Fusion: none.
    Errors: those of the upstream, at once: they overtake the items that wait, unless `delay_error`
    is True. RejectedExecutionError if the clock takes no task.

    Args:
        delay: the time between the arrival of an item and its sending, in seconds, at least 0.
        delay_error: whether the upstream's error is delayed, too, and comes after the items before
            it.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `delay` is not a time, or `clock` is not a clock.
        ValueError: if `delay` is less than 0, or NaN.
    """
    later_s = checked_delay(delay, "the delay")
    waiting = checked_clock(clock)
    return coordinated(
        "delay",
        seconds(later_s) + (", delay_error=True" if delay_error else ""),
        lambda flow, downstream, label: Delay(
            flow, downstream, label, delay_s=later_s, delay_error=delay_error, clock=waiting
        ),
    )


def delay_elements(delay: Seconds, *, clock: Clock | None = None) -> Operator[T, Flow[T]]:
    """Send each item a while after the previous one, or after it came, if that is later.

    >>> import flow_core as flow
    >>> list(flow.range(3).delay_elements(0.001))
    [0, 1, 2]

    This is a `concat_map` with a `timer` for each item.

    Demand: exact; the delay of an item begins when there is demand for it. One item is requested
    ahead and waits for its turn.
    Thread: the clock's. Fusion: that of `concat_map`.
    Errors: those of the upstream, after the items that came before them. RejectedExecutionError if
    the clock takes no task.

    Args:
        delay: how long between two items, in seconds, at least 0; also before the first one.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `delay` is not a time, or `clock` is not a clock.
        ValueError: if `delay` is less than 0, or NaN.
    """
    pause_s = checked_delay(delay, "the delay")
    pause = timer(pause_s, clock=checked_clock(clock))

    def later(item: T) -> Flow[T]:
        return pause.map(lambda _: item)

    def apply(flow: Flow[T]) -> Flow[T]:
        return flow.pipe(concat_map(later, prefetch=1))

    return Operator("delay_elements", apply, seconds(pause_s))


def delay_subscription(
    delay: Seconds | Publisher[object], *, clock: Clock | None = None
) -> Operator[T, Flow[T]]:
    """Subscribe to the upstream later: after a while, or when another flow emits an item.

    >>> import flow_core as flow
    >>> list(flow.range(3).delay_subscription(0.001))
    [0, 1, 2]

    Demand: passed on; demand that comes earlier is requested as soon as the upstream is subscribed
    to. One item is requested of the other flow. The subscription does not wait for demand.
    Thread: the upstream is subscribed to on the clock's thread, or where the other flow sends its
    first item or completes. Items keep the upstream's thread. Fusion: none.
    Errors: those of both flows. RejectedExecutionError if the clock takes no task.

    Args:
        delay: how long to wait, in seconds, at least 0; or a flow whose first item or completion
            starts the subscription.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `delay` is neither a time nor a flow, or `clock` is not a clock.
        ValueError: if the time is less than 0, or NaN.
    """
    waiting = checked_clock(clock)
    if isinstance(delay, (int, float, timedelta)):
        delay_s = checked_delay(delay, "the delay")
        return coordinated(
            "delay_subscription",
            seconds(delay_s),
            lambda flow, downstream, label: DelaySubscriptionFor(
                flow, delay_s, downstream, label, waiting
            ),
        )
    if not hasattr(delay, "subscribe"):
        raise TypeError(f"delay_subscription() takes a time or a flow, not {delay!r}")
    return coordinated(
        "delay_subscription",
        describe(delay),
        lambda flow, downstream, label: DelaySubscriptionBy(flow, delay, downstream, label),
    )


@final
class Delay(Timed[T]):
    """Runs `delay`."""

    __slots__ = ("_delay_s", "_ending", "_main", "_source", "delay_error", "waiting")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        delay_s: float,
        delay_error: bool,
        clock: Clock | None,
    ) -> None:
        super().__init__(downstream, label, clock)
        self._source = source
        self._delay_s = delay_s
        self.delay_error = delay_error
        self._main: _Arriving[T] | None = _Arriving(self)
        self.waiting: deque[tuple[float, T]] = deque()
        """Items with the times at which they are due. The upstream's thread appends to it."""
        self._ending: tuple[float, BaseException | None] | None = None
        """The time at which the end is due, and the error, if it is one."""

    @override
    def open(self) -> None:
        main = self._main
        if main is not None:
            self.connect(self._source, main)

    @override
    def requested(self, n: int) -> None:
        main = self._main
        if main is not None:
            main.request(n)

    def due_s(self) -> float:
        """Return the time at which an item that comes now is due."""
        return self.clock.now() + self._delay_s

    def end_at(self, ending: tuple[float, BaseException | None]) -> None:
        """Note that the upstream has ended. The caller must hold the permit."""
        main = self._main
        if main is not None:
            self.release(main)
        self._ending = ending

    @override
    def step(self) -> None:
        waiting = self.waiting
        now_s = -math.inf
        while waiting and not self.over:
            due_s = waiting[0][0]
            if due_s - now_s > SLACK_S:
                now_s = self.clock.now()
                if due_s - now_s > SLACK_S:
                    self.wake_at(due_s)
                    return
            _, item = waiting.popleft()
            main = self._main
            if not self.emit(item) and main is not None:
                main.request(1)
        ending = self._ending
        if ending is None or self.over:
            return
        due_s, error = ending
        if due_s - self.clock.now() > SLACK_S:
            self.wake_at(due_s)
        elif error is None:
            self.complete()
        else:
            self._ending = None
            self.fail(error)

    @override
    def closed(self) -> None:
        super().closed()
        self._main = None
        waiting = self.waiting
        while waiting:
            _, item = waiting.popleft()
            hooks.drop_item(item)
        ending, self._ending = self._ending, None
        if ending is not None and ending[1] is not None:
            hooks.drop_error(ending[1])

    @property
    @override
    def buffered(self) -> int:
        return len(self.waiting)


@final
class _Arriving(Input[T], Generic[T]):
    """The upstream of `delay`: notes the times of signals, in its own thread."""

    __slots__ = ("_delaying",)

    def __init__(self, owner: Delay[T]) -> None:
        super().__init__(owner, 0)
        self._delaying = owner

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        owner = self._delaying
        upstream = self.upstream
        if upstream is None or self.done or owner.over:
            hooks.drop_item(item)
            return
        given = owner._emitted  # read first: it only grows, and the number that wait falls
        if len(owner.waiting) >= owner._requested - given:
            hooks.drop_item(item)
            hooks.cancel(upstream)
            self.on_error(overflow(owner.label))
            return
        owner.waiting.append((owner.due_s(), item))
        owner.signal()

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        owner = self._delaying
        if self.done:
            hooks.drop_error(error)
            return
        self.done = True
        if owner.delay_error:
            owner.post(owner.end_at, (owner.due_s(), error), _drop_end)
        else:
            owner.post(self._fail, error, hooks.drop_error)

    @override
    def on_complete(self) -> None:
        owner = self._delaying
        if not self.done:
            self.done = True
            owner.post(owner.end_at, (owner.due_s(), None))

    def _fail(self, error: BaseException) -> None:
        self.owner.release(self)
        self.owner.fail(error)


def _drop_end(ending: tuple[float, BaseException]) -> None:
    hooks.drop_error(ending[1])


class _DelaySubscription(Passing[T]):
    """Passes the signals of a flow on, once it is subscribed to."""

    __slots__ = ("_source",)

    def __init__(self, source: Flow[T], downstream: CoreSubscriber[T], label: str) -> None:
        super().__init__(downstream, label)
        self._source = source

    def go(self) -> None:
        """Subscribe: the moment has come. Call this without the permit."""
        self.follow(self._source)


@final
class DelaySubscriptionFor(_DelaySubscription[T]):
    """Runs `delay_subscription` with a time."""

    __slots__ = ("_clock", "_delay_s", "_timer")

    def __init__(
        self,
        source: Flow[T],
        delay_s: float,
        downstream: CoreSubscriber[T],
        label: str,
        clock: Clock | None,
    ) -> None:
        super().__init__(source, downstream, label)
        self._delay_s = delay_s
        self._clock = self.clock_for(clock)
        self._timer: Disposable | None = None

    @override
    def open(self) -> None:
        self.post(self._begin, None)

    @override
    def closed(self) -> None:
        super().closed()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.dispose()

    def _begin(self, _: object) -> None:
        self._timer = self._clock.schedule(self._delay_s, self.go)


@final
class DelaySubscriptionBy(_DelaySubscription[T]):
    """Runs `delay_subscription` with a flow."""

    __slots__ = ("_other",)

    def __init__(
        self,
        source: Flow[T],
        other: Publisher[object],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(source, downstream, label)
        self._other = other

    @override
    def open(self) -> None:
        self.connect(self._other, _Moment(self, self.go))


@final
class _Moment(Input[object]):
    """Calls a function, without holding the permit, when its source sends an item or completes."""

    __slots__ = ("_call",)

    def __init__(self, owner: Coordinator[T], call: Callable[[], None]) -> None:
        super().__init__(owner, 1)
        self._call = call

    @override
    def on_next(self, item: object, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self.done:
            hooks.drop_item(item)
            return
        self.done = True
        self.owner.disconnect(self)
        self._call()

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self.done:
            hooks.drop_error(error)
            return
        self.done = True
        self.owner.release(self)
        self.owner.post(self.owner.fail, error, hooks.drop_error)

    @override
    def on_complete(self) -> None:
        if not self.done:
            self.done = True
            self.owner.release(self)
            self._call()
