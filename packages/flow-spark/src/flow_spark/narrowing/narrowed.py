"""The part of the rows of a DataFrame that stages need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from flow_core.stages import Stage
from flow_spark.items.rows import RowReader
from flow_spark.items.spelling import quoted
from flow_spark.narrowing.columns_read import columns_read, record_of
from flow_spark.narrowing.conditions import kinds_of
from flow_spark.narrowing.decisions import Field
from flow_spark.narrowing.fields_read import GivenUpError, Record
from flow_spark.narrowing.rows_kept import Kept, rows_kept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["Narrowed", "narrowed"]


@final
@dataclass(frozen=True, slots=True)
class Narrowed:
    """The part of a DataFrame that is read. It can be pickled.

    Attributes:
        columns: the columns; None for all of them.
        where: the condition for the rows; None for all of them.
        why_all_columns: the reason why it is not known which columns are needed, for a user; None
            if it is.
        why_all_rows: the reason why no filter leaves a row out, for a user; None if there is none.
    """

    columns: tuple[str, ...] | None = None
    where: str | None = None
    why_all_columns: str | None = None
    why_all_rows: str | None = None

    def __call__(self, df: DataFrame, _batch_id: int = 0) -> DataFrame:
        """Return this part of `df`, which may be a micro-batch."""
        if self.where is not None:
            df = df.where(self.where)
        return df if self.columns is None else df.select(*map(quoted, self.columns))

    def reader(self, reader: RowReader) -> RowReader:
        """Return a reader of this part, where `reader` is that of all rows and columns."""
        return reader if self.columns is None else reader.reading(self.columns)

    def told(self, names: tuple[str, ...]) -> str:
        """Describe this part of rows with the columns `names`, for messages."""
        columns = names if self.columns is None else self.columns
        number = "" if self.columns is None else f": {len(columns)} of {len(names)} columns"
        where = "" if self.where is None else f", where {self.where}"
        return f"{', '.join(columns)}{number}{where}"


def narrowed(
    stages: Iterable[Stage[Any, Any]],  # Any: items of any type
    reader: RowReader,
    as_: object,
    schema: StructType,
) -> Narrowed:
    """Return the part that `stages` need of rows.

    These are the columns that they can read, without the rows that a filter certainly drops.

    Args:
        stages: the stages, upstream first.
        reader: makes items of the rows.
        as_: the type of an item; see `RowReader`.
        schema: the columns of the rows.
    """
    stages, names = tuple(stages), reader.names
    kept = Kept(None, None)
    try:
        item = Field(names[0]) if reader.is_scalar else record_of(names, as_)
        kept = rows_kept(stages, item, kinds_of(schema, reader.unchanged))
        found = columns_read(stages, names, item) if isinstance(item, Record) else names
    except GivenUpError as error:
        return Narrowed(None, kept.where, str(error), kept.why_all)
    if len(found) == len(names):
        return Narrowed(None, kept.where, None, kept.why_all)
    # Spark hands over no rows without columns.
    columns = tuple(name for name in names if name in found) or names[:1]
    return Narrowed(columns, kept.where, None, kept.why_all)
