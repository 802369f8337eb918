"""Flows on an Apache Spark cluster, with demand-driven results in the driver.

>>> import flow_core as flow
>>> from flow_spark import on_spark, session
>>> with session("local[2]", fast_start=True) as spark:  # doctest: +SKIP
...     sum(flow.range(10).on_spark(spark).map(lambda n: n * n))
285
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from flow_core.errors import no_such_name
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

_LAZY = {
    "BatchStore": "flow_spark._streams",
    "MicroBatch": "flow_spark._streams",
    "SqliteBatchStore": "flow_spark._streams",
    "for_each_batch": "flow_spark._streams",
    "for_each_batch_once": "flow_spark._streams",
    "from_dataframe": "flow_spark._sources",
    "from_stream": "flow_spark._streams",
    "on_spark": "flow_spark._sources",
    "select": "flow_spark._columns",
    "union": "flow_spark._sources",
    "where": "flow_spark._columns",
    "session": "flow_spark.driver.session",
    "BatchSink": "flow_spark._fan_out",
    "batch_writer": "flow_spark._fan_out",
    "scan_by_key": "flow_spark._keyed",
    "stream_source": "flow_spark._source_stream",
    "write_each": "flow_spark._fan_out",
    "JobStatus": "flow_spark._status",
    "running_jobs": "flow_spark._status",
    "WriteSubscriber": "flow_spark._sinks",
    "to_arrow": "flow_spark._sinks",
    "to_dataframe": "flow_spark._sinks",
    "to_pandas": "flow_spark._sinks",
    "write": "flow_spark._sinks",
}
"""Imported when they are used: PySpark and pyarrow take half a second."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        no_such_name(__name__, name)
    value: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
