"""The results of partitions brought together by a key, so that combining them is divided, too."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from typing_extensions import override

from flow_core.stages import Program
from flow_spark.channel.lifeline import Client, held
from flow_spark.items.arrow import ArrowBatch, ArrowSchema, pa
from flow_spark.items.hashing import partition_values, stable_hash
from flow_spark.jobs.cluster import cluster_of
from flow_spark.jobs.frames import divided
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.job import STAGES, PushedJob
from flow_spark.jobs.liveness import failing_at_once
from flow_spark.jobs.origin import Job, Opened, Origin
from flow_spark.jobs.position import Position
from flow_spark.jobs.task import (
    CHUNK_DDL,
    CHUNK_SCHEMA,
    ChunkReader,
    Reader,
    RemoteProgram,
    chunk_row,
    noting,
    partition_of_task,
    whole,
)
from flow_spark.pickling.chunks import chunks
from flow_spark.pickling.pickles import TaskSender, dumps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ShuffledOrigin"]

_DDL: Final = f"bucket int, {CHUNK_DDL}"
_SCHEMA: Final[ArrowSchema] = pa.schema([("bucket", pa.int32()), *CHUNK_SCHEMA])
_MOST_WAITING: Final = 1024
"""The most items that wait for more items of their bucket: together they make pickles that are not
too small."""

_MOST: Final = 4096
"""The number of buckets, at most. In each task, items wait for each bucket."""

_SPREAD: Final = 0x9E3779B1
"""2**32 divided by the golden ratio: hashes times this are spread evenly over 32 bits, even
consecutive ones or multiples of a number."""


@final
@dataclass(frozen=True, slots=True)
class ShuffleTask:
    """Runs stages in a partition, and divides the results into buckets by a key.

    Attributes:
        reader: the pickled `Reader`.
        program: the pickled `RemoteProgram`, and the function that returns the key of an item.
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
        read: dict[int, int] = {}
        noted = noting(whole(batches), reader, checksums.append)
        position = Position(reader, partition_of_task())
        divided = self._divided(program.iterate(position.items(noted)), by, position)
        for bucket, items in divided:
            new = checksums[read.get(bucket, 0) :]
            read[bucket] = len(checksums)
            for chunk in chunks(iter(items), TaskSender()):
                yield pa.record_batch(
                    [[bucket], *chunk_row(chunk.kind, chunk.payload, new)], schema=_SCHEMA
                )
                new = []

    def _divided(
        self, items: Iterable[Any], by: Callable[[Any], object], position: Position
    ) -> Iterator[tuple[int, list[Any]]]:
        waiting: dict[int, list[Any]] = {}
        buckets = self.buckets
        many = len(buckets)
        try:
            for item in items:
                spread = stable_hash(by(item)) * _SPREAD & 0xFFFFFFFF
                bucket = buckets[spread * many >> 32]
                found = waiting.setdefault(bucket, [])
                found.append(item)
                if len(found) == _MOST_WAITING:
                    yield bucket, waiting.pop(bucket)
        except Exception as error:
            position.tell(error)
            raise
        yield from waiting.items()


@final
class ShuffledOrigin(Origin):
    """The results of stages for other rows, in partitions where all results of a key have met.

    Args:
        origin: the rows.
        program: the stages that run before.
        by: returns the key of a result.

    Raises:
        NotPicklableError: if the stages cannot be sent to the cluster.
    """

    __slots__ = ("_before", "_origin", "_pickled", "_program")

    def __init__(
        self, origin: Origin, program: Program[Any, Any], by: Callable[[Any], object]
    ) -> None:
        self._origin: Final = origin
        self._program: Final = program
        self._pickled: Final = dumps((program, by), STAGES)

    @property
    @override
    def session(self) -> SparkSession:
        return self._origin.session

    @override
    def repeats(self) -> bool:
        return self._origin.repeats()

    @property
    @override
    def ordered(self) -> bool:
        return False

    @property
    @override
    def as_(self) -> object:
        return None

    @property
    @override
    def item_type(self) -> object:
        return None

    @property
    @override
    def ways_out(self) -> str:
        return "sort() puts what there is in order"

    @property
    @override
    def lazy(self) -> bool:
        return self._origin.lazy

    @contextmanager
    @override
    def opened(self, stop: Stop, *, resumed: bool = False) -> Generator[Opened | None, None, None]:
        with self._origin.opened(stop, resumed=resumed) as opened:
            yield None if opened is None else self._shuffled(opened)

    @override
    def kept(self) -> Opened:
        return self._shuffled(self._origin.kept())

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        return PushedJob(self, program, name)

    def _shuffled(self, opened: Opened) -> Opened:
        buckets = partition_values(_partitions_behind_a_shuffle(self.session))[:_MOST]
        client = cluster_of(self.session).client()

        def task(reader: Reader, _branch: int, _branches: int) -> ShuffleTask:
            pickled = dumps(reader, "the class that rows are made into")
            return ShuffleTask(pickled, self._pickled, buckets, client)

        df = opened.mapped(task, _DDL)
        # Spark decides the number of partitions when it knows the size.
        df = divided(df, "bucket")
        needs = (self._program, *opened.readers)
        return Opened(df.drop("bucket"), ChunkReader(needs))

    def __repr__(self) -> str:
        return f"what a shuffle by key gives of {self._origin!r}"


def _partitions_behind_a_shuffle(session: SparkSession) -> int:
    """Return how many partitions Spark makes, before it joins small ones."""

    def setting(name: str, default: str) -> str:
        return str(session.conf.get(f"spark.sql.{name}", default)).lower()

    many = setting("shuffle.partitions", "200")
    joins = ("adaptive.enabled", "adaptive.coalescePartitions.enabled")
    if all(setting(name, "true") == "true" for name in joins):
        many = setting("adaptive.coalescePartitions.initialPartitionNum", many)
    return int(many)
