"""Operators that stay in Spark's own engine, because they are said in its columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.structure import source_of, stages_of
from flow_spark._sources import SparkSource, is_on_spark
from flow_spark.errors import UnsupportedTypeError
from flow_spark.jobs.origin import FrameOrigin
from flow_spark.jobs.stream_origin import StreamOrigin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["select", "where"]

T = TypeVar("T")
R = TypeVar("R")

_GENERIC = (None, tuple, dict)
"""What items can be whatever the columns are."""


def where(condition: Column | str) -> Operator[T, Flow[T]]:
    """Keep the rows for which a condition over columns is true.

    Spark's own engine does it, before a row reaches Python, and often before it is read at all: a
    file's statistics and a database can answer it. Columns that items do not have count, too.

    >>> from pyspark.sql.functions import col
    >>> rows = from_dataframe(df, as_=Trip)  # doctest: +SKIP
    >>> rows.spark.where(col("minutes") > 3).map(lambda trip: trip.origin)  # doctest: +SKIP

    It is for flows that `from_dataframe` or `from_stream` made, with nothing behind them but
    `where` and `select`.

    Demand, thread and fusion are those of `from_dataframe`.

    Args:
        condition: a ``Column``, or SQL such as ``"minutes > 3"``.

    Raises:
        TypeError: if it is neither; a function of an item belongs into ``filter``.
        UnsupportedTypeError: when applied, if the flow has a stage already, or has no columns.
    """
    _check("where", condition, "filter")
    return Operator(
        "where",
        lambda flow: _native("where", "filter", flow, lambda df: df.where(condition)),
        _told(condition),
    )


@overload
def select(*columns: Column | str, as_: type[R]) -> Operator[Any, Flow[R]]: ...


@overload
def select(
    *columns: Column | str, as_: str | None = None
) -> Operator[Any, Flow[Any]]: ...  # Any: what the columns hold is not known to a type checker


def select(*columns: Column | str, as_: type[R] | str | None = None) -> Operator[Any, Flow[Any]]:
    """Make rows of other columns, in Spark's own engine.

    >>> from pyspark.sql.functions import col
    >>> rows = from_dataframe(df)  # doctest: +SKIP
    >>> rows.spark.select("origin", (col("minutes") / 60).alias("hours"))  # doctest: +SKIP

    It is for flows that `from_dataframe` or `from_stream` made, with nothing behind them but
    `where` and `select`.

    Demand, thread and fusion are those of `from_dataframe`.

    Args:
        columns: names, or expressions.
        as_: what an item is, as in `from_dataframe`. None: as before, if items were tuples, dicts
            or Rows; else the bare value of an only column, or a tuple.

    Raises:
        TypeError: if a column is neither; a function of an item belongs into ``map``.
        UnsupportedTypeError: when applied, if the flow has a stage already, or has no columns.
        SchemaMismatchError: when applied, if the columns do not fit `as_`.
        ValueError: if there are no columns.
    """
    if not columns:
        raise ValueError("select() takes at least one column")
    for column in columns:
        _check("select", column, "map")

    def apply(flow: Flow[Any]) -> Flow[Any]:
        return _native("select", "map", flow, lambda df: df.select(*columns), as_, other=True)

    return Operator("select", apply, ", ".join(map(_told, columns)))


def _check(name: str, column: object, instead: str) -> None:
    from pyspark.sql import Column

    if not isinstance(column, (str, Column)):
        hint = f"; a function of an item belongs into {instead}()" if callable(column) else ""
        raise TypeError(f"{name}() takes a Column or a str, not {column!r}{hint}")


def _told(column: object) -> str:
    return repr(column) if isinstance(column, str) else str(column)


def _native(
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
            f"{name}() is said in columns, and the items of {flow!r} have none: use {instead}(), "
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
