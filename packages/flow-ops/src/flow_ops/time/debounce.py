"""`debounce`: an item is sent when no other follows it for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from typing_extensions import override

from flow_core.clocks import Clock, Seconds
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber, Empty, Publisher
from flow_core.stages import describe
from flow_ops.coordination import Listener, Mapper, coordinated
from flow_ops.time._timed import Newest, checked_clock, checked_delay, nothing, seconds

__all__ = ["debounce"]

T = TypeVar("T")
V = TypeVar("V")


def debounce(
    quiet: Seconds | Callable[[T], Flow[object]],
    *,
    clock: Clock | None = None,
) -> Operator[T, Flow[T]]:
    """Send only items that no other item follows for a while; always send the last one.

    >>> import flow_core as flow
    >>> list(flow.range(100).debounce(60))
    [99]

    Demand: everything is requested of the upstream. An item that is due when there is no demand
    waits for a request; if another item is due before the request, it replaces the waiting one,
    which goes to the dropped-items hook. The flow completes once the item that waits was sent.
    Thread: the clock's, or that of the flow that `quiet` returns; the last item comes on the
    upstream's thread, and an item that waited on the thread that requests. `quiet` runs in the
    upstream's thread. Fusion: none.
    Errors: those of the upstream, of `quiet` and of its flows, at once: they overtake an item that
    waits.

    Args:
        quiet: how long no other item must follow, in seconds, at least 0; or a function that
            returns a flow for an item: the item is due when that flow emits its first item, or
            completes.
        clock: the clock of the operator; None for the clock of the loop that runs the flow or,
            without a loop, the clock of the process.

    Raises:
        TypeError: if `quiet` is neither a time nor a function, or `clock` is not a clock.
        ValueError: if the time is less than 0, or NaN.
    """
    telling = checked_clock(clock)
    if callable(quiet):
        mapper = quiet
        return coordinated(
            "debounce",
            describe(mapper),
            lambda flow, downstream, label: DebounceBy(flow, mapper, downstream, label, telling),
        )
    quiet_s = checked_delay(quiet, "the quiet time")
    return coordinated(
        "debounce",
        seconds(quiet_s),
        lambda flow, downstream, label: DebounceFor(flow, quiet_s, downstream, label, telling),
    )


class _Debounce(Newest[T, V]):
    """Keeps the newest item until it is due."""

    __slots__ = ("_newest", "_source")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        clock: Clock | None,
        make: Callable[[T], V],
    ) -> None:
        super().__init__(downstream, label, clock, make)
        self._source = source
        self._newest: T | Empty = EMPTY

    @override
    def open(self) -> None:
        main = self._main
        if main is not None:
            self.connect(self._source, main)

    @override
    def last(self) -> None:
        newest, self._newest = self._newest, EMPTY
        if newest is not EMPTY:
            self.give(newest)

    @override
    def closed(self) -> None:
        super().closed()
        self._newest = EMPTY


@final
class DebounceFor(_Debounce[T, None]):
    """Runs `debounce` with a time."""

    __slots__ = ("_quiet_s",)

    def __init__(
        self,
        source: Flow[T],
        quiet_s: float,
        downstream: CoreSubscriber[T],
        label: str,
        clock: Clock | None,
    ) -> None:
        super().__init__(source, downstream, label, clock, nothing)
        self._quiet_s = quiet_s

    @override
    def arrived(self, item: T, made: None) -> None:
        self._newest = item
        self.wake_in(self._quiet_s)

    @override
    def wake(self) -> None:
        self.last()


@final
class DebounceBy(_Debounce[T, Publisher[object]]):
    """Runs `debounce` with a function."""

    __slots__ = ("_quiet",)

    def __init__(
        self,
        source: Flow[T],
        mapper: Callable[[T], Flow[object]],
        downstream: CoreSubscriber[T],
        label: str,
        clock: Clock | None,
    ) -> None:
        mapping = Mapper[T, object](mapper, label)
        super().__init__(
            source, downstream, label, clock, lambda item: mapping.flow_of(mapper(item))
        )
        self._quiet: Listener[object] | None = None

    @override
    def arrived(self, item: T, made: Publisher[object]) -> None:
        self._newest = item
        self._leave()
        quiet = self._quiet = Listener(self, self._on_quiet, self._on_quiet_end, 1)
        self.connect_later(made, quiet)

    @override
    def last(self) -> None:
        self._leave()
        super().last()

    @override
    def closed(self) -> None:
        super().closed()
        self._quiet = None

    def _leave(self) -> None:
        quiet, self._quiet = self._quiet, None
        if quiet is not None:
            self.disconnect(quiet)

    def _on_quiet(self, _: object) -> None:
        self.last()

    def _on_quiet_end(self, error: BaseException | None) -> None:
        if error is None:
            self.last()
        else:
            self.fail(error)
