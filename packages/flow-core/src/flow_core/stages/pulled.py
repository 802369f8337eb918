"""A synchronous source and its stages as one subscription, with one loop between both ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from threading import Lock
from types import GeneratorType
from typing import Any, Final, Generic, TypeVar, final

from flow_core import hooks
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import ProtocolViolationError, is_fatal, throw_if_fatal
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Empty,
    Fusion,
    QueueSubscription,
)
from flow_core.serial import SerialDrain
from flow_core.stages.compiler import Gate, Program, Raised, close_iterator, exhausted

__all__ = ["GRANT", "IteratorSubscription"]

R = TypeVar("R")

GRANT: Final = 1 << 29
"""Demand is handed to a loop in parts of this size: small ints are counted down fastest."""


@final
class IteratorSubscription(SerialDrain, QueueSubscription[R], Generic[R]):
    """Pushes what a program makes of an iterator, as far as the subscriber's demand goes.

    Demand: exact; the source is asked for an item only when the item can be delivered.
    Thread: whoever requests; one at a time. Fusion: SYNC, unless user code would change thread.

    Args:
        program: the stages between `source` and `downstream`.
        source: a fresh iterator; if it is a generator it is closed at the end or on cancel.
        downstream: gets the signals.
    """

    __slots__ = (
        "_ahead",
        "_bad",
        "_downstream",
        "_fused",
        "_gate",
        "_granted",
        "_lock",
        "_loop",
        "_program",
        "_requested",
        "_source",
    )

    def __init__(
        self,
        program: Program[Any, R],  # Any: what the source gives is the program's own affair
        source: Iterator[Any],
        downstream: CoreSubscriber[R],
    ) -> None:
        super().__init__()
        self._program = program
        self._source = source
        self._downstream: CoreSubscriber[R] | None = downstream
        self._gate = Gate()
        self._lock = Lock()
        self._requested = 0
        self._granted = 0
        self._bad: ValueError | None = None
        self._loop: Generator[int, int, None] | None = None
        self._fused: GeneratorType[R, None, None] | None = None
        self._ahead: R | Empty = EMPTY

    def start(self) -> None:
        """Hand this over as the subscription, then run what was requested meanwhile (§1.9)."""
        downstream = self._downstream
        # The permit is held, so that nothing is signalled before on_subscribe has returned.
        if downstream is not None and self.try_enter():
            try:
                downstream.on_subscribe(self)
            except BaseException:
                self._gate.cancelled = True
                self._release()
                self.leave()
                raise
            self.run_entered()

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        bad = bad_request(n)
        if self._gate.cancelled or (bad is None and self._requested == UNBOUNDED):
            return
        if bad is not None:
            self._bad = bad
            self._gate.cancelled = True
        else:
            with self._lock:
                self._requested = add_demand(self._requested, n)
        self.signal()

    def cancel(self) -> None:
        """See `Subscription.cancel`. The thread that drains closes the source, if one does."""
        self._bad = None
        self._gate.cancelled = True
        self.signal()

    def drain(self) -> None:
        """See `SerialDrain.drain`."""
        downstream = self._downstream
        if downstream is None or (self._fused is not None and not self._gate.cancelled):
            return
        gate = self._gate
        loop = self._loop
        try:
            while not gate.cancelled:
                grant = self._requested - self._granted
                if loop is None:
                    if grant == 0 and not exhausted(self._source):
                        return
                    on_next: Callable[[R], object]
                    if isinstance(downstream, ConditionalSubscriber):
                        conditional, on_next = True, downstream.try_on_next
                    else:
                        conditional, on_next = False, downstream.on_next
                    grant = self._grant(grant)
                    loop = self._loop = self._program.push(
                        self._source,
                        on_next,
                        gate,
                        grant,
                        conditional=conditional,
                    )
                    next(loop)
                elif grant == 0:
                    return
                else:
                    loop.send(self._grant(grant))
        except StopIteration:
            self._downstream = None
            if not gate.cancelled:
                gate.cancelled = True
                downstream.on_complete()
                return
        except BaseException as error:
            self._failed(downstream, error)
            return
        # Cancelled, by the subscriber or for a bad request (§3.9).
        self._release()
        bad = self._bad
        if bad is not None:
            downstream.on_error(bad)

    def _grant(self, wanted: int) -> int:
        if self._requested == UNBOUNDED:
            return GRANT
        grant = min(wanted, GRANT)
        self._granted += grant
        return grant

    def _failed(self, downstream: CoreSubscriber[R], error: BaseException) -> None:
        left = self._gate.cancelled and self._bad is None
        self._gate.cancelled = True
        self._release()
        if is_fatal(error):
            raise error
        by_downstream = self._program.blame(error) is Raised.DOWNSTREAM
        if left or (by_downstream and not downstream.on_next_raised(error)):
            hooks.drop_error(error)
        elif not by_downstream:
            downstream.on_error(error)

    def _release(self) -> None:
        """Let go of the subscriber (§3.13) and close the source, in the thread that drains."""
        self._downstream = None
        loop, self._loop = self._loop, None
        try:
            if loop is not None:
                loop.close()
            if self._fused is None or self._close_fused():
                close_iterator(self._source)
        except Exception as error:  # a `finally` of the user's generator
            throw_if_fatal(error)
            hooks.drop_error(error)

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """See `QueueSubscription.request_fusion`: SYNC, when asked."""
        if self._fused is not None or self._requested:
            raise ProtocolViolationError(
                "request_fusion comes once, in on_subscribe, before any request (F24, F47)"
            )
        if not mode & Fusion.SYNC:
            return Fusion.NONE
        if mode & Fusion.THREAD_BOUNDARY and self._program.calls_user_code:
            return Fusion.NONE
        self._fused = self._program.poll(self._source, self._gate)
        return Fusion.SYNC

    def poll(self) -> R | Empty:
        """See `QueueSubscription.poll`; EMPTY means completed."""
        ahead = self._ahead
        if ahead is not EMPTY:
            self._ahead = EMPTY
            return ahead
        fused = self._fused
        if fused is None or self._gate.cancelled:
            return EMPTY
        try:
            item = next(fused, EMPTY)
        except ValueError:
            if self._gate.cancelled and fused.gi_running:
                return EMPTY  # cancelled by another thread, which closes the loop right now
            raise
        if self._gate.cancelled:
            self._release()  # who cancelled could not close the loop while it ran
        return item

    def is_empty(self) -> bool:
        """See `QueueSubscription.is_empty`. Looks one item ahead when that calls no user code."""
        if self._ahead is not EMPTY:
            return False
        if self._program.calls_user_code:
            return exhausted(self._source) and not self._program.accounts
        self._ahead = self.poll()
        return self._ahead is EMPTY

    def clear(self) -> None:
        """See `QueueSubscription.clear`."""
        if self._fused is not None:
            self._gate.cancelled = True
            self._close_fused()

    def _close_fused(self) -> bool:
        """Close the polled loop. False if it runs right now: then `poll` closes it afterwards."""
        fused = self._fused
        self._ahead = EMPTY
        if fused is None:
            return True
        if fused.gi_running:
            return False  # not tried: CPython 3.12.1 crashes where others raise ValueError
        try:
            fused.close()
        except ValueError:
            if not fused.gi_running:
                raise  # by a `finally` of the user's generator
            return False
        return True
