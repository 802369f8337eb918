"""A flow of this process as a stream of Spark."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from flow_core import hooks
from flow_core.clocks import Seconds, in_seconds
from flow_core.errors import is_fatal, none_given
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Subscription
from flow_core.structure import stages_of
from flow_spark._segments import Lock, Outcome, Segments, SpoolPosition
from flow_spark._spool import local_folder
from flow_spark.errors import SessionConflictError, SpoolError, UnsupportedTypeError
from flow_spark.items.columns import BATCH_ROWS, to_batches
from flow_spark.items.schema import ItemSchema
from flow_spark.items.types import item_type
from flow_spark.jobs.frames import arrow_schema, is_connect, release_of
from flow_spark.platforms import check_platform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["stream_source"]

T = TypeVar("T")

_LOOK_EVERY_S: Final = 0.02
_HANDOVER_S: Final = 5.0
_SINCE: Final = (4, 2)
_OPENING_S: Final = 1.0
"""The time that another process may take to open the spool, in seconds."""


def stream_source(
    flow: Flow[T] | Callable[[int], Flow[T]],
    session: SparkSession,
    *,
    spool: str | os.PathLike[str],
    schema: object = None,
    segment_rows: int = BATCH_ROWS,
    flush: Seconds = 0.1,
    batch_segments: int = 8,
    window: int | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """A flow of this process as a streaming DataFrame.

    When a query of the DataFrame starts, the flow is subscribed to, and its items are put into a
    spool on disk, in segments that survive a crash. A micro-batch consists of whole segments;
    segments of committed micro-batches are removed. If the query is slower than the flow, the spool
    fills up to its window, and nothing more is requested.

    After a restart, with the same spool and checkpoint, the query continues where it was, without
    loss and without duplicates. The flow is subscribed to again. If `flow` is a flow, it has to
    send the same items again: those that the spool has already had are skipped. If `flow` is a
    function, it is called with that number, and returns the flow of the items that follow:

    >>> lines = stream_source(  # doctest: +SKIP
    ...     lambda seen: read_log(after=seen), spark, schema="line string", spool="state/spool"
    ... )
    >>> lines.writeStream.option("checkpointLocation", "state/done").start()  # doctest: +SKIP

    Args:
        flow: the flow to stream.
        session: the session.
        spool: a folder that the driver and all executors see under this path. It is made so that
            only this user can look into it, and belongs to one flow and one query.
        schema: the columns, as for `to_dataframe`. None for the annotated return type of the last
            mapper of `flow`.
        segment_rows: the most items in a segment. As many further items may be in memory, on their
            way to the spool.
        flush: how long, in seconds, until a segment that is not full is closed, if Spark waits for
            it.
        batch_segments: the most segments in a micro-batch.
        window: how many segments wait on disk for a micro-batch; the segments of the current
            micro-batch are not counted. At least as many as in two micro-batches; None for that
            number.
        tasks: how many tasks read a micro-batch; None for as many as there are cores, or 8.

    Returns:
        A streaming DataFrame, for one query at a time. The trigger ``availableNow`` takes the flow
        to its end, or until nothing has come for ten seconds; with others, the first micro-batch
        of a query may be empty. Demand: bounded by `window`; nothing
        is requested before a query runs, and the flow is cancelled when the query stops. Thread:
        the flow is subscribed to in a separate thread. Errors: an error of the flow ends the
        query, after the items before it; the query's error has its text. A restart tries the
        flow again.

    Raises:
        SessionConflictError: if Spark is older than 4.2.
        UnsupportedPlatformError: on Windows, which has no such locks.
        SpoolError: if the spool is in use, or holds other columns.
        UnsupportedTypeError: if the columns are not known.
        ValueError: if a number is too small, or `spool` is not a path of this machine.
    """
    check_platform()
    if release_of(session.version) < _SINCE:
        raise SessionConflictError(
            f"stream_source() needs Spark 4.2, and the session runs {session.version}, which asks "
            "a source of Python for all that there is at the moment and takes that for its end. "
            "Write the flow to files, .spark.write('parquet', path, mode='append'), and read these "
            "as a stream; or upgrade Spark"
        )
    window = 2 * batch_segments if window is None else window
    if min(segment_rows, batch_segments) < 1 or (tasks is not None and tasks < 1):
        raise ValueError("segment_rows, batch_segments and tasks must be at least 1")
    if window < 2 * batch_segments:
        raise ValueError(
            f"window must be at least two micro-batches, {2 * batch_segments}, not {window}: "
            "Spark commits one only when it has planned the next"
        )
    flush_s = in_seconds(flush, "flush")
    if flush_s < 0:
        raise ValueError(f"flush must be at least 0 s, not {flush_s} s")
    folder = local_folder(spool)
    if folder is None:
        raise ValueError(f"spool must be a path that this process can write to, not {spool!r}")
    columns = _columns(flow, schema)
    # Any: an object that can be called, too, might be a flow of other items.
    make = _skipping(cast("Any", flow)) if isinstance(flow, Flow) else flow
    settings = _Settings(segment_rows, flush_s, window)
    _Feeder(session, Segments.made(folder.absolute(), columns.arrow), make, columns, settings)

    from flow_spark._segment_source import FORMAT, SegmentSource, options

    session.dataSource.register(SegmentSource)
    given = options(folder.absolute(), batch_segments, tasks or _cores(session))
    return session.readStream.format(FORMAT).options(**given).schema(columns.spark()).load()


def _columns(
    flow: Flow[Any] | Callable[[int], Flow[Any]], schema: object
) -> ItemSchema:  # Any: items of any type
    found = schema
    if found is None and not callable(flow):
        found = item_type(stages_of(flow), None)
    if found is None:
        raise UnsupportedTypeError(
            "stream_source() does not know the columns: give schema='id bigint, name string', or a "
            "dataclass; or let the last mapper of the flow be annotated to return one"
        )
    # There and back once, so that the segments are just as Spark expects.
    columns = ItemSchema.of(found)
    return ItemSchema(arrow_schema(columns.spark()), columns.item_type, columns.struct)


def _skipping(flow: Flow[T]) -> Callable[[int], Flow[T]]:
    return lambda seen: flow.skip(seen) if seen else flow


def _cores(session: SparkSession) -> int:
    return 8 if is_connect(session) else session.sparkContext.defaultParallelism


@final
@dataclass(frozen=True, slots=True)
class _Settings:
    segment_rows: int
    flush_s: float
    window: int


_feeders: Final[weakref.WeakValueDictionary[Path, _Feeder]] = weakref.WeakValueDictionary()
_feeders_lock: Final = threading.Lock()


@final
class _Feeder:
    """Puts the items of a flow into the spool, as long as a query reads it.

    Its thread ends with the session, or when another feeder takes over.
    """

    __slots__ = (
        "__weakref__",
        "_columns",
        "_lock",
        "_make",
        "_over",
        "_segments",
        "_session",
        "_settings",
        "_thread",
    )

    def __init__(
        self,
        session: SparkSession,
        segments: Segments,
        make: Callable[[int], Flow[Any]],
        columns: ItemSchema,
        settings: _Settings,
    ) -> None:
        self._session: Final = session
        self._segments: Final = segments
        self._make: Final = make
        self._columns: Final = columns
        self._settings: Final = settings
        self._over: Final = threading.Event()
        self._lock: Final[Lock] = segments.writer
        with _feeders_lock:
            before = _feeders.get(segments.folder)
            if before is not None:
                before.leave()
            if not self._lock.acquire(_OPENING_S):
                raise SpoolError(
                    f"another process feeds the spool {segments.folder}; end it, or name another"
                )
            _feeders[segments.folder] = self
        outcome = segments.outcome()
        if outcome is not None and outcome.error is not None:
            segments.reopen()
        self._thread: Final = threading.Thread(
            target=self._run, name="flow-spark-spool", daemon=True
        )
        self._thread.start()

    def leave(self) -> None:
        """Make room for another feeder, if no query runs.

        Raises:
            SpoolError: if a query runs.
        """
        deadline = time.monotonic() + _HANDOVER_S
        while self._thread.is_alive() and self._read():
            if time.monotonic() < deadline:  # a query that was stopped needs a moment to end
                time.sleep(_LOOK_EVERY_S)
                continue
            raise SpoolError(
                f"a query reads the spool {self._segments.folder}: stop it before another flow "
                "takes its place, or use the DataFrame that there is"
            )
        self._over.set()
        self._thread.join(_HANDOVER_S)

    def _read(self) -> bool:
        return self._segments.reader.held_by_anyone()

    def _run(self) -> None:
        try:
            while not self._over.is_set() and self._session_lives():
                if not self._segments.folder.exists():
                    return  # it is no longer needed
                outcome = self._segments.outcome()
                if outcome is None:
                    if self._read():
                        self._feed()
                elif outcome.error is not None and not self._read():
                    self._segments.reopen()  # the query has got the error
                self._over.wait(_LOOK_EVERY_S)
        except Exception as error:  # an error in a thread has no caller to propagate to
            if self._segments.folder.exists():
                hooks.drop_error(error)
        finally:
            self._lock.release()

    def _session_lives(self) -> bool:
        if is_connect(self._session):
            stopped: object = getattr(self._session, "is_stopped", False)
            return not stopped
        context: object = self._session.sparkContext
        return getattr(context, "_jsc", None) is not None

    def _feed(self) -> None:
        """Feed the spool until the flow or the query ends."""
        segments = self._segments
        end = segments.end()
        intake = _Intake(self._settings.segment_rows)
        try:
            flow = self._make(end.items)
        except Exception as error:
            segments.conclude(Outcome(_told(error)))
            return
        threading.Thread(
            target=intake.run, args=(flow,), name="flow-spark-intake", daemon=True
        ).start()
        waiting: list[Any] = []
        patience_s = self._settings.flush_s
        try:
            while self._read():
                ahead = end.segment - segments.planned()
                full = ahead >= self._settings.window
                if self._over.wait(_LOOK_EVERY_S if full else 0.0):
                    break
                if full:
                    continue
                waiting += intake.take(self._settings.segment_rows - len(waiting), patience_s)
                if intake.ended() and not waiting:
                    segments.conclude(Outcome(intake.told()))
                    return
                # During a micro-batch, further items can wait for a segment to be full.
                if len(waiting) == self._settings.segment_rows or ahead <= 0 or intake.ended():
                    end, waiting = self._append(waiting, end), []
        except Exception as error:  # an item does not fit, or the disk is full
            segments.conclude(Outcome(_told(error)))
            return
        finally:
            intake.cancel()
        # Items of a source that cannot be asked again are not lost, in bounded number.
        waiting += intake.take(self._settings.segment_rows, 0.0)
        try:
            self._append(waiting, end)
        except Exception as error:  # the disk is full, and there is no query to fail
            hooks.drop_error(error)

    def _append(self, items: list[Any], end: SpoolPosition) -> SpoolPosition:
        if not items:
            return end
        batches = list(to_batches(items, self._columns, first=end.items))
        return self._segments.append(batches, self._columns.arrow, end)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@final
class _Intake(CoreSubscriber[Any]):
    """Holds as many items as were requested, for a thread that takes them in portions.

    All requests come from the thread of `run`, in which a synchronous source sends its items: the
    source never holds up the thread that takes items.
    """

    __slots__ = (
        "_change",
        "_done",
        "_items",
        "_subscription",
        "_wanted",
        "error",
    )

    def __init__(self, prefetch: int) -> None:
        self._change: Final = threading.Condition()
        self._items: Final[deque[Any]] = deque()
        self._subscription: Subscription | None = None
        self._wanted = prefetch
        self._done = False
        self.error: BaseException | None = None

    def run(self, flow: Flow[Any]) -> None:
        """Subscribe, and request until the end."""
        try:
            flow.subscribe(self)
        except Exception as error:
            self.on_error(error)
        while True:
            with self._change:
                while not (self._wanted and self._subscription) and not self._done:
                    self._change.wait()
                if self._done:
                    return
                wanted, self._wanted = self._wanted, 0
                subscription = self._subscription
            if subscription is not None:
                subscription.request(wanted)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        with self._change:
            refused = self._done or self._subscription is not None
            if not refused:
                self._subscription = subscription
                self._change.notify_all()
        if refused:
            subscription.cancel()  # §2.5, or cancelled meanwhile

    def on_next(self, item: Any, /) -> None:
        with self._change:
            if not self._done:
                self._items.append(item)
                self._change.notify_all()

    def on_next_raised(self, error: BaseException, /) -> bool:
        if is_fatal(error):
            return False
        self.on_error(error)
        return True

    def on_error(self, error: BaseException, /) -> None:
        with self._change:
            if not self._done:
                self.error = error
            self._done = True
            self._change.notify_all()

    def on_complete(self) -> None:
        with self._change:
            self._done = True
            self._change.notify_all()

    def ended(self) -> bool:
        """Return whether no item is left, and none will come."""
        with self._change:
            return self._done and not self._items

    def told(self) -> str | None:
        """Return the error of the flow as text; None if it completed."""
        return None if self.error is None else _told(self.error)

    def take(self, most: int, patience_s: float) -> list[Any]:
        """Take up to `most` items: wait a moment for the first, and `patience_s` for the rest."""
        with self._change:
            if not self._items and not self._done:
                self._change.wait(_LOOK_EVERY_S)
            if not self._items:
                return []
            deadline = time.monotonic() + patience_s
            while len(self._items) < most and not self._done:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._change.wait(left)
            taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
            self._wanted += len(taken)
            self._change.notify_all()
            return taken

    def cancel(self) -> None:
        """Stop; items that have come can still be taken."""
        with self._change:
            self._done = True
            subscription = self._subscription
            self._change.notify_all()
        if subscription is not None:
            subscription.cancel()
