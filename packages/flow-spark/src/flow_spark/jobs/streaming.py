"""A streaming query whose micro-batches are consumed in this process, each before the next one."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from flow_core.errors import FlowError
from flow_core.subscribers import wait_for
from flow_spark.channel.handover import BatchLine, BatchListener, Handover, label_of
from flow_spark.channel.lifeline import Client, Hold
from flow_spark.channel.receiver import BatchReceiver
from flow_spark.channel.wire import Target
from flow_spark.errors import ChannelError, CheckpointConflictError, SparkJobError
from flow_spark.jobs.advice import SAYS, short
from flow_spark.jobs.checkpoint import Fingerprints, claim
from flow_spark.jobs.cluster import cluster_of, work_for
from flow_spark.jobs.frames import map_in_arrow
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.job import STAGES, cause_of
from flow_spark.jobs.run import explained, explaining, new_tag
from flow_spark.jobs.slots import look_after_slots
from flow_spark.jobs.task import COUNTS_DDL, PushTask
from flow_spark.pickling.codec import Decoder
from flow_spark.pickling.pickles import dumps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flow_spark.jobs.task import Reader, RemoteProgram

__all__ = ["BatchTask", "Delivery", "StreamJob", "StreamSettings", "WholeBatches", "told"]


Prepare = Callable[["DataFrame", int], "DataFrame"]
"""A change of the rows of a micro-batch before the stages; see `BatchTask.prepare`."""

_WHAT: Final = "the streaming query"
_STOPPED: Final = "the streaming query was stopped by someone else"
_TAKE_OVER_S: Final = 2.0
"""The time, in seconds, after the end of a query in which another query with its checkpoint may
still start."""
_LOOK_S: Final = 0.02
_ACTIVE_S: Final = 0.5
"""The interval, in seconds, at which it is checked whether the query of an unacknowledged
micro-batch is still active."""
_STOPS_WITHIN_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.02


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """The settings of a streaming query.

    Attributes:
        name: the name of the query, in Spark's tools and in its checkpoint.
        checkpoint: where Spark keeps the position of the query; None for a temporary folder.
        trigger: the argument of `DataStreamWriter.trigger`.
        output_mode: the argument of `DataStreamWriter.outputMode`.
        stages: the names of stages that ran on the rows of the source already.
    """

    name: str | None
    checkpoint: str | None
    trigger: Mapping[str, Any]  # Any: as PySpark has it, a str or a bool
    output_mode: str
    stages: tuple[str, ...] = ()

    def after(self, *names: str) -> StreamSettings:
        """Return the settings for the rows behind more stages."""
        return replace(self, stages=self.stages + names)


@final
@dataclass(frozen=True, slots=True)
class BatchTask:
    """The function for each micro-batch: it runs the stages, and waits for the consumer.

    Attributes:
        reader: the pickled reader of the rows.
        program: the pickled stages; None for the rows as they are.
        target: where the subscriber's driver listens.
        prepare: called with the rows and the number of the micro-batch when it is requested;
            returns the rows to hand over. None to hand over those of the micro-batch.
        client: the process of the flow; None if the query is in its own process.
        name: the name of the query.
    """

    reader: bytes
    program: bytes | None
    target: Target
    prepare: Prepare | None = None
    client: Client | None = None
    name: str | None = None

    def __reduce__(self) -> tuple[Callable[..., BatchTask], tuple[object, ...]]:
        """Pickle this object for a process of a Spark Connect server."""
        return _arrived, tuple(getattr(self, part.name) for part in fields(self))

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """The function for ``foreachBatch``."""
        try:
            with closing(Handover(self.target, batch_id)) as handover:
                task = PushTask(self.reader, self.program, handover.target)
                try:
                    given = df if self.prepare is None else self.prepare(df, batch_id)
                    rows = map_in_arrow(given, task, COUNTS_DDL).collect()
                except Exception:
                    handover.fail()
                    raise
                handover.finish((row[0], row[1], row[2], row[3]) for row in rows)
        except SparkJobError:
            raise  # it was reported
        except Exception as error:
            # Without Java's own traces: Spark searches the text by a regular expression, for which
            # its stack is too small.
            raise SparkJobError(f"micro-batch {batch_id} failed: {told(error)}") from None


def _arrived(*parts: Any) -> BatchTask:  # Any: of `BatchTask`
    """Return the function of a query, which ends with `client`.

    This runs in a process of a Spark Connect server.
    """
    task = BatchTask(*parts)
    if task.client is not None and task.name is not None:
        from pyspark.sql import SparkSession

        work_for(task.client)
        threading.Thread(
            target=_end_with,
            args=(task.client, task.name, SparkSession.active()),
            name="flow-spark-lifeline",
            daemon=True,
        ).start()
    return task


def _end_with(client: Client, name: str, session: SparkSession) -> None:
    """Stop the query `name` when `client` has gone, even if no micro-batch comes."""
    with closing(Hold(client)) as hold:
        while not hold.is_gone():
            time.sleep(_ACTIVE_S)
    for query in session.streams.active:
        if query.name == name:
            query.stop()


_INTERRUPTED: Final = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling stop(): "
    "java.lang.InterruptedException"
)
"""Texts by which Spark recognises an error of a query that is being stopped: the query then ends
without an error."""


def told(error: Exception) -> str:
    """Return the text that Spark gets for `error`."""
    text = short(error)
    if SAYS not in text:
        text = f"{type(error).__name__}: {text}"
    ended = isinstance(error, ChannelError) or "ancelled" in text or "InterruptedE" in text
    return f"{text}\n({_INTERRUPTED})" if ended else text


@final
class Delivery:
    """One micro-batch on its way to the subscriber. Its job starts when this is iterated over.

    Attributes:
        batch_id: the number of the micro-batch, the same one if Spark runs the micro-batch again.
        cut: returns whether the flow was cancelled, so that the items may end too early.
        in_use: whether an action is handling the micro-batch: a query that is stopped waits for its
            end.
    """

    __slots__ = ("_decode", "_line", "_receiver", "batch_id", "cut", "in_use")

    def __init__(
        self, line: BatchLine, receiver: BatchReceiver, decode: Decoder, cut: Callable[[], bool]
    ) -> None:
        self.cut: Final = cut
        self.batch_id: Final = line.batch_id
        self.in_use = False
        self._line: Final = line
        self._receiver: Final = receiver
        self._decode: Final = decode

    def __iter__(self) -> Iterator[Iterable[Any]]:  # Any: items of any type
        with contextlib.suppress(OSError):  # the query is gone, and reports why
            self._line.start(self._receiver.target.port)
        while (batch := self._receiver.next_batch()) is not None:
            yield self._decode(batch)

    def acknowledge(self) -> None:
        """Let Spark commit the micro-batch. The end of the query shows whether that succeeded."""
        self._line.acknowledge()


class _Query(Protocol):
    """The part of PySpark's ``StreamingQuery``, classic or Connect, that is needed."""

    @property
    @abstractmethod
    def id(self) -> str: ...

    @property
    @abstractmethod
    def runId(self) -> str: ...  # noqa: N802 - PySpark's name

    @property
    @abstractmethod
    def isActive(self) -> bool: ...  # noqa: N802 - PySpark's name

    @abstractmethod
    def awaitTermination(self) -> object: ...  # noqa: N802 - PySpark's name

    @abstractmethod
    def stop(self) -> None: ...


@final
@dataclass(frozen=True, slots=True)
class _Ended:
    error: BaseException | None


@final
class StreamJob:
    """A streaming query, from its start to its end.

    Iterating yields lists (or other iterables) of items. The query starts when the first list is
    requested. A micro-batch is acknowledged when the reader requests more items than it has; until
    then, Spark neither commits it nor plans the next one: that is how demand reaches Spark. Leaving
    the iteration early, or `cancel` from any thread, stops the query; the current micro-batch is
    not committed.

    Args:
        df: a streaming DataFrame.
        reader: converts the rows of `df` to items.
        as_: the type to which rows that no stage has read are converted; see `RowReader`.
        program: the stages to run where the rows are; None for the rows as they are.
        settings: the settings of the query.
        prepare: see `BatchTask`.

    Raises:
        NotPicklableError: if the stages cannot be sent to the cluster.
    """

    __slots__ = (
        "_as",
        "_begun",
        "_cluster",
        "_df",
        "_fingerprints",
        "_handed",
        "_line",
        "_listener",
        "_lock",
        "_prepare",
        "_program",
        "_query",
        "_reader",
        "_receiver",
        "_settings",
        "_stop",
        "_tell",
        "_terminated",
    )

    def __init__(
        self,
        df: DataFrame,
        reader: Reader,
        as_: object,
        program: RemoteProgram | None,
        settings: StreamSettings,
        *,
        prepare: Prepare | None = None,
    ) -> None:
        self._df: Final = df
        self._prepare: Final = prepare
        self._reader: Final = dumps(reader, "the class that rows are made into")
        self._as: Final = as_
        self._program: Final = None if program is None else dumps(program, STAGES)
        self._settings: Final = settings
        self._fingerprints: Final = (
            None if settings.checkpoint is None else Fingerprints(df, settings.checkpoint)
        )
        self._cluster: Final = cluster_of(df.sparkSession)
        with self._cluster.answering(_WHAT):
            self._tell: Final = self._cluster.handed_on()
        self._lock: Final = threading.Lock()
        self._stop: Final = Stop()
        self._begun: Final = threading.Event()
        self._terminated: Final = threading.Event()
        self._handed: Final[queue.SimpleQueue[Delivery | _Ended]] = queue.SimpleQueue()
        self._listener: BatchListener | None = None
        self._line: BatchLine | None = None
        self._receiver: BatchReceiver | None = None
        self._query: _Query | None = None

    @property
    def endless(self) -> bool:
        """Return whether the query waits for more rows when it has taken all."""
        return "availableNow" not in self._settings.trigger

    def __iter__(self) -> Iterator[Iterable[Any]]:  # Any: items of any type
        for delivery in self.deliveries():
            yield from delivery

    def deliveries(self) -> Generator[Delivery, None, None]:
        """Yield the micro-batches, each acknowledged when the next one is requested."""
        with explaining(_WHAT), self._cluster.answering(_WHAT):
            listener = self._start()
        if listener is None:
            return
        try:
            while isinstance(handed := wait_for(self._handed), Delivery):
                yield handed
                if self._stop():
                    return
                handed.acknowledge()
            if handed.error is not None:
                raise handed.error
        finally:
            self.cancel()

    def query_id(self) -> str:
        """Return Spark's id of the running query: the id belongs to the checkpoint."""
        self._begun.wait()
        return "" if self._query is None else str(self._query.id)

    @property
    def checkpoint(self) -> str | None:
        """Return the path where Spark keeps the position of the query, if there is one."""
        return self._settings.checkpoint

    def fingerprint(self, batch_id: int) -> str:
        """Return a digest of the rows of the current micro-batch; "" without a checkpoint."""
        known = self._fingerprints
        return "" if known is None else known.of(batch_id)

    def cancel(self) -> None:
        """Stop the query, and return at once. Any thread may call this, and more than once."""
        with self._lock:
            first = not self._stop()
            self._stop.set()
            listener, receiver, query = self._listener, self._receiver, self._query
        if not first or listener is None:
            return
        self._handed.put(_Ended(None))
        if receiver is not None:
            receiver.cancel()
        if self._terminated.is_set():
            self._close()
        else:
            threading.Thread(
                target=self._end, args=(query,), name="flow-spark-cancel", daemon=True
            ).start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the query has ended; return False if it has not within `timeout_s` seconds."""
        with self._lock:
            if self._listener is None:
                return True
        return self._terminated.wait(timeout_s)

    def _start(self) -> BatchListener | None:
        with self._lock:
            if self._listener is not None:
                raise SparkJobError("a streaming job runs once; make a new one to run it again")
            if self._stop():
                return None
            listener = self._listener = BatchListener(*self._cluster.addresses())
        for target, name in ((self._serve, "flow-spark-batches"), (self._run, "flow-spark-query")):
            threading.Thread(target=target, args=(listener,), name=name, daemon=True).start()
        return listener

    def _run(self, listener: BatchListener) -> None:
        """Run the query, from its start to its end; in a separate thread."""
        error: BaseException | None = None
        try:
            with self._cluster.answering(_WHAT):
                self._tell()
                query = self._started(listener)
                if query is not None:
                    query.awaitTermination()
        except BaseException as raised:  # an error in a thread has no caller to propagate to
            error = explained(raised, _WHAT)
        self._begun.set()
        self._terminated.set()
        with self._lock:
            line, receiver = self._line, self._receiver
        if receiver is not None:
            error = cause_of(receiver) or error
        unread = line is not None and not line.acknowledged
        # A query that only takes the rows that are there, and has done so, was not stopped: then
        # no cause is looked for.
        whole = error is not None or self._stop() or not (self.endless or unread)
        stopped = None if whole else self._stopped()
        if receiver is not None:
            # The reader of the current micro-batch gets the error; a complete one ignores it.
            receiver.fail(error or stopped or SparkJobError(_STOPPED))
        taken_over = self.endless and isinstance(stopped, CheckpointConflictError)
        self._handed.put(_Ended(error or (stopped if taken_over or unread else None)))
        self._close()

    def _stopped(self) -> FlowError:
        """Return the error for a query that has ended by itself, if there was more to come."""
        query, checkpoint = self._query, self._settings.checkpoint
        if query is not None and checkpoint is not None and self._is_taken_over(query):
            return CheckpointConflictError(
                f"another query was started with the checkpoint {checkpoint!r}, and Spark then "
                "stops the older one (spark.sql.streaming.stopActiveRunOnRestart): what was "
                "not acknowledged goes to the new one. Give each flow its own checkpoint, "
                "or let several subscribers read one flow: publish()"
            )
        if checkpoint is None:
            return SparkJobError(_STOPPED)
        return SparkJobError(
            f"{_STOPPED}: its stop() was called, or another query was started with its "
            f"checkpoint {checkpoint!r}"
        )

    def _is_taken_over(self, query: _Query) -> bool:
        """Return whether another query continues from the checkpoint of `query`, which has ended.

        Spark lists the newer query only when the older one has ended, so this looks again.
        """
        until = time.monotonic() + _TAKE_OVER_S
        while True:
            try:
                running = [str(other.id) for other in self._df.sparkSession.streams.active]
            except Exception:  # the session may be stopped by now
                return False
            if str(query.id) in running:
                return True
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)

    def _started(self, listener: BatchListener) -> _Query | None:
        settings = self._settings
        if settings.checkpoint is not None:
            claim(self._df, settings.checkpoint, settings.name, settings.stages)
        writer = self._df.writeStream.outputMode(settings.output_mode)
        if settings.checkpoint is not None:
            writer = writer.option("checkpointLocation", settings.checkpoint)
        if settings.trigger:
            writer = writer.trigger(**settings.trigger)
        client, name = self._cluster.client(), settings.name
        if client is not None:
            name = name or new_tag()  # the process of the server finds it by that
        if name is not None:
            writer = writer.queryName(name)
        task = BatchTask(self._reader, self._program, listener.target, self._prepare, client, name)
        writer = writer.foreachBatch(task)
        if self._stop():
            return None
        query: _Query = writer.start()
        with self._lock:
            self._query = query
            stopped = self._stop()
        self._begun.set()
        if stopped:
            self._end(query)
        return query

    def _serve(self, listener: BatchListener) -> None:
        """Take in one micro-batch after the other; in a separate thread."""
        bind, advertised = self._cluster.addresses()
        speculation = self._cluster.speculates()
        while (line := listener.next_line()) is not None:
            backlog = self._cluster.backlog()
            receiver = BatchReceiver(
                bind,
                advertised=advertised,
                of=(listener.target, label_of(line.batch_id)),
                speculation=speculation,
                backlog=backlog,
            )
            with self._lock:
                stopped = self._stop()
                self._line, self._receiver = line, receiver
            if stopped:
                receiver.cancel()
                line.close()
                continue
            delivery = Delivery(line, receiver, Decoder(self._as), self._stop)
            self._handed.put(delivery)
            look_after_slots(self._cluster, receiver, backlog, what=_WHAT, own=self._run_id)
            try:
                results = line.outcome()
            except OSError:
                continue  # the query is gone, and reports why
            if results is not None:
                receiver.finish(results)
                self._look_after(line, delivery)

    def _look_after(self, line: BatchLine, delivery: Delivery) -> None:
        """Wait until a micro-batch has ended whose job has ended: Spark cannot end it any more.

        `stop` and the start of another query with the checkpoint wait for the micro-batch, though
        no more items may be requested.
        """
        while not line.wait(_ACTIVE_S):
            if not (delivery.in_use or self._is_active()):
                line.close()
                return

    def _is_active(self) -> bool:
        query = self._query
        with contextlib.suppress(Exception):  # the query has ended, which `_run` notices
            return query is None or query.isActive
        return True

    def _run_id(self) -> str:
        """Return the group of the jobs of the query."""
        return "none yet" if self._query is None else str(self._query.runId)

    def _end(self, query: _Query | None) -> None:
        if query is None:  # it is being started, and the starting thread sees that it has to stop
            return
        # `stop` waits for the function, which waits for an acknowledgement: it is refused, but only
        # when the query knows that it has to stop.
        threading.Thread(target=_stop, args=(query,), name="flow-spark-stop", daemon=True).start()
        deadline = time.monotonic() + _STOPS_WITHIN_S
        with contextlib.suppress(Exception):
            while query.isActive and time.monotonic() < deadline:
                self._terminated.wait(_LOOK_EVERY_S)
        self._close()

    def _close(self) -> None:
        with self._lock:
            listener, line = self._listener, self._line
        if listener is not None:
            listener.close()
        if line is not None:
            line.close()


@final
class WholeBatches:
    """A streaming query as a job that yields one result for each micro-batch, on request.

    Args:
        job: the query.
    """

    __slots__ = ("_job",)

    def __init__(self, job: StreamJob) -> None:
        self._job: Final = job

    def __iter__(self) -> Iterator[Iterable[Any]]:  # Any: items of any type
        for delivery in self._job.deliveries():
            yield itertools.chain.from_iterable(delivery)

    def cancel(self) -> None:
        """Stop the query; see `StreamJob.cancel`."""
        self._job.cancel()


def _stop(query: _Query) -> None:
    with contextlib.suppress(Exception):  # the thread that waits for its end gets the error
        query.stop()
