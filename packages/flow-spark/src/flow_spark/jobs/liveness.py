"""The JVM that feeds a task's Python worker: whether it is alive, and whether it reads errors.

Arrow takes the end of a stream for the end of the data, so a worker whose executor was killed
believes that its input is complete. The result of a stage that emits at the end (a count, a sum)
would then be wrong, and nothing would show that.

Besides, the JVM looks for an error only when its socket takes no more. PySpark's daemon reads and
drops everything that comes for a failed worker, so the error of the first row would be reported
when the whole partition had been sent.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

__all__ = ["failing_at_once", "jvm_is_gone"]

_HIGHEST: Final = 1024


def jvm_is_gone() -> bool:
    """Return whether the socket to the JVM is known to be closed at the other end.

    A worker has that socket under several descriptors (itself, and a duplicate for each direction);
    no other socket of a process is like that, so it can be distinguished from the user's.
    """
    sockets: dict[int, list[int]] = {}
    for descriptor in _descriptors():
        try:
            facts = os.fstat(descriptor)
        except OSError:
            continue
        if stat.S_ISSOCK(facts.st_mode):
            sockets.setdefault(facts.st_ino, []).append(descriptor)
    return any(_closed(same[0]) for same in sockets.values() if len(same) > 1)


@contextmanager
def failing_at_once() -> Generator[None, None, None]:
    """Keep the daemon from reading more of this worker's input if the block fails."""
    try:
        yield
    except Exception:
        with contextlib.suppress(OSError):
            _leave_unread()
        raise


def _leave_unread() -> None:
    """Replace the socket that the daemon reads from by one on which nothing comes.

    The other descriptors of that socket, by which the error is reported, stay as they are.
    """
    read = _socket_of_daemon()
    if read is None or not hasattr(select, "POLLRDHUP"):
        return
    kept = os.dup(read.fileno())
    silent, end = socket.socketpair()
    with silent:
        os.dup2(silent.fileno(), read.fileno(), inheritable=False)
    threading.Thread(
        target=_end_when_closed, args=(kept, end), name="flow-spark-failed", daemon=True
    ).start()


def _socket_of_daemon() -> socket.socket | None:
    """Return the socket of ``pyspark.daemon.worker``, whose call has led to this one."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "worker" and Path(code.co_filename).name == "daemon.py":
            found: object = frame.f_locals.get("sock")
            return found if isinstance(found, socket.socket) else None
        frame = frame.f_back
    return None


def _end_when_closed(connection: int, end: socket.socket) -> None:
    """Let the daemon's reading end when the JVM has closed the connection."""
    with end:
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        poll.poll()


def _descriptors() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    except OSError:
        return list(range(3, _HIGHEST))


def _closed(descriptor: int) -> bool:
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        try:
            # MSG_DONTWAIT instead of setblocking: the flag would be shared with the worker's own.
            return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
