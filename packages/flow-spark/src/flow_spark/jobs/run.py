"""Runs jobs on Spark for a thread that waits, and may have to leave."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import uuid
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from flow_spark.channel.background_reader import STARVED_S
from flow_spark.errors import SparkJobError
from flow_spark.jobs.advice import short
from flow_spark.jobs.cluster import Cluster, cluster_of
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.redaction import is_redacted
from flow_spark.jobs.slots import is_starved
from flow_spark.pickling.failures import text_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["StoppedError", "cancel_until", "explained", "explaining", "new_tag", "run"]

R = TypeVar("R")

_CANCEL_EVERY_S: Final = 0.2
_LOOK_EVERY_S: Final = 0.2
_ENDS_WITHIN_S: Final = 5.0


def new_tag() -> str:
    """Return a tag by which a job can be found."""
    return f"flow-{uuid.uuid4().hex}"


class StoppedError(Exception):
    """The `stop` of `run` was set."""


def run(
    session: SparkSession,
    name: str,
    action: Callable[[], R],
    *,
    tell: Callable[[], None] | None = None,
    stop: Stop | None = None,
) -> R:
    """Return the result of `action`.

    The jobs of `action` can be followed, and are cancelled if this thread is interrupted.

    `action` is called in a separate thread, with this thread's settings for Spark (its scheduler
    pool, its tags): otherwise a KeyboardInterrupt would cut a conversation with the JVM in two.

    Args:
        session: the session of the jobs.
        name: the name of the jobs in Spark's tools.
        action: starts the jobs, and waits for them.
        tell: passes on the settings of another thread than this one, see `Cluster.handed_on`.
        stop: ends the jobs when it is set.

    Raises:
        SparkJobError: if a job fails; the text has the way out if that is known.
        StoppedError: if `stop` was set.
    """
    cluster, what = cluster_of(session), _called(name)
    with explaining(what), cluster.answering(what):
        return _ran(cluster, name, action, tell or cluster.handed_on(), stop or Stop())


def _ran(
    cluster: Cluster, name: str, action: Callable[[], R], tell: Callable[[], None], stop: Stop
) -> R:
    tag, ended, left, woken = new_tag(), threading.Event(), threading.Event(), threading.Event()
    done: Future[R] = Future()

    def work() -> None:
        try:
            tell()
            with cluster.tagged(tag, name, left.is_set):
                result = action()
        except BaseException as error:  # an error in a thread has no caller to propagate to
            done.set_exception(error)
        else:
            done.set_result(result)
        finally:
            ended.set()
            woken.set()

    try:
        threading.Thread(target=work, name="flow-spark-job", daemon=True).start()
        # A signal that comes just before a wait does not end it, and is seen after the next one.
        stop.wakes(woken.set)
        look_at = time.monotonic() + STARVED_S
        while not woken.wait(_LOOK_EVERY_S):
            if time.monotonic() > look_at:
                look_at = math.inf
                threading.Thread(
                    target=_look_for_slots,
                    args=(cluster, tag, _called(name), ended),
                    name="flow-spark-reader",
                    daemon=True,
                ).start()
        if stop():
            raise StoppedError
    except BaseException:
        left.set()
        threading.Thread(
            target=cancel_until, args=(cluster, tag, ended), name="flow-spark-cancel", daemon=True
        ).start()
        ended.wait(_ENDS_WITHIN_S)
        raise
    return done.result()


def _called(name: str) -> str:
    return f"the Spark job {name!r}"


def _look_for_slots(cluster: Cluster, tag: str, what: str, ended: threading.Event) -> None:
    # Not in the thread that waits: an interrupt would cut its conversation with the JVM in two.
    with contextlib.suppress(Exception):  # the job itself reports what is wrong with Spark
        while not ended.is_set() and is_starved(cluster, tag, what):
            ended.wait(STARVED_S)


def cancel_until(cluster: Cluster, tag: str, ended: threading.Event) -> None:
    """Cancel all jobs that run under `tag`, until `ended` is set."""
    # A job that is still being planned has nothing to cancel yet, so this is repeated.
    while not ended.is_set():
        with contextlib.suppress(Exception):
            cluster.cancel(tag)
        ended.wait(_CANCEL_EVERY_S)


@contextmanager
def explaining(what: str) -> Generator[None, None, None]:
    """Raise errors of Spark in the block as `explained` does.

    Args:
        what: what fails, for the message.

    Raises:
        SparkJobError: in place of an error of Spark.
    """
    try:
        yield
    except Exception as error:
        told = explained(error, what)
        if told is error:
            raise
        raise told from told.__cause__


def explained(error: BaseException, what: str) -> BaseException:
    """Return the error for a failure of `what`: `error` itself, if it is not about a Spark job."""
    if not _is_of_spark(error):
        return error
    told = SparkJobError(f"{what} failed: {short(error)}")
    told.__cause__ = None if is_redacted(text_of(error)) else error
    told.__suppress_context__ = True
    return told


def _is_of_spark(error: BaseException) -> bool:
    """Return whether `error` is about a failed job.

    An error about a wrong query is clear as it is.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    if isinstance(error, (AnalysisException, ParseException)):
        return False
    return isinstance(error, (Py4JError, PySparkException))
