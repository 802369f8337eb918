"""The origin of the rows of a Spark job: a DataFrame, a range, or items of the driver."""

from __future__ import annotations

import functools
import itertools
import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, final

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.sources import RangeSource
from flow_core.stages import Stage, close_iterator
from flow_core.structure import source_of, stages_of
from flow_spark._spool import (
    Spool,
    parquet_writer,
    private_folder,
    remove_folder,
    shares_disk,
    spooled,
)
from flow_spark.errors import UnsupportedTypeError
from flow_spark.items.arrow import ArrowBatch
from flow_spark.items.fitting import check_fit
from flow_spark.items.rows import RowReader
from flow_spark.items.schema import ItemSchema
from flow_spark.items.spelling import quoted, respelled
from flow_spark.jobs.cluster import cluster_of
from flow_spark.jobs.direct import Direct, DirectJob, direct, few_rows
from flow_spark.jobs.frames import alike, divided, map_in_arrow
from flow_spark.jobs.intake import Stop, taken
from flow_spark.jobs.job import PushedJob
from flow_spark.jobs.ordering import in_one_partition, in_repeatable_order, repeats
from flow_spark.jobs.task import (
    CHUNK_DDL,
    CHUNK_SCHEMA,
    ChunkReader,
    Reader,
    RemoteProgram,
    no_items,
    to_chunk,
)
from flow_spark.narrowing.narrowed import Narrowed, narrowed
from flow_spark.pickling.chunks import chunks
from flow_spark.pickling.pickles import ItemSender

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["FlowOrigin", "FrameOrigin", "FrameRows", "Job", "Opened", "Origin", "Runs", "readable"]

_WIDE: Final = 10
"""With that many columns, tuples of all of them cost several times the time of a few."""

_LARGEST_ID: Final = 2**63 - 1

_NAME_ONE: Final = (
    "Name one: on_spark(session, spool='/shared/folder') (which this process and all executors see "
    "under this path), or spool='hdfs://…', 's3a://…' or the like; `flow run` takes it as --spool. "
    "Or let Spark itself read what the flow reads"
)


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """Rows that a job can read.

    Attributes:
        df: the rows.
        reader: converts the rows to items.
        others: more rows, which the same job reads, each with a separate reader.
        ordered: whether the rows have to be read in the order of `df`, by one task.
    """

    df: DataFrame
    reader: Reader
    others: tuple[Opened, ...] = ()
    ordered: bool = False

    @property
    def readers(self) -> tuple[Reader, ...]:
        """All readers."""
        return (self.reader, *(reader for other in self.others for reader in other.readers))

    def mapped(
        self,
        make: Callable[[Reader, int, int], Callable[[Iterator[ArrowBatch]], Iterator[ArrowBatch]]],
        schema: StructType | str,
    ) -> DataFrame:
        """Return the results of ``mapInArrow`` for all rows, as one lazy DataFrame.

        Args:
            make: returns the function to map; called with a reader, its index, and the number of
                readers.
            schema: the schema of the results.
        """
        all_ = (self, *self.others)
        mapped = [
            map_in_arrow(
                in_one_partition(opened.df) if opened.ordered else opened.df,
                make(opened.reader, number, len(all_)),
                schema,
            )
            for number, opened in enumerate(all_)
        ]
        return functools.reduce(lambda left, right: left.union(right), mapped)


class Job(Protocol):
    """A run on Spark, and its items."""

    @abstractmethod
    def __iter__(self) -> Iterator[Iterable[Any]]:  # Any: items of any type
        """Yield lists (or other iterables) of items.

        Iterating starts the run; leaving the iteration early ends the run.
        """

    @abstractmethod
    def cancel(self) -> None:
        """End the run. Idempotent, returns at once, callable from any thread."""


class Runs(Protocol):
    """Makes a job from stages."""

    __slots__ = ()

    @abstractmethod
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        """Return a job that brings the results of `program` to the driver.

        If `program` is None, the job brings the rows as they are.

        Raises:
            NotPicklableError: if the stages cannot be sent to the cluster.
        """


class Origin(Runs, Protocol):
    """The origin of the rows of a job."""

    __slots__ = ()

    @property
    @abstractmethod
    def session(self) -> SparkSession:
        """The session that the job runs in."""

    @abstractmethod
    def repeats(self) -> bool:
        """True if reading again gives the same rows, as far as Spark knows."""

    @property
    @abstractmethod
    def ordered(self) -> bool:
        """True if there is one partition, in a declared order."""

    @property
    @abstractmethod
    def as_(self) -> object:
        """The type to which the driver converts rows that no stage has read.

        See `RowReader`.
        """

    @property
    @abstractmethod
    def item_type(self) -> object:
        """The type of the items, if it is known; else None."""

    @property
    @abstractmethod
    def ways_out(self) -> str:
        """The ways in which a user can get ordered rows, for messages."""

    @property
    @abstractmethod
    def lazy(self) -> bool:
        """True if `kept` runs no code of the user."""

    @abstractmethod
    def opened(self, stop: Stop, *, resumed: bool = False) -> AbstractContextManager[Opened | None]:
        """Return a context manager that provides the rows, and removes at exit what it created.

        Args:
            stop: when it is set, the rows are not completed, and the result is None.
            resumed: whether a retried task continues where the one before it stopped, so that it
                has to find the rows in the same order.
        """

    @abstractmethod
    def kept(self) -> Opened:
        """Return rows that can be read as long as the session is there."""


def readable(df: DataFrame, as_: object, *, verify: bool) -> tuple[DataFrame, RowReader]:
    """Return the columns of `df` that `as_` needs, and the reader that converts them to items.

    Args:
        df: the rows.
        as_: the type of an item; see `RowReader`.
        verify: whether the type of each field has to be that of its column. A null is then an
            error where the field does not allow None.

    Raises:
        SchemaMismatchError: if the columns do not fit `as_`.
    """
    df = respelled(df, as_)
    schema = ItemSchema.of(df.schema).arrow
    reader = RowReader(schema, as_, verify=verify)
    if verify:
        check_fit(schema, as_)
    if len(reader.names) == len(df.columns):
        return df, reader
    df = df.select(*map(quoted, reader.names))
    return df, RowReader(ItemSchema.of(df.schema).arrow, as_, verify=verify)


class FrameRows(Origin):
    """The base of origins whose rows are those of a DataFrame, as it is.

    Args:
        df: the DataFrame to read.
        reader: converts its rows to items.
        as_: the type of an item; see `RowReader`.
        narrow: whether to leave out columns that no stage can read, and rows that a filter
            certainly drops.

    Attributes:
        part: the part of the rows that stages need.
    """

    __slots__ = ("_as", "_df", "_narrow", "_reader", "part")

    def __init__(self, df: DataFrame, reader: Reader, as_: object, *, narrow: bool = True) -> None:
        self._df: Final = df
        self._reader: Final = reader
        self._as: Final = as_
        self._narrow: Final = narrow
        self.part = Narrowed()

    def narrowed(self, stages: tuple[Stage[Any, Any], ...]) -> Self:
        """Return these rows, with the part that `stages` need."""
        reader = self._reader
        if not self._narrow or not isinstance(reader, RowReader) or alike(reader.names):
            return self
        found = copy(self)
        found.part = narrowed(stages, reader, self.as_, self._df.schema)
        return found

    @property
    @override
    def as_(self) -> object:
        return self._as

    @property
    @override
    def session(self) -> SparkSession:
        return self._df.sparkSession

    @override
    def repeats(self) -> bool:
        return repeats(self._df)

    @property
    @override
    def item_type(self) -> object:
        return self.as_ if isinstance(self.as_, type) else None

    @property
    @override
    def lazy(self) -> bool:
        return True

    @contextmanager
    @override
    def opened(self, stop: Stop, *, resumed: bool = False) -> Generator[Opened | None, None, None]:
        if stop():
            yield None
            return
        opened = self.kept()
        if resumed and not opened.ordered:
            with cluster_of(self.session).answering(f"what is made of {self!r}"):
                opened = replace(opened, df=in_repeatable_order(opened.df))
        yield opened

    @override
    def kept(self) -> Opened:
        return Opened(self._df, self._reader)

    def warn_of_wide_rows(self) -> None:
        """Warn if many columns become tuples, though stages may need few of them."""
        names, why = self._df.columns, self.part.why_all_columns
        if why is None or self.as_ not in (None, tuple) or len(names) < _WIDE:
            return
        warnings.warn(
            f"all {len(names)} columns are read, since {why}. That may take several times as long "
            "as the columns that are needed: select them, as df.select(...) does, or pass on "
            "fields (row[0]) instead of the row; narrow=False says that all are needed",
            RuntimeWarning,
            stacklevel=1,
        )

    def _columns(self) -> str:
        """Describe the columns, for messages."""
        reader = self._reader
        return self.part.told(reader.names) if isinstance(reader, RowReader) else "states"


@final
class FrameOrigin(FrameRows):
    """The rows of a DataFrame.

    Args:
        df: the rows.
        as_: the type of an item; see `RowReader`.
        ordered: whether the order of `df` matters; it is then read as one partition.
        verify: see `readable`.
        narrow: see `FrameRows`.

    Raises:
        SchemaMismatchError: if the columns do not fit `as_`.
        UnsupportedTypeError: if a column has a type without a counterpart in Arrow, or `df` is a
            stream.
    """

    __slots__ = ("_given", "_ordered", "_verify")

    def __init__(
        self,
        df: DataFrame,
        as_: object = None,
        *,
        ordered: bool = False,
        verify: bool = True,
        narrow: bool = True,
    ) -> None:
        if df.isStreaming:
            raise UnsupportedTypeError(
                "from_dataframe() reads the rows that a DataFrame has, and this one is a stream, "
                "which has no end: from_stream(df) reads it, micro-batch by micro-batch"
            )
        self._given: Final = df
        self._verify: Final = verify
        df, reader = readable(df, as_, verify=verify)
        super().__init__(df, reader, as_, narrow=narrow)
        self._ordered: Final = ordered

    @property
    @override
    def ordered(self) -> bool:
        return self._ordered

    @property
    @override
    def ways_out(self) -> str:
        return (
            "from_dataframe(df.sort(...), ordered=True) reads the rows in their order, as one "
            "partition and by one task"
        )

    @override
    def kept(self) -> Opened:
        reader = self._reader
        if isinstance(reader, RowReader):
            reader = self.part.reader(reader)
        return Opened(self.part(self._df), reader, ordered=self.ordered)

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        found = self.direct(program)
        if found is not None:
            return DirectJob(self.session, name, found)
        few = None
        if program is None and not self.ordered:
            few = few_rows(self._df, self._reader)
        if few is None:
            return PushedJob(self, program, name)
        return DirectJob(
            self.session, name, few, lambda tell: PushedJob(self, program, name, tell=tell)
        )

    def direct(self, program: RemoteProgram | None) -> Direct | None:
        """Return how to get the results of `program` from Spark itself.

        The result is None if `program` has to run in tasks.
        """
        return direct(self._df, self._reader, program, self.as_)

    def changed(self, change: Callable[[DataFrame], DataFrame], as_: object) -> FrameOrigin:
        """Return the rows of the DataFrame that `change` returns; Catalyst computes them.

        Raises:
            SchemaMismatchError: if the columns of the result do not fit `as_`.
        """
        df = change(self._given)
        return FrameOrigin(df, as_, ordered=self.ordered, verify=self._verify, narrow=self._narrow)

    def __repr__(self) -> str:
        return f"from_dataframe({self._columns()})"


@final
class FlowOrigin(Origin):
    """The items of a flow of the driver.

    Spark itself makes a range. Other items are taken when the job starts, all of them, in pickled
    chunks. On ``local`` masters they are written to disk. If the cluster may not see the disk of
    this process, they are sent to it, and so are in memory, up to a limit: more items go to the
    spool, or raise an error. Memory is bounded, and a retried task finds the same items again.

    Args:
        flow: the flow with the items.
        session: the session that they go to.
        partitions: how many partitions to divide the items into; None leaves that to Spark.
        spool: where the cluster finds files; None if that is not known.
    """

    __slots__ = ("_flow", "_partitions", "_session", "_where")

    def __init__(
        self,
        flow: Flow[Any],
        session: SparkSession,
        partitions: int | None,
        spool: str | os.PathLike[str] | None = None,
    ) -> None:
        self._flow: Final = flow
        self._session: Final = session
        self._partitions: Final = partitions
        self._where: Final = spool

    @property
    @override
    def session(self) -> SparkSession:
        return self._session

    @override
    def repeats(self) -> bool:
        """True: a job reads the results of the flow, which runs once."""
        return True

    @property
    @override
    def ordered(self) -> bool:
        """True if one partition keeps the order of the flow."""
        return self._partitions == 1

    @property
    @override
    def as_(self) -> object:
        return None

    @property
    @override
    def item_type(self) -> object:
        return int if self._ints() is not None else None

    @property
    @override
    def lazy(self) -> bool:
        """True if Spark makes a range itself."""
        return self._ints() is not None

    @property
    @override
    def ways_out(self) -> str:
        return "on_spark(session, partitions=1) keeps the order, in one partition and one task"

    @contextmanager
    @override
    def opened(self, stop: Stop, *, resumed: bool = False) -> Generator[Opened | None, None, None]:
        """Make the rows, which have one order."""
        ints = self._ints()
        if ints is not None:
            yield None if stop() else self._ranged(ints)
        elif self._where is None and shares_disk(self._session):
            items = _Chunks(self._flow, stop)
            folder = private_folder()
            try:
                df = self._spooled(items, folder)
                yield None if stop() else self._divided(df, items)
            finally:
                remove_folder(folder)
        else:
            spool = self._spool()
            made = self._sent(spool, stop)
            try:
                yield None if stop() else made
            finally:
                spool.remove()

    @override
    def kept(self) -> Opened:
        """Run the flow now. The files are removed with the session or this process."""
        ints = self._ints()
        return self._sent(self._spool(), Stop()) if ints is None else self._ranged(ints)

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        return PushedJob(self, program, name)

    def _ranged(self, ints: range) -> Opened:
        df = self._session.range(ints.start, ints.stop, ints.step, self._partitions)
        return Opened(df, RowReader(ItemSchema.of(df.schema).arrow))

    def _spool(self) -> Spool:
        columns = ItemSchema.of(CHUNK_SCHEMA)
        return Spool(self._session, columns, self._where, way_out=_NAME_ONE)

    def _sent(self, spool: Spool, stop: Stop) -> Opened:
        items = _Chunks(self._flow, stop)
        return self._divided(spooled(spool, items), items)

    def _divided(self, df: DataFrame, items: _Chunks) -> Opened:
        if self._partitions is not None:
            df = df.coalesce(1) if self.ordered else divided(df, self._partitions)
        return Opened(df, ChunkReader(tuple(items.sender.classes)))

    def _ints(self) -> range | None:
        source = source_of(self._flow)
        if not isinstance(source, RangeSource) or stages_of(self._flow):
            return None
        ints = source.ints
        return ints if max(abs(ints.start), abs(ints.stop)) < _LARGEST_ID else None

    def _spooled(self, chunks: _Chunks, folder: Path) -> DataFrame:
        """Write one file for each partition (Spark splits or joins them as it likes)."""
        files = 1 if self.ordered else max(self._partitions or 0, 2)
        writers = [
            parquet_writer(folder / f"{number}.parquet", CHUNK_SCHEMA) for number in range(files)
        ]
        try:
            for writer, chunk in zip(itertools.cycle(writers), chunks, strict=False):
                writer.write_batch(chunk)
        finally:
            for writer in writers:
                writer.close()
        return self._session.read.schema(CHUNK_DDL).parquet(folder.as_uri())

    def __repr__(self) -> str:
        return f"on_spark({self._flow!r})"


@final
class _Chunks:
    """The items of a flow, pickled, as batches of one row."""

    __slots__ = ("_flow", "_stop", "sender")

    def __init__(self, flow: Flow[Any], stop: Stop) -> None:
        self._flow: Final = flow
        self._stop: Final = stop
        self.sender: Final = ItemSender()

    def __iter__(self) -> Iterator[ArrowBatch]:
        items = taken(self._flow, self._stop)
        empty = True
        try:
            for chunk in chunks(items, self.sender):
                empty = False
                yield to_chunk(chunk.kind, chunk.payload)
        finally:
            close_iterator(items)
        if empty:
            # A table without rows has no partitions, and a client of Connect cannot send it.
            yield no_items()
