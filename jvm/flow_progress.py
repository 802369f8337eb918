"""The display of long work: a bar while it runs, then lines that are not cut in a file."""

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
    """Shows a bar while it is a context, if there is a terminal; the base of reports.

    Args:
        total: the steps of the work.
        columns: what the bar shows beside steps, time and `describe`.

    Attributes:
        console: where to print the rest.
    """

    def __init__(self, total: int, *columns: ProgressColumn) -> None:
        # Names are long: what is written to a file is not cut at 80 columns.
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
        """Say what is being done; `text` may hold rich's markup."""
        self._progress.update(self._task, description=text)

    def advance(self) -> None:
        """A step is done."""
        self._progress.advance(self._task)
