"""Flows of streaming queries, in micro-batches that are consumed one after the other."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, final, overload

from flow_core.batches import BatchStore, MicroBatch
from flow_core.clocks import Seconds, in_seconds
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages import Program
from flow_core.structure import source_of, stages_of
from flow_spark._sources import SparkSource, is_on_spark
from flow_spark.errors import CheckpointConflictError, UnsupportedTypeError
from flow_spark.jobs.publisher import JobSource
from flow_spark.jobs.run import explaining
from flow_spark.jobs.stream_origin import BatchItems, Deal, EachBatch, StreamOrigin
from flow_spark.jobs.streaming import StreamJob, StreamSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "BatchStore",
    "MicroBatch",
    "SqliteBatchStore",
    "for_each_batch",
    "for_each_batch_once",
    "from_stream",
]

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


@overload
def from_stream(
    df: DataFrame,
    *,
    as_: type[R],
    checkpoint: str | Path | None = None,
    trigger: Seconds | Literal["available-now"] | None = None,
    name: str | None = None,
    output_mode: Literal["append", "update", "complete"] = "append",
    verify_schema: bool = True,
) -> Flow[R]: ...


@overload
def from_stream(
    df: DataFrame,
    *,
    as_: str | None = None,
    checkpoint: str | Path | None = None,
    trigger: Seconds | Literal["available-now"] | None = None,
    name: str | None = None,
    output_mode: Literal["append", "update", "complete"] = "append",
    verify_schema: bool = True,
) -> Flow[Any]: ...  # Any: what the columns hold is not known to a type checker


def from_stream(
    df: DataFrame,
    *,
    as_: type[R] | str | None = None,
    checkpoint: str | Path | None = None,
    trigger: Seconds | Literal["available-now"] | None = None,
    name: str | None = None,
    output_mode: Literal["append", "update", "complete"] = "append",
    verify_schema: bool = True,
) -> Flow[R] | Flow[Any]:
    """The rows of a streaming DataFrame, for as long as its query runs.

    Each subscriber starts a query. The stages that follow run where the rows are. Spark commits a
    micro-batch when the subscriber has taken all of its items, and plans the next one only then. If
    the process ends before that, Spark gives the same micro-batch again after a restart from the
    checkpoint: nothing is lost, and `for_each_batch_once` keeps it from being done twice. One query
    for many subscribers: ``.publish()`` of flow-multicast.

    To take an item is not yet to have worked on it. What buffers takes items before those behind it
    want them: ``observe_on`` and ``publish`` as many as their `prefetch`, a `WriteSubscriber` all
    of them, until the end. Spark may have committed these, and a crash then loses them. What must
    not be lost is dealt with in front of such a boundary, by `for_each_batch_once`,
    `for_each_batch` or `write_each`: their micro-batches are committed when the work is done.

    >>> rows = spark.readStream.format("rate").load()  # doctest: +SKIP
    >>> for item in from_stream(rows, checkpoint="state/rate"):  # doctest: +SKIP
    ...     print(item)

    Args:
        df: a streaming DataFrame, classic or of Spark Connect.
        as_: what an item is; see `from_dataframe`.
        checkpoint: a folder, on any file system that Spark reaches, where Spark keeps how far it
            is. It belongs to one flow. None: a temporary one, and each run begins anew.
            Without a `name`, a flow is known by the names of its stages on Spark and by what `df`
            reads; the functions in them may change between two runs.
        trigger: how long between the starts of micro-batches; ``"available-now"`` takes what there
            is, and completes; None takes the next as soon as the last one is consumed.
        name: of the query, in Spark's tools. A checkpoint is not given to a flow of another name;
            one of the same name is trusted, so that its stages and what it reads may change.
        output_mode: for a DataFrame that aggregates: which of its rows a micro-batch has.
        verify_schema: see `from_dataframe`.

    Returns:
        A flow. Demand: nothing starts before the first request, and while nothing is requested the
        tasks block. A subscriber that has taken all items of a micro-batch has consumed it; at most
        one more is begun before the next request, since only then it is known whether there is
        another item. Thread: as `from_dataframe`. Cancelling stops the query, and the micro-batch
        at hand is not committed. Errors: what a function of the stages raised, itself; else what
        Spark says of the query, and of a checkpoint that belongs to another flow. Fusion: absorbs
        stages; SYNC towards executors.

    Raises:
        SchemaMismatchError: if the columns do not fit `as_`.
        UnsupportedTypeError: if `df` is not a stream.
        ValueError: if `trigger` is negative.
    """
    settings = StreamSettings(
        name=name,
        checkpoint=None if checkpoint is None else str(checkpoint),
        trigger=_trigger(trigger),
        output_mode=output_mode,
    )
    with explaining("from_stream()"):
        return Flow(SparkSource[Any](StreamOrigin(df, as_, settings, verify=verify_schema)))


def _trigger(trigger: Seconds | str | None) -> dict[str, Any]:  # Any: as in StreamSettings
    if trigger is None:
        return {}
    if trigger == "available-now":
        return {"availableNow": True}
    trigger_s = -1.0 if isinstance(trigger, str) else in_seconds(trigger, "trigger")
    if trigger_s < 0:
        raise ValueError(f"trigger takes a time, 'available-now' or None, not {trigger!r}")
    return {"processingTime": f"{round(trigger_s * 1000)} milliseconds"}


def for_each_batch(
    action: Callable[[int, Iterator[T]], object],
) -> Operator[T, Flow[MicroBatch]]:
    """Deal with a stream micro-batch by micro-batch, as with ``foreachBatch``, but in this process.

    After a crash the micro-batch that was not committed comes again, under the same number: the
    action should overwrite what it did then, or be given to `for_each_batch_once`.

    >>> def save(batch_id: int, items) -> None:
    ...     write(f"part-{batch_id}.json", items)
    >>> rows = from_stream(df, checkpoint="state/rows")  # doctest: +SKIP
    >>> rows.spark.for_each_batch(save).subscribe()  # doctest: +SKIP

    It is for flows of `from_stream` with nothing but stages behind them. It gives a `MicroBatch`
    for each micro-batch, which Spark commits when the subscriber has got it.

    Demand: exact; the action is called for a micro-batch that is requested. Fusion: none.
    Errors: what the action raises fails the flow, and the micro-batch is not committed.

    Args:
        action: gets the number of the micro-batch and its items, which are read as it iterates, in
            bounded memory. What it does not read is skipped. It is called in the thread that
            iterates over the flow, or in that of the subscription.

    Raises:
        UnsupportedTypeError: when applied to anything else.
    """

    def deal(_: StreamJob, batch_id: int, items: BatchItems) -> bool:
        action(batch_id, iter(items))
        items.check()
        return True

    return _each_batch("for_each_batch", deal)


@final
class SqliteBatchStore(BatchStore[sqlite3.Connection]):
    """Keeps the numbers in a SQLite database, in one transaction with what is written there.

    >>> store = SqliteBatchStore(":memory:")
    >>> with store.begin("totals", "query", 7, "digest") as db:
    ...     _ = db.execute("CREATE TABLE totals (amount INTEGER)")
    >>> with store.begin("totals", "query", 7, "digest") as db:
    ...     print(db)
    None
    >>> store.close()

    Args:
        path: the database file.
    """

    __slots__ = ("_connection", "_lock", "_path")

    def __init__(self, path: str | Path) -> None:
        self._path: Final = str(path)
        # Subscriptions have threads of their own; the lock keeps it to one of them at a time.
        self._connection: Final = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False
        )
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS flow_batches (subscriber TEXT, query_id TEXT, "
            "batch_id INTEGER NOT NULL, digest TEXT, PRIMARY KEY (subscriber, query_id))"
        )
        with suppress(sqlite3.OperationalError):  # it has this column, but for old ones
            self._connection.execute("ALTER TABLE flow_batches ADD COLUMN digest TEXT")
        self._lock: Final = threading.Lock()

    @contextmanager
    def begin(
        self, subscriber: str, query_id: str, batch_id: int, digest: str
    ) -> Generator[sqlite3.Connection | None, None, None]:
        """See `BatchStore.begin`; gives the connection, with a transaction begun."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                last: tuple[int, str | None] = self._connection.execute(
                    "SELECT batch_id, digest FROM flow_batches "
                    "WHERE subscriber = ? AND query_id = ?",
                    (subscriber, query_id),
                ).fetchone() or (-1, None)
                if batch_id < last[0] or (batch_id == last[0] and last[1] not in (None, digest)):
                    raise CheckpointConflictError(
                        f"{self!r} has dealt with micro-batch {last[0]} of this query already, and "
                        f"micro-batch {batch_id} has other rows or comes before it"
                    )
                done = batch_id == last[0]
                yield None if done else self._connection
                if not done:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO flow_batches VALUES (?, ?, ?, ?)",
                        (subscriber, query_id, batch_id, digest),
                    )
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has rolled it back already
                    self._connection.execute("ROLLBACK")
                raise

    def __repr__(self) -> str:
        return f"SqliteBatchStore({self._path!r})"

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def for_each_batch_once(
    store: BatchStore[C],
    action: Callable[[int, Iterator[T], C], object],
    *,
    subscriber: str = "subscriber",
) -> Operator[T, Flow[MicroBatch]]:
    """Deal with each micro-batch of a stream exactly once, whatever crashes in between.

    The store remembers the last number in one transaction with what the action does. A micro-batch
    that Spark gives again after a crash is recognised by it, and not given to the action.

    A checkpoint and a store belong together. When one of them is restored from a backup, Spark may
    give other rows under a number that the store knows: the flow fails with
    `CheckpointConflictError`, and nothing is done. To find that out costs a few small jobs of Spark
    for each micro-batch, which read the checkpoint.

    >>> store = SqliteBatchStore("totals.db")  # doctest: +SKIP
    >>> def add(batch_id: int, amounts, db) -> None:
    ...     db.execute("UPDATE totals SET amount = amount + ?", (sum(amounts),))
    >>> rows = from_stream(df, checkpoint="state/totals")  # doctest: +SKIP
    >>> rows.spark.for_each_batch_once(store, add).subscribe()  # doctest: +SKIP

    It gives what `for_each_batch` does; `MicroBatch.repeated` says that the action was not called.
    Demand, thread, fusion and errors are those of `for_each_batch`.

    Args:
        store: where the numbers are kept; `SqliteBatchStore`, or a `BatchStore` of one's own. They
            are those of a query, which goes with its checkpoint: without one, each run would be
            another query, and do everything again.
        action: gets the number, the items as in `for_each_batch`, and what the store gives to work
            with, such as a database connection. What it does elsewhere is not part of the
            transaction.
        subscriber: tells several users of one store apart.

    Raises:
        UnsupportedTypeError: when applied to anything but a flow of `from_stream` and stages, or to
            one without a checkpoint.
    """

    def deal(job: StreamJob, batch_id: int, items: BatchItems) -> bool:
        digest = job.fingerprint(batch_id)
        with ExitStack() as transaction:
            try:
                given = transaction.enter_context(
                    store.begin(subscriber, job.query_id(), batch_id, digest)
                )
            except CheckpointConflictError as error:
                raise CheckpointConflictError(
                    f"the checkpoint {job.checkpoint!r} is older than the store: {error}. So it is "
                    "when one of them comes from a backup. Nothing was done, and the micro-batch "
                    "is not committed. Restore both from the same moment, or begin with an empty "
                    "checkpoint where the store ends"
                ) from error
            if given is None:
                return False
            action(batch_id, iter(items), given)
            items.check()
        return True

    return _each_batch("for_each_batch_once", deal, needs_checkpoint=True)


def _each_batch(
    name: str, deal: Deal, *, needs_checkpoint: bool = False
) -> Operator[Any, Flow[MicroBatch]]:
    def apply(flow: Flow[Any]) -> Flow[MicroBatch]:
        source = source_of(flow)
        if is_on_spark(source) and isinstance(source.origin, StreamOrigin):
            if needs_checkpoint and source.origin.settings.checkpoint is None:
                raise UnsupportedTypeError(
                    f"{name}() knows a micro-batch by its query and its number, and without a "
                    "checkpoint each run is another query, so that everything would be done "
                    "again: give one, from_stream(df, checkpoint='…'), or use for_each_batch()"
                )
            parts = source.split(stages_of(flow))
            if not parts.local:
                program = Program[Any, MicroBatch](parts.remote)
                each = EachBatch(source.origin, deal, name)
                return Flow(JobSource[MicroBatch](each, program, exact=True))
            raise UnsupportedTypeError(
                f"{name}() gets the items of one micro-batch, and {parts.turn!r} goes over the "
                "items of all: do that in the action"
            )
        raise UnsupportedTypeError(
            f"{name}() needs the micro-batches of from_stream(), with nothing but stages behind "
            f"it, and {flow!r} has none"
        )

    return Operator(name, apply)
