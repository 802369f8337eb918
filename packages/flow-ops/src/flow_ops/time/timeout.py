"""`timeout`: a flow whose items do not come in time fails, or is replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.clocks import Clock, Seconds
from flow_core.demand import UNBOUNDED, add_demand
from flow_core.errors import FlowTimeoutError, none_given
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher
from flow_core.stages import describe
from flow_ops.coordination import Input, Listener, Mapper, coordinated
from flow_ops.time._timed import Timed, checked_clock, checked_delay, seconds

__all__ = ["timeout"]

T = TypeVar("T")


def timeout(
    limit: Seconds | None = None,
    *,
    first: Seconds | None = None,
    selector: Callable[[T], Flow[object]] | None = None,
    fallback: Publisher[T] | None = None,
    clock: Clock | None = None,
) -> Operator[T, Flow[T]]:
    """Fail, or continue with another flow, when an item does not come in time.

    >>> import flow_core as flow
    >>> list(flow.never().timeout(0.001, fallback=flow.just("too late")))
    ['too late']

    The time runs from the subscription to the first item, and after that from the moment when the
    downstream has handled an item to the next item. The end of the flow has to come in time, too.
    Time runs whether or not there is demand: a downstream that does not request makes its flow
    late.

    Demand: passed on; the demand that is left when the upstream is too late goes to `fallback`.
    Thread: that of the upstream. The error comes on the clock's thread, or on that of the
    selector's flow. `fallback` is subscribed to on that thread, too, and must not block it.
    `selector` runs in the upstream's thread, before the item is sent. Fusion: none.
    Errors: those of the upstream, of `selector` and of its flows, and of `fallback`.
    RejectedExecutionError if the clock takes no task.

    Args:
        limit: the time from the subscription to the first item, and from each item to the next, in
            seconds, at least 0. None if only the first item has a time limit, or with a `selector`.
        first: the time limit for the first item, in seconds, if it differs from `limit`.
        selector: returns a flow for an item; if that flow emits an item or completes before the
            next item comes, the next item is too late.
        fallback: the flow that replaces a flow that is late; it has no time limit. If None, the
            flow fails.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with FlowTimeoutError if an item is late and
        there is no `fallback`.

    Raises:
        TypeError: if there is no limit at all, or both `limit` and `selector` are given; if an
            argument is of the wrong type.
        ValueError: if a time is less than 0, or NaN.
    """
    if limit is not None and selector is not None:
        raise TypeError("timeout() takes limit or selector=, not both; first= goes with each")
    if limit is None and selector is None and first is None:
        raise TypeError("timeout() takes limit, first= or selector=")
    if selector is not None and not callable(selector):
        raise TypeError(f"selector= takes a function from an item to a flow, not {selector!r}")
    if fallback is not None and not hasattr(fallback, "subscribe"):
        raise TypeError(f"fallback= takes a flow, not {fallback!r}")
    telling = checked_clock(clock)
    between_s = None if limit is None else checked_delay(limit, "timeout(limit=)")
    before_s = between_s if first is None else checked_delay(first, "timeout(first=)")
    detail = [
        *([] if between_s is None else [seconds(between_s)]),
        *([] if first is None or before_s is None else [f"first={seconds(before_s)}"]),
        *([] if selector is None else [f"selector={describe(selector)}"]),
        *([] if fallback is None else [f"fallback={describe(fallback)}"]),
    ]
    limits = Limit(before_s, between_s, selector, fallback)
    return coordinated(
        "timeout",
        ", ".join(detail),
        lambda flow, downstream, label: Timeout(flow, limits, downstream, label, telling),
    )


@final
class Limit(Generic[T]):
    """The arguments of `timeout`; its times are None where there is no limit."""

    __slots__ = ("between_s", "fallback", "first_s", "selector")

    def __init__(
        self,
        first_s: float | None,
        between_s: float | None,
        selector: Callable[[T], Flow[object]] | None,
        fallback: Publisher[T] | None,
    ) -> None:
        self.first_s = first_s
        self.between_s = between_s
        self.selector = selector
        self.fallback = fallback


@final
class Timeout(Timed[T]):
    """Runs `timeout`."""

    __slots__ = ("_current", "_limit", "_main", "_passed", "_seen", "_sentinel", "_source")

    def __init__(
        self,
        source: Flow[T],
        limit: Limit[T],
        downstream: CoreSubscriber[T],
        label: str,
        clock: Clock | None,
    ) -> None:
        super().__init__(downstream, label, clock)
        self._source = source
        self._limit = limit
        selector = limit.selector
        self._main: Input[T] | None
        if selector is None:
            self._main = Listener(self, self._on_item, self.end)
        else:
            self._main = _Selecting(self, Mapper(selector, label))
        self._current: Input[T] | None = self._main
        """The flow that is requested: the upstream, and later the fallback. Guarded by `_lock`."""
        self._passed = 0
        """The demand that was passed to the upstream and to the fallback, in all. Guarded by
        `_lock`."""
        self._sentinel: Listener[object] | None = None
        """Receives the signals of the selector's flow."""
        self._seen = False
        """True when an item has come."""

    @override
    def open(self) -> None:
        first_s = self._limit.first_s
        if first_s is not None:
            self.post(self.wake_in, first_s)
        main = self._main
        if main is not None:
            self.connect(self._source, main)

    @override
    def requested(self, n: int) -> None:
        with self._lock:
            current = self._current
            self._passed = add_demand(self._passed, n)
        if current is not None:
            current.request(n)

    @override
    def wake(self) -> None:
        limit = self._limit
        limit_s = limit.between_s if self._seen else limit.first_s
        self._late(f"within {seconds(limit_s or 0.0)}")

    @override
    def closed(self) -> None:
        super().closed()
        self._main = self._current = self._sentinel = None

    def guarded(self, item: T, made: Publisher[object]) -> bool:
        """Send an item; the flow that was made for it ends the time for the next item.

        The caller must hold the permit. The result is whether the item used up demand.
        """
        self.stop_timer()
        self._leave()
        self._seen = True
        used = self.emit(item)
        if not self.over and self._main is not None:
            sentinel = self._sentinel = Listener(self, self._on_sentinel, self._on_sentinel_end, 1)
            self.connect_later(made, sentinel)
        return used

    def ended(self, error: BaseException | None) -> None:
        """Note that the upstream has ended. The caller must hold the permit."""
        self.end(error)

    def _on_item(self, item: T) -> bool:
        used = self.emit(item)
        self._seen = True
        between_s = self._limit.between_s
        if self.over:
            return used
        if between_s is None:
            self.stop_timer()
        else:
            self.wake_in(between_s)
        return used

    def _on_sentinel(self, _: object) -> None:
        self._late("before the selector's flow gave one")

    def _on_sentinel_end(self, error: BaseException | None) -> None:
        if error is None:
            self._late("before the selector's flow completed")
        else:
            self.fail(error)

    def _leave(self) -> None:
        sentinel, self._sentinel = self._sentinel, None
        if sentinel is not None:
            self.disconnect(sentinel)

    def _late(self, limit: str) -> None:
        """Give the upstream up: the item that was expected has not come in time."""
        main, self._main = self._main, None
        if main is None:
            return
        self._leave()
        self.stop_timer()
        self.disconnect(main)
        source = self._limit.fallback
        if source is None:
            what = "no other item" if self._seen else "no item"
            self.fail(FlowTimeoutError(f"{self.label}: {what} came {limit}"))
            return
        fallback = Listener[T](self, self.emit, self.end)
        with self._lock:
            passed = self._passed
            # Further requests go to the fallback; so does the demand that the upstream did not
            # meet.
            fallback.pending = passed if passed == UNBOUNDED else passed - self._emitted
            self._current = fallback
        self.connect_later(source, fallback)


@final
class _Selecting(Input[T]):
    """The upstream of `timeout` with a selector: calls it on its own thread, without the permit."""

    __slots__ = ("_mapper", "_timeout")

    def __init__(self, owner: Timeout[T], mapper: Mapper[T, object]) -> None:
        super().__init__(owner, 0)
        self._timeout = owner
        self._mapper = mapper

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        owner = self._timeout
        if self.done or self.gone or owner.over:
            hooks.drop_item(item)
            return
        mapper = self._mapper
        try:
            made = mapper.flow_of(mapper.function(item))
        except BaseException as error:
            failed = mapper.failed(error)
            upstream = self.upstream
            if upstream is not None:
                hooks.cancel(upstream)
            self.on_error(failed)
            return
        owner.post(self._take, (item, made), _drop_taken)

    def _take(self, taken: tuple[T, Publisher[object]]) -> None:
        if self.gone:
            hooks.drop_item(taken[0])
        elif not self._timeout.guarded(*taken):
            self.request(1)

    def _end(self, error: BaseException | None) -> None:
        self.owner.release(self)
        if not self.gone:
            self._timeout.ended(error)
        elif error is not None:
            hooks.drop_error(error)


def _drop_taken(taken: tuple[T, object]) -> None:
    hooks.drop_item(taken[0])
