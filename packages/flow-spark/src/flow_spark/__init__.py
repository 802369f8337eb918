"""Flows on an Apache Spark cluster, with demand-driven results in the driver.

>>> import flow_core as flow
>>> from flow_spark import on_spark, session
>>> with session("local[2]") as spark:  # doctest: +SKIP
...     sum(flow.range(10).pipe(on_spark(spark)).map(lambda n: n * n))
285
"""

from flow_spark._session import session
from flow_spark._sinks import to_dataframe
from flow_spark._sources import from_dataframe, on_spark
from flow_spark.errors import (
    ChannelError,
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
    UnsupportedTypeError,
)

__all__ = [
    "ChannelError",
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
    "UnsupportedTypeError",
    "from_dataframe",
    "on_spark",
    "session",
    "to_dataframe",
]
