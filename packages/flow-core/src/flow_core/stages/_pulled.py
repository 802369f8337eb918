"""A synchronous source and its stages as one subscription, which runs them in one loop."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from types import GeneratorType
from typing import Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, bad_request
from flow_core.errors import is_fatal, late_fusion, leave, throw_if_fatal
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    CoreSubscriber,
    Empty,
    Fusion,
    QueueSubscription,
)
from flow_core.serial import HAS_GIL, SerialDrain
from flow_core.stages._blame import Raised
from flow_core.stages._closing import Gate, close_iterator, close_loop, exhausted, overlapped
from flow_core.stages._effects import labels
from flow_core.stages._program import Program

__all__ = ["GRANT", "IteratorSubscription"]

R = TypeVar("R")

_NOTHING: Final[Iterator[Any]] = iter(())  # Any: it has no item

GRANT: Final = 1 << 29
"""Demand is given to a loop in portions of this size, because small ints are counted down
fastest."""


@final
class IteratorSubscription(SerialDrain, QueueSubscription[R], Scannable, Generic[R]):
    """Pushes the results of a program for an iterator's items, on demand.

    Demand: exact; an item is taken from the source only when it can be delivered.
    Thread: the requester's; one thread at a time. Fusion: SYNC, unless user code would move to
    another thread.

    Args:
        program: the stages between `source` and `downstream`.
        source: a new iterator; if it is a generator, it is closed at the end or on cancel.
        downstream: gets the signals.
        pinned: whether the source calls user code, which must not move to another thread (F39).
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
        "_pinned",
        "_polls",
        "_program",
        "_requested",
        "_source",
        "_unbounded",
    )

    def __init__(
        self,
        program: Program[Any, R],  # Any: the program knows the items of the source
        source: Iterator[Any],
        downstream: CoreSubscriber[R],
        pinned: bool,
    ) -> None:
        self._missed = False
        # Made with the permit taken, so that no signal comes before on_subscribe has returned
        # (§1.9).
        self._permit: dict[int, bool] = {}
        self._pinned = pinned
        self._polls = False
        """True if SYNC fusion was granted, even after the polled loop has ended."""
        self._program = program
        self._source = source
        self._downstream: CoreSubscriber[R] | None = downstream
        self._gate = Gate()
        self._lock = Lock()
        self._requested = 0
        self._unbounded = False
        """True when everything has been requested."""
        self._granted = 0
        self._bad: ValueError | None = None
        self._loop: GeneratorType[int, int, None] | None = None
        self._fused: GeneratorType[R, None, None] | None = None
        self._ahead: R | Empty = EMPTY

    def start(self) -> None:
        """Hand this over as the subscription, then serve the demand that came meanwhile (§1.9)."""
        downstream = self._downstream
        if downstream is None:
            return
        try:
            downstream.on_subscribe(self)
        except BaseException as error:
            if is_fatal(error):
                leave(error, downstream, self)
            self._gate.cancelled = True
            self._release()
            self.leave()
            self._gate.close()
            raise
        self.run_entered()

    @override
    def request(self, n: int, /) -> None:
        bad = None if type(n) is int and n > 0 else bad_request(n)
        if self._gate.cancelled or (bad is None and self._requested == UNBOUNDED):
            return
        if bad is not None:
            self._bad = bad
            self._gate.cancelled = True
        elif n >= UNBOUNDED:
            # Without the lock, which would be a tenth of the cost of a short flow: this sets the
            # flag first, and code that adds under the lock reads it last.
            self._unbounded = True
            self._requested = UNBOUNDED
        else:
            with self._lock:
                requested = self._requested + n
                # add_demand, written out: a call would cost, and so would min().
                self._requested = requested if requested < UNBOUNDED else UNBOUNDED  # noqa: FURB136
                if self._unbounded:
                    self._requested = UNBOUNDED
        # signal, written out: a call would cost where the permit is taken: within on_subscribe, and
        # where a subscriber requests more.
        self._missed = True
        if self._permit or not HAS_GIL:
            self.signal()

    @override
    def cancel(self) -> None:
        """Cancel; if another thread drains, that thread closes the source."""
        self._bad = None
        self._gate.cancelled = True
        self.signal()

    @override
    def drain(self) -> None:
        downstream = self._downstream
        if downstream is None or (self._fused is not None and not self._gate.cancelled):
            return
        gate = self._gate
        loop = self._loop
        try:
            while not gate.cancelled:
                grant = self._requested - self._granted
                if loop is not None:
                    if grant == 0:
                        return
                    loop.send(self._grant(grant))
                    continue
                if grant == 0 and not self._program.begins(self._source):
                    return
                grant = UNBOUNDED if self._requested == UNBOUNDED else self._grant(grant)
                loop = self._loop = self._program.push(self._source, downstream, gate, grant)
                if next(loop, None) is None:  # mostly it has ended then, without a StopIteration
                    self._completed(downstream)
                    return
        except StopIteration:
            self._completed(downstream)
            return
        except BaseException as error:
            self._failed(downstream, error)
            return
        self._cancelled(downstream)

    def _completed(self, downstream: CoreSubscriber[R]) -> None:
        """Complete, because the loop has ended: the source has, or a stage has ended the flow."""
        gate = self._gate
        self._downstream = None
        if gate.cancelled:
            self._cancelled(downstream)
            return
        self._source = _NOTHING
        gate.cancelled = True
        try:
            downstream.on_complete()
        except BaseException as error:
            if is_fatal(error):
                leave(error, downstream, self)
            raise
        finally:
            if gate.closers is not None:
                gate.close()

    def _cancelled(self, downstream: CoreSubscriber[R]) -> None:
        """Clean up: the flow was cancelled, by the subscriber or for a bad request (§3.9)."""
        self._release()
        bad = self._bad
        if bad is not None:
            downstream.on_error(bad)
        self._gate.close()

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
        try:
            if is_fatal(error):
                leave(error, downstream, self)
                raise error
            by_downstream = self._program.blame(error) is Raised.DOWNSTREAM
            if left or (by_downstream and not downstream.on_next_raised(error)):
                hooks.drop_error(error)
            elif not by_downstream:
                downstream.on_error(error)
        finally:
            self._gate.close()

    def _release(self) -> None:
        """Drop the subscriber (§3.13) and close the source, in the thread that drains."""
        downstream, self._downstream = self._downstream, None
        loop, self._loop = self._loop, None
        try:
            if loop is None and self._program.shape.closes and not self._polls and downstream:
                # Its stages still have to get the end.
                loop = self._program.push(self._source, downstream, self._gate, 0)
            if loop is not None:
                close_loop(loop, self._gate)
            if self._fused is None or self._close_fused():
                close_iterator(self._source)
        except BaseException as error:  # a `finally` of the user's generator
            throw_if_fatal(error)
            hooks.drop_error(error)
        self._source = _NOTHING

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant SYNC, if it is asked for."""
        # The permit is given back for the first time when on_subscribe has returned.
        if self._permit or self._polls or self._requested or self._bad is not None:
            raise late_fusion()
        if not mode & Fusion.SYNC or self._gate.cancelled:
            return Fusion.NONE
        if mode & Fusion.THREAD_BOUNDARY and self._stays:
            return Fusion.NONE
        self._fused = self._program.poll(self._source, self._gate)
        self._polls = True
        return Fusion.SYNC

    @override
    def poll(self) -> R | Empty:
        """Take the next item. EMPTY means that the flow has completed."""
        ahead = self._ahead
        if ahead is not EMPTY:
            self._ahead = EMPTY
            return ahead
        fused = self._fused
        if fused is None or self._gate.cancelled:
            return EMPTY
        try:
            item = next(fused, EMPTY)
        except BaseException as error:
            if self._gate.cancelled and overlapped(error):
                return EMPTY  # cancelled by another thread, which closes the loop right now
            self._polled_out()
            raise
        if self._gate.cancelled:
            self._release()  # the thread that cancelled could not close the loop while it ran
            self._gate.close()
        if item is EMPTY:
            self._polled_out()
        return item

    def _polled_out(self) -> None:
        """Drop everything, because the polled loop has ended."""
        self._gate.cancelled = True
        self._downstream = self._fused = None
        self._source = _NOTHING
        self._gate.close()

    @override
    def is_empty(self) -> bool:
        """Return whether no item is left: look one item ahead, if that calls no user code."""
        if self._ahead is not EMPTY:
            return False
        if self._stays:
            return exhausted(self._source) and not self._program.shape.accounts
        self._ahead = self.poll()
        return self._ahead is EMPTY

    @override
    def clear(self) -> None:
        if self._fused is not None:
            self._gate.cancelled = True
            self._close_fused()

    @property
    def _stays(self) -> bool:
        """Return whether polling calls user code."""
        return self._pinned or self._program.shape.calls_user_code

    def _close_fused(self) -> bool:
        """Close the loop that is polled.

        Return False if the loop runs right now: `poll` then closes it afterwards.
        """
        fused = self._fused
        self._ahead = EMPTY
        if fused is None:
            return True
        if fused.gi_running:
            return False  # not tried: CPython 3.12.1 crashes where others raise ValueError
        try:
            close_loop(fused, self._gate)
        except ValueError as error:
            if not overlapped(error):
                raise  # by a `finally` of the user's generator
            return False
        return True

    @override
    def statistics(self) -> Statistics:
        loop, source = self._loop, self._source
        requested: int | None = self._requested
        if self._fused is not None or (
            requested != UNBOUNDED and loop is not None and loop.gi_running
        ):
            requested = None  # polled; or the running loop has a part of it
        elif requested != UNBOUNDED:
            requested = self._requested - self._granted
        name, tags = labels(self._program.stages)
        texts = [] if source is _NOTHING else [type(source).__name__]
        completed = loop is not None and self._downstream is None
        return Statistics(
            operator=" | ".join([*texts, *map(repr, self._program.stages)]),
            requested=requested,
            buffered=0 if self._ahead is EMPTY else 1,
            cancelled=self._gate.cancelled and not completed,
            terminated=self._downstream is None,
            error=self._bad,
            fusion=Fusion.NONE if self._fused is None else Fusion.SYNC,
            name=name,
            tags=tags,
        )
