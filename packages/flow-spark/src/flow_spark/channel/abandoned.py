"""Ends a task that is not needed any more, even if a function of the flow hangs in it.

Spark itself checks every two seconds whether a task was cancelled, and then waits some time longer,
while the core stays taken. The channel learns it at once, since the driver closes it. Spark notices
only after minutes that a client of Spark Connect has gone.
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
"""The time, in seconds, that a task has to notice this by itself, as it does when it sends
something."""


@contextmanager
def ended_when(is_over: Callable[[], bool]) -> Generator[None, None, None]:
    """Kill this worker if the block is not needed any more, but continues.

    Args:
        is_over: returns whether the block is not needed any more; called in a separate thread,
            again and again.
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
