"""`to_dataframe`: a flow ends as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.structure import source_of
from flow_spark._spool import Spool, spooled
from flow_spark.items.columns import to_batches
from flow_spark.sinks._destination import Path
from flow_spark.sinks._framed import frame_on_spark, schema_of, session_for
from flow_spark.sources.spark_source import is_on_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["to_dataframe"]


def to_dataframe(
    session: SparkSession | None = None, *, schema: object = None, spool: Path | None = None
) -> Operator[Any, DataFrame]:
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
    """

    def apply(flow: Flow[Any]) -> DataFrame:
        source = source_of(flow)
        if is_on_spark(source):
            return frame_on_spark(source, flow, schema, "to_dataframe")
        columns = schema_of(flow, None, schema, "to_dataframe")
        opened = Spool(session_for(session, "to_dataframe"), columns, spool)
        return spooled(opened, to_batches(flow, columns))

    return Operator("to_dataframe", apply, "" if schema is None else f"schema={schema!r}")
