"""The arguments of Spark's own writer of files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, final

from flow_spark.jobs.run import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Destination", "Mode", "Path"]

Path = str | os.PathLike[str]

Mode = Literal["error", "append", "overwrite", "ignore"]


@final
class Destination:
    """The arguments of Spark's own writer."""

    __slots__ = ("_format", "_mode", "_options", "_partition_by", "_path")

    def __init__(
        self,
        format: str,  # noqa: A002 - as in `write`
        path: Path,
        mode: Mode,
        partition_by: str | Iterable[str],
        options: Mapping[str, str | int | float | bool] | None,
    ) -> None:
        if mode not in {"error", "append", "overwrite", "ignore"}:
            raise ValueError(f"mode is 'error', 'append', 'overwrite' or 'ignore', not {mode!r}")
        self._format: Final = format
        self._path: Final = os.fspath(path)
        self._mode: Final = mode
        self._partition_by: Final = (
            (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
        )
        self._options: Final = dict(options or {})

    def save(self, df: DataFrame) -> None:
        writer = df.write.format(self._format).mode(self._mode).options(**self._options)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        run(df.sparkSession, "write", lambda: writer.save(self._path))
