"""`Tap`: the interface by which the bridges get each value, while updates may skip some."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, TypeVar, runtime_checkable

__all__ = ["Tap", "Tapped"]

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Tap(Protocol[T_contra]):
    """Gets each value, and the end."""

    __slots__ = ()

    @abstractmethod
    def put(self, value: T_contra, /) -> None:
        """Keep `value`; this is called under the repository's lock, so it must not call out."""

    @abstractmethod
    def signal(self) -> None:
        """Send what was put; this is called without a lock."""

    @abstractmethod
    def end(self, error: BaseException | None, /) -> None:
        """Note that no value follows, because of `error`, or because of the end if it is None."""


@runtime_checkable
class Tapped(Protocol[T_co]):
    """A repository of this package that passes on each of its values."""

    __slots__ = ()

    @abstractmethod
    def tap(self, tap: Tap[T_co], *, current: bool) -> None:
        """Pass each value to `tap` from now on, and the present value first if `current`."""

    @abstractmethod
    def untap(self, tap: Tap[T_co]) -> None:
        """Stop passing values to `tap`."""
