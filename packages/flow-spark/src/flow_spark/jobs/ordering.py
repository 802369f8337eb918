"""The rows of a DataFrame in their order, read by one task."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Final, final

from flow_spark.errors import SparkJobError
from flow_spark.items.arrow import ArrowBatch, ArrowSchema, pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["in_one_partition", "in_partition_order"]

_NUMBER: Final = "__flow_partition"


def in_one_partition(df: DataFrame) -> DataFrame:
    """All rows as one partition, for a task that reads them by `in_partition_order`.

    ``coalesce`` joins partitions in their order, but for one: it begins with the first that some
    machine has close by, as it may be cached or shuffled. So each row says where it comes from.
    """
    from pyspark.sql import functions as sql

    return df.withColumn(_NUMBER, sql.spark_partition_id()).coalesce(1)


def in_partition_order(batches: Iterable[ArrowBatch]) -> Iterator[ArrowBatch]:
    """Those of `in_one_partition` in the order of the DataFrame; any others as they come.

    Nothing waits here but a first partition that has been taken before its turn, or that is not
    known to be the first one; it waits in a file.

    Raises:
        SparkJobError: if more is out of order than Spark is known to do.
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
    """The rows of each partition, with its number; partitions do not come twice."""
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
        """Put rows behind the others."""
        self._writer.write_batch(part)

    def taken(self) -> Iterator[ArrowBatch]:
        """All rows."""
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)
