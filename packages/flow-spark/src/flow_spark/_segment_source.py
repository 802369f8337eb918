"""The spool of a flow as a streaming source of Spark.

It runs in Python workers, not in the driver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from typing_extensions import override

from flow_spark._segments import Lock, Segments, read_segment
from flow_spark.errors import SparkJobError, SpoolError
from flow_spark.items.arrow import pa
from flow_spark.jobs.frames import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["FORMAT", "SegmentSource", "options"]

FORMAT: Final = "flow-spool"

_PATIENCE_S: Final = 5.0
_IDLE_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.02

# Any: PySpark's annotations say dict, without the types in it.
_Offset = dict[str, Any]


def options(folder: Path, batch_segments: int, tasks: int) -> dict[str, str]:
    """Return the options of the source.

    Args:
        folder: the spool.
        batch_segments: how many segments a micro-batch may have.
        tasks: how many tasks may read a micro-batch.
    """
    return {
        "spool": str(folder),
        "batch_segments": str(batch_segments),
        "tasks": str(tasks),
    }


@final
class SegmentSource(DataSource):
    """The source with the name `FORMAT`.

    The folder of the spool is in `options`, and its columns are the reader's schema.
    """

    @classmethod
    @override
    def name(cls) -> str:
        return FORMAT

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        given = self.options
        return _SegmentReader(
            Segments(Path(given["spool"])),
            int(given["batch_segments"]),
            int(given["tasks"]),
            schema,
        )


@final
class _Files(InputPartition):
    """The segments of one task."""

    def __init__(self, files: list[str]) -> None:
        self.files: Final = files


@final
class _SegmentReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads segments of a spool. An offset is a segment's number, and the id of the spool."""

    def __init__(
        self, segments: Segments, batch_segments: int, tasks: int, schema: StructType
    ) -> None:
        self._segments: Final = segments
        self._batch: Final = batch_segments
        self._tasks: Final = tasks
        self._schema: Final = arrow_schema(schema)
        self._to_the_end = False
        self._lock: Lock | None = None

    def __getstate__(self) -> dict[str, Any]:  # Any: the types of the attributes
        """Leave the lock out: tasks get this, too."""
        return {**vars(self), "_lock": None}

    @override
    def initialOffset(self) -> _Offset:
        self._own()
        return self._offset(self._segments.begin().segment)

    @override
    def latestOffset(self, start: _Offset, limit: ReadLimit) -> _Offset:
        self._own()
        begin = self._number(start)
        end = self._segments.end().segment
        if begin > end:
            raise SpoolError(
                f"the checkpoint is at segment {begin}, and the spool {self._segments.folder} ends "
                f"before segment {end}: it was emptied. Begin again with an empty checkpoint"
            )
        if end == begin:
            end = self._more(begin)
        if not isinstance(limit, ReadAllAvailable):
            end = min(end, begin + self._batch)
        self._segments.plan(end)
        return self._offset(end)

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._batch)

    @override
    def prepareForTriggerAvailableNow(self) -> None:
        """Note that everything that the flow has given so far is available now."""
        self._to_the_end = True

    @override
    def partitions(self, start: _Offset, end: _Offset) -> Sequence[InputPartition]:
        self._own()
        first, last = self._number(start), self._number(end)
        folder = self._segments.folder
        files = [str(folder / segment.name) for segment in self._segments.between(first, last)]
        size = -(-len(files) // self._tasks) or 1
        return [_Files(files[at : at + size]) for at in range(0, len(files), size)]

    @override
    def read(self, partition: InputPartition) -> Iterator[Any]:  # Any: batches of pyarrow
        if not isinstance(partition, _Files):
            raise TypeError(f"{partition!r} is of another source")
        for file in partition.files:
            if not Path(file).exists():
                raise SpoolError(
                    f"there is no {file} on this executor. The driver and all executors have to "
                    "see the spool at the same path: put it on a file system that they share"
                )
            for batch in read_segment(file):
                # With Spark's schema, in which columns may have become nullable.
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)

    @override
    def commit(self, end: _Offset) -> None:
        """Remove what was consumed: so there is room for more."""
        self._segments.commit(self._number(end))

    @override
    def stop(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _own(self) -> None:
        """Make this the only query that reads the spool: two would take each other's items."""
        if self._lock is not None:
            return
        lock = self._segments.reader
        _ = self._segments.id
        if not lock.acquire(_PATIENCE_S):
            raise SpoolError(
                f"another query reads the spool {self._segments.folder}. Each of its items goes to "
                "one query: give several consumers one query (write_each, or publish() of "
                "flow-multicast), or the flow several spools"
            )
        self._lock = lock

    def _more(self, begin: int) -> int:
        """Return the end of the next micro-batch, if all segments so far were planned already.

        If the flow has failed, this raises its error.
        """
        deadline = time.monotonic() + _IDLE_S
        while True:
            outcome = self._segments.outcome()
            end = self._segments.end().segment  # after the outcome: no segment follows it
            if end > begin:
                return end
            if outcome is not None and outcome.error is not None:
                raise SparkJobError(f"the flow that feeds this stream failed: {outcome.error}")
            if outcome is not None or not self._to_the_end or time.monotonic() > deadline:
                return begin
            time.sleep(_LOOK_EVERY_S)

    def _offset(self, segment: int) -> _Offset:
        return {"spool": self._segments.id, "segment": segment}

    def _number(self, offset: _Offset) -> int:
        if offset["spool"] != self._segments.id:
            raise SpoolError(
                f"the checkpoint belongs to another spool than the one at {self._segments.folder}: "
                "each spool needs its own checkpoint. Begin again with an empty one"
            )
        return int(offset["segment"])
