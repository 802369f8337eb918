"""The check whether a session that was made elsewhere has what a flow needs."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from flow_spark.errors import SessionConflictError, SparkJobError
from flow_spark.items.arrow import ArrowBatch
from flow_spark.jobs.advice import short
from flow_spark.jobs.cluster import cluster_of
from flow_spark.jobs.frames import is_connect, map_in_arrow, release_of
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.redaction import is_redacted
from flow_spark.jobs.run import StoppedError, run
from flow_spark.pickling.failures import text_of
from flow_spark.pickling.modules import SHIPPED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_existing", "check_release", "differing"]

_PACKAGES: Final = tuple(
    name for name in SHIPPED if name.startswith("flow_") and name != "flow_testing"
)
"""Packages that have to be the same on executors; tests put their own packages here."""
_NEEDED: Final = ("flow_core", "flow_spark")

_UNKNOWN: Final = "?"
"""Stands for the version of a package that is there but was not installed: a folder, or a file sent
along."""

_LOOKS_FOR_S: Final = 10.0
"""The time, in seconds, for which the opening of a session waits for a slot, to check an
executor."""

_log: Final = logging.getLogger("flow.spark")


def check_existing(spark: SparkSession) -> None:
    """Run a small job that checks the Python of an executor, and the packages in it.

    Raises:
        SessionConflictError: if a flow could not run there; the text says what to do.
    """
    check_release("the session given", spark.version, remote=is_connect(spark))
    wrong = differing("the session given", spark)
    if wrong:
        raise SessionConflictError(
            "the executors of the session given have other packages than this process: "
            f"{'; '.join(wrong)}. Install the same in the Python of the executors, which the "
            "environment variable PYSPARK_PYTHON names when the session is made; or let "
            "flow_spark.session(master) make the session, which brings them along."
        )


def differing(what: str, spark: SparkSession) -> list[str]:
    """Run a small job that checks the packages of an executor.

    The job also shows a client of Spark Connect whether tasks can reach it. If no executor has run
    it after some seconds, all slots may be in use: the log says that nothing was checked.

    Args:
        what: the owner of the executors, for messages.
        spark: the session of the executors.

    Returns:
        The packages that are missing on the executor, or have other versions than in this process,
            in words.

    Raises:
        SessionConflictError: if the executors cannot run functions of this process.
    """
    client = cluster_of(spark).client()
    held = None if client is None else astuple(client)
    looking = map_in_arrow(spark.range(1), _look(_PACKAGES, held), "told string")
    stop = Stop()
    limit = threading.Timer(_LOOKS_FOR_S, stop.set)
    limit.daemon = True
    limit.start()
    try:
        rows = run(spark, "a look at the executors", looking.collect, stop=stop)
    except StoppedError:
        _log.warning(
            "%s has not run a small job within %g s, so that it is unknown whether its executors "
            "have the Python and the packages of this process: all its slots may be in use, and "
            "jobs wait for one",
            *(what, _LOOKS_FOR_S),
        )
        return []
    except Exception as error:
        told = isinstance(error, SparkJobError)  # neither it nor its cause has secrets
        cause = error.__cause__ if told or is_redacted(text_of(error)) else error
        raise SessionConflictError(
            f"{what} cannot run functions of this process: {error if told else short(error)}"
        ) from cause
    finally:
        limit.cancel()
    there: dict[str, str | None] = json.loads(str(rows[0][0]))
    return [
        f"{name.replace('_', '-')} {_version(name)} here, {found or 'none'} there"
        for name, found in there.items()
        if _differs(name, found)
    ]


def check_release(what: str, version: str, *, remote: bool) -> None:
    """Compare the version of Spark that `what` runs with that of PySpark here.

    Args:
        what: the owner of that Spark, for messages.
        version: the version of Spark.
        remote: whether PySpark here is a client of Spark Connect, which may be older.

    Raises:
        SessionConflictError: if the versions do not fit; the text says what to do.
    """
    import pyspark

    mine = pyspark.__version__
    client, server = release_of(mine), release_of(version)
    if server < client or (server != client and not remote):
        raise SessionConflictError(
            f"{what} runs Spark {version}, and this process has PySpark {mine}. "
            f"Install the same here: pip install 'pyspark=={version}'"
        )


def _look(
    names: Iterable[str], client: tuple[Any, ...] | None
) -> Callable[[Iterator[ArrowBatch]], Iterator[ArrowBatch]]:
    """Return the function of the small job.

    It is sent as a whole, since the executors may not have this module.
    """
    unknown = _UNKNOWN

    def look(batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        import contextlib
        import json
        from importlib import import_module, metadata, util

        arrow: Any = import_module("pyarrow")  # has no types
        told: dict[str, str | None] = {}
        for name in names:
            try:
                told[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                told[name] = unknown if util.find_spec(name) else None
        if client is not None and util.find_spec("flow_spark"):
            with contextlib.suppress(Exception):  # it may be an older one
                lifeline: Any = import_module("flow_spark.channel.lifeline")
                lifeline.reach(*client)
        for _ in batches:
            yield arrow.record_batch([[json.dumps(told)]], names=["told"])

    return look


def _differs(name: str, there: str | None) -> bool:
    if there is None:
        return name in _NEEDED  # a flow may not use the others
    return _UNKNOWN != there != (_version(name) or there)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
