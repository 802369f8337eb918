"""The check that this system has what flow-spark needs of it."""

from __future__ import annotations

import os
import platform
import signal
import socket
from collections.abc import Iterator

from flow_spark.errors import UnsupportedPlatformError

__all__ = ["check_platform"]


def check_platform() -> None:
    """Check that this system can end groups of processes, and look at a socket without waiting.

    Raises:
        UnsupportedPlatformError: if it lacks one of them; the text lists what it lacks.
    """
    missing = list(_missing())
    if missing:
        raise UnsupportedPlatformError(
            f"flow-spark needs {', '.join(missing)}, which Python has not on "
            f"{platform.system() or 'this system'}: without them, a process of Spark could stay "
            "alive after the flow. Run it on Linux, in WSL 2 or in a container; the other packages "
            "run here"
        )


def _missing() -> Iterator[str]:
    if not hasattr(os, "killpg"):
        yield "os.killpg"
    if not hasattr(signal, "SIGKILL"):
        yield "signal.SIGKILL"
    if not hasattr(socket, "MSG_DONTWAIT"):
        yield "socket.MSG_DONTWAIT"
