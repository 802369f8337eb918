"""`select`: rows of other columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_spark.columns._native import check_column, natively, shown

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["select"]

R = TypeVar("R")


@overload
def select(*columns: Column | str, as_: type[R]) -> Operator[Any, Flow[R]]: ...


@overload
def select(
    *columns: Column | str, as_: str | None = None
) -> Operator[Any, Flow[Any]]: ...  # Any: a type checker does not know the columns


def select(*columns: Column | str, as_: type[R] | str | None = None) -> Operator[Any, Flow[Any]]:
    """Make rows of other columns, in Spark's own engine.

    >>> from pyspark.sql.functions import col
    >>> rows = from_dataframe(df)  # doctest: +SKIP
    >>> rows.spark.select("origin", (col("minutes") / 60).alias("hours"))  # doctest: +SKIP

    Use it on a flow of `from_dataframe` or `from_stream`, behind which there is nothing but `where`
    and `select`.

    Demand, thread and fusion are those of `from_dataframe`.

    Args:
        columns: names, or expressions.
        as_: the type of an item, as in `from_dataframe`. With None, the type stays the same if
            items were tuples, dicts or Rows; otherwise an item is the bare value if there is only
            one column, else a tuple.

    Raises:
        TypeError: if a column is neither a name nor an expression; a function of an item belongs in
            ``map``.
        UnsupportedTypeError: when applied, if the flow has a stage already, or has no columns.
        SchemaMismatchError: when applied, if the columns do not fit `as_`.
        ValueError: if there are no columns.
    """
    if not columns:
        raise ValueError("select() takes at least one column")
    for column in columns:
        check_column("select", column, "map")

    def apply(flow: Flow[Any]) -> Flow[Any]:
        return natively("select", "map", flow, lambda df: df.select(*columns), as_, other=True)

    return Operator("select", apply, ", ".join(map(shown, columns)))
