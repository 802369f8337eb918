"""`rebatch_requests`: requests to the upstream have a fixed size."""

from __future__ import annotations

from typing import TypeVar, final

from typing_extensions import override

from flow_core.demand import check_prefetch
from flow_core.errors import none_given
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber
from flow_core.serial import BUSY
from flow_ops.coordination import BufferedInput, Coordinator, coordinated

__all__ = ["rebatch_requests"]

T = TypeVar("T")


def rebatch_requests(prefetch: int) -> Operator[T, Flow[T]]:
    """Ask the upstream for `prefetch` items at a time, whatever the downstream asks for.

    It suits an upstream for which each request is costly, or must not be too large, such as a
    remote service that returns its items page by page. To limit the number of items in all, use
    `Flow.take`.

    >>> import flow_core as flow
    >>> asked = flow.range(8).do_on_request(print)
    >>> list(asked.rebatch_requests(4))
    4
    3
    3
    [0, 1, 2, 3, 4, 5, 6, 7]

    Demand: `prefetch` items are requested of the upstream, and 75 % of that again whenever as many
    were delivered. The downstream's demand only decides when they are delivered.
    Thread: that of the upstream; an item that waited for demand comes on the requester's thread.
    Fusion: an upstream with SYNC or ASYNC is polled, if it may be polled on another thread.
    Errors: the upstream's, after the items that wait.

    Args:
        prefetch: items to request ahead, and the most that wait.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with MissingBackpressureError if the upstream
        sends more than was requested and there is no room.

    Raises:
        TypeError: if `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    check_prefetch(prefetch)
    return coordinated(
        "rebatch_requests",
        str(prefetch),
        lambda flow, downstream, label: Rebatched(flow, prefetch, downstream, label),
        prefetch,
    )


@final
class Rebatched(Coordinator[T]):
    """Runs `rebatch_requests`."""

    __slots__ = ("_input", "_source")

    def __init__(
        self, source: Flow[T], prefetch: int, downstream: CoreSubscriber[T], label: str
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._input: Straight[T] | None = Straight(self, prefetch)

    @override
    def open(self) -> None:
        if self._input is not None:
            self.connect(self._source, self._input)

    @override
    def step(self) -> None:
        waiting = self._input
        if waiting is None:
            return
        while self.demand and not self.over:
            item = waiting.poll()
            if item is EMPTY:
                break
            self.emit(item)
        if not self.over and waiting.ended():
            self.release(waiting)
            error, waiting.error = waiting.error, None
            self.end(error)

    @override
    def closed(self) -> None:
        waiting, self._input = self._input, None
        if waiting is not None:
            waiting.close()

    @property
    @override
    def buffered(self) -> int:
        items = self._input  # read once: the end clears it
        return 0 if items is None else items.waiting


@final
class Straight(BufferedInput[T]):
    """Sends items straight to the downstream, if they are requested and no other item waits."""

    __slots__ = ()

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        owner = self.owner
        # Another thread with the permit may add to `_emitted`, but only if an item waits or comes
        # here.
        if (
            not self._waiting
            and owner._emitted != owner._requested
            and self.upstream is not None
            and not self._asynchronous
            and owner.alone(self._pass, item) is not BUSY
        ):
            return
        super().on_next(item)

    def _pass(self, item: T) -> None:
        """Send `item`, which is requested. The caller must hold the permit."""
        owner = self.owner
        try:
            # Written out like `emit`: a call would cost.
            if owner._receive(item) is not False or not owner._conditional:
                owner._emitted += 1
            self._consumed = consumed = self._consumed + 1
            if consumed == self._limit:
                self._replenish()
        except BaseException as error:
            owner._raised(error)

    def _replenish(self) -> None:
        """Request items again, as many as were delivered. The caller must hold the permit."""
        self._consumed = 0
        try:
            self.owner.request_of(self, self._limit)
        except BaseException as error:
            self.owner._failed(error)
