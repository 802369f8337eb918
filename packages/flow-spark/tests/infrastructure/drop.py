"""A stream whose micro-batches are files that tests put into a folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Drop", "committed_in"]

_BEGUN: Final = time.time() - 3600


@final
class Drop:
    """A folder whose files are the micro-batches of a stream, one each.

    Args:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._count = 0

    def put(self, numbers: Iterable[int]) -> None:
        """Add a file, all at once."""
        part = self.folder / f".{self._count}"
        part.write_text("\n".join(json.dumps({"n": number}) for number in numbers))
        written = _BEGUN + self._count  # Spark takes the oldest first, by the second
        os.utime(part, (written, written))
        part.rename(self.folder / f"{self._count:04}.json")
        self._count += 1

    def stream(self, spark: SparkSession, schema: str = "n long") -> DataFrame:
        """The rows as a streaming DataFrame."""
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder))


def committed_in(checkpoint: Path) -> set[int]:
    """The micro-batches that a checkpoint says are done."""
    return {int(file.name) for file in (checkpoint / "commits").glob("[0-9]*")}
