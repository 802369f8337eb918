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
    UnsupportedTypeError,
)

if TYPE_CHECKING:
    from flow_spark._columns import select, where
    from flow_spark._fan_out import BatchSink, batch_writer, write_each
    from flow_spark._keyed import scan_by_key
    from flow_spark._sinks import WriteSubscriber, to_arrow, to_dataframe, to_pandas, write
    from flow_spark._source_stream import stream_source
    from flow_spark._sources import from_dataframe, on_spark, union
    from flow_spark._status import JobStatus, running_jobs
    from flow_spark._streams import (
        BatchStore,
        MicroBatch,
        SqliteBatchStore,
        for_each_batch,
        for_each_batch_once,
        from_stream,
    )
    from flow_spark.driver.session import session

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
    "._columns": ("select", "where"),
    "._fan_out": ("BatchSink", "batch_writer", "write_each"),
    "._keyed": ("scan_by_key",),
    "._sinks": ("WriteSubscriber", "to_arrow", "to_dataframe", "to_pandas", "write"),
    "._source_stream": ("stream_source",),
    "._sources": ("from_dataframe", "on_spark", "union"),
    "._status": ("JobStatus", "running_jobs"),
    "._streams": (
        "BatchStore",
        "MicroBatch",
        "SqliteBatchStore",
        "for_each_batch",
        "for_each_batch_once",
        "from_stream",
    ),
    ".driver.session": ("session",),
}
"""Loaded when they are first used: PySpark and pyarrow take half a second."""

if not TYPE_CHECKING:  # for whom anything would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES)
