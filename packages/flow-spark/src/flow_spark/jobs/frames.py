"""PySpark's functions for Arrow, with types; its own are incomplete there."""

from __future__ import annotations

import functools
import inspect
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast, final

from flow_spark.items.arrow import ArrowBatch, ArrowSchema, ArrowTable, pa
from flow_spark.items.kinds import loosened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "alike",
    "arrow_schema",
    "at_most",
    "divided",
    "frame_of",
    "is_connect",
    "is_observed",
    "map_in_arrow",
    "plan_of",
    "release_of",
    "size_of",
    "spark_schema",
    "table_of",
    "without_lengths",
]

_NUMBER: Final = "__flow_number"
_PACKED: Final = "__flow_batch"
_LENGTHS: Final = "__CHAR_VARCHAR_TYPE_STRING"

# Any: PySpark's annotations name classes of pyarrow, which has no types.


def is_connect(session: SparkSession) -> bool:
    """Return whether `session` is a client of a Spark Connect server; import nothing for that."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def release_of(version: str) -> tuple[int, ...]:
    """Return the minor release of a version, such as (4, 3) of 4.3.0."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def spark_schema(schema: ArrowSchema) -> StructType:
    """Return `schema` as a schema of Spark."""
    from pyspark.sql.pandas import types

    made: StructType = cast("Any", types).from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return made


def arrow_schema(schema: StructType) -> ArrowSchema:
    """Return `schema` as a schema of Arrow, with timestamps in UTC."""
    from pyspark.sql.pandas import types

    make = cast("Any", types).to_arrow_schema
    made: ArrowSchema = make(schema, **_of_utc(make))
    return made


@functools.cache
def _of_utc(make: Callable[..., object]) -> Mapping[str, str]:
    """Return the argument that tells `make` that times are in UTC.

    Before PySpark 4.2, times were always in UTC.
    """
    return {"timezone": "UTC"} if "timezone" in inspect.signature(make).parameters else {}


def without_lengths(schema: StructType) -> StructType:
    """Return `schema` with strings for ``char`` and ``varchar``, which functions may not return.

    The metadata of a column has the original type, as for a column of a table.
    """
    from pyspark.sql.types import StructField, StructType

    fields: list[StructField] = []
    for field in schema:
        kind, metadata = _replaced(field.dataType, _string_of), dict(field.metadata)
        if kind is not field.dataType:
            metadata[_LENGTHS] = _replaced(field.dataType, _inside_of).simpleString()
        fields.append(StructField(field.name, kind, field.nullable, metadata))
    return StructType(fields)


def _string_of(kind: DataType) -> DataType | None:
    from pyspark.sql.types import CharType, StringType, VarcharType

    return StringType() if isinstance(kind, (CharType, VarcharType)) else None


def _inside_of(kind: DataType) -> DataType | None:
    from pyspark.sql.types import UserDefinedType

    return kind.sqlType() if isinstance(kind, UserDefinedType) else None


def _replaced(kind: DataType, other: Callable[[DataType], DataType | None]) -> DataType:
    """Return `kind`, with `kind` or the types in it replaced by the results of `other`.

    A type for which `other` returns None stays as it is.
    """
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    found = other(kind)
    if found is not None:
        return found
    made = kind
    if isinstance(kind, ArrayType):
        made = ArrayType(_replaced(kind.elementType, other), kind.containsNull)
    elif isinstance(kind, MapType):
        key, value = (_replaced(part, other) for part in (kind.keyType, kind.valueType))
        made = MapType(key, value, kind.valueContainsNull)
    elif isinstance(kind, StructType):
        made = StructType(
            [
                StructField(f.name, _replaced(f.dataType, other), f.nullable, f.metadata)
                for f in kind
            ]
        )
    return kind if made == kind else made


def alike(names: Sequence[str]) -> bool:
    """Return whether some of `names` differ in case only: then Spark may not know them apart."""
    return len({name.lower() for name in names}) < len(names)


def map_in_arrow(
    df: DataFrame,
    task: Callable[[Iterator[ArrowBatch]], Iterator[ArrowBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Return a lazy DataFrame: the results of `task` for the batches of each partition of `df`."""
    names = df.columns
    if alike(names) or any(mark in name for name in names for mark in ".`"):
        # PySpark looks them up by name, and takes what is behind a dot for a field of a struct.
        df = df.toDF(*(f"_{index}" for index in range(len(names))))
        task = _Renaming(task, tuple(names))
    made: DataFrame = cast("Any", df).mapInArrow(task, schema)
    return made


@final
@dataclass(frozen=True, slots=True)
class _Renaming:
    """`task`, for batches whose columns get other names."""

    task: Callable[[Iterator[ArrowBatch]], Iterator[ArrowBatch]]
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        names = list(self.names)
        return self.task(batch.rename_columns(names) for batch in batches)


def plan_of(df: DataFrame, *, extended: bool = False) -> str:
    """Return Spark's plan of `df`, as ``df.explain()`` prints it.

    `extended` adds the logical plans.
    """
    frame = cast("Any", df)
    if is_connect(df.sparkSession):
        return str(frame._explain_string(extended=extended))
    execution = frame._jdf.queryExecution()
    return str(execution.toString() if extended else execution.simpleString())


def size_of(df: DataFrame) -> int | None:
    """Return about how many bytes Spark expects the rows of `df` to have.

    None if it cannot say, as through Spark Connect.
    """
    if is_connect(df.sparkSession):
        return None
    statistics = cast("Any", df)._jdf.queryExecution().optimizedPlan().stats()  # a proxy of py4j
    return int(str(statistics.sizeInBytes()))


def is_observed(df: DataFrame) -> bool:
    """Return whether `df` has observations: only a query that runs as a whole reports them."""
    return not cast("Any", df)._jdf.queryExecution().observedMetrics().isEmpty()


def divided(df: DataFrame, by: int | str, *order: str) -> DataFrame:
    """Repartition `df`; a retried task finds the rows of a partition in the same order.

    Blocks of a shuffle arrive in any order. So the rows are numbered before the shuffle, and sorted
    by this number after it.

    Args:
        df: the rows; each partition must have the same rows in the same order every time.
        by: into how many partitions they are divided; or the column by which they are divided.
        order: columns by which the rows are sorted first.
    """
    from pyspark.sql import functions as sql

    numbered = df.withColumn(_NUMBER, sql.monotonically_increasing_id())
    return numbered.repartition(by).sortWithinPartitions(*order, _NUMBER).drop(_NUMBER)


def at_most(df: DataFrame, count: int) -> DataFrame:
    """Return at most `count` rows of `df`, in order; Spark's own limit takes any rows."""
    from pyspark.sql import functions as sql

    numbered = df.withColumn(_NUMBER, sql.monotonically_increasing_id())
    return numbered.limit(count).sortWithinPartitions(_NUMBER).drop(_NUMBER)


def table_of(df: DataFrame) -> ArrowTable:
    """Run a job that brings all rows of `df` here, in their order, with timestamps in UTC."""
    frame, given = cast("Any", df), arrow_schema(df.schema)
    schema = pa.schema([loosened(field) for field in given])
    if schema == given:
        table: ArrowTable = frame.toArrow()
        return table
    # PySpark refuses a struct that is missing, such as a Variant, if a field of it never is.
    packed: Any = cast("Any", map_in_arrow(df, _packed, f"{_PACKED} binary")).toArrow()
    streams = (io.BytesIO(part.as_py()) for part in packed.column(0))
    batches = [batch for stream in streams for batch in pa.ipc.open_stream(stream)]
    found = batches[0].schema if batches else schema
    return pa.Table.from_batches(batches, found).cast(schema)


def _packed(batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
    for batch in batches:
        stream = io.BytesIO()
        writer = pa.ipc.new_stream(stream, batch.schema)
        writer.write_batch(batch)
        writer.close()
        schema = pa.schema([(_PACKED, pa.binary())])
        yield pa.record_batch([[stream.getvalue()]], schema=schema)


def frame_of(
    session: SparkSession, table: ArrowTable, schema: StructType | None = None
) -> DataFrame:
    """Return the rows of `table` as a DataFrame; they are sent to Spark at once."""
    plain = schema if schema is None else _replaced(schema, _inside_of)
    made: DataFrame = cast("Any", session).createDataFrame(table, schema=plain)
    # PySpark only makes values of user-defined types from Arrow behind a function.
    return made if schema is None or plain is schema else map_in_arrow(made, _as_they_are, schema)


def _as_they_are(batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
    return batches
