"""Displays long work: a bar while it runs, then lines that are not truncated in a file."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

__all__ = ["WithProgress"]


class WithProgress:
    """The base of reports: shows a bar while the context is open, if there is a terminal.

    Args:
        total: the steps of the work.
        columns: the columns that the bar shows besides steps, time and `describe`.

    Attributes:
        console: the console on which to print the rest.
    """

    def __init__(self, total: int, *columns: ProgressColumn) -> None:
        # Names are long: do not truncate lines in a file at 80 columns.
        self.console: Final = Console(width=None if sys.stdout.isatty() else 120)
        self._progress: Final = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            *columns,
            TextColumn("{task.description}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task: Final = self._progress.add_task("", total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def describe(self, text: str) -> None:
        """Show what is being done; `text` may contain rich's markup."""
        self._progress.update(self._task, description=text)

    def advance(self) -> None:
        """Count one step as done."""
        self._progress.advance(self._task)
