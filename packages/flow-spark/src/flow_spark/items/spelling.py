"""Columns under the names of the fields that they become, where a session ignores case."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Final

from flow_spark.errors import SchemaMismatchError
from flow_spark.items.shapes import TypeHint, name_of, record_fields, unwrapped

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

__all__ = ["quoted", "respelled"]

_CASE_SENSITIVE: Final = "spark.sql.caseSensitive"


def respelled(df: DataFrame, as_: TypeHint) -> DataFrame:
    """Return `df` with the names of a record's fields, where its own differ from them in case only.

    The result is `df` itself if no name differs, or if ``spark.sql.caseSensitive`` is set.

    Args:
        df: the DataFrame to read.
        as_: the type of an item; see `RowReader`.

    Raises:
        SchemaMismatchError: if several columns differ from a field in case only.
    """
    if record_fields(as_) is None or df.sparkSession.conf.get(_CASE_SENSITIVE) == "true":
        return df
    given = df.schema
    wanted = _struct(given, as_, "")
    if wanted == given:
        return df
    columns: list[Column] = []
    for field, other in zip(given, wanted, strict=True):
        column = df[quoted(field.name)]
        columns.append(column if field == other else column.cast(other.dataType).alias(other.name))
    return df.select(*columns)


def quoted(name: str) -> str:
    """Return `name` in quotes, so that Spark takes it for the name of one column."""
    return f"`{name.replace('`', '``')}`"


def _struct(given: StructType, record: TypeHint, where: str) -> StructType:
    from pyspark.sql.types import StructField, StructType

    hints = dict(record_fields(record) or ())
    spelled = {name.lower(): name for name in hints}
    alike: dict[str, list[str]] = {}
    for field in given:
        alike.setdefault(field.name.lower(), []).append(where + field.name)
    fields: list[StructField] = []
    for field in given:
        low = field.name.lower()
        name = field.name if field.name in hints else spelled.get(low, field.name)
        if low in spelled and len(alike[low]) > 1:
            raise SchemaMismatchError(
                f"{name_of(record)}.{name} may be {' or '.join(alike[low])}: rename one, or set "
                f"{_CASE_SENSITIVE} in the session",
                field=name,
            )
        kind = _kind(field.dataType, hints.get(name), f"{where}{field.name}.")
        fields.append(StructField(name, kind, field.nullable, field.metadata))
    return StructType(fields)


def _kind(given: DataType, hint: TypeHint, where: str) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    inner, _ = unwrapped(hint)
    parts = (*typing.get_args(inner), None, None)
    if isinstance(given, StructType):
        return given if record_fields(inner) is None else _struct(given, inner, where)
    if isinstance(given, ArrayType):
        return ArrayType(_kind(given.elementType, parts[0], where), given.containsNull)
    if isinstance(given, MapType):
        key, value = (
            _kind(one, part, where)
            for one, part in zip((given.keyType, given.valueType), parts, strict=False)
        )
        return MapType(key, value, given.valueContainsNull)
    return given
