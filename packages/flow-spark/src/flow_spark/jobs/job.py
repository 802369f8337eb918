"""A Spark job whose tasks push their items to this process, or keep them on the cluster."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, final

from flow_core.stages import Program
from flow_spark.channel.receiver import BatchReceiver, PartitionResult, Statistics
from flow_spark.errors import SparkJobError
from flow_spark.items.schema import ItemSchema
from flow_spark.jobs.cluster import cluster_of
from flow_spark.jobs.frames import map_in_arrow
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.partition_scheduler import PartitionScheduler
from flow_spark.jobs.run import cancel_until, explained, explaining, new_tag
from flow_spark.jobs.slots import look_after_slots
from flow_spark.jobs.task import CHUNK_DDL, COUNTS_DDL, LoweredTask, PushTask, Reader, RemoteProgram
from flow_spark.pickling.codec import Decoder
from flow_spark.pickling.failures import load_error
from flow_spark.pickling.pickles import dumps, loads_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flow_spark.jobs.origin import Opened, Origin

__all__ = ["STAGES", "PushedJob", "cause_of", "lowered", "lowered_all"]

STAGES: Final = "the stages of this flow"
"""The name of the object that cannot be pickled, in the words of its user."""


@final
class PushedJob:
    """One Spark job that runs stages on rows, and its items.

    Iterating yields lists (or other iterables) of items. Nothing runs before the first list is
    requested, and while none is requested, the tasks stand still as soon as the sockets are full.
    But if other jobs wait for the slots of these tasks, the tasks' items are received and kept in
    this process, so that the tasks can end. If that is not enough, the tasks leave, and start again
    at the next request. Items of one partition come in order; partitions take turns.

    Leaving the iteration early, or `cancel` from any thread, ends the job.

    The job gets Spark's settings for jobs (scheduler pool, group, description, tags) from the
    thread that creates this object.

    Args:
        origin: the rows.
        program: the stages to run where the rows are; None for the rows as they are.
        name: the name of the job in Spark's tools.
        opened: makes the rows, in place of ``origin.opened``; a retried task has to find them in
            the same order.
        tell: passes on the settings of another thread than this one, see `Cluster.handed_on`.

    Raises:
        NotPicklableError: if the stages cannot be sent to the cluster.
    """

    __slots__ = (
        "_cluster",
        "_ended",
        "_is_short",
        "_lock",
        "_name",
        "_no_task_ran",
        "_opened",
        "_origin",
        "_program",
        "_receiver",
        "_stop",
        "_submitted",
        "_tag",
        "_tell",
        "_waves",
        "received",
    )

    def __init__(
        self,
        origin: Origin,
        program: RemoteProgram | None,
        name: str = "flow",
        opened: Callable[[Stop], AbstractContextManager[Opened | None]] | None = None,
        tell: Callable[[], None] | None = None,
    ) -> None:
        self._program: Final = None if program is None else dumps(program, STAGES)
        self._is_short: Final = isinstance(program, Program) and any(
            stage.template.at_most for stage in program.stages
        )
        self._origin: Final = origin
        self._opened: Final = opened or functools.partial(origin.opened, resumed=True)
        self._name: Final = name
        self._cluster: Final = cluster_of(origin.session)
        self._tag: Final = new_tag()
        with self._cluster.answering(self._what()):
            self._tell: Final = tell or self._cluster.handed_on()
        self._lock: Final = threading.Lock()
        self._receiver: BatchReceiver | None = None
        self._stop: Final = Stop()
        self._submitted = False
        self._no_task_ran = False
        self._waves: PartitionScheduler | None = None
        self.received = 0
        self._ended: Final = threading.Event()

    def __iter__(self) -> Iterator[Iterable[Any]]:  # Any: items of any type
        with explaining(self._what()), self._cluster.answering(self._what()):
            receiver = self._start()
        if receiver is None:
            return
        decode = Decoder(self._origin.as_)
        try:
            while True:
                batch = receiver.next_batch()
                if batch is None:
                    break
                self.received += len(batch.payload)
                yield decode(batch)
            if self._no_task_ran and self._program is not None:
                # Without rows, Spark makes no task, but stages may still emit items at the end.
                program: RemoteProgram = loads_here(self._program)
                yield program.iterate(iter(()))
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End the job, and return at once. Any thread may call this, and more than once."""
        with self._lock:
            first = not self._stop()
            self._stop.set()
            receiver, submitted = self._receiver, self._submitted
        if receiver is None or not first:
            return
        receiver.cancel()
        if submitted:
            self._cancel_there()

    def _cancel_there(self) -> None:
        if not self._ended.is_set():
            threading.Thread(
                target=cancel_until,
                args=(self._cluster, self._tag, self._ended),
                name="flow-spark-cancel",
                daemon=True,
            ).start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until Spark has ended the job.

        Return False if it has not within `timeout_s` seconds.
        """
        with self._lock:
            if self._receiver is None:
                return True
        return self._ended.wait(timeout_s)

    def statistics(self) -> Statistics | None:
        """Return numbers about what has arrived; None before the job starts."""
        receiver = self._receiver
        return None if receiver is None else receiver.statistics()

    def _start(self) -> BatchReceiver | None:
        with self._lock:
            if self._receiver is not None:
                raise SparkJobError("a job runs once; make a new one to run it again")
            if self._stop():
                return None
            bind, advertised = self._cluster.addresses()
            backlog = self._cluster.backlog()
            receiver = self._receiver = BatchReceiver(
                bind,
                advertised=advertised,
                speculation=self._cluster.speculates(),
                backlog=backlog,
            )
        # Daemons: a process that exits must not wait for a cluster.
        threading.Thread(
            target=self._run, args=(receiver,), name="flow-spark-job", daemon=True
        ).start()
        look_after_slots(
            self._cluster,
            receiver,
            backlog,
            what=self._what(),
            own=lambda: self._tag,
            end=self._cancel_there,
            leave=self._leave,
        )
        return receiver

    def _leave(self) -> bool:
        return self._waves is not None and self._waves.leave()

    def _run(self, receiver: BatchReceiver) -> None:
        """Run the job, from its start to its end; in a separate thread."""
        try:
            with self._cluster.answering(self._what()):
                self._tell()
            with self._opened(self._stop) as opened:
                if opened is None or not self._submit():
                    return
                with self._cluster.answering(self._what()):
                    counts = opened.mapped(
                        lambda reader, branch, branches: PushTask(
                            _dumped(reader), self._program, receiver.target, branch, branches
                        ),
                        COUNTS_DDL,
                    )
                    with self._cluster.tagged(self._tag, self._name, self._stop, self._later):
                        rows = self._rows(counts, receiver, 1 + len(opened.others))
            self._no_task_ran = not rows
            self._ended.set()  # code that notices the end has nothing to cancel
            receiver.finish([PartitionResult(row[0], row[1], row[2], row[3]) for row in rows])
        except BaseException as error:  # an error in a thread has no caller to propagate to
            receiver.fail(self._explain(receiver, error))
        finally:
            self._ended.set()

    def _rows(
        self, counts: DataFrame, receiver: BatchReceiver, branches: int
    ) -> Sequence[Sequence[int]]:
        """Run the tasks, all at once or wave by wave, and return their reports."""
        parts = self._cluster.parts(counts)
        if parts is None:
            return counts.collect()
        self._waves = PartitionScheduler(
            parts,
            receiver,
            first=1 if self._is_short else None,
            branches=branches,
            repeats=self._origin.repeats,
            tell=self._cluster.handed_on(),
            cancel=lambda: self._cluster.cancel(self._tag),
            what=self._what(),
        )
        return self._waves.run()

    def _later(self) -> int:
        """Return how many tasks were not handed to Spark yet."""
        return 0 if self._waves is None else self._waves.later

    def _submit(self) -> bool:
        """Return whether Spark should get the job.

        If so, it has to be cancelled there from now on.
        """
        with self._lock:
            self._submitted = not self._stop()
            return self._submitted

    def _explain(self, receiver: BatchReceiver, error: BaseException) -> BaseException:
        cause = cause_of(receiver)
        if cause is not None:
            cause.__cause__ = cause.__cause__ or error
            return cause
        return explained(error, self._what())

    def _what(self) -> str:
        return f"the Spark job {self._name!r}"


def cause_of(receiver: BatchReceiver) -> BaseException | None:
    """Return the tasks' own error for the failure of the job: it says more than Spark's."""
    failure = receiver.failure()
    if failure is not None:
        return load_error(failure.payload, failure.partition, failure.task)
    return receiver.changed()


def lowered(
    df: DataFrame, reader: Reader, program: RemoteProgram | None, schema: ItemSchema | None
) -> DataFrame:
    """Return a lazy DataFrame of the results of `program` for the rows of `df`, on the cluster.

    Args:
        df: the rows.
        reader: converts the rows to items.
        program: the stages to run where the rows are; None to leave items as they are.
        schema: the columns that items become; None for pickled chunks, which a `ChunkReader` reads.

    Raises:
        NotPicklableError: if the stages cannot be sent to the cluster.
    """
    task = _lowering(df.sparkSession, program, schema)(reader)
    return map_in_arrow(df, task, CHUNK_DDL if schema is None else schema.spark())


def lowered_all(
    opened: Opened,
    program: RemoteProgram | None,
    schema: ItemSchema | None,
    *,
    tells: bool = False,
) -> DataFrame:
    """Do as `lowered` for all rows of `opened`; for `tells`, see `LoweredTask`."""
    make = _lowering(opened.df.sparkSession, program, schema, tells=tells)
    columns = CHUNK_DDL if schema is None else schema.spark()
    return opened.mapped(lambda reader, _, __: make(reader), columns)


def _lowering(
    session: SparkSession,
    program: RemoteProgram | None,
    schema: ItemSchema | None,
    *,
    tells: bool = False,
) -> Callable[[Reader], LoweredTask]:
    pickled = None if program is None else dumps(program, STAGES)
    # By value too, if needed: a schema knows the class that it was made from.
    columns = None if schema is None else dumps(schema, "the class that the columns are made from")
    client = cluster_of(session).client()
    return lambda reader: LoweredTask(_dumped(reader), pickled, columns, tells, client)


def _dumped(reader: Reader) -> bytes:
    return dumps(reader, "the class that rows are made into")
