"""`on_spark`: the items of a flow of this process, moved to Spark."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.structure import source_of
from flow_spark.jobs.origin import FlowOrigin
from flow_spark.sources.spark_source import SparkSource, is_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["on_spark"]

T = TypeVar("T")


def on_spark(
    session: SparkSession,
    *,
    partitions: int | None = None,
    spool: str | os.PathLike[str] | None = None,
) -> Operator[T, Flow[T]]:
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
    """
    if partitions is not None and partitions < 1:
        raise ValueError(f"partitions must be at least 1, not {partitions}")
    detail = "session" if partitions is None else f"session, partitions={partitions}"
    if spool is not None:
        detail += f", spool={os.fspath(spool)!r}"

    def apply(flow: Flow[T]) -> Flow[T]:
        if is_on_spark(source_of(flow)):
            return flow  # its items are there already
        return Flow(SparkSource[T](FlowOrigin(flow, session, partitions, spool)))

    return Operator("on_spark", apply, detail)
