"""The cluster behind a session: how tasks find the driver, and how jobs run."""

from __future__ import annotations

import contextlib
import importlib
import re
import socket
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, cast, final
from weakref import WeakKeyDictionary

from flow_core.errors import FlowError
from flow_spark.channel.backlog import Backlog
from flow_spark.channel.lifeline import Client, Lifeline
from flow_spark.errors import SparkJobError
from flow_spark.jobs.frames import is_connect, is_observed
from flow_spark.jobs.partition_scheduler import Parts
from flow_spark.jobs.running_jobs import JobStatus, followed
from flow_spark.jobs.workers import check_workers
from flow_spark.pickling.failures import text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.shell.progress import StageInfo

__all__ = ["BACKLOG_LIMIT", "Cluster", "close_lifeline", "cluster_of", "work_for"]

_lifelines: Final[WeakKeyDictionary[SparkSession, Lifeline]] = WeakKeyDictionary()
_lifelines_lock: Final = threading.Lock()
_of_this_process: Final[list[Client]] = []
"""In a process of a Spark Connect server: the client whose flow the process runs."""

_LOOPBACK: Final = "127.0.0.1"
_HOST: Final = "spark.flow.driver.host"
"""The setting with the name or address by which tasks reach this process."""

BACKLOG_LIMIT: Final = "spark.flow.backlog.limit"
"""The setting with the limit for items of a job that wait in this process, as Spark writes sizes:
``512m``."""

_UNITS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}

_ANY_PORT: Final = 15002
_DESCRIPTION: Final = "spark.job.description"
_GROUP: Final = "spark.jobGroup.id"
_TAGS: Final = "spark.job.tags"


class Cluster(ABC):
    """The differences between a driver in this process and a Spark Connect server."""

    __slots__ = ("_session",)

    def __init__(self, session: SparkSession) -> None:
        self._session: Final = session

    def addresses(self) -> tuple[str, str]:
        """Return the address to listen on, and the address for the tasks.

        Raises:
            SessionConflictError: if such tasks cannot run; see `check_workers`.
        """
        check_workers(self._session)
        return self._where()

    def _where(self) -> tuple[str, str]:
        told = str(self._session.conf.get(_HOST, ""))
        return (_bound_for(told), told) if told else self._found()

    @abstractmethod
    def _found(self) -> tuple[str, str]:
        """Return the addresses to use if the session does not set one."""

    def client(self) -> Client | None:
        """Return the description of this process for tasks.

        None if Spark ends with this process.
        """
        return None

    def speculates(self) -> bool:
        """Return whether Spark runs copies of tasks that take long."""
        return str(self._session.conf.get("spark.speculation", "false")).lower() == "true"

    def backlog(self) -> Backlog:
        """Return the store for items of a job that are not requested yet.

        Raises:
            ValueError: if the setting of the limit is not a size.
        """
        told = str(self._session.conf.get(BACKLOG_LIMIT, "1g"))
        size = re.fullmatch(r"(\d+)([kmgt]?)b?", told.strip().lower())
        if size is None:
            raise ValueError(f"{BACKLOG_LIMIT} is a size, such as 512m or 1g, not {told!r}")
        # Spark promises that nothing is unencrypted on its disks.
        encrypted = self._session.conf.get("spark.io.encryption.enabled", "false")
        return Backlog(limit=int(size[1]) * _UNITS[size[2]], files=str(encrypted).lower() != "true")

    @abstractmethod
    def others_wait(self, own: str) -> bool:
        """Return whether tasks that do not belong to the tag or group `own` wait for a slot.

        A client of Spark Connect sees only the tasks of this process, every two seconds, and none
        of a stream.
        """

    @abstractmethod
    def holders(self, own: str) -> list[str] | None:
        """Return the names of jobs with slots, if tasks of the tag or group `own` wait for one.

        The result is None if some tasks have had a slot, or if that is not known.
        """

    def handed_on(self) -> Callable[[], None]:
        """Return a function by which another thread takes over this thread's settings for jobs."""
        tags = self._session.getTags()

        def tell() -> None:
            for tag in tags:
                self._session.addTag(tag)

        return tell

    @abstractmethod
    def tagged(
        self, tag: str, name: str, stopped: Callable[[], bool], later: Callable[[], int] = int
    ) -> AbstractContextManager[None]:
        """Return a context manager for the jobs of this thread, which must end at the block's end.

        Args:
            tag: `cancel` finds the jobs by it.
            name: the name of the jobs in Spark's tools, and for code that follows them.
            stopped: returns whether the jobs were asked to end; their error does not count as a
                failure then.
            later: returns how many tasks are still to be handed to Spark.
        """

    @abstractmethod
    def cancel(self, tag: str) -> None:
        """Cancel all jobs that run under `tag` now."""

    @abstractmethod
    def parts(self, df: DataFrame) -> Parts | None:
        """Return the partitions of `df`, to run a few of them at a time.

        Call this in a thread that is only for these jobs.

        The result is None if only all of them together can be run.
        """

    @contextmanager
    def answering(self, what: str) -> Generator[None, None, None]:
        """Return a context manager that reports if Spark ends in its block, or does not answer.

        Args:
            what: what is lost then, for the message.

        Raises:
            SparkJobError: in place of the error of a connection; if Spark has ended, in place of
                any other error, too. (Spark fails running jobs before it is gone, and by then
                PySpark has dropped its connection, so the error may be a bare AttributeError.)
        """
        from py4j.protocol import Py4JNetworkError

        try:
            yield
        except FlowError:
            raise
        except Exception as error:
            if isinstance(error, (ConnectionError, Py4JNetworkError)):
                reason = "nothing answers for Spark any more; its JVM has ended"
            elif self._has_ended():
                reason = "Spark was stopped under it, or its JVM is ending"
            else:
                raise
            said = " ".join(text_of(error).splitlines()[:2])  # the second one is Java's
            raise SparkJobError(
                f"{what} is lost: {reason} ({said}). What it said last, or the log of the machine, "
                "may tell why (out of memory?). Run the flow in a new session; a stream continues "
                "at its checkpoint"
            ) from error

    @abstractmethod
    def _has_ended(self) -> bool:
        """Return whether Spark was stopped, or does not answer."""


@final
class _Classic(Cluster):
    __slots__ = ()

    def addresses(self) -> tuple[str, str]:
        # Not SparkContext.getConf(): it asks the JVM for each of a hundred settings.
        if str(self._session.sparkContext.master).startswith("local"):
            check_workers(self._session)
            return _LOOPBACK, _LOOPBACK
        return super().addresses()

    def _found(self) -> tuple[str, str]:
        conf = self._session.conf
        advertised = str(conf.get("spark.driver.host", socket.gethostname()))
        return str(conf.get("spark.driver.bindAddress", advertised)), advertised

    def handed_on(self) -> Callable[[], None]:
        tell_tags = super().handed_on()
        context = cast("Any", self._session.sparkContext)._jsc.sc()  # Any: a proxy of py4j
        told = context.getLocalProperties().clone()
        tags = self._real_tags()

        def tell() -> None:
            context.setLocalProperties(told)
            tell_tags()
            for tag in tags:
                self._session.sparkContext.addJobTag(tag)

        return tell

    def _real_tags(self) -> list[str]:
        """Return the tags that Spark uses inside for those of this thread and of its session.

        Spark finds jobs by these tags, and uses other ones for the same names in another thread.
        """
        from py4j.protocol import Py4JError

        try:
            session = cast("Any", self._session)._jsparkSession  # Any: a proxy of py4j
            tags = str(session.managedJobTags().get().values().mkString(","))
            return [session.sessionJobTag(), *filter(None, tags.split(","))]
        except Py4JError:  # neither is public
            return []

    @contextmanager
    def tagged(
        self, tag: str, name: str, stopped: Callable[[], bool], later: Callable[[], int] = int
    ) -> Generator[None, None, None]:
        # Tags belong to a thread of the JVM, which goes with this thread and ends with it.
        context = self._session.sparkContext
        context.addJobTag(tag)
        if context.getLocalProperty(_DESCRIPTION) is None:
            context.setJobDescription(name)
        done: dict[int, tuple[int, int]] = {}
        with followed(self._session, name, lambda: self._status(tag, name, later(), done), stopped):
            yield

    def _status(
        self, tag: str, name: str, later: int, done: dict[int, tuple[int, int]]
    ) -> JobStatus:
        """Return the status of jobs; `done` keeps finished stages, of which there may be many."""
        # PySpark's own tracker does not know tags, nor which stages have begun: a job also has
        # stages that it skips since another one has left their results.
        context = cast("Any", self._session.sparkContext)  # Any: a proxy of py4j
        counts: dict[int, tuple[int, int]] = {}
        with self.answering(f"the Spark job {name!r}"):
            tracker = context._jsc.sc().statusTracker()
            found = [_held(tracker.getJobInfo(job)) for job in tracker.getJobIdsForTag(tag)]
            # The tasks of one that has left are counted where they run again.
            jobs = [job for job in found if job is not None and str(job.status()) != "FAILED"]
            for number in sorted({n for job in jobs for n in job.stageIds()}):
                stage = None if number in done else _held(tracker.getStageInfo(number))
                if stage is not None and stage.submissionTime():
                    counts[number] = stage.numCompletedTasks(), stage.numTasks()
        done.update((number, count) for number, count in counts.items() if count[0] >= count[1])
        return _summed(name, [*(done | counts).values()], later)

    def others_wait(self, own: str) -> bool:
        context = cast("Any", self._session.sparkContext)  # Any: a proxy of py4j
        tracker = context._jsc.sc().statusTracker()
        running = set(tracker.getActiveStageIds())
        mine = {*tracker.getJobIdsForTag(own), *tracker.getJobIdsForGroup(own)}
        for job in mine.intersection(tracker.getActiveJobIds()):
            found = _held(tracker.getJobInfo(job))
            running -= set(() if found is None else found.stageIds())
        stages = [_held(tracker.getStageInfo(number)) for number in running]
        return any(
            stage.numCompletedTasks() + stage.numActiveTasks() < stage.numTasks()
            for stage in stages
            if stage is not None
        )

    def holders(self, own: str) -> list[str] | None:
        # The tracker's numbers may be ten seconds old. Those of the scheduler are not public, so
        # the callers work without them if they are not there.
        context = cast("Any", self._session.sparkContext)._jsc.sc()  # Any: a proxy of py4j
        queue = context.taskScheduler().rootPool().getSortedTaskSetQueue()
        found: list[str] | None = None
        held: dict[str, None] = {}
        for tasks in map(queue.apply, range(queue.size())):
            told = tasks.taskSet().properties()
            if own in [told.getProperty(_GROUP), *str(told.getProperty(_TAGS)).split(",")]:
                if tasks.runningTasks() + tasks.tasksSuccessful():
                    return None
                found = []
            elif tasks.runningTasks():
                name = told.getProperty(_DESCRIPTION) or f"stage {tasks.stageId()}"
                held[repr(str(name))] = None
        return None if found is None else [*held]

    def cancel(self, tag: str) -> None:
        self._session.sparkContext.cancelJobsWithTag(tag)

    def parts(self, df: DataFrame) -> Parts | None:
        frame, session = cast("Any", df)._jdf, cast("Any", self._session)  # Any: proxies of py4j
        slots: int = session.sparkContext.defaultParallelism
        execution = frame.queryExecution()
        if is_observed(df):
            return None
        artifacts = session._jsparkSession.artifactManager()
        if not (artifacts.getPythonIncludes().isEmpty() and artifacts.getAddedJars().isEmpty()):
            return None  # nor do the session's own modules reach other tasks
        count = execution.executedPlan().outputPartitioning().numPartitions()
        if not 0 < count <= 2 * slots:  # it may be 0 for one that is not known
            count = execution.toRdd().getNumPartitions()
        return _Parts(session, df, count, slots)

    def _has_ended(self) -> bool:
        try:
            context = cast("Any", self._session.sparkContext)._jsc.sc()  # Any: a proxy of py4j
            return bool(context.isStopped())
        except Exception:  # PySpark may raise any error if a connection breaks during a call
            return True


@final
class _Parts(Parts):
    """The partitions that `Cluster.parts` returns."""

    __slots__ = ("_df", "_has_run", "_rdd", "_session", "are_few", "count", "slots")

    def __init__(self, session: Any, df: DataFrame, count: int, slots: int) -> None:
        self._session: Final = session  # Any: its own attributes
        self._df: Final = df
        self._rdd: Any = None  # a proxy of py4j
        self._has_run = False
        self.count = count
        self.slots = slots
        self.are_few = count <= 2 * slots

    def run(self, partitions: range) -> list[tuple[Any, ...]]:
        if self.are_few and not self._has_run:
            self._has_run = True
            return list(self._df.collect())
        # The effect of that, for some of the partitions.
        if self._rdd is None:
            self._rdd = cast("Any", self._df)._jdf.javaToPython()
        util: Any = importlib.import_module("pyspark.util")
        serializers: Any = importlib.import_module("pyspark.serializers")
        context = self._session.sparkContext
        java = context._jvm.java.util
        stream = java.stream.IntStream.range(partitions.start, partitions.stop).boxed()
        numbers = java.ArrayList(stream.collect(java.stream.Collectors.toList()))
        served = context._jvm.PythonRDD.runJob(context._jsc.sc(), self._rdd, numbers)
        reader = serializers.BatchedSerializer(serializers.CPickleSerializer())
        rows: Any = util._load_from_socket(served, reader)
        with rows if hasattr(rows, "__exit__") else nullcontext(rows) as found:  # since 4.2
            return list(found)


@final
class _Connect(Cluster):
    __slots__ = ("_waiting",)

    def __init__(self, session: SparkSession) -> None:
        super().__init__(session)
        self._waiting: Final[dict[int, bool]] = {}

    def others_wait(self, own: str) -> bool:
        return True in tuple(self._waiting.values())

    def holders(self, own: str) -> list[str] | None:
        return None

    def client(self) -> Client | None:
        if _of_this_process:
            return _of_this_process[0]
        with _lifelines_lock:
            found = _lifelines.get(self._session)
            if found is None:
                try:
                    found = Lifeline(*self._where())
                except OSError:
                    return None  # as where only a proxy knows the server: Spark handles it itself
                _lifelines[self._session] = found
                weakref.finalize(self._session, found.close)
        return found.client()

    def parts(self, df: DataFrame) -> Parts | None:
        return None  # each job of a client is planned again, and may divide the rows otherwise

    def _found(self) -> tuple[str, str]:
        """Return the address by which this machine reaches the server."""
        host: str = self._session.client.host  # its setting spark.remote cannot be read there
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, _ANY_PORT, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # it sends nothing
            own = str(probe.getsockname()[0])
        return own, own

    @contextmanager
    def tagged(
        self, tag: str, name: str, stopped: Callable[[], bool], later: Callable[[], int] = int
    ) -> Generator[None, None, None]:
        self._session.addTag(tag)
        seen: dict[int, tuple[int, int]] = {}
        mine = threading.get_ident()

        def hear(
            *, stages: Iterable[StageInfo] | None, inflight_tasks: int, done: bool, **_: object
        ) -> None:
            # In the thread whose job it is; the client reports the jobs of all threads.
            found = {
                stage.stage_id: (stage.num_completed_tasks, stage.num_tasks)
                for stage in stages or ()
            }
            thread = threading.get_ident()
            if thread == mine:
                seen.update(found)
            elif done:
                self._waiting.pop(thread, None)
            else:
                left = sum(tasks - min(tasks, tasks_done) for tasks_done, tasks in found.values())
                self._waiting[thread] = left > inflight_tasks

        handler = cast("Any", hear)  # Any: the protocol of handlers is an abstract class
        self._session.registerProgressHandler(handler)
        try:
            with followed(self._session, name, lambda: _summed(name, list(seen.values())), stopped):
                yield
        finally:
            with contextlib.suppress(ValueError):  # other code may have cleared them all
                self._session.removeProgressHandler(handler)

    def cancel(self, tag: str) -> None:
        self._session.interruptTag(tag)

    def _has_ended(self) -> bool:
        return bool(cast("Any", self._session).is_stopped)  # Any: only a client's session has it


def _held(option: Any) -> Any:  # Any: proxies of py4j
    """Return the value of a Scala option; None if it is empty, as Spark forgets old jobs."""
    return option.get() if option.isDefined() else None


def _summed(name: str, stages: Iterable[tuple[int, int]], later: int = 0) -> JobStatus:
    """Return the status of a job with these stages, each a pair: finished tasks, all tasks.

    `later` is the number of tasks that belong to none of these stages yet.
    """
    found = [(min(done, tasks), tasks) for done, tasks in stages]
    return JobStatus(
        name,
        tasks_done=sum(done for done, _ in found),
        tasks=sum(tasks for _, tasks in found) + later,
        stages_done=sum(done == tasks for done, tasks in found),
        stages=len(found),
    )


def work_for(client: Client) -> None:
    """Let the tasks that this process of a Spark Connect server begins watch `client`."""
    _of_this_process[:] = [client]


def close_lifeline(session: SparkSession) -> None:
    """Release the tasks of a session that ends."""
    with _lifelines_lock:
        found = _lifelines.pop(session, None)
    if found is not None:
        found.close()


def cluster_of(session: SparkSession) -> Cluster:
    """Return the cluster behind `session`."""
    if is_connect(session):
        return _Connect(session)
    return _Classic(session)


def _bound_for(host: str) -> str:
    """Return the address to listen on, so that connections to `host` arrive at this process.

    If `host` is not an address of this machine, because ports are forwarded or addresses are
    translated, this is the address that stands for all of them. Listening on all is safe, since
    each connection has to prove that it belongs to the job.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError:
        return "::" if ":" in host else "0.0.0.0"
    return host
