"""The base of operators over Spark's columns, which stay in its own engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flow_core.flow import Flow
from flow_core.structure import source_of, stages_of
from flow_spark.errors import UnsupportedTypeError
from flow_spark.jobs.origin import FrameOrigin
from flow_spark.jobs.stream_origin import StreamOrigin
from flow_spark.sources.spark_source import SparkSource, is_on_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["check_column", "natively", "shown"]


_GENERIC = (None, tuple, dict)
"""Types of items that any columns fit."""


def check_column(name: str, column: object, instead: str) -> None:
    from pyspark.sql import Column

    if not isinstance(column, (str, Column)):
        hint = f"; a function of an item belongs into {instead}()" if callable(column) else ""
        raise TypeError(f"{name}() takes a Column or a str, not {column!r}{hint}")


def shown(column: object) -> str:
    return repr(column) if isinstance(column, str) else str(column)


def natively(
    name: str,
    instead: str,
    flow: Flow[Any],
    change: Callable[[DataFrame], DataFrame],
    as_: object = None,
    *,
    other: bool = False,
) -> Flow[Any]:
    source = source_of(flow)
    origin = source.origin if is_on_spark(source) else None
    if not isinstance(origin, (FrameOrigin, StreamOrigin)):
        raise UnsupportedTypeError(
            f"{name}() is written in columns, and {flow!r} has none: use {instead}(), "
            "or make a DataFrame of them first: from_dataframe(flow.to_dataframe(...))"
        )
    if stages_of(flow):
        stage = stages_of(flow)[0]
        where = f", assembled at {stage.assembled_at}," if stage.assembled_at else ""
        raise UnsupportedTypeError(
            f"{name}() has to come before the first stage in Python, and {stage!r}{where} comes "
            f"before it: behind that, items are Python's and have no columns. Put {name}() right "
            f"behind the source, use {instead}(), or go back to columns by "
            "from_dataframe(flow.to_dataframe(...))"
        )
    if as_ is None and (not other or origin.as_ in _GENERIC or _is_row(origin.as_)):
        as_ = origin.as_
    changed = origin.changed(change, as_)
    return Flow(
        SparkSource[Any](changed.behind(name) if isinstance(changed, StreamOrigin) else changed)
    )


def _is_row(as_: object) -> bool:
    return isinstance(as_, type) and as_.__name__ == "Row"
