"""`WriteSubscriber`: the items of any publisher, written to files by Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Final, final

from typing_extensions import override

from flow_core.demand import check_prefetch, replenish_limit
from flow_core.errors import is_fatal, none_given
from flow_core.protocols import CoreSubscriber, Subscription
from flow_spark._spool import Spool
from flow_spark.errors import (
    UnsupportedTypeError,
)
from flow_spark.items.columns import BATCH_ROWS, Batching
from flow_spark.items.schema import ItemSchema
from flow_spark.jobs.publisher import JobSubscription
from flow_spark.jobs.streaming import StreamJob
from flow_spark.sinks._destination import Destination, Mode, Path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WriteSubscriber"]


@final
class WriteSubscriber(CoreSubscriber[Any]):
    """A subscriber, for any publisher, whose items Spark writes to files.

    The items wait in a spool on disk, so the memory in use is bounded. When the publisher
    completes, Spark writes all items; when it fails, or is cancelled, Spark writes none.

    It is for publishers that complete. With a stream that never completes, the spool would grow and
    nothing would be written. The subscriber refuses such a stream if it is subscribed to it
    directly, but cannot recognise one behind a boundary or ``publish``. The spool does not survive
    a crash, and a stream with a checkpoint does not send its items again, since it counts them as
    consumed. So for streams that must lose nothing, use `write_each`.

    >>> subscriber = WriteSubscriber(spark, "parquet", "out", schema=Trip)  # doctest: +SKIP
    >>> publisher.subscribe(subscriber)  # doctest: +SKIP
    >>> subscriber.done.result()  # doctest: +SKIP

    Demand: `prefetch` items are requested at first, and as many again as items become columns.
    Thread: batches are written to the spool in the publisher's thread, so a slow disk holds it
    back; Spark writes from a separate thread.
    Fusion: none.

    Attributes:
        done: gets the number of items as its result when all are written. It fails with the
            publisher's error, or with an error that occurs while the items are converted, spooled
            or written; after `cancel`, it fails with CancelledError. The future itself cannot be
            cancelled: call `cancel`.

    Args:
        session: the session.
        format: as in `write`.
        path: as in `write`.
        schema: the columns, as for `to_dataframe`.
        mode: as in `write`.
        partition_by: as in `write`.
        options: as in `write`.
        spool: as in `write`.
        prefetch: how many items may be on their way, and so in memory. In addition, up to the same
            number, but at most 10,000, are held as columns until they are written to the spool.

    Raises:
        ValueError: if `mode` is unknown, or `prefetch` less than 1.
        UnsupportedTypeError: if `schema` has no counterpart in Spark. If the publisher is a stream
            without an end, it is not raised: `done` fails with it.
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
        self._destination: Final = Destination(format, path, mode, partition_by, options)
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

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
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

    @override
    def on_next(self, item: Any, /) -> None:  # Any: items of any type
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

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        with self._lock:
            self._subscription = None  # §2.4
        self._fail(error)

    @override
    def on_complete(self) -> None:
        """Have Spark write the items."""
        with self._lock:
            ended, self._ended = self._ended, True
            self._subscription = None  # §2.4
        if not ended:
            threading.Thread(target=self._write, name="flow-spark-write", daemon=True).start()

    def cancel(self) -> None:
        """Stop, and write nothing. Any thread may call this, and more than once."""
        self._fail(CancelledError("the flow was cancelled before all items had come"))

    def _portion(self) -> int:
        """Return how many items become columns at once."""
        return min(replenish_limit(self._prefetch), self._batching.wanted)

    def _take_in(self) -> None:
        """Make columns of the items so far; put them into the spool if they complete a batch."""
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
        except BaseException as error:  # an error in a thread has no caller to propagate to
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
        # Otherwise the publisher's thread, which may be making files, removes them.
        if not spooling:
            self._settle(error)

    def _settle(self, failure: BaseException | None) -> None:
        self._items = []
        self._batching.clear()
        try:
            self._spool.remove()
        finally:  # a thread that waits must not wait for ever, whatever is wrong with the files
            if failure is None:
                self.done.set_result(self._batching.count)
            else:
                self.done.set_exception(failure)


def _is_endless(subscription: Subscription) -> bool:
    if not isinstance(subscription, JobSubscription):
        return False
    job = subscription.job
    return isinstance(job, StreamJob) and job.endless
