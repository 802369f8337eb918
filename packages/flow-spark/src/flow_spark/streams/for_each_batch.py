"""`for_each_batch` and `for_each_batch_once`: an action in this process for each micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

from flow_core.batches import BatchStore, MicroBatch
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages import Program
from flow_core.structure import source_of, stages_of
from flow_spark.errors import CheckpointConflictError, UnsupportedTypeError
from flow_spark.jobs.publisher import JobSource
from flow_spark.jobs.stream_origin import BatchItems, Deal, EachBatch, StreamOrigin
from flow_spark.jobs.streaming import StreamJob
from flow_spark.sources.spark_source import is_on_spark

__all__ = ["for_each_batch", "for_each_batch_once"]

T = TypeVar("T")
C = TypeVar("C")


def for_each_batch(
    action: Callable[[int, Iterator[T]], object],
) -> Operator[T, Flow[MicroBatch]]:
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
    """

    def deal(_: StreamJob, batch_id: int, items: BatchItems) -> bool:
        action(batch_id, iter(items))
        items.check()
        return True

    return _each_batch("for_each_batch", deal)


def for_each_batch_once(
    store: BatchStore[C],
    action: Callable[[int, Iterator[T], C], object],
    *,
    subscriber: str = "subscriber",
) -> Operator[T, Flow[MicroBatch]]:
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
