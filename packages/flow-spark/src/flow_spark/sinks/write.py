"""`write`: a flow ends in files, which Spark writes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.structure import source_of
from flow_spark._spool import Spool, spooled
from flow_spark.errors import (
    UnsupportedTypeError,
)
from flow_spark.items.columns import to_batches
from flow_spark.sinks._destination import Destination, Mode, Path
from flow_spark.sinks._framed import frame_for_now, schema_of, session_for
from flow_spark.sources.spark_source import is_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["write"]


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
    """
    destination = Destination(format, path, mode, partition_by, options)

    def apply(flow: Flow[Any]) -> None:
        source = source_of(flow)
        if is_on_spark(source):
            with frame_for_now(source, flow, schema, "write") as df:
                if df.isStreaming:
                    raise UnsupportedTypeError(
                        "write() writes a flow that ends, and this one is a stream: .spark."
                        "write_each(batch_writer(format, path)) writes each micro-batch of it"
                    )
                destination.save(df)
            return
        columns = schema_of(flow, None, schema, "write")
        opened = Spool(session_for(session, "write"), columns, spool)
        with _removed(opened):
            destination.save(spooled(opened, to_batches(flow, columns)))

    return Operator("write", apply, f"{format!r}, {str(path)!r}")


@contextmanager
def _removed(spool: Spool) -> Generator[None, None, None]:
    try:
        yield
    finally:
        spool.remove()
