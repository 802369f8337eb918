"""What PySpark does with Arrow, with types; its own are incomplete there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast, final

from flow_spark.items.arrow import ArrowBatch, ArrowSchema, ArrowTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "arrow_schema",
    "divided",
    "frame_of",
    "is_connect",
    "map_in_arrow",
    "plan_of",
    "spark_schema",
]

_NUMBER: Final = "__flow_number"

# Any: PySpark's annotations name classes of pyarrow, which has no types.


def is_connect(session: SparkSession) -> bool:
    """Whether `session` is a client of a Spark Connect server; asked without importing that."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def spark_schema(schema: ArrowSchema) -> StructType:
    """`schema` as Spark says it."""
    from pyspark.sql.pandas import types

    made: StructType = cast("Any", types).from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return made


def arrow_schema(schema: StructType) -> ArrowSchema:
    """`schema` as Arrow says it, with timestamps in UTC."""
    from pyspark.sql.pandas import types

    made: ArrowSchema = cast("Any", types).to_arrow_schema(schema, timezone="UTC")
    return made


def map_in_arrow(
    df: DataFrame,
    task: Callable[[Iterator[ArrowBatch]], Iterator[ArrowBatch]],
    schema: StructType | str,
) -> DataFrame:
    """What `task` makes of the batches of each partition of `df`; lazy."""
    names = df.columns
    if any(mark in name for name in names for mark in ".`"):
        # PySpark looks them up by name, and takes what is behind a dot for a field of a struct.
        df = df.toDF(*(f"_{index}" for index in range(len(names))))
        task = _Renaming(task, tuple(names))
    made: DataFrame = cast("Any", df).mapInArrow(task, schema)
    return made


@final
@dataclass(frozen=True, slots=True)
class _Renaming:
    """`task`, for batches whose columns are to have other names."""

    task: Callable[[Iterator[ArrowBatch]], Iterator[ArrowBatch]]
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        names = list(self.names)
        return self.task(batch.rename_columns(names) for batch in batches)


def plan_of(df: DataFrame, *, extended: bool = False) -> str:
    """Spark's plan of `df`, as ``df.explain()`` prints it; `extended` adds the logical plans."""
    frame = cast("Any", df)
    if is_connect(df.sparkSession):
        return str(frame._explain_string(extended=extended))
    execution = frame._jdf.queryExecution()
    return str(execution.toString() if extended else execution.simpleString())


def divided(df: DataFrame, by: int | str) -> DataFrame:
    """`df` in other partitions, each with its rows in the order of `df`.

    Blocks of a shuffle arrive in any order, and a retried task has to read the same rows in the
    same order again: hence they are numbered before, and sorted behind it.

    Args:
        df: the rows; each of its partitions has to give them in one order.
        by: into how many partitions they are divided; or by which column.
    """
    from pyspark.sql import functions as sql

    numbered = df.withColumn(_NUMBER, sql.monotonically_increasing_id())
    order = [by, _NUMBER] if isinstance(by, str) else [_NUMBER]
    return numbered.repartition(by).sortWithinPartitions(*order).drop(_NUMBER)


def frame_of(
    session: SparkSession, table: ArrowTable, schema: StructType | None = None
) -> DataFrame:
    """The rows of `table`; they are sent to Spark at once."""
    made: DataFrame = cast("Any", session).createDataFrame(table, schema=schema)
    return made
