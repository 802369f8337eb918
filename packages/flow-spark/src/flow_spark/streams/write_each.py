"""`write_each`: one query, and several sinks on the cluster that take each micro-batch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from typing_extensions import override

from flow_core.batches import MicroBatch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages import Program
from flow_core.structure import source_of, stages_of
from flow_spark.errors import SparkJobError, UnsupportedTypeError
from flow_spark.items.arrow import pa
from flow_spark.items.rows import RowReader
from flow_spark.jobs.frames import is_connect
from flow_spark.jobs.origin import Job, Runs
from flow_spark.jobs.publisher import JobSource
from flow_spark.jobs.stream_origin import StreamOrigin
from flow_spark.jobs.streaming import StreamJob, StreamSettings, WholeBatches, told
from flow_spark.jobs.task import RemoteProgram
from flow_spark.pickling.pickles import dumps
from flow_spark.sinks._framed import frame_on_spark
from flow_spark.sources.spark_source import is_on_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BatchSink", "write_each"]

BatchSink: TypeAlias = "Callable[[DataFrame, int], object]"
"""A function that takes a micro-batch: it is called with the rows as a DataFrame, and with the
number."""

_DONE: Final = pa.schema([("batch_id", pa.int64()), ("items", pa.int64())])


def write_each(*sinks: BatchSink, schema: object = None) -> Operator[Any, Flow[MicroBatch]]:
    """Pass each micro-batch of a stream to several sinks on the cluster, in one query.

    The stages before `write_each` run once: their results are kept on the executors while the sinks
    take them, one after the other, and the next micro-batch begins when all sinks have taken this
    one. The items do not pass through this process.

    >>> late = from_stream(trips, checkpoint="state/late").filter(is_late)  # doctest: +SKIP
    >>> batches = late.spark.write_each(  # doctest: +SKIP
    ...     batch_writer("parquet", "late"), lambda df, n: df.write.jdbc(url, "late")
    ... )
    >>> handle = batches.subscribe(print)  # starts the query  # doctest: +SKIP
    >>> handle.dispose()  # stops it  # doctest: +SKIP

    After a crash the micro-batch that was not committed comes again, with the same number, to all
    sinks. `batch_writer` overwrites what it wrote the first time; other sinks should do the same.
    With ``.publish()`` of flow-multicast behind `write_each`, ``connect()`` starts the query.

    Use it on a flow of `from_stream` that is followed only by stages. The result is a flow with a
    `MicroBatch` for each micro-batch, which Spark commits when the subscriber has got it.

    Demand: exact; sinks get a micro-batch when it is requested. Thread: as with `from_stream`.
    Fusion: none.
    Errors: an error raised by a sink ends the query; its text names the sink, and the micro-batch
    is not committed.

    Args:
        sinks: called with the rows of a micro-batch as a DataFrame, and its number. They run in
            this process; with Spark Connect, they are pickled, and run in a process of the server.
        schema: the columns, as for `to_dataframe`.

    Raises:
        ValueError: if there are no sinks.
        TypeError: if a sink cannot be called.
        UnsupportedTypeError: when applied to any other flow, or if the columns are not known.
        NotPicklableError: when subscribed, with Spark Connect, if a sink cannot be sent.
    """
    if not sinks:
        raise ValueError("write_each() needs at least one sink")
    for sink in sinks:
        if not callable(sink):
            raise TypeError(f"a sink takes a DataFrame and a number, and {sink!r} is not callable")

    def apply(flow: Flow[Any]) -> Flow[MicroBatch]:
        source = source_of(flow)
        if not is_on_spark(source) or not isinstance(source.origin, StreamOrigin):
            raise UnsupportedTypeError(
                f"write_each() needs the micro-batches of from_stream(), with nothing but stages "
                f"behind it, and {flow!r} has none"
            )
        df = frame_on_spark(source, flow, schema, "write_each")
        stages = (stage.name for stage in stages_of(flow))
        each = _EachSink(df, sinks, source.origin.settings.after(*stages, "write_each"))
        return Flow(JobSource[MicroBatch](each, Program[Any, MicroBatch](()), exact=True))

    return Operator("write_each", apply, f"{len(sinks)} sinks")


@final
class _EachSink(Runs):
    """A stream whose micro-batches go to sinks.

    Args:
        df: the stream.
        sinks: the sinks for each micro-batch.
        settings: the settings of the query.
    """

    __slots__ = ("_df", "_settings", "_sinks")

    def __init__(
        self, df: DataFrame, sinks: tuple[BatchSink, ...], settings: StreamSettings
    ) -> None:
        self._df: Final = df
        self._sinks: Final = sinks
        self._settings: Final = settings

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        """Return the job, whose items are `MicroBatch` objects."""
        sinks: bytes | tuple[BatchSink, ...] = self._sinks
        if is_connect(self._df.sparkSession):
            sinks = dumps(sinks, "a sink of this flow")
        reader = RowReader(_DONE, MicroBatch)
        given = _GivenToSinks(sinks)
        job = StreamJob(self._df, reader, MicroBatch, program, self._settings, prepare=given)
        return WholeBatches(job)

    def __repr__(self) -> str:
        return f"write_each({len(self._sinks)} sinks)"


@final
@dataclass(frozen=True, slots=True)
class _GivenToSinks:
    """Passes a micro-batch to all sinks, and then returns the row for the subscriber.

    Attributes:
        sinks: the sinks; pickled if this runs in another process.
    """

    sinks: bytes | tuple[BatchSink, ...]

    def __call__(self, df: DataFrame, batch_id: int) -> DataFrame:
        """Pass the micro-batch to all sinks."""
        kept = df.persist()
        try:
            count = self._give(kept, batch_id)
        finally:
            kept.unpersist()
        return df.sparkSession.range(1).selectExpr(
            f"CAST({batch_id} AS BIGINT) AS batch_id", f"CAST({count} AS BIGINT) AS items"
        )

    def _give(self, df: DataFrame, batch_id: int) -> int:
        given = self.sinks
        sinks: tuple[BatchSink, ...] = pickle.loads(given) if isinstance(given, bytes) else given
        what = "counting it"
        try:
            for number, sink in enumerate(sinks, 1):
                what = f"sink {number} of {len(sinks)}, {_name(sink)}"
                sink(df, batch_id)
            return df.count()
        except Exception as error:
            # Without Java's own traces, for the reason that `BatchTask` has.
            raise SparkJobError(f"micro-batch {batch_id}: {what}: {told(error)}") from None


def _name(sink: BatchSink) -> str:
    return str(getattr(sink, "__qualname__", None) or repr(sink))
