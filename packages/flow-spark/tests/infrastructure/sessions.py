"""One session at a time: a process holds one JVM, and is a client of Connect or it is not."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import TypeVar

__all__ = ["Sessions"]

T = TypeVar("T")


class Sessions:
    """Holds the session of the tests, and closes it when those on another one begin."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()

    def switch(self, opening: AbstractContextManager[T]) -> T:
        """Close the session that is open, and enter another one, or what holds one."""
        self.close()
        return self._open.enter_context(opening)

    def close(self) -> None:
        """Close the session that is open, if there is one."""
        self._open.close()
