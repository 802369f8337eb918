"""`AtomicReference`: a value that is replaced as a whole, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar, final

__all__ = ["AtomicReference"]

S = TypeVar("S")


@final
class _Version(Generic[S]):
    """A value, and the one that has taken its place, at 0."""

    __slots__ = ("later", "value")

    def __init__(self, value: S) -> None:
        self.value: Final = value
        self.later: Final[dict[int, _Version[S]]] = {}


@final
class AtomicReference(Generic[S]):
    """A value that any thread may replace at any moment, from a finaliser, too.

    Who replaces it works the new value out from the one that is there. If another one has come
    meanwhile, that is done again. So nobody waits for anybody, and what would be done under a lock
    is done as a whole.

    >>> count = AtomicReference(1)
    >>> count.update(lambda n: n + 1)
    (1, 2)
    >>> count.get()
    2

    Args:
        value: the first one. It never changes itself.
    """

    __slots__ = ("_version",)

    def __init__(self, value: S) -> None:
        self._version: _Version[S] = _Version(value)

    def get(self) -> S:
        """The value that is there now."""
        return self._last().value

    def update(self, change: Callable[[S], S]) -> tuple[S, S]:
        """Replace the value.

        Args:
            change: makes the new value from the old one, or returns the old one. Called again if
                another value has come meanwhile: what it found before does not count then.

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
