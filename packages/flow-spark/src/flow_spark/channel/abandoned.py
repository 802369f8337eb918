"""Ends a task that is no longer needed, even if a function of the flow hangs in it.

Spark itself checks only every two seconds whether a task was cancelled, and then waits again before
it ends the task; until then, the task occupies its core. The channel notices at once, since the
driver closes it, that its task is no longer needed. When a client of Spark Connect disappears,
Spark notices this only after minutes.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

__all__ = ["ended_when"]

_EVERY_S: Final = 0.25
_GRACE_S: Final = 0.5
"""The time, in seconds, that a task has to notice by itself that it is no longer needed, as it does
when it sends something."""


@contextmanager
def ended_when(is_over: Callable[[], bool]) -> Generator[None, None, None]:
    """Kill this worker if the block continues although it is no longer needed.

    Args:
        is_over: returns True if the block is no longer needed; called in a separate thread, again
            and again.
    """
    over = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(is_over, over), name="flow-spark-abandoned", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        over.set()


def _watch(is_over: Callable[[], bool], over: threading.Event) -> None:
    while not over.wait(_EVERY_S):
        if is_over():
            if not over.wait(_GRACE_S):
                os.kill(os.getpid(), signal.SIGKILL)
            return
