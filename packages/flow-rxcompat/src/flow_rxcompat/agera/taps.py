"""`Tap`: what the bridges listen with, past the updates that may leave values out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, TypeVar, runtime_checkable

__all__ = ["Tap", "Tapped"]

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Tap(Protocol[T_contra]):
    """Is told of each value, and of an end."""

    __slots__ = ()

    @abstractmethod
    def put(self, value: T_contra, /) -> None:
        """Keep `value`; called under the lock of the repository, so nobody is told yet."""

    @abstractmethod
    def signal(self) -> None:
        """Tell of what was put; called without a lock."""

    @abstractmethod
    def end(self, error: BaseException | None, /) -> None:
        """Tell that no value follows, because of `error` or without one."""


@runtime_checkable
class Tapped(Protocol[T_co]):
    """A repository of this package that shows each of its values."""

    __slots__ = ()

    @abstractmethod
    def tap(self, tap: Tap[T_co], *, current: bool) -> None:
        """Tell `tap` of each value from now on, and of the present one if `current`."""

    @abstractmethod
    def untap(self, tap: Tap[T_co]) -> None:
        """Tell `tap` no more."""
