"""One session at a time: a process holds one JVM, and is a client of Connect or it is not."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Sessions"]


class Sessions:
    """Holds the session of the tests, and closes it when those on another one begin."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()

    def switch(self, opening: AbstractContextManager[SparkSession]) -> SparkSession:
        """Close the session that is open, and enter another one."""
        self.close()
        return self._open.enter_context(opening)

    def close(self) -> None:
        """Close the session that is open, if there is one."""
        self._open.close()
