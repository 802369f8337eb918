"""`scan_by_key`: streams with a state for each key, which outlives micro-batches and restarts."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from flow_core.clocks import Seconds, in_seconds
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages import Program, describe
from flow_core.structure import source_of, stages_of
from flow_spark.errors import UnsupportedTypeError
from flow_spark.items.hashing import stable_hash
from flow_spark.items.shapes import shorten
from flow_spark.jobs.advice import INSTALL_CONNECT
from flow_spark.jobs.stream_origin import StreamOrigin
from flow_spark.jobs.task import CHUNK_DDL, ChunkReader
from flow_spark.pickling.pickles import TaskSender, class_of_one_run, dumps
from flow_spark.sinks._framed import frame_on_spark
from flow_spark.sources.spark_source import SparkSource, is_on_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KeyStates", "scan_by_key"]

T = TypeVar("T")
K = TypeVar("K")
S = TypeVar("S")

_DDL: Final = "bucket int, payload binary"
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def scan_by_key(
    key: Callable[[T], K],
    accumulate: Callable[[S, T], S],
    seed: S,
    *,
    timeout: Seconds | None = None,
    on_timeout: Callable[[K, S], S | None] | None = None,
    order_by: Callable[[T], Any] | None = None,  # Any: any type that can be compared
) -> Operator[T, Flow[tuple[K, S]]]:
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
    """
    timeout_s = None if timeout is None else in_seconds(timeout, "the timeout")
    if timeout_s is not None and timeout_s <= 0:
        raise ValueError(f"timeout must be above 0 s, not {timeout_s} s")
    if on_timeout is not None and timeout_s is None:
        raise ValueError("on_timeout needs timeout")
    timeout_ms = None if timeout_s is None else max(1, round(timeout_s * 1000))
    states = KeyStates(key, accumulate, _pickled_seed(seed), timeout_ms, on_timeout, order_by)

    def apply(flow: Flow[T]) -> Flow[tuple[K, S]]:
        source = source_of(flow)
        if (
            not is_on_spark(source)
            or not isinstance(source.origin, StreamOrigin)
            or source.origin.chunked
            or source.split(stages_of(flow)).local
        ):
            raise UnsupportedTypeError(
                "scan_by_key() keeps states in the query of from_stream(), with nothing but stages "
                f"before it, and cannot do so for {flow!r}"
            )
        _check_protobuf()
        origin = source.origin
        keyed = frame_on_spark(source, flow.map(_Keyed(key)), _DDL, "scan_by_key")
        _use_rocksdb(keyed.sparkSession)
        # Items are unpickled in tasks that have not made them: their classes have to be there.
        needs = (Program[Any, Any](stages_of(flow)), origin.kept().readers)
        processor = _processor(dumps((states, needs), "a function of scan_by_key()"))
        # Any: PySpark's annotations do not have the function's result.
        grouped = cast("Any", keyed.groupBy("bucket"))
        df: DataFrame = grouped.transformWithState(
            statefulProcessor=processor,
            outputStructType=CHUNK_DDL,
            outputMode=origin.settings.output_mode.capitalize(),
            timeMode="none" if timeout_ms is None else "processingTime",
        )
        reader = ChunkReader((states, needs))
        settings = origin.settings.after(*(stage.name for stage in stages_of(flow)), "scan_by_key")
        return Flow(SparkSource[tuple[K, S]](StreamOrigin(df, None, settings, reader=reader)))

    return Operator("scan_by_key", apply)


def _pickled_seed(seed: object) -> bytes:
    """Pickle the seed: each key gets its own copy."""
    return dumps(seed, "the seed of scan_by_key()")


def _use_rocksdb(session: SparkSession) -> None:
    """Use RocksDB: the default state store of Spark has no timers and only one state variable."""
    if str(session.conf.get(_PROVIDER)).endswith("HDFSBackedStateStoreProvider"):
        session.conf.set(_PROVIDER, _ROCKSDB)


def _check_protobuf() -> None:
    try:
        found = importlib.util.find_spec("google.protobuf")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise ImportError(
            "scan_by_key() needs protobuf, by which Python workers talk to Spark's state store: "
            f"{INSTALL_CONNECT}"
        )


@final
@dataclass(frozen=True, slots=True)
class _Keyed:
    """Makes a row of an item: the bucket of its key, and the key and the item, pickled."""

    key: Callable[[Any], Any]

    def __call__(self, item: Any) -> tuple[int, bytes]:  # Any: items of any type
        key = self.key(item)
        hash(key)  # raises here, where the user's function is, if it is not hashable
        try:
            payload = pickle.dumps([(key, item)], 5)
        except Exception:  # one of the two has a class that came by value
            _check_lasts(key)
            payload = TaskSender().dump([(key, item)])
        return stable_hash(key), payload


def _check_lasts(key: object) -> None:
    """Refuse a key that would not be the same key after a restart."""
    try:
        pickle.dumps(key, 5)
    except Exception as error:
        cls = class_of_one_run(key)
        if cls is None:
            raise  # it cannot be pickled at all
        raise UnsupportedTypeError(
            f"scan_by_key() cannot keep a state for the key {key!r}: its class "
            f"{cls.__module__}.{cls.__qualname__} belongs to this run of the program, and after a "
            "restart no key would be equal to this one. Put the class into a module that is "
            "installed here and where the executors run, or give a tuple of plain values as key"
        ) from error


@final
@dataclass(frozen=True, slots=True)
class KeyStates:
    """The handling of the items of a bucket: the few keys with the same hash.

    Attributes:
        key: as in `scan_by_key`.
        accumulate: as in `scan_by_key`.
        seed: the pickled seed.
        timeout_ms: the timeout in milliseconds.
        on_timeout: as in `scan_by_key`.
        order_by: as in `scan_by_key`.
    """

    # Any: keys, states and items of any type
    key: Callable[[Any], Any]
    accumulate: Callable[[Any, Any], Any]
    seed: bytes
    timeout_ms: int | None
    on_timeout: Callable[[Any, Any], Any] | None
    order_by: Callable[[Any], Any] | None

    def take(
        self, kept: dict[Any, tuple[Any, int]], pairs: list[tuple[Any, Any]], now_ms: int
    ) -> Iterator[tuple[Any, Any]]:
        """Accumulate keys and items into `kept`, which has the states and their times of expiry."""
        order_by = self.order_by
        if order_by is not None:
            pairs.sort(key=lambda pair: order_by(pair[1]))
        ends = 0 if self.timeout_ms is None else now_ms + self.timeout_ms
        for key, item in pairs:
            known = kept.get(key)
            if known is not None and self.timeout_ms is not None and known[1] <= now_ms:
                yield from self.given_up(key, known[0])
                known = None
            before = pickle.loads(self.seed) if known is None else known[0]
            try:
                state = self.accumulate(before, item)
            except Exception as error:
                error.add_note(_place(self.accumulate, key) + f", at the item {shorten(item)}")
                raise
            kept[key] = state, ends
            yield key, state

    def expire(self, kept: dict[Any, tuple[Any, int]], now_ms: int) -> Iterator[tuple[Any, Any]]:
        """Remove the states that have expired from `kept`."""
        for key in [key for key, (_, ends) in kept.items() if ends <= now_ms]:
            yield from self.given_up(key, kept.pop(key)[0])

    def given_up(self, key: Any, state: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the last state of a key that has had no items for too long."""
        if self.on_timeout is not None:
            try:
                last = self.on_timeout(key, state)
            except Exception as error:
                error.add_note(_place(self.on_timeout, key))
                raise
            if last is not None:
                yield key, last


def _place(function: Callable[..., Any], key: Any) -> str:
    return f"in scan_by_key(), {describe(function)} of the key {shorten(key)}"


def _processor(states: bytes) -> object:
    """Return the processor that Spark runs in the tasks.

    It is imported here, because its base class takes half a second to import.
    """
    from flow_spark._state_processor import StateProcessor

    return StateProcessor(states)
