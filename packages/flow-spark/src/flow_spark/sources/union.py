"""`union`: several flows on Spark as one."""

from __future__ import annotations

from typing import TypeVar

from flow_core.flow import Flow
from flow_spark.sources.spark_source import united

__all__ = ["union"]

T = TypeVar("T")


def union(*flows: Flow[T]) -> Flow[T]:
    """The items of several flows on Spark, as one flow on Spark, in no order.

    The stages of each flow run where its rows are, and so do the stages that follow `union`, in one
    job; Catalyst unites DataFrames that are read alike.

    >>> everything = union(from_dataframe(old), from_dataframe(new))  # doctest: +SKIP
    >>> everything.distinct().count().single()  # doctest: +SKIP

    Demand, thread and fusion are those of `from_dataframe`.

    Args:
        flows: at least one, whose items are on the same session.

    Raises:
        TypeError: if there is none, or one is not a flow on Spark.
        OrderedOperatorError: if a stage of one depends on an order, and there is none.
        SessionConflictError: if they are on different sessions.
        UnsupportedTypeError: if one is a stream, or has an effect in this process.
    """
    return united(flows)
