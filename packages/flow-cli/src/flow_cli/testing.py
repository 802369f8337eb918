"""A terminal in memory, for tests of progress bars; needs ``flow-cli[testing]``."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

from flow_cli import progress
from flow_testing import TIMEOUT_S

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Screen", "recorded_screen"]

_CONTROLS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@final
class Screen(io.StringIO):
    """The drawings of progress bars; `recorded_screen` makes one."""

    def __init__(self) -> None:
        super().__init__()
        self._written: Final = threading.Condition()

    def write(self, text: str, /) -> int:
        """Take the text of a drawing."""
        with self._written:
            self._written.notify_all()
            return super().write(text)

    @property
    def text(self) -> str:
        """Return everything that was drawn, without the codes that move the cursor."""
        return _CONTROLS.sub("", self.getvalue())

    @property
    def last(self) -> str:
        """Return the lowest bar, as it was drawn last."""
        return self.text.rstrip("\n").replace("\r", "\n").splitlines()[-1]

    def shows(self, text: str, timeout_s: float = TIMEOUT_S) -> bool:
        """Wait until `text` has been drawn.

        Args:
            text: the text to look for in everything that was drawn.
            timeout_s: how long to wait, in seconds.

        Returns:
            True if the text was drawn in time.
        """
        with self._written:
            return self._written.wait_for(lambda: text in self.text, timeout_s)


@contextmanager
def recorded_screen(*, terminal: bool = True) -> Generator[Screen, None, None]:
    """Make the progress bars of this process draw on a terminal in memory, 120 columns wide.

    >>> import flow_core as flow
    >>> from flow_cli.progress import progress
    >>> with recorded_screen() as screen:
    ...     items = list(flow.range(3).pipe(progress("numbers")))
    >>> "3 rows" in screen.last
    True

    Args:
        terminal: whether the screen counts as a terminal; if not, there are no bars, as for output
            to a file.

    Yields:
        The screen. A test may close it to simulate a terminal that goes away.
    """
    screen = Screen()

    def console() -> Console:
        from rich.console import Console

        return Console(
            file=screen, force_terminal=True, force_jupyter=False, width=120, color_system=None
        )

    display = progress.display()
    before = display.visible, display.console
    display.visible, display.console = lambda: terminal, console
    try:
        yield screen
    finally:
        display.visible, display.console = before
