"""Repositories that hold what they are given."""

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
    """Holds what it has accepted last.

    `taps` are told of each accepted value, in the accepting thread: what Agera has no way to say.
    """

    __slots__ = ("_taps", "_value", "_value_lock")

    def __init__(self, value: T) -> None:
        super().__init__()
        self._value = not_none(value, "a repository")
        # Re-entrant: equality is asked under it, as Agera does, and may look at the repository.
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
                tap.put(value)  # under the lock, and thus in the order of the accepts
        for tap in taps:
            tap.signal()
        self.dispatch_update()

    def tap(self, tap: Tap[T], *, current: bool) -> None:
        """Tell `tap` of each value from now on, and of the present one if `current`."""
        with self._value_lock:
            self._taps = (*self._taps, tap)
            if current:
                tap.put(self._value)
        tap.signal()

    def untap(self, tap: Tap[T]) -> None:
        """Tell `tap` no more."""
        with self._value_lock:
            self._taps = tuple(each for each in self._taps if each is not tap)


def repository(value: T) -> Repository[T]:
    """Holds `value` for ever.

    Raises:
        IllegalStateError: if this thread runs no loop.
        NoneItemError: if it is None.
    """
    return _SimpleRepository(value)


def mutable_repository(value: T) -> MutableRepository[T]:
    """Holds `value`, until it accepts another; tells of a value that is not equal to the last.

    Raises:
        IllegalStateError: if this thread runs no loop.
        NoneItemError: if it is None.
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
        IllegalStateError: if this thread runs no loop.
        NoneItemError: if it is None.
    """
    return compiling(value)
