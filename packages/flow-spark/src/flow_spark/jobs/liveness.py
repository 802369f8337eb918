"""Whether the JVM that feeds a Python worker is still there.

Arrow takes the end of a stream for the end of the data, so that a worker whose executor was killed
believes that its input is complete. For a stage that gives its result at the end (a count, a sum)
that result would be wrong, and nothing else would show it.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Final

__all__ = ["jvm_is_gone"]

_HIGHEST: Final = 1024


def jvm_is_gone() -> bool:
    """Whether the socket to the JVM is known to be closed at the other end.

    A worker holds that socket under several descriptors (itself, and a duplicate for each
    direction); no other socket of a process is like that, so that it can be told from the user's.
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
