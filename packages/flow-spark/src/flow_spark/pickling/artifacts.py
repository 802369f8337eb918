"""Modules that a session has sent along, where Spark does not find them itself."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Final

__all__ = ["find_modules_in", "find_modules_of_session"]

_SESSION: Final = re.compile(r"(?:^|,)spark-session-([0-9a-f-]{36})(?=,|$)")
_TAGS: Final = "spark.job.tags"


def find_modules_of_session() -> None:
    """Let this worker import the modules that ``addArtifacts`` has sent.

    The worker of a streaming query does not find them by itself (Spark 4.3.0): it looks in the
    folder that contains the folders of all sessions, instead of in the folder of its session.

    Spark may use the same worker for other sessions later; see `find_modules_in`.
    """
    from pyspark import SparkFiles, TaskContext

    task = TaskContext.get()
    tags = None if task is None else task.getLocalProperty(_TAGS)
    for session in _SESSION.findall(tags or ""):
        folder = Path(SparkFiles.getRootDirectory()) / session
        if folder.is_dir():
            find_modules_in(folder)


def find_modules_in(folder: Path) -> None:
    """Import modules from `folder`, and forget those from the folders of other sessions.

    Args:
        folder: the folder with the artifacts of a session.
    """
    if str(folder) in sys.path:
        return
    sibling = re.compile(rf"{re.escape(f'{folder.parent}{os.sep}')}[0-9a-f-]{{36}}(?:\W|$)")
    for name, module in list(sys.modules.items()):
        if sibling.match(getattr(module, "__file__", None) or ""):
            del sys.modules[name]
    own = [folder, *(path for path in folder.rglob("*") if path.suffix in {".egg", ".zip"})]
    sys.path[:] = [path for path in sys.path if not sibling.match(path)]
    sys.path[1:1] = map(str, own)
    importlib.invalidate_caches()
