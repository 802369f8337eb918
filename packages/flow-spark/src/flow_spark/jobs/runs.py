"""The results of partitions in runs that are sorted by key, for a merge behind a shuffle.

The stages before a shuffle run over windows of a partition, whose results are bounded. The results
of a window are sorted by a hash of their key, and cut into rows. Spark brings the rows of a bucket
together, sorts them, and spills them where memory is short.
"""

from __future__ import annotations

import array
import itertools
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, final

from flow_spark.channel.lifeline import Client, held
from flow_spark.channel.wire import Kind
from flow_spark.items.arrow import ArrowBatch, ArrowSchema, pa
from flow_spark.items.hashing import stable_hash
from flow_spark.jobs.liveness import failing_at_once
from flow_spark.jobs.position import Position
from flow_spark.jobs.task import (
    CHUNK_DDL,
    CHUNK_SCHEMA,
    Reader,
    RemoteProgram,
    chunk_row,
    noting,
    partition_of_task,
    whole,
)
from flow_spark.pickling.chunks import FRAME_BYTES
from flow_spark.pickling.codec import encode
from flow_spark.pickling.pickles import TaskSender

__all__ = ["BEGIN", "END", "HASHES", "MOST_KEYS", "RUNS_DDL", "RunsTask"]

RUNS_DDL: Final = f"bucket int, low long, hashes binary, {CHUNK_DDL}"
"""The columns of a row: its bucket, the hash of the key of its first item, that of each item, and
the items."""

HASHES: Final = "I"
"""The code of `array.array` for hashes: 32 bits, unsigned."""

BEGIN: Final = -1
"""The ``low`` of a row that comes before all others of a bucket, with checksums."""

END: Final = 2**32
"""The ``low`` of a row that comes behind all others of a bucket."""

MOST_KEYS: Final = 2**17
"""The most keys for which a stage holds something, and the most items of a run."""

_WINDOW_BYTES: Final = 64 * 1024 * 1024
"""The bytes of Arrow's batches in a window, except for the last one."""

_ROW_ITEMS: Final = 256
"""The most items of a row. Behind the shuffle, about one row of each run is held."""

_BATCH_ROWS: Final = 64

_SCHEMA: Final[ArrowSchema] = pa.schema(
    [("bucket", pa.int32()), ("low", pa.int64()), ("hashes", pa.binary()), *CHUNK_SCHEMA]
)

_SPREAD: Final = 0x9E3779B1
"""2**32 divided by the golden ratio: hashes times this are spread evenly over 32 bits, even
consecutive ones or multiples of a number."""

_NOTHING: Final = pickle.dumps([])

# Any: the cells of a row, of several types.
_Row = list[Any]


@final
@dataclass(frozen=True, slots=True)
class RunsTask:
    """Runs stages in a partition, and yields the results in sorted runs.

    Attributes:
        reader: the pickled `Reader`.
        program: the pickled `RemoteProgram`, and the function that returns the key of an item. The
            results for several parts of a partition may take the place of those for the whole.
        buckets: for each bucket, the integer by which Spark puts it in a separate partition.
        client: the process of the flow; see `held`.
    """

    reader: bytes
    program: bytes
    buckets: tuple[int, ...]
    client: Client | None = None

    def __call__(self, batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        """The function for ``mapInArrow``."""
        with failing_at_once(), held(self.client):
            yield from self._run(batches)

    def _run(self, batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        reader: Reader = pickle.loads(self.reader)
        program: RemoteProgram
        by: Callable[[Any], object]  # Any: the results of the stages
        program, by = pickle.loads(self.program)
        checksums: list[int] = []
        position = Position(reader, partition_of_task())
        noted = noting(whole(batches), reader, checksums.append)
        sender, used = TaskSender(), set[int]()
        for run in self._runs(noted, program, position):
            with position.told():
                hashes = [stable_hash(by(item)) * _SPREAD & 0xFFFFFFFF for item in run]
            rows = self._rows(run, hashes, sender, used)
            while part := list(itertools.islice(rows, _BATCH_ROWS)):
                yield _batch(part)
        for bucket in sorted(used):  # in the same order whatever the runs were
            begin = chunk_row(Kind.PICKLE, _NOTHING, checksums)
            end = chunk_row(Kind.PICKLE, _NOTHING, ())
            yield _batch([_row(bucket, BEGIN, b"", begin), _row(bucket, END, b"", end)])

    def _runs(
        self, batches: Iterator[ArrowBatch], program: RemoteProgram, position: Position
    ) -> Iterator[list[Any]]:
        """Yield the results for windows of `batches`, in bounded lists."""
        for first in batches:
            window = itertools.chain((first,), _rest_of_window(first, batches))
            results = program.iterate(position.items(window))
            while True:
                with position.told():
                    run = list(itertools.islice(results, MOST_KEYS))
                if not run:
                    break
                yield run

    def _rows(
        self, run: list[Any], hashes: list[int], sender: TaskSender, used: set[int]
    ) -> Iterator[_Row]:
        """Yield rows of the items of `run`, by their hashes; note their buckets in `used`."""
        many = len(self.buckets)
        order = sorted(range(len(run)), key=hashes.__getitem__)
        start = 0
        while start < len(order):
            number = hashes[order[start]] * many >> 32
            end = min(start + _ROW_ITEMS, len(order))
            while hashes[order[end - 1]] * many >> 32 != number:
                end -= 1
            bucket = self.buckets[number]
            used.add(bucket)
            yield from _rows_of(bucket, order[start:end], run, hashes, sender)
            start = end


def _rest_of_window(first: ArrowBatch, batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
    size = first.nbytes
    while size < _WINDOW_BYTES:
        batch = next(batches, None)
        if batch is None:
            return
        size += batch.nbytes
        yield batch


def _rows_of(
    bucket: int, places: list[int], run: list[Any], hashes: list[int], sender: TaskSender
) -> Iterator[_Row]:
    """Yield the items of `run` at `places` as one row, or as several if they are large."""
    kind, payload = encode([run[place] for place in places], sender)
    if len(payload) > 2 * FRAME_BYTES and len(places) > 1:
        middle = len(places) // 2
        for half in (places[:middle], places[middle:]):
            yield from _rows_of(bucket, half, run, hashes, sender)
        return
    found = array.array(HASHES, [hashes[place] for place in places])
    yield _row(bucket, found[0], found.tobytes(), chunk_row(kind, payload, ()))


def _row(bucket: int, low: int, hashes: bytes, chunk: list[list[Any]]) -> _Row:
    return [bucket, low, hashes, *(cell for [cell] in chunk)]


def _batch(rows: list[_Row]) -> ArrowBatch:
    return pa.record_batch([list(column) for column in zip(*rows, strict=True)], schema=_SCHEMA)
