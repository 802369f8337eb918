"""Flows on an Apache Spark cluster, with demand-driven results in the driver.

>>> import flow_core as flow
>>> from flow_spark import on_spark, session
>>> with session("local[2]", fast_start=True) as spark:  # doctest: +SKIP
...     sum(flow.range(10).on_spark(spark).map(lambda n: n * n))
285
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flow_core.exports import exported
from flow_spark.errors import (
    ChannelError,
    CheckpointConflictError,
    LimitExceededError,
    NoJavaError,
    NotPicklableError,
    OrderedOperatorError,
    PartitionChangedError,
    RemoteError,
    RemoteTracebackError,
    SchemaMismatchError,
    SessionConflictError,
    SessionStartError,
    SparkJobError,
    SpoolError,
    UnsupportedPlatformError,
    UnsupportedTypeError,
)

if TYPE_CHECKING:
    from flow_core.batches import BatchStore, MicroBatch
    from flow_spark.columns.select import select
    from flow_spark.columns.where import where
    from flow_spark.driver.session import session
    from flow_spark.jobs.running_jobs import JobStatus, running_jobs
    from flow_spark.sinks.to_arrow import to_arrow
    from flow_spark.sinks.to_dataframe import to_dataframe
    from flow_spark.sinks.to_pandas import to_pandas
    from flow_spark.sinks.write import write
    from flow_spark.sinks.write_subscriber import WriteSubscriber
    from flow_spark.sources.from_dataframe import from_dataframe
    from flow_spark.sources.from_stream import from_stream
    from flow_spark.sources.on_spark import on_spark
    from flow_spark.sources.union import union
    from flow_spark.streams.batch_writer import batch_writer
    from flow_spark.streams.for_each_batch import for_each_batch, for_each_batch_once
    from flow_spark.streams.scan_by_key import scan_by_key
    from flow_spark.streams.sqlite_batch_store import SqliteBatchStore
    from flow_spark.streams.stream_source import stream_source
    from flow_spark.streams.write_each import BatchSink, write_each

__all__ = [
    "BatchSink",
    "BatchStore",
    "ChannelError",
    "CheckpointConflictError",
    "JobStatus",
    "LimitExceededError",
    "MicroBatch",
    "NoJavaError",
    "NotPicklableError",
    "OrderedOperatorError",
    "PartitionChangedError",
    "RemoteError",
    "RemoteTracebackError",
    "SchemaMismatchError",
    "SessionConflictError",
    "SessionStartError",
    "SparkJobError",
    "SpoolError",
    "SqliteBatchStore",
    "UnsupportedPlatformError",
    "UnsupportedTypeError",
    "WriteSubscriber",
    "batch_writer",
    "for_each_batch",
    "for_each_batch_once",
    "from_dataframe",
    "from_stream",
    "on_spark",
    "running_jobs",
    "scan_by_key",
    "select",
    "session",
    "stream_source",
    "to_arrow",
    "to_dataframe",
    "to_pandas",
    "union",
    "where",
    "write",
    "write_each",
]

_PLACES = {
    ".columns.select": ("select",),
    ".columns.where": ("where",),
    ".driver.session": ("session",),
    ".jobs.running_jobs": ("JobStatus", "running_jobs"),
    ".sinks.to_arrow": ("to_arrow",),
    ".sinks.to_dataframe": ("to_dataframe",),
    ".sinks.to_pandas": ("to_pandas",),
    ".sinks.write": ("write",),
    ".sinks.write_subscriber": ("WriteSubscriber",),
    ".sources.from_dataframe": ("from_dataframe",),
    ".sources.from_stream": ("from_stream",),
    ".sources.on_spark": ("on_spark",),
    ".sources.union": ("union",),
    ".streams.batch_writer": ("batch_writer",),
    ".streams.for_each_batch": ("for_each_batch", "for_each_batch_once"),
    ".streams.scan_by_key": ("scan_by_key",),
    ".streams.sqlite_batch_store": ("SqliteBatchStore",),
    ".streams.stream_source": ("stream_source",),
    ".streams.write_each": ("BatchSink", "write_each"),
    "flow_core.batches": ("BatchStore", "MicroBatch"),
}
"""The names that are loaded when first used: importing PySpark and pyarrow takes half a second."""

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES)
