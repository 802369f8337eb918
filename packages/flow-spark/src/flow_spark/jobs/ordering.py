"""The order in which tasks read the rows of a DataFrame."""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final, cast, final

from flow_spark.errors import SparkJobError
from flow_spark.items.arrow import ArrowBatch, ArrowSchema, pa
from flow_spark.items.spelling import quoted
from flow_spark.jobs.frames import is_connect, plan_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["in_one_partition", "in_partition_order", "in_repeatable_order", "repeats"]

_NUMBER: Final = "__flow_partition"
_HASH: Final = "__flow_hash"

_SHUFFLE: Final = re.compile(r"^[^\w\n]*(?:\d+\) *)?(?!\w*Broadcast)\w*Exchange", re.MULTILINE)
"""The line of a physical plan for a step that moves rows from task to task."""

_STEP: Final = re.compile(r"\s*(?:\+- )?['!]?(\w+)")
"""The line of a logical plan for a step with at most one child; the group is the name of the
step."""

_KEEP_ORDER: Final = frozenset(
    {
        "CollectMetrics",
        "Filter",
        "GlobalLimit",
        "LocalLimit",
        "MapInArrow",
        "MapInPandas",
        "Offset",
        "Project",
        "ResolvedHint",
        "SubqueryAlias",
        "View",
    }
)
"""Logical steps that return rows in the order in which they read them."""

_CHOOSE_BY_ORDER: Final = frozenset({"GlobalLimit", "Offset", "Sample", "Tail"})
"""Logical steps that return other rows if they read the same rows in another order."""

_AGGREGATE_BY_ORDER: Final = re.compile(
    r"\baggregate\.(?:Collect\w+|First|Last|ListAgg|MaxBy|MinBy|Mode)\b"
)
"""Functions over many rows whose result depends on the order of the rows, by their classes."""

_NOT_HASHED: Final = frozenset({"geography", "geometry", "map", "variant"})
"""Types that Spark cannot hash."""


def in_repeatable_order(df: DataFrame) -> DataFrame:
    """Return `df` with the rows of each partition in an order that a retried task finds again.

    Blocks of a shuffle arrive in any order. So where the plan has a shuffle, the rows are sorted by
    a hash of their values: equal rows are interchangeable. Rows that `df` itself sorts keep its
    order.
    """
    plan = plan_of(df, extended=True)
    physical = plan.rpartition("== Physical Plan ==")[2]
    if _SHUFFLE.search(physical) is None or _is_sorted(plan):
        return df
    fields = [_hashable(field.name, field.dataType) for field in df.schema]
    values = [value for value in fields if value is not None]
    if not values:
        return df
    from pyspark.sql import functions as sql

    hashed = df.withColumn(_HASH, sql.xxhash64(*values))
    return hashed.sortWithinPartitions(_HASH).drop(_HASH)


def _is_sorted(plan: str) -> bool:
    """Return whether the rows come in an order that the user has asked for."""
    analyzed = plan.partition("== Analyzed Logical Plan ==")[2].partition("\n==")[0]
    return _begins_sorted(analyzed.strip().splitlines()[1:])  # the first one names the columns


def _begins_sorted(lines: list[str]) -> bool:
    """Return whether the lines of a logical plan sort the rows; see `_is_sorted`."""
    for line in lines:
        step = _STEP.match(line)
        if step is None or step[1] not in _KEEP_ORDER:
            return step is not None and step[1] == "Sort"
    return False


def repeats(df: DataFrame) -> bool:
    """Return whether `df` has the same rows when it is computed again, as far as its plan shows.

    The plan does not show what Python functions do, nor whether files change. A client of Spark
    Connect has no plan.
    """
    if is_connect(df.sparkSession):
        return False
    plan = cast("Any", df)._jdf.queryExecution().optimizedPlan()  # Any: a proxy of py4j
    if not plan.deterministic() or _AGGREGATE_BY_ORDER.search(str(plan.toJSON())):
        return False
    lines = str(plan.treeString()).splitlines()
    return all(
        _begins_sorted(lines[index + 1 :])
        for index, line in enumerate(lines)
        if (step := _STEP.search(line)) is not None and step[1] in _CHOOSE_BY_ORDER
    )


def _hashable(name: str, kind: DataType) -> Column | None:
    """Return the part of a column that Spark can hash; None if it cannot hash this type."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import MapType

    column = sql.col(quoted(name))
    if isinstance(kind, MapType):
        parts = _is_hashable(kind.keyType) and _is_hashable(kind.valueType)
        return sql.map_entries(column) if parts else None
    return column if _is_hashable(kind) else None


def _is_hashable(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, StructType, UserDefinedType

    if isinstance(kind, StructType):
        return all(_is_hashable(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _is_hashable(kind.elementType)
    if isinstance(kind, UserDefinedType):
        return _is_hashable(kind.sqlType())
    return kind.typeName() not in _NOT_HASHED


def in_one_partition(df: DataFrame) -> DataFrame:
    """Return all rows as one partition, for a task that reads them by `in_partition_order`.

    ``coalesce`` joins partitions in their order, except one: it begins with the first partition
    that some machine has close by, such as a cached or shuffled one. So each row gets the number of
    its partition.
    """
    from pyspark.sql import functions as sql

    return df.withColumn(_NUMBER, sql.spark_partition_id()).coalesce(1)


def in_partition_order(batches: Iterable[ArrowBatch]) -> Iterator[ArrowBatch]:
    """Yield the rows of `in_one_partition` in the DataFrame's order; other rows as they come.

    Only the first partition to come has to wait, if it came before its turn, or is not known to be
    the first one; it waits in a file.

    Raises:
        SparkJobError: if more partitions are out of order than Spark is known to cause.
    """
    held: _Held | None = None
    last = -1
    with contextlib.ExitStack() as files:
        for batch in batches:
            if list(batch.schema.names)[-1:] != [_NUMBER]:
                yield batch
                continue
            for number, part in _by_partition(batch):
                if last < 0 < number and held is None:
                    file = files.enter_context(tempfile.TemporaryFile(prefix="flow-spark-"))
                    held = _Held(number, file, part.schema)
                if held is not None and number >= held.number:
                    if number == held.number:
                        held.add(part)
                        continue
                    yield from held.taken()
                    last, held = held.number, None
                if number < last:
                    raise SparkJobError(
                        f"from_dataframe(ordered=True): Spark gives partition {number} after {last}"
                        ". Sort the rows in one partition instead: "
                        "df.coalesce(1).sortWithinPartitions(...)"
                    )
                last = number
                yield part
        if held is not None:
            yield from held.taken()


def _by_partition(batch: ArrowBatch) -> Iterator[tuple[int, ArrowBatch]]:
    """Yield the rows of each partition, with its number; no partition comes twice."""
    numbers = batch.column(_NUMBER)
    found = numbers.unique().to_pylist()
    if len(found) == 1:
        yield found[0], batch
        return
    start = 0
    for number, rows in itertools.groupby(numbers.to_pylist()):
        count = len(list(rows))
        yield number, batch.slice(start, count)
        start += count


@final
class _Held:
    """The rows of one partition, in a file."""

    __slots__ = ("_file", "_writer", "number")

    def __init__(self, number: int, file: IO[bytes], schema: ArrowSchema) -> None:
        self.number: Final = number
        self._file: Final = file
        self._writer: Final = pa.ipc.new_stream(file, schema)

    def add(self, part: ArrowBatch) -> None:
        """Append rows."""
        self._writer.write_batch(part)

    def taken(self) -> Iterator[ArrowBatch]:
        """Yield all rows."""
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)
