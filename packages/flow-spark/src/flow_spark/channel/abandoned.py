"""End a task whose driver does not want it any more, even if a function of the flow hangs in it.

Spark itself looks every two seconds whether a task was cancelled, and then waits a while longer;
so long the core would be taken. The channel tells at once: the driver has closed it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from flow_spark.channel.push import Push

__all__ = ["ended_with"]

_EVERY_S: Final = 0.25
_GRACE_S: Final = 0.5
"""How long a task may take to notice by itself, as it does when it sends something."""


@contextmanager
def ended_with(push: Push) -> Generator[None, None, None]:
    """Kill this worker if the driver closes the channel within the block, and the block goes on."""
    over = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(push, over), name="flow-spark-abandoned", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        over.set()


def _watch(push: Push, over: threading.Event) -> None:
    while not over.wait(_EVERY_S):
        if push.is_closed():
            if not over.wait(_GRACE_S):
                os.kill(os.getpid(), signal.SIGKILL)
            return
