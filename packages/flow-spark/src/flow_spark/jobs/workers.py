"""The check whether the Python workers of a session can run a flow, before a job begins."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from flow_spark.errors import SessionConflictError
from flow_spark.jobs.advice import other_version
from flow_spark.jobs.frames import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_workers"]

_KILLS: Final = "spark.sql.execution.pyspark.udf.killOnIdleTimeout"
_IDLE: Final = "spark.sql.execution.pyspark.udf.idleTimeoutSeconds"
"""The setting for the time a worker may be silent. By default, this and `_KILLS` are those of
``spark.python.worker``."""

_MINE: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_ANSWERS_WITHIN_S: Final = 10.0


def check_workers(session: SparkSession) -> None:
    """Refuse a session whose workers cannot run tasks that wait for a subscriber.

    Raises:
        SessionConflictError: if the workers are killed when they are silent, or run another Python.
    """
    if str(session.conf.get(_KILLS, "false")).lower() == "true":
        limit = str(session.conf.get(_IDLE, "0"))
        if not re.fullmatch(r"0\D*", limit):
            raise SessionConflictError(
                f"Spark kills Python workers of this session that are silent for {limit} "
                "(spark.python.worker.idleTimeoutSeconds and killOnIdleTimeout), and the tasks of "
                "a flow are, as long as its subscriber takes its time: "
                f"spark.conf.set({_KILLS!r}, 'false') lets this session's live"
            )
    if is_connect(session):
        return
    context = session.sparkContext
    # The Python of executors elsewhere is not known here.
    if str(context.master).startswith("local"):
        found = _version_of(context.pythonExec)
        if found not in (None, _MINE):
            raise SessionConflictError(other_version(str(found)))


@functools.lru_cache(maxsize=16)
def _version_of(program: str) -> str | None:
    """Return the version of the Python `program`; None if it does not print it."""
    if program == sys.executable:
        return _MINE
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [program, "-c", code],
            capture_output=True,
            check=False,
            text=True,
            timeout=_ANSWERS_WITHIN_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
