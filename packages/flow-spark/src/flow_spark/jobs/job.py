"""Run a Spark job whose tasks push their items to this process, or keep them on the cluster."""

from __future__ import annotations

import contextlib
import socket
import threading
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, final
from urllib.parse import urlsplit

from flow_spark.channel.receiver import BatchReceiver, PartitionResult, Statistics
from flow_spark.errors import SparkJobError
from flow_spark.items.schema import ItemSchema
from flow_spark.jobs.frames import is_connect, map_in_arrow
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.origin import Origin
from flow_spark.jobs.task import CHUNK_DDL, COUNTS_DDL, LoweredTask, PushTask, Reader, RemoteProgram
from flow_spark.pickling.codec import Decoder
from flow_spark.pickling.failures import load_error
from flow_spark.pickling.pickles import dumps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PushedJob", "lowered"]

_LOOPBACK: Final = "127.0.0.1"
_CANCEL_EVERY_S: Final = 0.2
_STAGES: Final = "the stages of this flow"


@final
class PushedJob:
    """One Spark job that runs stages on rows, and the items that come of it.

    Iterating gives lists (or other iterables) of items. Nothing runs before the first one is asked
    for, and while none is asked for, the tasks stand still as soon as the sockets are full. Items
    of one partition come in order; partitions take turns.

    Leaving the iteration early, or `cancel` from any thread, ends the job.

    Args:
        origin: the rows.
        program: the stages to run where the rows are; None takes the rows as they are.
        name: what the job is called in Spark's tools.

    Raises:
        NotPicklableError: if the stages cannot be sent to the cluster.
    """

    __slots__ = (
        "_cluster",
        "_ended",
        "_lock",
        "_name",
        "_origin",
        "_program",
        "_receiver",
        "_stop",
        "_submitted",
        "_tag",
    )

    def __init__(self, origin: Origin, program: RemoteProgram | None, name: str = "flow") -> None:
        self._program: Final = None if program is None else dumps(program, _STAGES)
        self._origin: Final = origin
        self._name: Final = name
        self._cluster: Final = _cluster(origin.session)
        self._tag: Final = f"flow-{uuid.uuid4().hex}"
        self._lock: Final = threading.Lock()
        self._receiver: BatchReceiver | None = None
        self._stop: Final = Stop()
        self._submitted = False
        self._ended: Final = threading.Event()

    def __iter__(self) -> Iterator[Iterable[Any]]:  # Any: items of any type
        receiver = self._start()
        if receiver is None:
            return
        decode = Decoder(self._origin.as_)
        try:
            while (batch := receiver.next_batch()) is not None:
                yield decode(batch)
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End the job. Idempotent, returns at once, callable from any thread."""
        with self._lock:
            first = not self._stop()
            self._stop.set()
            receiver, submitted = self._receiver, self._submitted
        if receiver is None or not first:
            return
        receiver.cancel()
        if submitted and not self._ended.is_set():
            threading.Thread(target=self._end, name="flow-spark-cancel", daemon=True).start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until Spark has ended the job; False if `timeout_s` seconds passed before."""
        with self._lock:
            if self._receiver is None:
                return True
        return self._ended.wait(timeout_s)

    def statistics(self) -> Statistics | None:
        """Numbers about what has arrived; None before the start."""
        receiver = self._receiver
        return None if receiver is None else receiver.statistics()

    def _start(self) -> BatchReceiver | None:
        with self._lock:
            if self._receiver is not None:
                raise SparkJobError("a job runs once; make a new one to run it again")
            if self._stop():
                return None
            bind, advertised = self._cluster.addresses()
            receiver = self._receiver = BatchReceiver(bind, advertised=advertised)
        # A daemon: a process that is told to exit must not wait for a cluster.
        threading.Thread(
            target=self._run, args=(receiver,), name="flow-spark-job", daemon=True
        ).start()
        return receiver

    def _run(self, receiver: BatchReceiver) -> None:
        """In a thread of its own: the job, from its start to its end."""
        try:
            with self._origin.opened(self._stop) as opened:
                if opened is None or not self._submit():
                    return
                task = PushTask(_dumped(opened.reader), self._program, receiver.target)
                counts = map_in_arrow(opened.df, task, COUNTS_DDL)
                rows = self._cluster.collect(counts, self._tag, self._name)
            receiver.finish([PartitionResult(*row) for row in rows])
        except BaseException as error:  # a thread has nobody to propagate to
            receiver.fail(self._explain(receiver, error))
        finally:
            self._ended.set()

    def _submit(self) -> bool:
        """Whether Spark is to be given the job; from then on it has to be cancelled there."""
        with self._lock:
            self._submitted = not self._stop()
            return self._submitted

    def _end(self) -> None:
        # A job that is still being planned has nothing to cancel yet, so this is repeated.
        while not self._ended.is_set():
            with contextlib.suppress(Exception):
                self._cluster.cancel(self._tag)
            self._ended.wait(_CANCEL_EVERY_S)

    def _explain(self, receiver: BatchReceiver, error: BaseException) -> BaseException:
        failure = receiver.failure()
        if failure is not None:
            return load_error(failure.payload, failure.partition, failure.task)
        changed = receiver.changed()
        if changed is not None:
            changed.__cause__ = error
            return changed
        if not _is_of_spark(error):
            return error  # the items' own source, or one of our errors
        failed = SparkJobError(f"the Spark job {self._name!r} failed: {_short(error)}")
        failed.__cause__ = error
        return failed


def lowered(
    df: DataFrame, reader: Reader, program: RemoteProgram | None, schema: ItemSchema | None
) -> DataFrame:
    """A DataFrame of what `program` makes of the rows of `df`; it stays on the cluster, and lazy.

    Args:
        df: the rows.
        reader: makes items of them.
        program: the stages to run where the rows are; None leaves items as they are.
        schema: the columns that items become; None for pickled chunks, which a `ChunkReader` reads.

    Raises:
        NotPicklableError: if the stages cannot be sent to the cluster.
    """
    pickled = None if program is None else dumps(program, _STAGES)
    task = LoweredTask(_dumped(reader), pickled, schema)
    return map_in_arrow(df, task, CHUNK_DDL if schema is None else schema.spark())


def _dumped(reader: Reader) -> bytes:
    return dumps(reader, "the class that rows are made into")


def _is_of_spark(error: BaseException) -> bool:
    """Whether it tells of a failed job; a query that is wrong already says so well itself."""
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    if isinstance(error, (AnalysisException, ParseException)):
        return False
    return isinstance(error, (Py4JError, PySparkException))


class _Cluster(Protocol):
    """What differs between a driver in this process and a Spark Connect server."""

    @abstractmethod
    def addresses(self) -> tuple[str, str]:
        """Where to listen, and what to tell the tasks."""

    @abstractmethod
    def collect(self, df: DataFrame, tag: str, name: str) -> list[tuple[int, int, int, int]]:
        """The rows of `df`, from a job that `cancel` finds by `tag`. Blocks."""

    @abstractmethod
    def cancel(self, tag: str) -> None:
        """Cancel what runs under `tag` now."""


@final
class _Classic:
    __slots__ = ("_session",)

    def __init__(self, session: SparkSession) -> None:
        self._session: Final = session

    def addresses(self) -> tuple[str, str]:
        conf = self._session.sparkContext.getConf()
        if str(conf.get("spark.master", "local")).startswith("local"):
            return _LOOPBACK, _LOOPBACK
        advertised = str(conf.get("spark.driver.host", socket.gethostname()))
        return str(conf.get("spark.driver.bindAddress", advertised)), advertised

    def collect(self, df: DataFrame, tag: str, name: str) -> list[tuple[int, int, int, int]]:
        # Tags belong to a thread of the JVM, which goes with this thread and ends with it.
        context = self._session.sparkContext
        context.addJobTag(tag)
        context.setJobDescription(name)
        return [(row[0], row[1], row[2], row[3]) for row in df.collect()]

    def cancel(self, tag: str) -> None:
        self._session.sparkContext.cancelJobsWithTag(tag)


@final
class _Connect:
    __slots__ = ("_session",)

    def __init__(self, session: SparkSession) -> None:
        self._session: Final = session

    def addresses(self) -> tuple[str, str]:
        """The address by which this machine reaches the server is the one that reaches it."""
        server = urlsplit(str(self._session.conf.get("spark.remote", "sc://localhost:15002")))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((server.hostname or _LOOPBACK, server.port or 15002))
            own = str(probe.getsockname()[0])
        return own, own

    def collect(self, df: DataFrame, tag: str, name: str) -> list[tuple[int, int, int, int]]:
        self._session.addTag(tag)
        return [(row[0], row[1], row[2], row[3]) for row in df.collect()]

    def cancel(self, tag: str) -> None:
        self._session.interruptTag(tag)


def _cluster(session: SparkSession) -> _Cluster:
    if is_connect(session):
        return _Connect(session)
    return _Classic(session)


def _short(error: BaseException) -> str:
    """The lines of `error` before the Java stack."""
    lines = str(error).splitlines()
    kept = [line for line in lines if not line.lstrip().startswith(("at ", "..."))]
    return "\n".join(kept[:12]).strip() or type(error).__name__
