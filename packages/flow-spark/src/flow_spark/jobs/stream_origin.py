"""The origin of the rows of a streaming query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, final

from typing_extensions import TypeIs, override

from flow_core.batches import MicroBatch
from flow_core.errors import FlowError
from flow_core.stages import Program
from flow_spark.errors import UnsupportedTypeError
from flow_spark.items.rows import RowReader
from flow_spark.jobs.origin import FrameRows, Job, Runs, readable
from flow_spark.jobs.streaming import Delivery, StreamJob, StreamSettings
from flow_spark.jobs.task import ChunkReader, Reader, RemoteProgram
from flow_spark.narrowing.narrowed import Narrowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BatchItems", "Deal", "EachBatch", "StreamOrigin"]


@final
class StreamOrigin(FrameRows):
    """The rows of a streaming DataFrame.

    Args:
        df: the rows.
        as_: the type of an item; see `RowReader`.
        settings: the settings of the query.
        reader: unpickles the items, if the rows are pickled items; else None.
        verify: see `readable`.
        narrow: see `FrameRows`. The query stays the same: this is done in each micro-batch, so that
            neither the state nor the position in a checkpoint depends on functions.

    Raises:
        SchemaMismatchError: if the columns do not fit `as_`.
        UnsupportedTypeError: if a column has a type without a counterpart in Arrow, or `df` is not
            a stream.
    """

    __slots__ = ("_given", "_settings", "_verify")

    def __init__(
        self,
        df: DataFrame,
        as_: object,
        settings: StreamSettings,
        *,
        reader: ChunkReader | None = None,
        verify: bool = True,
        narrow: bool = True,
    ) -> None:
        if not df.isStreaming:
            raise UnsupportedTypeError(
                "from_stream() reads a streaming DataFrame, such as spark.readStream gives, and "
                "this one has an end: from_dataframe(df) reads it"
            )
        self._given: Final = df
        self._verify: Final = verify
        rows: Reader | None = reader
        if rows is None:
            df, rows = readable(df, as_, verify=verify)
        super().__init__(df, rows, as_, narrow=narrow)
        self._settings: Final = settings

    @property
    @override
    def ordered(self) -> bool:
        return False

    @property
    @override
    def ways_out(self) -> str:
        return (
            "group by a key on Spark, where the items of one key are in order (see the functions "
            "of pyspark.sql.streaming)"
        )

    @override
    def job(
        self, program: RemoteProgram | None, name: str, *, consumer: str | None = None
    ) -> StreamJob:
        """Return the job; its name is the query's own name, if there is one.

        Args:
            program: see `Runs.job`.
            name: see `Runs.job`.
            consumer: the operator that handles the micro-batches, if there is one.
        """
        stages = program.stages if _has_stages(program) else ()
        names = [*(stage.name for stage in stages), *([] if consumer is None else [consumer])]
        settings, reader, part = self._settings.after(*names), self._reader, Narrowed()
        if isinstance(reader, RowReader) and stages:
            part = self.narrowed(stages).part
            reader = part.reader(reader)
        prepare = None if part == Narrowed() else part
        return StreamJob(self._df, reader, self.as_, program, settings, prepare=prepare)

    @property
    def chunked(self) -> bool:
        """True if the rows are pickled items."""
        return isinstance(self._reader, ChunkReader)

    @property
    def settings(self) -> StreamSettings:
        """The settings of its query."""
        return self._settings

    def behind(self, name: str) -> StreamOrigin:
        """Return the same rows, as results of the operator `name`; they must be columns."""
        return self._with(self._given, self.as_, self._settings.after(name))

    def changed(self, change: Callable[[DataFrame], DataFrame], as_: object) -> StreamOrigin:
        """Return the rows of the DataFrame that `change` returns; Catalyst computes them.

        Raises:
            SchemaMismatchError: if the columns of the result do not fit `as_`.
        """
        if self.chunked:
            raise UnsupportedTypeError(
                f"the items of {self!r} are not columns that Spark knows; use map and filter"
            )
        return self._with(change(self._given), as_, self._settings)

    def _with(self, df: DataFrame, as_: object, settings: StreamSettings) -> StreamOrigin:
        return StreamOrigin(df, as_, settings, verify=self._verify, narrow=self._narrow)

    def __repr__(self) -> str:
        return f"from_stream({self._columns()})"


def _has_stages(program: object) -> TypeIs[Program[Any, Any]]:  # Any: of items of any type
    return isinstance(program, Program)


Deal = Callable[[StreamJob, int, "BatchItems"], bool]
"""Handles a micro-batch: called with the query, its number and the items; returns True if it was
handled, and False if it had been handled already."""


@final
class EachBatch(Runs):
    """A stream whose micro-batches are each handled as a whole.

    Args:
        origin: the stream.
        deal: handles each micro-batch.
        name: the name of the operator.
    """

    __slots__ = ("_deal", "_name", "_origin")

    def __init__(self, origin: StreamOrigin, deal: Deal, name: str) -> None:
        self._name: Final = name
        self._origin: Final = origin
        self._deal: Final = deal

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        """Return the job, whose items are `MicroBatch` objects."""
        job = self._origin.job(program, name, consumer=self._name)
        return _EachBatchJob(job, self._deal, self._name)

    def __repr__(self) -> str:
        return f"{self._name} over {self._origin!r}"


class _CutError(FlowError):
    """The flow was cancelled while a micro-batch was being read: its items are not complete."""


@final
class BatchItems:
    """Yields the items of a micro-batch, once; raises an error if the flow is cancelled meanwhile.

    Attributes:
        count: how many rows were requested.
    """

    __slots__ = ("_delivery", "_items", "count")

    def __init__(self, delivery: Delivery) -> None:
        self._delivery: Final = delivery
        self._items: Final = (item for items in delivery for item in items)
        self.count = 0

    def __iter__(self) -> Iterator[Any]:  # Any: items of any type
        for item in self._items:
            self.count += 1
            yield item
        self.check()

    def check(self) -> None:
        """Raise an error if items may be missing; the caller must commit nothing then."""
        if self._delivery.cut():
            raise _CutError(
                f"the flow was cancelled while micro-batch {self._delivery.batch_id} was being "
                "read; Spark gives it again after a restart from the checkpoint"
            )

    def drain(self) -> None:
        """Take the items that are left: Spark's job ends only when everything was taken."""
        for _ in self._items:
            pass


@final
class _EachBatchJob:
    __slots__ = ("_deal", "_job", "_name")

    def __init__(self, job: StreamJob, deal: Deal, name: str) -> None:
        self._job: Final = job
        self._deal: Final = deal
        self._name: Final = name

    def __iter__(self) -> Iterator[Iterable[MicroBatch]]:
        for delivery in self._job.deliveries():
            yield self._dealt(delivery)

    def _dealt(self, delivery: Delivery) -> Iterator[MicroBatch]:
        """Handle the micro-batch when the only item is requested."""
        items = BatchItems(delivery)
        delivery.in_use = True
        try:
            done = self._deal(self._job, delivery.batch_id, items)
        except _CutError:
            return
        except Exception as error:
            taken = f"of which {items.count} items were taken"
            error.add_note(f"in {self._name}(), micro-batch {delivery.batch_id}, {taken}")
            raise
        items.drain()
        delivery.in_use = False
        yield MicroBatch(delivery.batch_id, items.count, not done)

    def cancel(self) -> None:
        self._job.cancel()
