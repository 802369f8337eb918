"""What flow-spark does with a flow; written by tools/surface.py."""

# mypy: disable-error-code="no-any-return, import-untyped"
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, overload

from flow_core.stages._fluent import Fluent, Words

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Literal

    import pandas
    from pyspark.sql import Column, DataFrame, SparkSession

    from flow_core.batches import BatchStore, MicroBatch
    from flow_core.clocks import Seconds
    from flow_core.flow import Flow

__all__ = ["SparkMethods", "SparkWords"]

C = TypeVar("C")
K = TypeVar("K")
R = TypeVar("R")
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)


class SparkMethods(Fluent[T_co], Generic[T_co]):
    """The methods of `Flow` that flow-spark executes."""

    _package: ClassVar[str] = "flow-spark"
    __slots__ = ()

    def on_spark(
        self,
        session: SparkSession,
        *,
        partitions: int | None = None,
        spool: str | os.PathLike[str] | None = None,
    ) -> Flow[T_co]:
        """Move the flow so far to Spark, so that the stages that follow run there.

        Spark itself makes a range. Any other flow runs in this process when the job starts, and its
        items are sent: they must be finite in number and picklable. Memory is bounded: on ``local``
        masters they go through files; to other clusters 32 MiB of them can be sent, pickled, and more
        go through files in `spool`, or fail with a `SpoolError` that asks for it. A Spark Connect
        server on this machine needs no `spool` if its master is local and it sees the files here.

        >>> import flow_core as flow
        >>> flow.range(10).on_spark(session).map(lambda n: n * n).count()  # doctest: +SKIP

        Demand: everything is requested of the flow before it; the flow on Spark respects demand like
        that of `from_dataframe`, and has the same threads and fusion.

        Args:
            session: the session to move to.
            partitions: into how many parts the items are divided; None leaves it to Spark. With 1 the
                order is kept, and operators that depend on it are allowed.
            spool: a folder that this process and all executors see under this path, or the address of
                one where Spark writes (``hdfs://…``, ``s3a://…``). The files are removed after a job.

        Raises:
            ValueError: if `partitions` is less than 1.
            SpoolError: when it runs, if there are more items than can be sent.

        Executed by flow-spark: `flow_spark.on_spark`.
        """
        return self._plugged(
            "flow_spark.sources.on_spark:on_spark", session, partitions=partitions, spool=spool
        )

    def to_arrow(self, *, limit: int | None = 1000000, schema: object = None) -> Any:
        """End a flow as a ``pyarrow.Table`` in the memory of this process.

        >>> import flow_core as flow
        >>> flow.range(3).to_arrow(schema="n bigint").num_rows  # doctest: +SKIP
        3

        Demand: bounded, for at most one item more than `limit`. Thread: the calling one, as for
        `write`.

        Args:
            limit: how many items may be held in memory; one more is an error, so that an unexpectedly
                large flow does not exhaust it. None for no limit.
            schema: the columns, as for `to_dataframe`. DDL needs a session.

        Raises:
            ValueError: if `limit` is less than 1.
            LimitExceededError: when applied, if there are more items than `limit`.
            UnsupportedTypeError: when applied, as with `to_dataframe`.
            OrderedOperatorError: when applied, as with `to_dataframe`.
            SchemaMismatchError: when applied, if an item of a flow of this process does not fit.
            SparkJobError: when applied, as with `write`.

        Executed by flow-spark: `flow_spark.to_arrow`.
        """
        return self._plugged("flow_spark.sinks.to_arrow:to_arrow", limit=limit, schema=schema)

    def to_dataframe(
        self,
        session: SparkSession | None = None,
        *,
        schema: object = None,
        spool: str | os.PathLike[str] | None = None,
    ) -> DataFrame:
        """End a flow as a Spark DataFrame.

        If the flow is on Spark, its items stay there, and the DataFrame is as lazy as any: the stages
        run when it is counted, written or joined. A flow of this process is run at once, to its end, in
        bounded memory: more than a MiB goes through Parquet files. They are removed when the session
        ends, if `session()` opened it, and otherwise when this process ends.

        >>> import flow_core as flow
        >>> odd = flow.range(10).on_spark(session).filter(lambda n: n % 2)  # doctest: +SKIP
        >>> odd.to_dataframe(schema="n bigint").write.parquet("odd")  # doctest: +SKIP

        Demand: a flow of this process gets bounded requests, as its items are written.

        Args:
            session: the session of the DataFrame, for a flow of this process; None for the active one.
            schema: the columns: DDL such as ``"id bigint, name string"``, a StructType, a
                ``pyarrow.Schema``, a dataclass, NamedTuple or TypedDict, or a plain type. None for the
                annotated return type of the last mapper.
            spool: a folder, which the cluster reaches under the same path, or a URL (`write` says
                more), for the files of a flow of this process; None takes a temporary folder, which is
                enough for ``local`` masters. Files under a URL, which Spark writes, are not removed.

        Raises:
            UnsupportedTypeError: when applied, if no schema is given and the stages do not have one, or
                if the flow is a stream and a stage needs all of its items at once.
            OrderedOperatorError: when applied, if a stage depends on an order, and the items have none.
            SchemaMismatchError: if an item does not fit; on Spark, when the DataFrame runs.
            SpoolError: when applied, if the items do not fit into memory, and there is no place for
                files.

        Executed by flow-spark: `flow_spark.to_dataframe`.
        """
        return self._plugged(
            "flow_spark.sinks.to_dataframe:to_dataframe", session, schema=schema, spool=spool
        )

    def to_pandas(self, *, limit: int | None = 1000000, schema: object = None) -> pandas.DataFrame:
        """End a flow as a ``pandas.DataFrame`` in the memory of this process.

        >>> import flow_core as flow
        >>> flow.range(3).to_pandas(schema="n bigint")["n"].sum()  # doctest: +SKIP
        3

        A column of ints with a null among them gets a nullable type of pandas, such as ``Int64``:
        pandas would make floats of the ints, and large ones would lose digits. Maps become dicts;
        Variants, geometries and user-defined types become the same objects as in items.

        Demand and thread are those of `to_arrow`.

        Args:
            limit: as for `to_arrow`.
            schema: as for `to_arrow`.

        Raises:
            ValueError: as with `to_arrow`.
            LimitExceededError: as with `to_arrow`.
            UnsupportedTypeError: as with `to_arrow`.
            OrderedOperatorError: as with `to_arrow`.
            SchemaMismatchError: as with `to_arrow`.
            SparkJobError: as with `to_arrow`.

        Executed by flow-spark: `flow_spark.to_pandas`.
        """
        return self._plugged("flow_spark.sinks.to_pandas:to_pandas", limit=limit, schema=schema)

    @property
    def spark(self) -> SparkWords[T_co]:
        """What else flow-spark does with a flow: `SparkWords`."""
        return SparkWords(self)


class SparkWords(Words[T_co], Generic[T_co]):
    """The methods of ``flow.spark``, for flows that flow-spark runs."""

    _package: ClassVar[str] = "flow-spark"
    __slots__ = ()

    def for_each_batch(self, action: Callable[[int, Iterator[T_co]], object]) -> Flow[MicroBatch]:
        """Handle a stream micro-batch by micro-batch, as with ``foreachBatch``, but in this process.

        After a crash the micro-batch that was not committed comes again, with the same number: the
        action should overwrite what it did the first time, or be given to `for_each_batch_once`.

        >>> def save(batch_id: int, items) -> None:
        ...     write(f"part-{batch_id}.json", items)
        >>> rows = from_stream(df, checkpoint="state/rows")  # doctest: +SKIP
        >>> rows.spark.for_each_batch(save).subscribe()  # doctest: +SKIP

        Use it on a flow of `from_stream` that is followed only by stages. The result is a flow with a
        `MicroBatch` for each micro-batch, which Spark commits when the subscriber has got it.

        Demand: exact; the action is called for a micro-batch when that is requested. Fusion: none.
        Errors: an error raised by the action fails the flow, and the micro-batch is not committed.

        Args:
            action: called with the number of the micro-batch and its items, which are read, in bounded
                memory, as the action iterates over them. Items that the action does not read are
                skipped. It is called in the thread that iterates over the flow, or in that of the
                subscription.

        Raises:
            UnsupportedTypeError: when applied to any other flow.

        Executed by flow-spark: `flow_spark.for_each_batch`.
        """
        return self._plugged("flow_spark.streams.for_each_batch:for_each_batch", action)

    def for_each_batch_once(
        self,
        store: BatchStore[C],
        action: Callable[[int, Iterator[T_co], C], object],
        *,
        subscriber: str = "subscriber",
    ) -> Flow[MicroBatch]:
        """Handle each micro-batch of a stream exactly once, even if there are crashes in between.

        The store saves the last number in one transaction with the effects of the action. By that
        number, the store recognises a micro-batch that Spark runs again after a crash; the action is
        not called for it.

        A checkpoint and a store belong together. When one of them is restored from a backup, Spark may
        send other rows under a number that the store knows: the flow fails with
        `CheckpointConflictError`, and nothing is done. This check costs a few small jobs of Spark for
        each micro-batch, which read the checkpoint.

        >>> store = SqliteBatchStore("totals.db")  # doctest: +SKIP
        >>> def add(batch_id: int, amounts, db) -> None:
        ...     db.execute("UPDATE totals SET amount = amount + ?", (sum(amounts),))
        >>> rows = from_stream(df, checkpoint="state/totals")  # doctest: +SKIP
        >>> rows.spark.for_each_batch_once(store, add).subscribe()  # doctest: +SKIP

        The result is that of `for_each_batch`; `MicroBatch.repeated` is True if the action was not
        called. Demand, thread, fusion and errors are those of `for_each_batch`.

        Args:
            store: keeps the numbers: a `SqliteBatchStore`, or your own `BatchStore`. The numbers are
                those of a query, which is identified by its checkpoint: without a checkpoint, each run
                would be a new query, and do everything again.
            action: called with the number, the items as in `for_each_batch`, and the object that the
                store provides to work with, such as a database connection. Effects of the action
                elsewhere are not part of the transaction.
            subscriber: distinguishes several users of one store.

        Raises:
            UnsupportedTypeError: when applied to anything but a flow of `from_stream` and stages, or to
                such a flow without a checkpoint.

        Executed by flow-spark: `flow_spark.for_each_batch_once`.
        """
        return self._plugged(
            "flow_spark.streams.for_each_batch:for_each_batch_once",
            store,
            action,
            subscriber=subscriber,
        )

    def scan_by_key(
        self,
        key: Callable[[T_co], K],
        accumulate: Callable[[S, T_co], S],
        seed: S,
        *,
        timeout: Seconds | None = None,
        on_timeout: Callable[[K, S], S | None] | None = None,
        order_by: Callable[[T_co], Any] | None = None,
    ) -> Flow[tuple[K, S]]:
        """Accumulate the items of each key of a stream, on the cluster, over all micro-batches.

        For each item, the flow sends its key with the new state, like ``group_by(key)`` and ``scan``.
        Spark keeps the states in its checkpoint: after a restart they continue.

        >>> rows = from_stream(trips, as_=Trip, checkpoint="state/totals")  # doctest: +SKIP
        >>> totals = rows.spark.scan_by_key(  # doctest: +SKIP
        ...     lambda trip: trip.origin, lambda total, trip: total + trip.minutes, 0
        ... )

        Items of one key come in the order of their micro-batches. Within a micro-batch, Spark promises
        no order; with `order_by`, the items are sorted, in memory.

        Use it on a flow of `from_stream` that is followed only by stages. The result is a flow of the
        same query: stages are absorbed, and `for_each_batch` can follow; one `scan_by_key` cannot
        follow another.

        Demand, thread and fusion are those of `from_stream`.
        Errors: an error raised by one of these functions, or by a stage before `scan_by_key`, ends the
        query, and the query's error has its text; an error raised by a stage that follows arrives
        unwrapped.

        Args:
            key: returns the key of an item; hashable. Equal keys belong together. Keys of plain types,
                tuples and frozen dataclasses are divided among the tasks; those of other classes are
                all handled in one place. The classes of keys are needed again after a restart, so they
                have to be in installed modules: the first key whose class is in a script ends the
                query.
            accumulate: called with the state of the item's key and the item; returns the new state. A
                state has to be picklable; it is kept between runs of the program, so its class should
                be in a module that can be imported.
            seed: the state of a key before its first item.
            timeout: how long, in seconds, a key may go without an item until its state is dropped; the
                next item begins with the seed again. Spark looks at the time once in each micro-batch.
                None to keep states for ever.
            on_timeout: called with the key and the dropped state; its result is sent as the last state
                of the key, and for None nothing is sent.
            order_by: returns the value by which items of one key are sorted within a micro-batch.

        Raises:
            ValueError: if `timeout` is not positive, or `on_timeout` is given without a `timeout`.
            UnsupportedTypeError: when applied to any other flow.
            NotPicklableError: when applied, if a function or the seed cannot be sent to the cluster.
            ImportError: when applied, if protobuf is missing, which Spark needs for states.

        RocksDB keeps the states: it becomes the session's state store if the session has the default
        one. The states are divided into ``spark.sql.shuffle.partitions`` parts when a query first
        starts, and stay so: on one machine, a few are enough.

        Executed by flow-spark: `flow_spark.scan_by_key`.
        """
        return self._plugged(
            "flow_spark.streams.scan_by_key:scan_by_key",
            key,
            accumulate,
            seed,
            timeout=timeout,
            on_timeout=on_timeout,
            order_by=order_by,
        )

    @overload
    def select(self, *columns: Column | str, as_: type[R]) -> Flow[R]: ...
    @overload
    def select(self, *columns: Column | str, as_: str | None = None) -> Flow[Any]: ...
    def select(self, *columns: Column | str, as_: type[R] | str | None = None) -> Flow[Any]:
        """Make rows of other columns, in Spark's own engine.

        >>> from pyspark.sql.functions import col
        >>> rows = from_dataframe(df)  # doctest: +SKIP
        >>> rows.spark.select("origin", (col("minutes") / 60).alias("hours"))  # doctest: +SKIP

        Use it on a flow of `from_dataframe` or `from_stream`, behind which there is nothing but `where`
        and `select`.

        Demand, thread and fusion are those of `from_dataframe`.

        Args:
            columns: names, or expressions.
            as_: the type of an item, as in `from_dataframe`. With None, the type stays the same if
                items were tuples, dicts or Rows; otherwise an item is the bare value if there is only
                one column, else a tuple.

        Raises:
            TypeError: if a column is neither a name nor an expression; a function of an item belongs in
                ``map``.
            UnsupportedTypeError: when applied, if the flow has a stage already, or has no columns.
            SchemaMismatchError: when applied, if the columns do not fit `as_`.
            ValueError: if there are no columns.

        Executed by flow-spark: `flow_spark.select`.
        """
        return self._plugged("flow_spark.columns.select:select", *columns, as_=as_)

    def where(self, condition: Column | str) -> Flow[T_co]:
        """Keep the rows for which a condition over columns is true.

        Spark's own engine applies it, before a row reaches Python, and often before it is read at all:
        the statistics of a file, or a database, can answer the condition. It may use columns that the
        items do not have.

        >>> from pyspark.sql.functions import col
        >>> rows = from_dataframe(df, as_=Trip)  # doctest: +SKIP
        >>> rows.spark.where(col("minutes") > 3).map(lambda trip: trip.origin)  # doctest: +SKIP

        Use it on a flow of `from_dataframe` or `from_stream`, behind which there is nothing but `where`
        and `select`.

        Demand, thread and fusion are those of `from_dataframe`.

        Args:
            condition: a ``Column``, or SQL such as ``"minutes > 3"``.

        Raises:
            TypeError: if `condition` is neither; a function of an item belongs in ``filter``.
            UnsupportedTypeError: when applied, if the flow has a stage already, or has no columns.

        Executed by flow-spark: `flow_spark.where`.
        """
        return self._plugged("flow_spark.columns.where:where", condition)

    def write(
        self,
        format: str,
        path: str | os.PathLike[str],
        *,
        mode: Literal["error", "append", "overwrite", "ignore"] = "error",
        partition_by: str | Iterable[str] = (),
        schema: object = None,
        options: Mapping[str, str | int | float | bool] | None = None,
        session: SparkSession | None = None,
        spool: str | os.PathLike[str] | None = None,
    ) -> None:
        """Have Spark write a flow to files.

        If the flow is on Spark, its items go from the executors to the files, not through this process.
        A flow of this process is run to its end first, in bounded memory: its items wait in a spool,
        and Spark writes them only once all are there. So a flow that fails leaves nothing behind.

        >>> trips = from_dataframe(df).filter(is_late)  # doctest: +SKIP
        >>> trips.spark.write("parquet", "late", mode="overwrite")  # doctest: +SKIP

        Demand: a flow of this process gets bounded requests, as its items are written to the spool.
        Thread: the calling one, which waits for Spark; if it is interrupted, the job is cancelled.

        Args:
            format: ``"parquet"``, ``"csv"``, ``"json"``, ``"orc"`` or any other format of Spark.
            path: the folder to make, on any file system that Spark reaches.
            mode: what to do if `path` exists: ``"error"``, ``"append"``, ``"overwrite"`` or
                ``"ignore"``.
            partition_by: the columns whose values become folders.
            schema: the columns, as for `to_dataframe`.
            options: options of the format, such as ``{"header": True}``.
            session: as for `to_dataframe`.
            spool: where the items of a flow of this process wait: a path on a shared file system, which
                the executors see, too; or a URL (``hdfs://…``, ``s3a://…``) under which Spark itself
                puts the files. None for a temporary folder, which is enough for ``local`` masters;
                other clusters get up to 32 MiB without such a folder.

        Raises:
            ValueError: if `mode` is unknown.
            UnsupportedTypeError: when applied, if the columns are not known; or if the flow is a
                stream: use `write_each` for that.
            OrderedOperatorError: when applied, as with `to_dataframe`.
            SchemaMismatchError: when applied, if an item of a flow of this process does not fit.
            SpoolError: when applied, as with `to_dataframe`.
            SparkJobError: when applied, if Spark's job fails; the text says what to do, if that is
                known.

        Executed by flow-spark: `flow_spark.write`.
        """
        return self._plugged(
            "flow_spark.sinks.write:write",
            format,
            path,
            mode=mode,
            partition_by=partition_by,
            schema=schema,
            options=options,
            session=session,
            spool=spool,
        )

    def write_each(
        self, *sinks: Callable[[DataFrame, int], object], schema: object = None
    ) -> Flow[MicroBatch]:
        """Pass each micro-batch of a stream to several sinks on the cluster, in one query.

        The stages before `write_each` run once: their results are kept on the executors while the sinks
        take them, one after the other, and the next micro-batch begins when all sinks have taken this
        one. The items do not pass through this process.

        >>> late = from_stream(trips, checkpoint="state/late").filter(is_late)  # doctest: +SKIP
        >>> batches = late.spark.write_each(  # doctest: +SKIP
        ...     batch_writer("parquet", "late"), lambda df, n: df.write.jdbc(url, "late")
        ... )
        >>> handle = batches.subscribe(print)  # starts the query  # doctest: +SKIP
        >>> handle.dispose()  # stops it  # doctest: +SKIP

        After a crash the micro-batch that was not committed comes again, with the same number, to all
        sinks. `batch_writer` overwrites what it wrote the first time; other sinks should do the same.
        With ``.publish()`` of flow-multicast behind `write_each`, ``connect()`` starts the query.

        Use it on a flow of `from_stream` that is followed only by stages. The result is a flow with a
        `MicroBatch` for each micro-batch, which Spark commits when the subscriber has got it.

        Demand: exact; sinks get a micro-batch when it is requested. Thread: as with `from_stream`.
        Fusion: none.
        Errors: an error raised by a sink ends the query; its text names the sink, and the micro-batch
        is not committed.

        Args:
            sinks: called with the rows of a micro-batch as a DataFrame, and its number. They run in
                this process; with Spark Connect, they are pickled, and run in a process of the server.
            schema: the columns, as for `to_dataframe`.

        Raises:
            ValueError: if there are no sinks.
            TypeError: if a sink cannot be called.
            UnsupportedTypeError: when applied to any other flow, or if the columns are not known.
            NotPicklableError: when subscribed, with Spark Connect, if a sink cannot be sent.

        Executed by flow-spark: `flow_spark.write_each`.
        """
        return self._plugged("flow_spark.streams.write_each:write_each", *sinks, schema=schema)
