"""The code on an executor: one function for ``mapInArrow``, around the stages of a flow."""

from __future__ import annotations

import collections
import itertools
import pickle
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from typing_extensions import override

from flow_spark.channel.abandoned import ended_when
from flow_spark.channel.lifeline import Client, held
from flow_spark.channel.push import Push
from flow_spark.channel.wire import Kind, Target
from flow_spark.errors import ChannelError, SchemaMismatchError
from flow_spark.items.arrow import ArrowBatch, ArrowSchema, pa
from flow_spark.items.columns import BATCH_ROWS, to_batches
from flow_spark.items.rows import RowReader
from flow_spark.items.schema import ItemSchema
from flow_spark.jobs.liveness import failing_at_once, jvm_is_gone
from flow_spark.jobs.ordering import in_partition_order
from flow_spark.jobs.position import Position, Readable, row_place
from flow_spark.pickling.artifacts import find_modules_of_session
from flow_spark.pickling.chunks import FRAME_BYTES, chunks
from flow_spark.pickling.codec import decode
from flow_spark.pickling.failures import dump_error
from flow_spark.pickling.pickles import TaskSender

__all__ = [
    "CHUNK_DDL",
    "CHUNK_SCHEMA",
    "COUNTS_DDL",
    "ChunkReader",
    "LastReader",
    "LoweredTask",
    "PushTask",
    "Reader",
    "RemoteProgram",
    "chunk_row",
    "last_row",
    "no_items",
    "noting",
    "packed",
    "partition_of_task",
    "to_chunk",
    "unpacked",
    "whole",
]

COUNTS_DDL: Final = "partition int, task bigint, rows bigint, batches bigint"
"""The columns of the result of a pushing job: one row for each partition."""

CHUNK_DDL: Final = "kind int, payload binary, checksums binary"
"""The columns of a DataFrame of pickled items: their encoding, the items, and the checksums of the
rows that were read for them."""

CHUNK_SCHEMA: Final[ArrowSchema] = pa.schema(
    [("kind", pa.int32()), ("payload", pa.binary()), ("checksums", pa.binary())]
)

_CHECKSUM: Final = struct.Struct(">I")

_COUNTS: Final[ArrowSchema] = pa.schema(
    [
        ("partition", pa.int32()),
        ("task", pa.int64()),
        ("rows", pa.int64()),
        ("batches", pa.int64()),
    ]
)


class RemoteProgram(Protocol):
    """Stages as one function over the items of a partition; `flow_core.stages.Program` is one."""

    @abstractmethod
    def iterate(self, source: Iterator[Any], /) -> Iterator[Any]:
        """Return the results for the items of `source`."""


class Reader(Readable, Protocol):
    """Converts Arrow batches to items. It can be pickled."""

    __slots__ = ()

    @abstractmethod
    def checksums(self, batch: ArrowBatch, /) -> Iterable[int]:
        """Return values that show whether a retry reads the same batch; none, if it always does."""


@final
@dataclass(frozen=True, slots=True)
class ChunkReader(Reader):
    """Reads items that were pickled by the driver or by another task.

    Attributes:
        needs: objects that have to be unpickled before the items can be unpickled: the classes of
            the items, if a worker could not import them.
    """

    needs: tuple[object, ...] = ()

    @override
    def __call__(self, batch: ArrowBatch, /) -> Iterable[Any]:
        kinds, payloads = batch.column("kind").to_pylist(), batch.column("payload").to_pylist()
        return itertools.chain.from_iterable(map(decode, map(Kind, kinds), payloads))

    @override
    def item(self, batch: ArrowBatch, index: int, /) -> object:
        return next(itertools.islice(self(batch), index, None))

    @override
    def checksums(self, batch: ArrowBatch, /) -> Iterable[int]:
        """Return the checksums of the rows that the items were made from.

        The items themselves, and their number in a chunk, may differ each time.
        """
        return unpacked(batch)


@final
class LastReader(Reader):
    """Reads the results of stages on the cluster, or runs the stages here, over no items.

    The stages run here if no task ran on the cluster: without rows, Spark starts no task, but
    stages may still emit items at the end.

    Args:
        program: the stages.
        needs: see `ChunkReader`.
    """

    __slots__ = ("_needs", "_program", "_ran")

    def __init__(self, program: RemoteProgram, needs: tuple[object, ...]) -> None:
        self._program: Final = program
        self._needs: Final = needs
        self._ran = False

    @override
    def __call__(self, batch: ArrowBatch, /) -> Iterator[Any]:
        """Read a batch; the row of `last_row` comes last."""
        kinds, payloads = batch.column("kind").to_pylist(), batch.column("payload").to_pylist()
        for kind, payload in zip(kinds, payloads, strict=True):
            if kind != Kind.END:
                yield from decode(Kind(kind), payload)
            elif payload == _RAN:
                self._ran = True
            elif not self._ran:
                yield from self._program.iterate(iter(()))

    @override
    def item(self, batch: ArrowBatch, index: int, /) -> object:
        """Return the item; the stages do not run again."""
        raise StopIteration

    @override
    def checksums(self, batch: ArrowBatch, /) -> Iterable[int]:
        """Return the checksums of `batch`, as `ChunkReader` does."""
        return unpacked(batch)

    def __reduce__(self) -> tuple[type[LastReader], tuple[RemoteProgram, tuple[object, ...]]]:
        """Pickle this reader by its arguments."""
        return LastReader, (self._program, self._needs)


_RAN: Final = b"ran"
_NOTHING: Final = pickle.dumps([])


def last_row() -> ArrowBatch:
    """Return the row that comes after all others, for a `LastReader`."""
    return to_chunk(Kind.END, b"last")


def to_chunk(kind: Kind, payload: bytes, checksums: Iterable[int] = ()) -> ArrowBatch:
    """Return one row for a `ChunkReader`; `checksums` are those of rows that were read for it."""
    return pa.record_batch(chunk_row(kind, payload, checksums), schema=CHUNK_SCHEMA)


def chunk_row(kind: Kind, payload: bytes, checksums: Iterable[int]) -> list[list[Any]]:
    """Return the columns of `to_chunk`."""
    return [[int(kind)], [payload], [packed(checksums)]]


def packed(checksums: Iterable[int]) -> bytes:
    """Return `checksums` in the form in which a chunk has them."""
    return b"".join(map(_CHECKSUM.pack, checksums))


def unpacked(batch: ArrowBatch) -> Iterator[int]:
    """Yield the checksums in chunks."""
    for packed in batch.column("checksums").to_pylist():
        for (checksum,) in _CHECKSUM.iter_unpack(packed):
            yield checksum


def no_items() -> ArrowBatch:
    """Return one row for a `ChunkReader` that has no items."""
    return to_chunk(Kind.PICKLE, _NOTHING)


@final
@dataclass(frozen=True, slots=True)
class PushTask:
    """Runs the stages and pushes the results to the driver.

    Attributes:
        reader: the pickled `Reader`.
        program: the pickled `RemoteProgram`; None to send the rows as they are.
        target: where the driver listens.
        branch: the number of the united DataFrame whose rows the task reads.
        branches: how many united DataFrames there are. Spark may read a partition of each in one
            task.
    """

    reader: bytes
    program: bytes | None
    target: Target
    branch: int = 0
    branches: int = 1

    def __call__(self, batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        """Run the function for ``mapInArrow``; yield one batch of one row."""
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            raise ChannelError("this function runs in a Spark task only")
        partition = context.partitionId() * self.branches + self.branch
        task = context.taskAttemptId()
        with (
            failing_at_once(),
            closing(Push(self.target, partition, task)) as push,
            ended_when(push.is_closed),
        ):
            rows, sent = self._run(_Input(batches), push, partition)
        yield pa.record_batch([[partition], [task], [rows], [sent]], schema=_COUNTS)

    def _run(self, batches: _Input, push: Push, partition: int) -> tuple[int, int]:
        try:
            reader: Reader = pickle.loads(self.reader)
            noted = noting(batches, reader, push.has_read)
            if self.program is None and isinstance(reader, RowReader):
                skipped = _push_arrow(noted, reader, push, partition)
            else:
                position = Position(reader, partition)
                items = _items(position, self.program, noted)
                skipped = _push_items(items, push, position)
        except ChannelError:
            raise
        except Exception as error:
            # Errors due to the executor's end say nothing about the flow.
            if not batches.lost:
                push.fail(dump_error(error))
            raise
        return push.end(skipped)


@final
@dataclass(frozen=True, slots=True)
class LoweredTask:
    """Runs the stages and leaves the results on the cluster.

    Attributes:
        reader: the pickled `Reader`.
        program: the pickled `RemoteProgram`; None to leave items as they are.
        schema: the pickled `ItemSchema` of the columns that items become; None for pickled chunks.
        tells: whether a row at the end of the chunks says that this task has run; see `LastReader`.
        client: the process of the flow; see `held`.
    """

    reader: bytes
    program: bytes | None
    schema: bytes | None
    tells: bool = False
    client: Client | None = None

    def __call__(self, batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        """Run the function for ``mapInArrow``; yield the results in chunks or columns."""
        with failing_at_once(), held(self.client):
            yield from self._run(batches)

    def _run(self, batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        find_modules_of_session()
        reader: Reader = pickle.loads(self.reader)
        if self.schema is not None:
            schema: ItemSchema = pickle.loads(self.schema)
            position = Position(reader, partition_of_task())
            items = _items(position, self.program, _Input(batches))
            return _columns(items, schema, position)
        return self._chunks(_Input(batches), reader)

    def _chunks(self, batches: _Input, reader: Reader) -> Iterator[ArrowBatch]:
        checksums: list[int] = []
        position = Position(reader, partition_of_task())
        items = _items(position, self.program, noting(batches, reader, checksums.append))
        for chunk in chunks(items, TaskSender(), position.tell):
            yield to_chunk(chunk.kind, chunk.payload, checksums)
            checksums.clear()
        # Rows that were read after the last item count too: with the last chunk, or after it.
        if self.tells:
            yield to_chunk(Kind.END, _RAN, checksums)
        elif checksums:
            yield to_chunk(Kind.PICKLE, _NOTHING, checksums)


class _InputLostError(Exception):
    """The executor is gone, and the input of this task was cut."""


@final
class _Input:
    """The batches of a partition; `lost` is True if reading them has failed or was cut off."""

    __slots__ = ("_batches", "lost")

    def __init__(self, batches: Iterator[ArrowBatch]) -> None:
        self._batches = batches
        self.lost = False

    def __iter__(self) -> Iterator[ArrowBatch]:
        try:
            yield from self._batches
        except GeneratorExit:
            raise
        except BaseException:
            self.lost = True
            raise
        if jvm_is_gone():
            self.lost = True
            raise _InputLostError("the executor of this task has gone; its input may be cut")


def whole(batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
    """Yield `batches`; fail if they were cut off because the executor is gone."""
    return iter(_Input(batches))


def noting(
    batches: Iterable[ArrowBatch], reader: Reader, note: Callable[[int], object]
) -> Iterator[ArrowBatch]:
    """Yield each of `batches` after passing its checksums to `note`."""
    for batch in batches:
        for checksum in reader.checksums(batch):
            note(checksum)
        yield batch


def partition_of_task() -> int:
    """Return the number of the partition of this thread's task; -1 outside of tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return -1 if context is None else context.partitionId()


def _items(
    position: Position, program: bytes | None, batches: Iterable[ArrowBatch]
) -> Iterator[Any]:
    source = position.items(in_partition_order(batches))
    if program is None:
        return source
    loaded: RemoteProgram = pickle.loads(program)
    return loaded.iterate(source)


def _columns(items: Iterator[Any], schema: ItemSchema, position: Position) -> Iterator[ArrowBatch]:
    try:
        yield from to_batches(items, schema, BATCH_ROWS, tell=position.tell)
    except SchemaMismatchError as error:
        error.add_note(f"in {position.where}")
        raise


def _push_items(items: Iterator[Any], push: Push, position: Position) -> int:
    with position.told():
        skipped = _skip(items, push.skip)
    for chunk in chunks(items, TaskSender(), position.tell):
        push.send(chunk.kind, chunk.rows, chunk.payload)
    return skipped


def _skip(items: Iterator[Any], count: int) -> int:
    """Drop items that earlier attempts have delivered; return how many there were."""
    dropped = itertools.count()
    collections.deque(zip(itertools.islice(items, count), dropped, strict=False), maxlen=0)
    return next(dropped)


def _push_arrow(
    batches: Iterable[ArrowBatch], reader: RowReader, push: Push, partition: int
) -> int:
    """Send Spark's own batches, with the needed columns, cut to a bounded size."""
    skipped = count = 0
    known = False
    for whole in in_partition_order(batches):
        read = batch = whole.select(list(reader.names))
        row = reader.first_null(read)
        if row is not None:
            batch = read.slice(0, row)
        if not known:
            push.send_schema(memoryview(reader.schema_of(batch).serialize()))
            known = True
        if skipped < push.skip:
            start = min(push.skip - skipped, batch.num_rows)
            skipped += start
            batch = batch.slice(start)
        rows = batch.num_rows
        step = max(1, rows * FRAME_BYTES // max(batch.nbytes, 1))
        for start in range(0, rows, step):
            part = batch.slice(start, step)
            push.send(Kind.ARROW, part.num_rows, memoryview(part.serialize()))
        if row is not None:
            error = reader.null_error(read, row)
            error.add_note(row_place(read, row, count + row, f"partition {partition}"))
            raise error
        count += read.num_rows
    return skipped
