"""`to_arrow`: a flow ends as a table of Arrow."""

from __future__ import annotations

from typing import Any

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_spark.items.arrow import ArrowTable
from flow_spark.items.objects import without_marks
from flow_spark.sinks._held import LIMIT, check_limit, table_of_items

__all__ = ["to_arrow"]


# Any: pyarrow has no types, and the name of its Table would not be known.
def to_arrow(*, limit: int | None = LIMIT, schema: object = None) -> Operator[Any, Any]:
    """End a flow as a ``pyarrow.Table`` in the memory of this process.

    >>> import flow_core as flow
    >>> flow.range(3).to_arrow(schema="n bigint").num_rows  # doctest: +SKIP
    3

    Demand: bounded, for at most one item more than `limit`. Thread: the calling one, as for
    `write`.

    Args:
        limit: how many items may be held in memory; one more is an error, so that an unexpectedly
            large flow does not exhaust it. None for no limit.
        schema: the columns, as for `to_dataframe`. DDL needs a session.

    Raises:
        ValueError: if `limit` is less than 1.
        LimitExceededError: when applied, if there are more items than `limit`.
        UnsupportedTypeError: when applied, as with `to_dataframe`.
        OrderedOperatorError: when applied, as with `to_dataframe`.
        SchemaMismatchError: when applied, if an item of a flow of this process does not fit.
        SparkJobError: when applied, as with `write`.
    """
    check_limit(limit)

    def apply(flow: Flow[Any]) -> ArrowTable:
        return without_marks(table_of_items(flow, limit, schema, "to_arrow"))

    return Operator("to_arrow", apply)
