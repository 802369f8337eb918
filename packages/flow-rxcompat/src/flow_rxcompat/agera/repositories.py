"""Repositories whose values come from outside."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, TypeVar, final

from flow_rxcompat.agera.builder import REventSource, compiling
from flow_rxcompat.agera.errors import not_none
from flow_rxcompat.agera.observables import BaseObservable
from flow_rxcompat.agera.protocols import MutableRepository, Repository

if TYPE_CHECKING:
    from flow_rxcompat.agera.taps import Tap

__all__ = ["mutable_repository", "repository", "repository_with_initial_value"]

T = TypeVar("T")


@final
class _SimpleRepository(BaseObservable, MutableRepository[T]):
    """Holds the value that it has accepted last.

    `taps` get each accepted value, in the thread that accepts it; Agera has no interface for this.
    """

    __slots__ = ("_taps", "_value", "_value_lock")

    def __init__(self, value: T) -> None:
        super().__init__()
        self._value = not_none(value, "a repository")
        # Re-entrant: equality is checked under it, as in Agera, and may look at the repository.
        self._value_lock = RLock()
        self._taps: tuple[Tap[T], ...] = ()

    def get(self) -> T:
        with self._value_lock:
            return self._value

    def accept(self, value: T, /) -> None:
        not_none(value, "accept()")
        with self._value_lock:
            if value == self._value:
                return
            self._value = value
            taps = self._taps
            for tap in taps:
                tap.put(value)  # under the lock, and so in the order of the accepts
        for tap in taps:
            tap.signal()
        self.dispatch_update()

    def tap(self, tap: Tap[T], *, current: bool) -> None:
        """Pass each value to `tap` from now on, and the present value first if `current`."""
        with self._value_lock:
            self._taps = (*self._taps, tap)
            if current:
                tap.put(self._value)
        tap.signal()

    def untap(self, tap: Tap[T]) -> None:
        """Stop passing values to `tap`."""
        with self._value_lock:
            self._taps = tuple(each for each in self._taps if each is not tap)


def repository(value: T) -> Repository[T]:
    """Return a repository that always has `value`.

    Raises:
        IllegalStateError: if this thread has no loop.
        NoneItemError: if `value` is None.
    """
    return _SimpleRepository(value)


def mutable_repository(value: T) -> MutableRepository[T]:
    """Return a repository that has `value` until it accepts another value.

    A value that does not equal the present one is an update.

    Raises:
        IllegalStateError: if this thread has no loop.
        NoneItemError: if `value` is None.
    """
    return _SimpleRepository(value)


def repository_with_initial_value(value: T) -> REventSource[T, T]:
    """Begin to describe a repository that computes its value; see `flow_rxcompat.agera.builder`.

    >>> from flow_rxcompat.agera import TestLoop, repositories
    >>> with TestLoop() as loop:
    ...     celsius = repositories.mutable_repository(20.0)
    ...     label = (
    ...         repositories.repository_with_initial_value("")
    ...         .observe(celsius)
    ...         .on_updates_per_loop()
    ...         .get_from(celsius)
    ...         .then_transform(lambda degrees: f"{degrees:.0f} °C")
    ...         .compile()
    ...     )
    ...     label.add_updatable(lambda: print(label.get()))
    ...     loop.drain()
    20 °C

    Raises:
        IllegalStateError: if this thread has no loop.
        NoneItemError: if `value` is None.
    """
    return compiling(value)
