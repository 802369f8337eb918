"""`batch_writer`: a sink for `write_each` that writes files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from flow_spark.streams.write_each import BatchSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["batch_writer"]


def batch_writer(
    format: str,  # noqa: A002 - as in Spark's DataFrameWriter
    path: str | os.PathLike[str],
    *,
    partition_by: str | Iterable[str] = (),
    options: Mapping[str, str | int | float | bool] | None = None,
) -> BatchSink:
    """A sink for `write_each` that writes files, each micro-batch exactly once.

    Each micro-batch has its own folder, ``path/batch_id=N``, which is overwritten if Spark runs the
    micro-batch again. Spark reads `path` as one table, with a column ``batch_id``.

    Args:
        format: ``"parquet"``, ``"csv"``, ``"json"``, ``"orc"`` or any other format of Spark.
        path: a folder on any file system that Spark reaches.
        partition_by: the columns whose values become folders.
        options: options of the format, such as ``{"header": True}``.
    """
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    return _BatchWriter(format, os.fspath(path).rstrip("/"), columns, dict(options or {}))


@final
@dataclass(frozen=True, slots=True)
class _BatchWriter:
    format: str
    path: str
    partition_by: tuple[str, ...]
    options: Mapping[str, str | int | float | bool]

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        writer = df.write.format(self.format).mode("overwrite").options(**self.options)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(f"{self.path}/batch_id={batch_id}")
