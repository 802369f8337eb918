"""`from_stream`: the rows of a streaming query, whose micro-batches are consumed in turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from flow_core.clocks import Seconds, in_seconds
from flow_core.flow import Flow
from flow_spark.jobs.run import explaining
from flow_spark.jobs.stream_origin import StreamOrigin
from flow_spark.jobs.streaming import StreamSettings
from flow_spark.sources.spark_source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["from_stream"]

R = TypeVar("R")


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
    narrow: bool = True,
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
    narrow: bool = True,
) -> Flow[Any]: ...  # Any: a type checker does not know the columns


def from_stream(
    df: DataFrame,
    *,
    as_: type[R] | str | None = None,
    checkpoint: str | Path | None = None,
    trigger: Seconds | Literal["available-now"] | None = None,
    name: str | None = None,
    output_mode: Literal["append", "update", "complete"] = "append",
    verify_schema: bool = True,
    narrow: bool = True,
) -> Flow[R] | Flow[Any]:
    """The rows of a streaming DataFrame, for as long as its query runs.

    Each subscriber starts a query. The stages that follow run where the rows are. Spark commits a
    micro-batch when the subscriber has taken all of its items, and plans the next one only then. If
    the process ends before that, Spark runs the same micro-batch again after a restart from the
    checkpoint: nothing is lost, and with `for_each_batch_once` it is not handled twice. One query
    for many subscribers: ``.publish()`` of flow-multicast.

    An item that was taken may not have been handled yet. Operators that buffer take items before
    their downstream requests these: ``observe_on`` and ``publish`` take as many as their
    `prefetch`, and a `WriteSubscriber` takes all of them, until the end. Spark may have committed
    these, and a crash then loses them. If no item may be lost, handle items in front of such a
    boundary, by `for_each_batch_once`, `for_each_batch` or `write_each`: their micro-batches are
    committed when the work is done.

    >>> rows = spark.readStream.format("rate").load()  # doctest: +SKIP
    >>> for item in from_stream(rows, checkpoint="state/rate"):  # doctest: +SKIP
    ...     print(item)

    Args:
        df: a streaming DataFrame, classic or of Spark Connect.
        as_: the type of an item; see `from_dataframe`.
        checkpoint: a folder, on any file system that Spark reaches, where Spark keeps its position.
            It belongs to one flow. None: a temporary one, and each run begins again. Without a
            `name`, a flow is identified by the names of its stages on Spark and by the sources of
            `df`; the functions in them may change between two runs.
        trigger: how long between the starts of micro-batches, in seconds; ``"available-now"`` takes
            the data that is there, and completes; None starts the next micro-batch as soon as the
            last one is consumed.
        name: the name of the query, in Spark's tools. A flow with another name cannot use the
            checkpoint; a flow with the same name is trusted, so that its stages and sources may
            change.
        output_mode: for a DataFrame that aggregates: which of its rows a micro-batch has.
        verify_schema: see `from_dataframe`.
        narrow: see `from_dataframe`. Columns and rows are left out of each micro-batch when it goes
            to the stages. The query itself stays as it is, so that functions may change between two
            runs.

    Returns: A flow. Demand: nothing starts before the first request, and while nothing is requested
        the tasks block. A subscriber that has taken all items of a micro-batch has consumed it; at
        most one more micro-batch is begun before the next request, to find out whether there is
        another item. Thread: as `from_dataframe`. Cancelling stops the query, and the micro-batch
        at hand is not committed. Errors: an error raised by a function of the stages, unwrapped;
        otherwise Spark's error for the query, or for a checkpoint that belongs to another flow.
        Fusion: absorbs stages; SYNC towards executors.

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
        origin = StreamOrigin(df, as_, settings, verify=verify_schema, narrow=narrow)
        return Flow(SparkSource[Any](origin))


def _trigger(trigger: Seconds | str | None) -> dict[str, Any]:  # Any: as in StreamSettings
    if trigger is None:
        return {}
    if trigger == "available-now":
        return {"availableNow": True}
    trigger_s = -1.0 if isinstance(trigger, str) else in_seconds(trigger, "trigger")
    if trigger_s < 0:
        raise ValueError(f"trigger takes a time, 'available-now' or None, not {trigger!r}")
    return {"processingTime": f"{round(trigger_s * 1000)} milliseconds"}
