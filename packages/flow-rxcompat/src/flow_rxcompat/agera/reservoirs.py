"""Reservoirs: queues that announce when there is a value to get."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from contextlib import AbstractContextManager
from threading import RLock
from typing import Generic, Protocol, TypeVar, final, runtime_checkable

from typing_extensions import override

from flow_rxcompat.agera.errors import not_none
from flow_rxcompat.agera.observables import BaseObservable
from flow_rxcompat.agera.protocols import Receiver, Repository
from flow_rxcompat.agera.result import Result

__all__ = ["DequeQueue", "Queue", "Reservoir", "reservoir", "reservoir_of"]

T = TypeVar("T")


@runtime_checkable
class Reservoir(Receiver[T], Repository[Result[T]], Protocol[T]):
    """A queue of values; each of them can be taken once."""

    __slots__ = ()


class Queue(Protocol[T]):
    """The container of a reservoir's values.

    It decides which values it takes, and in which order it returns them.
    """

    @abstractmethod
    def offer(self, value: T, /) -> bool:
        """Take `value`; return whether it was taken."""

    @abstractmethod
    def poll(self) -> T | None:
        """Remove and return the next value, or None."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether no value is left."""


@final
class DequeQueue(Queue[T]):
    """A queue without a bound: first in, first out."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: deque[T] = deque()

    @override
    def offer(self, value: T, /) -> bool:
        """Take `value`, always."""
        self._values.append(value)
        return True

    @override
    def poll(self) -> T | None:
        return self._values.popleft() if self._values else None

    @override
    def is_empty(self) -> bool:
        return not self._values


class SynchronizedReservoir(BaseObservable, Reservoir[T], Generic[T]):
    """A reservoir over any queue.

    It announces a value that comes when there is none, a value that is left after a `get`, and a
    value that is there when the first updatable is added. It does not announce that it has become
    empty.
    """

    __slots__ = ("_queue", "_queue_lock")

    def __init__(self, queue: Queue[T], lock: AbstractContextManager[object] | None = None) -> None:
        super().__init__()
        self._queue = not_none(queue, "reservoir()")
        self._queue_lock = RLock() if lock is None else lock

    @override
    def accept(self, value: T, /) -> None:
        not_none(value, "accept()")
        with self._queue_lock:
            was_empty = self._queue.is_empty()
            tell = self._queue.offer(value) and was_empty
        if tell:
            self.dispatch_update()

    def get(self) -> Result[T]:
        """Return the next value, or `Result.absent` if there is none."""
        with self._queue_lock:
            value = self._queue.poll()
            tell = not self._queue.is_empty()
        if tell:
            self.dispatch_update()
        return Result.absent_if_null(value)

    @override
    def observable_activated(self) -> None:
        with self._queue_lock:
            if self._queue.is_empty():
                return
        self.dispatch_update()


def reservoir(
    queue: Queue[T] | None = None, *, lock: AbstractContextManager[object] | None = None
) -> Reservoir[T]:
    """Return a reservoir that returns its values first in, first out, or as `queue` orders them.

    Args:
        queue: keeps the values; None for a queue without a bound.
        lock: held whenever the queue is used; pass a lock if other code uses the queue, too.

    Raises:
        IllegalStateError: if this thread has no loop.
    """
    return SynchronizedReservoir(DequeQueue[T]() if queue is None else queue, lock)


def reservoir_of(kind: type[T]) -> Reservoir[T]:
    """Return a `reservoir`, of which a type checker knows the class of the values."""
    return reservoir()
