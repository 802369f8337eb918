"""The private folder of a session, and folders that ended processes have left."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final, final

__all__ = ["Workspace", "sweep"]

_PREFIX: Final = "flow-spark-"
_OWNER: Final = "owner"
"""A file that the owner of a folder keeps locked; however the owner ends, the file is unlocked."""


@final
class Workspace:
    """A new folder for temporary files that only this user can look into.

    Attributes:
        path: the folder.
    """

    __slots__ = ("_lock", "path")

    def __init__(self) -> None:
        self.path: Final = Path(tempfile.mkdtemp(prefix=_PREFIX))  # its mode is 0700
        self._lock: int | None = _locked(self.path)

    def remove(self) -> None:
        """Remove the folder with all its contents. Calling this twice is harmless."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def sweep() -> None:
    """Remove the folders of sessions whose processes were killed."""
    if sys.platform == "win32":  # has no such locks
        return
    import fcntl

    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # of another user, or its owner lives
            lock = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _locked(folder: Path) -> int | None:
    if sys.platform == "win32":
        return None
    import fcntl

    # The file gets its name only when it is locked: another process may sweep at this moment.
    unnamed = folder / f"{_OWNER}.new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: no process sweeps there
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(folder / _OWNER)
    return lock
