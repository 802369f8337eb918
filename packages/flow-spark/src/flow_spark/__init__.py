"""Flows on an Apache Spark cluster, with demand-driven results in the driver.

>>> import flow_core as flow
>>> from flow_spark import on_spark, session
>>> with session("local[2]") as spark:  # doctest: +SKIP
...     sum(flow.range(10).pipe(on_spark(spark)).map(lambda n: n * n))
285
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from flow_spark._sinks import to_dataframe
    from flow_spark._sources import from_dataframe, on_spark
    from flow_spark.driver.session import session

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

_LAZY = {
    "from_dataframe": "flow_spark._sources",
    "on_spark": "flow_spark._sources",
    "session": "flow_spark.driver.session",
    "to_dataframe": "flow_spark._sinks",
}
"""Imported when they are used: PySpark and pyarrow take half a second."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
