"""The progress of the jobs that Spark runs for flows: for a program, and as bars."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from flow_core.counting import Counter, counting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobStatus", "followed", "running_jobs", "showing"]

_LOOK_EVERY_S: Final = 0.2
_LONGEST_LABEL: Final = 32


@final
@dataclass(frozen=True, slots=True)
class JobStatus:
    """The progress of a job, from Spark. Totals may grow, since Spark plans more while it runs.

    Attributes:
        name: the name of the job in Spark's tools, from the sink or the stages of its flow.
        tasks_done: how many tasks have succeeded.
        tasks: how many tasks there are so far.
        stages_done: how many of Spark's stages have ended.
        stages: how many stages there are so far.
    """

    name: str
    tasks_done: int = 0
    tasks: int = 0
    stages_done: int = 0
    stages: int = 0


Look = Callable[[], JobStatus]
"""Returns the progress of a job, from any thread."""


@final
class _Followed:
    """A running job."""

    __slots__ = ("look", "session")

    def __init__(self, session: SparkSession, look: Look) -> None:
        self.session: Final = session
        self.look: Final = look


_lock: Final = threading.Lock()
_running: Final[list[_Followed]] = []
_shown: Final[list[SparkSession]] = []


def running_jobs(session: SparkSession) -> tuple[JobStatus, ...]:
    """Return the progress of the jobs that Spark runs now for flows of this process.

    >>> [(job.name, job.tasks_done, job.tasks) for job in running_jobs(spark)]  # doctest: +SKIP
    [('write', 3, 8)]

    Spark is asked only when this is called; a Spark Connect server sends the progress every two
    seconds (``spark.connect.progress.reportInterval``). The queries of streams are not included:
    these have their own ``StreamingQuery.lastProgress``.

    Args:
        session: the session of the jobs.

    Returns:
        One for each job that pulls items, or that `write`, `to_arrow`, `to_pandas` or a
        `WriteSubscriber` has started, the oldest first.

    Raises:
        SparkJobError: if Spark does not answer any more.
    """
    with _lock:
        found = [job for job in _running if job.session is session]
    return tuple(job.look() for job in found)


@contextlib.contextmanager
def showing(session: SparkSession) -> Generator[None, None, None]:
    """Show a bar of each job of `session` that begins in this block, if stderr is a terminal."""
    with _lock:
        _shown.append(session)
    try:
        yield
    finally:
        with _lock:
            _shown.remove(session)


@contextlib.contextmanager
def followed(
    session: SparkSession, name: str, look: Look, stopped: Callable[[], bool]
) -> Generator[None, None, None]:
    """Follow a job while it runs.

    `running_jobs` includes the job, and if it begins within `showing` of its session, it has a
    progress bar (on a terminal).

    Args:
        session: the session of the job.
        name: the name of the job.
        look: returns the progress of the job.
        stopped: returns whether the job was asked to end; its error does not count as a failure
            then.
    """
    job = _Followed(session, look)
    with _lock:
        _running.append(job)
        wanted = any(shown is session for shown in _shown)
    try:
        if wanted:
            with _shown_as(name, look, stopped):
                yield
        else:
            yield
    finally:
        with _lock:
            _running.remove(job)


@contextlib.contextmanager
def _shown_as(name: str, look: Look, stopped: Callable[[], bool]) -> Generator[None, None, None]:
    label = name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"
    with counting(f"Spark: {label}", unit="tasks") as tasks:
        if not tasks.shown:
            yield
            return
        watcher = _Watcher(tasks, look)
        try:
            yield
        except BaseException:
            tasks.stopped = stopped()
            watcher.end(done=False)
            raise
        watcher.end(done=True)


@final
class _Watcher:
    """Keeps the bar of a job up to date, in a separate thread, which may have to wait for Spark."""

    __slots__ = ("_ended", "_look", "_tasks", "_thread")

    def __init__(self, tasks: Counter, look: Look) -> None:
        self._tasks: Final = tasks
        self._look: Final = look
        self._ended: Final = threading.Event()
        self._thread: Final = threading.Thread(
            target=self._watch, name="flow-spark-progress", daemon=True
        )
        self._thread.start()

    def end(self, *, done: bool) -> None:
        """Look for the last time.

        A job that has finished is shown as finished, even if Spark's own numbers are behind.
        """
        self._ended.set()
        self._thread.join()
        self._draw(done=done)

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_S):
            self._draw(done=False)

    def _draw(self, *, done: bool) -> None:
        with contextlib.suppress(Exception):  # the job itself reports what is wrong with Spark
            now, tasks = self._look(), self._tasks
            tasks_done, stages_done = (
                (now.tasks, now.stages) if done else (now.tasks_done, now.stages_done)
            )
            tasks.count, tasks.total = tasks_done, now.tasks
            tasks.note = f" of {now.tasks:,}, {stages_done} of {now.stages} stages"
