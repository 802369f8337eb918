"""`Sink`: feed a processor by hand, and get a result for each item."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from typing import Generic, TypeVar, final

from flow_core.clocks import Seconds, in_seconds
from flow_core.errors import FlowError, none_given
from flow_core.serial import BUSY, Exclusive
from flow_multicast.processors._hot import HotProcessor
from flow_multicast.processors.direct import DirectProcessor
from flow_multicast.processors.multicast import MulticastProcessor
from flow_multicast.processors.unicast import UnicastProcessor

__all__ = ["EmitError", "EmitResult", "Sink"]

A = TypeVar("A")
T = TypeVar("T")


class EmitResult(enum.Enum):
    """The result of a signal that was given to a `Sink`."""

    OK = "taken"
    OVERFLOW = "there is no room for it, or a subscriber has not asked for it"
    CANCELLED = "the subscriber has cancelled"
    TERMINATED = "the sink has ended"
    NON_SERIALIZED = "another thread is emitting right now"
    ZERO_SUBSCRIBER = "there is no subscriber to send it to"


class EmitError(FlowError):
    """A signal was not accepted.

    Args:
        result: the reason, as `Sink` reports it.
        what: the signal.
    """

    def __init__(self, result: EmitResult, what: str) -> None:
        super().__init__(f"{what} was not taken: {result.value}")
        self.result = result


@final
class Sink(Exclusive, Generic[T]):
    """Emits into a processor, from callbacks on any thread, and returns a result for each signal.

    >>> from flow_multicast import DirectProcessor
    >>> numbers = DirectProcessor[int]()
    >>> sink = Sink(numbers)
    >>> sink.try_next(1)
    <EmitResult.ZERO_SUBSCRIBER: 'there is no subscriber to send it to'>
    >>> handle = numbers.flow.subscribe(print)
    >>> sink.next(2)
    2
    >>> sink.complete()
    >>> sink.try_next(3)
    <EmitResult.TERMINATED: 'the sink has ended'>

    No thread waits: of two threads that emit at the same time, one gets NON_SERIALIZED, and may try
    again.

    Args:
        processor: the processor; no other code may feed it.
    """

    __slots__ = ("_processor",)

    def __init__(
        self, processor: HotProcessor[T] | MulticastProcessor[T] | UnicastProcessor[T]
    ) -> None:
        super().__init__()
        self._processor = processor

    def try_next(self, item: T) -> EmitResult:
        """Emit an item, and return the result.

        Raises:
            NoneItemError: if `item` is None.
        """
        if item is None:
            raise none_given("Sink.try_next")
        return self._alone(self._next, item)

    def try_complete(self) -> EmitResult:
        """Emit the end, and return the result."""
        return self._alone(self._end, None)

    def try_error(self, error: BaseException) -> EmitResult:
        """Emit an error, and return the result."""
        if error is None:
            raise none_given("Sink.try_error")
        return self._alone(self._end, error)

    def next(self, item: T, *, spin: Seconds = 0.0) -> None:
        """Emit an item, or raise an `EmitError`.

        Args:
            item: the item.
            spin: for how long to try again, in seconds, while another thread emits or there is no
                room.

        Raises:
            EmitError: if the item was not accepted; the error says why.
            NoneItemError: if `item` is None.
        """
        self._insist(lambda: self.try_next(item), "an item", spin)

    def complete(self, *, spin: Seconds = 0.0) -> None:
        """Emit the end, or raise an `EmitError`; see `next`."""
        self._insist(self.try_complete, "the end", spin)

    def error(self, error: BaseException, *, spin: Seconds = 0.0) -> None:
        """Emit an error, or raise an `EmitError`; see `next`."""
        self._insist(lambda: self.try_error(error), f"{error!r}", spin)

    def _insist(self, emit: Callable[[], EmitResult], what: str, spin: Seconds) -> None:
        until = time.monotonic() + in_seconds(spin)
        while (result := emit()) is not EmitResult.OK:
            again = result in {EmitResult.NON_SERIALIZED, EmitResult.OVERFLOW}
            if not again or time.monotonic() >= until:
                raise EmitError(result, what)
            time.sleep(0)  # let other threads run

    def _alone(self, emit: Callable[[A], EmitResult], signal: A) -> EmitResult:
        result = self.alone(emit, signal)
        return EmitResult.NON_SERIALIZED if result is BUSY else result

    def _next(self, item: T) -> EmitResult:
        processor = self._processor
        if (
            isinstance(processor, DirectProcessor)
            and not processor.has_subscribers
            and not processor.terminated
        ):
            return EmitResult.ZERO_SUBSCRIBER
        return EmitResult.OK if processor.offer(item) else self._over() or EmitResult.OVERFLOW

    def _end(self, error: BaseException | None) -> EmitResult:
        over = self._over()
        if over is not None:
            return over
        if error is None:
            self._processor.on_complete()
        else:
            self._processor.on_error(error)
        return EmitResult.OK

    def _over(self) -> EmitResult | None:
        processor = self._processor
        # Read first: it is the reason before it is visible otherwise.
        terminated = processor.terminated
        if getattr(processor.statistics(), "cancelled", False):
            return EmitResult.CANCELLED
        return EmitResult.TERMINATED if terminated else None
