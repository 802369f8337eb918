"""`to_pandas`: a flow ends as a DataFrame of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_spark.items.arrow import ArrowTable, pa
from flow_spark.items.rows import asks_for_items, items_of
from flow_spark.sinks._held import LIMIT, check_limit, table_of_items

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

__all__ = ["to_pandas"]


def to_pandas(
    *, limit: int | None = LIMIT, schema: object = None
) -> Operator[Any, pandas.DataFrame]:
    """End a flow as a ``pandas.DataFrame`` in the memory of this process.

    >>> import flow_core as flow
    >>> flow.range(3).to_pandas(schema="n bigint")["n"].sum()  # doctest: +SKIP
    3

    A column of ints with a null among them gets a nullable type of pandas, such as ``Int64``:
    pandas would make floats of the ints, and large ones would lose digits. Maps become dicts;
    Variants, geometries and user-defined types become the same objects as in items.

    Demand and thread are those of `to_arrow`.

    Args:
        limit: as for `to_arrow`.
        schema: as for `to_arrow`.

    Raises:
        ValueError: as with `to_arrow`.
        LimitExceededError: as with `to_arrow`.
        UnsupportedTypeError: as with `to_arrow`.
        OrderedOperatorError: as with `to_arrow`.
        SchemaMismatchError: as with `to_arrow`.
        SparkJobError: as with `to_arrow`.
    """
    check_limit(limit)

    def apply(flow: Flow[Any]) -> pandas.DataFrame:
        return _frame_of(table_of_items(flow, limit, schema, "to_pandas"))

    return Operator("to_pandas", apply)


def _frame_of(table: ArrowTable) -> pandas.DataFrame:
    """Return `table` for pandas, with all digits of ints, and with objects as in items."""
    import pandas

    untyped: Any = table  # Any: its types are not complete
    fields = list(table.schema)
    own = [index for index, field in enumerate(fields) if asks_for_items(field)]
    plain = untyped.select([index for index in range(len(fields)) if index not in own])
    made: Any = plain.to_pandas(integer_object_nulls=True, maps_as_pydicts="strict")
    for index, column in enumerate(plain.columns):
        if column.null_count and pa.types.is_integer(column.type):
            name = str(column.type).replace("int", "Int").replace("uI", "UI")
            made.isetitem(index, pandas.array(made.iloc[:, index], dtype=name))
    for index in own:
        values = [
            item for part in untyped.column(index).chunks for item in items_of(fields[index], part)
        ]
        column = pandas.Series(values, index=range(table.num_rows), dtype=object)
        made.insert(index, fields[index].name, column, allow_duplicates=True)
    frame: pandas.DataFrame = made
    return frame
