"""Flows that end as a DataFrame, in files, or as a table in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, final

from flow_core.demand import check_prefetch, replenish_limit
from flow_core.errors import is_fatal, none_given
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Subscription
from flow_core.stages import Program
from flow_core.structure import source_of, stages_of
from flow_spark._sources import SparkSource, is_on_spark
from flow_spark._spool import Spool, spooled
from flow_spark.errors import (
    LimitExceededError,
    SessionConflictError,
    SparkJobError,
    UnsupportedTypeError,
)
from flow_spark.items.arrow import ArrowBatch, ArrowTable, pa
from flow_spark.items.columns import BATCH_ROWS, Batching, to_batches
from flow_spark.items.objects import marked, without_marks
from flow_spark.items.rows import asks_for_items, items_of
from flow_spark.items.schema import ItemSchema
from flow_spark.items.types import item_type
from flow_spark.jobs.frames import at_most, divided, frame_of, table_of
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.job import lowered, lowered_all
from flow_spark.jobs.lowering import Split, has_an_end
from flow_spark.jobs.origin import Opened
from flow_spark.jobs.publisher import JobSubscription
from flow_spark.jobs.run import run
from flow_spark.jobs.streaming import StreamJob
from flow_spark.jobs.task import CHUNK_SCHEMA, ChunkReader, no_items
from flow_spark.jobs.united import in_their_order

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["WriteSubscriber", "frame_on_spark", "to_arrow", "to_dataframe", "to_pandas", "write"]

Path = str | os.PathLike[str]

Mode = Literal["error", "append", "overwrite", "ignore"]

_MOST: Final = 2**31 - 1

LIMIT: Final = 1_000_000
"""Items that a flow may have to become a table in memory, if nothing else is said."""


def to_dataframe(
    session: SparkSession | None = None, *, schema: object = None, spool: Path | None = None
) -> Operator[Any, DataFrame]:
    """End a flow as a Spark DataFrame.

    If the flow is on Spark, its items stay there, and the DataFrame is as lazy as any: the stages
    run when it is counted, written or joined. A flow of this process is run at once, to its end, in
    bounded memory: what is more than a MiB goes through Parquet files, which are removed when the
    session of `session()` or this process ends.

    >>> import flow_core as flow
    >>> odd = flow.range(10).on_spark(session).filter(lambda n: n % 2)  # doctest: +SKIP
    >>> odd.to_dataframe(schema="n bigint").write.parquet("odd")  # doctest: +SKIP

    Demand: of a flow of this process, bounded, as items are written.

    Args:
        session: where the DataFrame is made, for a flow of this process; None takes the active one.
        schema: the columns: DDL such as ``"id bigint, name string"``, a StructType, a
            ``pyarrow.Schema``, a dataclass, NamedTuple or TypedDict, or a plain type. None takes
            what the last mapper is annotated to return.
        spool: a folder for the files of a flow of this process, that the cluster reaches under the
            same path (`write` says more); None takes a temporary one, which is enough for
            ``local`` masters. What Spark puts under a URL is left there.

    Raises:
        UnsupportedTypeError: when applied, if no schema is given and the stages do not tell; or to
            a stream with a stage that goes over all of its items.
        OrderedOperatorError: when applied, if a stage depends on an order that there is not.
        SchemaMismatchError: if an item does not fit; on Spark, from whatever runs the DataFrame.
        SpoolError: when applied, if there is more than fits into memory and no place for it.
    """

    def apply(flow: Flow[Any]) -> DataFrame:
        source = source_of(flow)
        if is_on_spark(source):
            return frame_on_spark(source, flow, schema, "to_dataframe")
        columns = _schema(flow, None, schema, "to_dataframe")
        opened = Spool(_session(session, "to_dataframe"), columns, spool)
        return spooled(opened, to_batches(flow, columns))

    return Operator("to_dataframe", apply, "" if schema is None else f"schema={schema!r}")


def write(
    format: str,  # noqa: A002 - as in Spark's DataFrameWriter
    path: Path,
    *,
    mode: Mode = "error",
    partition_by: str | Iterable[str] = (),
    schema: object = None,
    options: Mapping[str, str | int | float | bool] | None = None,
    session: SparkSession | None = None,
    spool: Path | None = None,
) -> Operator[Any, None]:
    """Write a flow to files, by Spark.

    If the flow is on Spark, its items go from the executors to the files, not through this process.
    A flow of this process is run to its end first, in bounded memory: its items wait in a spool,
    and Spark writes them only if all are there, so that a flow that fails leaves nothing behind.

    >>> trips = from_dataframe(df).filter(is_late)  # doctest: +SKIP
    >>> trips.spark.write("parquet", "late", mode="overwrite")  # doctest: +SKIP

    Demand: of a flow of this process, bounded, as items are written to the spool. Thread: the
    calling one, which waits for Spark; if it is interrupted, the job is cancelled.

    Args:
        format: ``"parquet"``, ``"csv"``, ``"json"``, ``"orc"`` or any other that Spark knows.
        path: the folder that is made, on any file system that Spark reaches.
        mode: what happens if there is one: ``"error"``, ``"append"``, ``"overwrite"`` or
            ``"ignore"``.
        partition_by: the columns whose values become folders.
        schema: the columns, as for `to_dataframe`.
        options: of the format, such as ``{"header": True}``.
        session: as for `to_dataframe`.
        spool: where the items of a flow of this process wait. A path of this machine, which the
            executors see too, on a shared file system; or a URL (``hdfs://…``, ``s3a://…``) under
            which Spark itself puts them. None takes a temporary folder, which is enough for
            ``local`` masters; other clusters are sent up to 32 MiB without one.

    Raises:
        ValueError: if `mode` is unknown.
        UnsupportedTypeError: when applied, if the columns are not known; or to a stream, which
            `write_each` writes.
        OrderedOperatorError: when applied, as `to_dataframe`.
        SchemaMismatchError: when applied, if an item of a flow of this process does not fit.
        SpoolError: when applied, as `to_dataframe`.
        SparkJobError: when applied, if Spark's job fails; the text has the way out, if it is known.
    """
    destination = _Destination(format, path, mode, partition_by, options)

    def apply(flow: Flow[Any]) -> None:
        source = source_of(flow)
        if is_on_spark(source):
            with _frame_for_now(source, flow, schema, "write") as df:
                if df.isStreaming:
                    raise UnsupportedTypeError(
                        "write() writes a flow that ends, and this one is a stream: .spark."
                        "write_each(batch_writer(format, path)) writes each micro-batch of it"
                    )
                destination.save(df)
            return
        columns = _schema(flow, None, schema, "write")
        opened = Spool(_session(session, "write"), columns, spool)
        with _removed(opened):
            destination.save(spooled(opened, to_batches(flow, columns)))

    return Operator("write", apply, f"{format!r}, {str(path)!r}")


@final
class _Destination:
    """What Spark's own writer is told."""

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


@contextmanager
def _removed(spool: Spool) -> Generator[None, None, None]:
    try:
        yield
    finally:
        spool.remove()


# Any: pyarrow has no types, and a name for its Table would not be known.
def to_arrow(*, limit: int | None = LIMIT, schema: object = None) -> Operator[Any, Any]:
    """End a flow as a ``pyarrow.Table`` in the memory of this process.

    >>> import flow_core as flow
    >>> flow.range(3).to_arrow(schema="n bigint").num_rows  # doctest: +SKIP
    3

    Demand: bounded, for at most one item more than `limit`. Thread: the calling one, as of `write`.

    Args:
        limit: how many items may be held in memory: one more is an error, so that a flow that is
            larger than expected does not exhaust it. None holds whatever comes: it is not bounded.
        schema: the columns, as for `to_dataframe`. DDL needs a session.

    Raises:
        ValueError: if `limit` is less than 1.
        LimitExceededError: when applied, if there are more items than `limit`.
        UnsupportedTypeError: when applied, as `to_dataframe`.
        OrderedOperatorError: when applied, as `to_dataframe`.
        SchemaMismatchError: when applied, if an item of a flow of this process does not fit.
        SparkJobError: when applied, as `write`.
    """
    _check_limit(limit)

    def apply(flow: Flow[Any]) -> ArrowTable:
        return without_marks(_table(flow, limit, schema, "to_arrow"))

    return Operator("to_arrow", apply)


def to_pandas(
    *, limit: int | None = LIMIT, schema: object = None
) -> Operator[Any, pandas.DataFrame]:
    """End a flow as a ``pandas.DataFrame`` in the memory of this process.

    >>> import flow_core as flow
    >>> flow.range(3).to_pandas(schema="n bigint")["n"].sum()  # doctest: +SKIP
    3

    A column of ints with a null among them is of pandas' own nullable type, such as ``Int64``: as
    floats, which pandas makes of them otherwise, large ones lose digits. Maps are dicts; Variants,
    geometries and user-defined types are objects, as items are.

    Demand and thread are those of `to_arrow`.

    Args:
        limit: as for `to_arrow`.
        schema: as for `to_arrow`.

    Raises:
        ValueError: as `to_arrow`.
        LimitExceededError: as `to_arrow`.
        UnsupportedTypeError: as `to_arrow`.
        OrderedOperatorError: as `to_arrow`.
        SchemaMismatchError: as `to_arrow`.
        SparkJobError: as `to_arrow`.
    """
    _check_limit(limit)

    def apply(flow: Flow[Any]) -> pandas.DataFrame:
        return _frame_of(_table(flow, limit, schema, "to_pandas"))

    return Operator("to_pandas", apply)


def _frame_of(table: ArrowTable) -> pandas.DataFrame:
    """`table` for pandas, with all digits of ints, and with objects where values are such."""
    import pandas

    untyped: Any = table  # Any: its types are not complete
    fields = list(table.schema)
    own = [index for index, field in enumerate(fields) if asks_for_items(field)]
    plain = untyped.select([index for index in range(len(fields)) if index not in own])
    made: Any = plain.to_pandas(integer_object_nulls=True, maps_as_pydicts="strict")
    for index, column in enumerate(plain.columns):
        if column.null_count and pa.types.is_integer(column.type):
            name = str(column.type).replace("int", "Int").replace("uI", "UI")
            made.isetitem(index, pandas.array(made.iloc[:, index], dtype=name))
    for index in own:
        values = [
            item for part in untyped.column(index).chunks for item in items_of(fields[index], part)
        ]
        column = pandas.Series(values, index=range(table.num_rows), dtype=object)
        made.insert(index, fields[index].name, column, allow_duplicates=True)
    frame: pandas.DataFrame = made
    return frame


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, or None for no limit, not {limit}")


def _table(flow: Flow[Any], limit: int | None, schema: object, name: str) -> ArrowTable:
    source = source_of(flow)
    if is_on_spark(source):
        with _frame_for_now(source, flow, schema, name) as df:
            if df.isStreaming:
                raise UnsupportedTypeError(
                    f"{name}() holds all items of a flow, and a stream has no end: deal with its "
                    "micro-batches, by for_each_batch or write_each"
                )
            # One more shows that there are more; Spark sends no further ones, and counts in an int.
            bounded = df
            if limit is not None and limit < _MOST:
                ordered = source.origin.ordered
                bounded = at_most(df, limit + 1) if ordered else df.limit(limit + 1)
            made = run(df.sparkSession, name, lambda: table_of(bounded))
            given = made.schema
            told = marked(given, df.schema)
            table = made if told is given else made.cast(told)
        _check_fits(table.num_rows, limit, name)
        return table
    columns = _schema(flow, None, schema, name)
    batches = list(_at_most(to_batches(_cut(flow, limit), columns), limit, name))
    return pa.Table.from_batches(batches, schema=columns.arrow)


def _cut(flow: Flow[Any], limit: int | None) -> Flow[Any]:
    return flow if limit is None else flow.take(limit + 1)


def _at_most(batches: Iterator[ArrowBatch], limit: int | None, name: str) -> Iterator[ArrowBatch]:
    count = 0
    for batch in batches:
        count += batch.num_rows
        _check_fits(count, limit, name)
        yield batch


def _check_fits(count: int, limit: int | None, name: str) -> None:
    if limit is not None and count > limit:
        raise LimitExceededError(
            f"{name}() holds all items in memory, and this flow has more than {limit:,}. Take "
            f"some: .take({limit}); allow more: {name}(limit=…), or limit=None for all that come; "
            "or keep them out of memory: write(), to_dataframe()"
        )


@final
class WriteSubscriber(CoreSubscriber[Any]):
    """A subscriber that writes the items it gets to files, by Spark; for any publisher.

    The items wait in a spool on disk, in bounded memory. When the publisher completes, Spark writes
    them all; when it fails, or is cancelled, none of them.

    It is for publishers that complete. Behind a stream that does not, nothing would ever be written
    while the spool grows: it refuses one that it is subscribed to directly, and cannot see one
    behind a boundary or ``publish``. Nor does the spool survive a crash, though a stream with a
    checkpoint takes what is in it as consumed, and does not give it again: what a stream must not
    lose is written by `write_each`.

    >>> subscriber = WriteSubscriber(spark, "parquet", "out", schema=Trip)  # doctest: +SKIP
    >>> publisher.subscribe(subscriber)  # doctest: +SKIP
    >>> subscriber.done.result()  # doctest: +SKIP

    Demand: `prefetch` at first, and refilled as items become columns.
    Thread: batches are written in the publisher's, which is how a slow disk holds it back; Spark
    writes from a thread of its own.
    Fusion: none.

    Attributes:
        done: resolved with the number of items when all are written; fails with the publisher's
            error, or what went wrong here. It cannot be cancelled: see `cancel`.

    Args:
        session: where.
        format: as in `write`.
        path: as in `write`.
        schema: the columns, as for `to_dataframe`.
        mode: as in `write`.
        partition_by: as in `write`.
        options: as in `write`.
        spool: as in `write`.
        prefetch: items that may be on their way, and so in memory; as many, and not more than
            10,000, are held as columns before they are written.

    Raises:
        ValueError: if `mode` is unknown, or `prefetch` less than 1.
        UnsupportedTypeError: if `schema` has no counterpart in Spark. In `done`: if the publisher
            is a stream without an end.
    """

    __slots__ = (
        "_batching",
        "_destination",
        "_ended",
        "_failure",
        "_items",
        "_lock",
        "_prefetch",
        "_size",
        "_spool",
        "_spooling",
        "_subscription",
        "done",
    )

    def __init__(
        self,
        session: SparkSession,
        format: str,  # noqa: A002 - as in `write`
        path: Path,
        *,
        schema: object,
        mode: Mode = "error",
        partition_by: str | Iterable[str] = (),
        options: Mapping[str, str | int | float | bool] | None = None,
        spool: Path | None = None,
        prefetch: int = BATCH_ROWS,
    ) -> None:
        self._destination: Final = _Destination(format, path, mode, partition_by, options)
        columns = ItemSchema.of(schema)
        self._spool: Final = Spool(session, columns, spool)
        self._prefetch: Final = check_prefetch(prefetch)
        self._batching: Final = Batching(columns, min(prefetch, BATCH_ROWS))
        self._size = self._portion()
        self._lock: Final = threading.Lock()
        self._items: list[Any] = []
        self._subscription: Subscription | None = None
        self._ended = self._spooling = False
        self._failure: BaseException | None = None
        self.done: Final[Future[int]] = Future()
        self.done.set_running_or_notify_cancel()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`."""
        if subscription is None:
            raise none_given("on_subscribe")
        with self._lock:
            refused = self._ended or self._subscription is not None
            if not refused:
                self._subscription = subscription
        if refused:
            subscription.cancel()  # §2.5
        elif _is_endless(subscription):
            self._fail(
                UnsupportedTypeError(
                    "WriteSubscriber writes when all items have come, and this stream has no end: "
                    "write each micro-batch, .spark.write_each(batch_writer(format, path)), or "
                    "take what there is now, from_stream(df, trigger='available-now')"
                )
            )
        else:
            subscription.request(self._prefetch)

    def on_next(self, item: Any, /) -> None:  # Any: items of whatever type
        """See `Subscriber.on_next`."""
        if item is None:
            raise none_given("on_next")
        if self._ended:
            return
        items = self._items
        items.append(item)
        if len(items) < self._size:
            return
        with self._lock:
            if self._ended:
                return
            self._spooling = True
        try:
            self._take_in()
        except BaseException as error:
            self._fail(error)
            if is_fatal(error):
                raise
            return
        finally:
            with self._lock:
                self._spooling = False
                failure = self._failure
            if failure is not None:
                self._settle(failure)
        subscription = self._subscription
        if subscription is not None:
            subscription.request(len(items))

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        if error is None:
            raise none_given("on_error")
        with self._lock:
            self._subscription = None  # §2.4
        self._fail(error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`; Spark begins to write."""
        with self._lock:
            ended, self._ended = self._ended, True
            self._subscription = None  # §2.4
        if not ended:
            threading.Thread(target=self._write, name="flow-spark-write", daemon=True).start()

    def cancel(self) -> None:
        """Want no more, and write nothing. Idempotent, callable from any thread."""
        self._fail(CancelledError("before all items had come"))

    def _portion(self) -> int:
        """How many items become columns at once."""
        return min(replenish_limit(self._prefetch), self._batching.wanted)

    def _take_in(self) -> None:
        """Make columns of what has come, and put them into the spool if they fill a batch."""
        items, self._items = self._items, []
        batch = self._batching.add(items)
        self._size = self._portion()
        if batch is not None:
            self._spool.write(batch)

    def _write(self) -> None:
        try:
            if self._items:
                self._take_in()
            rest = self._batching.rest()
            if rest is not None:
                self._spool.write(rest)
            self._destination.save(self._spool.frame())
        except BaseException as error:  # a thread has nobody to propagate to
            self._settle(error)
        else:
            self._settle(None)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._failure = error
            spooling = self._spooling
            subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()
        if not spooling:  # else the publisher's thread, which may be making files, removes them
            self._settle(error)

    def _settle(self, failure: BaseException | None) -> None:
        self._items = []
        self._batching.clear()
        try:
            self._spool.remove()
        finally:  # who waits is not to wait for ever, whatever is wrong with the files
            if failure is None:
                self.done.set_result(self._batching.count)
            else:
                self.done.set_exception(failure)


def _is_endless(subscription: Subscription) -> bool:
    if not isinstance(subscription, JobSubscription):
        return False
    job = subscription.job
    return isinstance(job, StreamJob) and job.endless


def frame_on_spark(
    source: SparkSource[Any], flow: Flow[Any], schema: object, name: str
) -> DataFrame:
    """The items of a flow on Spark as a DataFrame; `name` is that of the sink, for messages."""
    origin, parts = source.lowered(stages_of(flow), stays=True)
    return _framed(source, flow, schema, name, parts=parts, opened=origin.kept())


@contextmanager
def _frame_for_now(
    source: SparkSource[Any], flow: Flow[Any], schema: object, name: str
) -> Generator[DataFrame, None, None]:
    """As `frame_on_spark`, for as long as the block lasts: what was sent to Spark need not stay."""
    origin, parts = source.lowered(stages_of(flow), stays=True)
    with origin.opened(Stop()) as opened:
        if opened is None:
            raise SparkJobError(f"{name}() was stopped")
        yield _framed(source, flow, schema, name, parts=parts, opened=opened)


def _framed(
    source: SparkSource[Any],
    flow: Flow[Any],
    schema: object,
    name: str,
    *,
    parts: Split,
    opened: Opened,
) -> DataFrame:
    plain = not stages_of(flow) and not opened.others and not isinstance(opened.reader, ChunkReader)
    if schema is None and plain:
        return opened.df
    columns = _schema(flow, source.origin.item_type, schema, name)
    if not parts.local or source.origin.ordered:
        everything = parts.remote + parts.local
        if source.origin.ordered and has_an_end(everything):
            given = in_their_order(opened, everything, source.origin.session)
            return lowered_all(given, None, columns)
        return lowered_all(opened, Program[Any, Any](everything), columns)
    if opened.df.isStreaming:
        raise UnsupportedTypeError(
            f"{parts.turn!r} goes over the items of all micro-batches, and a streaming DataFrame "
            "is made of one after the other: leave it out, or let Spark aggregate the DataFrame"
        )
    # What has to see the items of all partitions gets them pickled, in one partition.
    remote = Program[Any, Any](parts.remote)
    nothing = frame_of(
        source.origin.session, pa.Table.from_batches([no_items()], schema=CHUNK_SCHEMA)
    )
    # A row that is always there: Spark makes no task of no rows, and so no count of them.
    partial = divided(lowered_all(opened, remote, None).union(nothing), 1)
    reader = ChunkReader((remote, *opened.readers))
    return lowered(partial, reader, Program[Any, Any](parts.local), columns)


def _schema(flow: Flow[Any], source: object, given: object, name: str) -> ItemSchema:
    if given is not None:
        return ItemSchema.of(given)
    found = item_type(stages_of(flow), source)
    if found is None:
        raise UnsupportedTypeError(
            f"{name}() does not know the columns of {flow!r}: its last mapper has no return "
            "annotation. Annotate it (def mapper(item) -> SomeDataclass), or give the columns: "
            f"{name}(…, schema='id bigint, name string')"
        )
    return ItemSchema.of(found)


def _session(given: SparkSession | None, name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    found = given or SparkSession.getActiveSession()
    if found is None:
        raise SessionConflictError(
            f"{name}() of a flow of this process needs a session, and none is active: "
            f"with flow_spark.session() as spark: flow.pipe({name}(…, session=spark))"
        )
    return found
