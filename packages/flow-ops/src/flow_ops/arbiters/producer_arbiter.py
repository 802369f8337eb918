"""`ProducerArbiter`: items that one producer has not delivered are requested of the next."""

from __future__ import annotations

from abc import abstractmethod
from threading import Lock
from typing import Final, Protocol, final

from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import ProtocolViolationError

__all__ = ["Producer", "ProducerArbiter"]


class Producer(Protocol):
    """Anything that can be asked for items: a `Subscription`, or less."""

    __slots__ = ()

    @abstractmethod
    def request(self, n: int, /) -> object:
        """Allow `n` more items."""


@final
class _NullProducer(Producer):
    __slots__ = ()

    def request(self, n: int, /) -> None:
        """Do nothing: it only stands for "no producer any more"."""


_NULL_PRODUCER: Final = _NullProducer()
"""A missed `set(None)`; None means that no `set` was missed (P08)."""


@final
class ProducerArbiter:
    """Keeps count of requested and produced items while producers come and go.

    >>> class Printing:
    ...     def __init__(self, name):
    ...         self.name = name
    ...
    ...     def request(self, n):
    ...         print(self.name, n)
    >>> arbiter = ProducerArbiter()
    >>> arbiter.request(20)
    >>> arbiter.set(Printing("first"))
    first 20
    >>> arbiter.produced(10)
    >>> arbiter.set(Printing("second"))
    second 10

    Calls may come from any thread: one thread at a time is at work, and also does what the others
    ask for meanwhile. No lock is held while a producer is called. When a producer raises, the
    arbiter stays usable, for example with another producer.

    Items do not pass through the arbiter. So replace a producer only when it will send nothing
    more, such as in ``on_complete``: otherwise two producers may send at once, and items that the
    old one is sending are requested of the new one, too. `SwitchArbiter` has no such limit.

    Sums are capped, unbounded demand is kept, and there is no ``request(0)``.

    Args:
        strict: whether ``request(0)`` is an error as well; otherwise it is ignored, as in RxJava 1.
    """

    __slots__ = (
        "_current",
        "_emitting",
        "_lock",
        "_missed_produced",
        "_missed_producer",
        "_missed_requested",
        "_requested",
        "_strict",
    )

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._requested = 0
        """The number of items requested and not produced yet. Like `_current`, it belongs to the
        thread that emits."""
        self._current: Producer | None = None
        self._lock = Lock()
        """Guards the fields below. Never held while calling out."""
        self._emitting = False
        # Separate, or a capped sum would look like one that is too large (P10).
        self._missed_requested = 0
        self._missed_produced = 0
        self._missed_producer: Producer | None = None

    @property
    def outstanding(self) -> int:
        """The number of items requested and not produced yet; `UNBOUNDED` for any number."""
        return self._requested

    def request(self, n: int, /) -> None:
        """Allow `n` more items, of the current producer or of the next.

        Raises:
            TypeError: if `n` is not an int.
            ValueError: if `n` is less than 0; if strict, also for 0.
        """
        bad = bad_request(n)
        if bad is not None:
            if self._strict or n < 0:
                raise bad
            return
        with self._lock:
            if self._emitting:
                self._missed_requested = add_demand(self._missed_requested, n)
                return
            self._emitting = True
        done = False
        try:
            self._requested = add_demand(self._requested, n)
            if self._current is not None:
                self._current.request(n)  # not the sum: requests add up at each producer (P12)
            self._emit_loop()
            done = True
        finally:
            if not done:
                self._unlock()

    def produced(self, n: int, /) -> None:
        """Note that `n` of the requested items were delivered.

        Raises:
            TypeError: if `n` is not an int.
            ValueError: if `n` is less than 1.
            ProtocolViolationError: if `n` is more than was requested.
        """
        if bad_request(n) is not None:
            raise ValueError(f"produced(n) takes at least 1 item, not {n}")
        with self._lock:
            if self._emitting:
                self._missed_produced += n
                return
            self._emitting = True
        done = False
        try:
            self._requested = _left(self._requested, n)
            self._emit_loop()
            done = True
        finally:
            if not done:
                self._unlock()

    def set(self, producer: Producer | None, /) -> None:
        """Replace the producer: all outstanding items are requested of `producer`.

        Args:
            producer: the next one; None to drop the current one.
        """
        with self._lock:
            if self._emitting:
                # An earlier one that was missed has had no chance to produce anything (P17).
                self._missed_producer = _NULL_PRODUCER if producer is None else producer
                return
            self._emitting = True
        done = False
        try:
            self._current = producer
            if producer is not None and self._requested:
                producer.request(self._requested)
            self._emit_loop()
            done = True
        finally:
            if not done:
                self._unlock()

    def _unlock(self) -> None:
        with self._lock:
            self._emitting = False

    def _emit_loop(self) -> None:
        """Do what other calls have left to do, until nothing is left.

        Then another thread may emit.
        """
        while True:
            with self._lock:
                requested, self._missed_requested = self._missed_requested, 0
                produced, self._missed_produced = self._missed_produced, 0
                producer, self._missed_producer = self._missed_producer, None
                if not (requested or produced or producer is not None):
                    self._emitting = False
                    return
            outstanding = add_demand(self._requested, requested)
            self._requested = outstanding = _left(outstanding, produced)
            if producer is _NULL_PRODUCER:
                self._current = None
            elif producer is not None:
                self._current = producer
                if outstanding:
                    producer.request(outstanding)
            elif self._current is not None and requested:
                self._current.request(requested)


def _left(requested: int, produced: int) -> int:
    """Return ``requested - produced``; unbounded demand is never used up (P16, P21).

    Raises:
        ProtocolViolationError: if more items were produced than requested.
    """
    if requested == UNBOUNDED:
        return requested
    if produced > requested:
        raise ProtocolViolationError(
            f"{produced} items were produced and only {requested} requested: the producer "
            "ignores demand, or items were counted twice"
        )
    return requested - produced
