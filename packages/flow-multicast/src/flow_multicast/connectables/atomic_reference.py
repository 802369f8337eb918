"""`AtomicReference`: a value that is replaced as a whole, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar, final

__all__ = ["AtomicReference"]

S = TypeVar("S")


@final
class _Version(Generic[S]):
    """A value, and its successor as entry 0, once there is one."""

    __slots__ = ("later", "value")

    def __init__(self, value: S) -> None:
        self.value: Final = value
        self.later: Final[dict[int, _Version[S]]] = {}


@final
class AtomicReference(Generic[S]):
    """A value that any thread may replace at any moment, even a finaliser.

    A thread that replaces the value computes the new one from the present one. If another thread
    has replaced the present one meanwhile, the first thread computes the new value again. So no
    thread waits for another thread, and a change is atomic, as under a lock.

    >>> count = AtomicReference(1)
    >>> count.update(lambda n: n + 1)
    (1, 2)
    >>> count.get()
    2

    Args:
        value: the first value. A value itself must not change.
    """

    __slots__ = ("_version",)

    def __init__(self, value: S) -> None:
        self._version: _Version[S] = _Version(value)

    def get(self) -> S:
        """Return the present value."""
        return self._last().value

    def update(self, change: Callable[[S], S]) -> tuple[S, S]:
        """Replace the value.

        Args:
            change: called with the old value; returns the new one, or the old one to change
                nothing. The function is called again if another thread has replaced the value
                meanwhile: its earlier result does not count then.

        Returns:
            The value before, and the value now; the same object twice if there was no change.
        """
        while True:
            before = self._last()
            value = change(before.value)
            if value is before.value:
                return value, value
            mine = _Version(value)
            if before.later.setdefault(0, mine) is mine:
                self._version = mine
                return before.value, value

    def _last(self) -> _Version[S]:
        version = self._version
        while (later := version.later.get(0)) is not None:
            # Another thread may store an older one here just after that: it leads to the last one.
            self._version = version = later
        return version
