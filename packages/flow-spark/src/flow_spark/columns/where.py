"""`where`: the rows for which a condition is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_spark.columns._native import check_column, natively, shown

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["where"]

T = TypeVar("T")


def where(condition: Column | str) -> Operator[T, Flow[T]]:
    """Keep the rows for which a condition over columns is true.

    Spark's own engine applies it, before a row reaches Python, and often before it is read at all:
    the statistics of a file, or a database, can answer the condition. It may use columns that the
    items do not have.

    >>> from pyspark.sql.functions import col
    >>> rows = from_dataframe(df, as_=Trip)  # doctest: +SKIP
    >>> rows.spark.where(col("minutes") > 3).map(lambda trip: trip.origin)  # doctest: +SKIP

    Use it on a flow of `from_dataframe` or `from_stream`, behind which there is nothing but `where`
    and `select`.

    Demand, thread and fusion are those of `from_dataframe`.

    Args:
        condition: a ``Column``, or SQL such as ``"minutes > 3"``.

    Raises:
        TypeError: if `condition` is neither; a function of an item belongs in ``filter``.
        UnsupportedTypeError: when applied, if the flow has a stage already, or has no columns.
    """
    check_column("where", condition, "filter")
    return Operator(
        "where",
        lambda flow: natively("where", "filter", flow, lambda df: df.where(condition)),
        shown(condition),
    )
