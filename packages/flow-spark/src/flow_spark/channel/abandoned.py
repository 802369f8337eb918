"""End a task that nobody wants any more, even if a function of the flow hangs in it.

Spark itself looks every two seconds whether a task was cancelled, and then waits a while longer;
so long the core would be taken. The channel tells at once: the driver has closed it. That a client
of Spark Connect has gone, Spark notices after minutes.
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
"""How long a task may take to notice by itself, as it does when it sends something."""


@contextmanager
def ended_when(is_over: Callable[[], bool]) -> Generator[None, None, None]:
    """Kill this worker if nobody wants the block to go on, and it does.

    Args:
        is_over: tells whether nobody does; called in a thread of its own, again and again.
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
