"""Flows that end as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.stages import Program
from flow_spark._sources import SparkSource, is_on_spark
from flow_spark.errors import SessionConflictError, UnsupportedTypeError
from flow_spark.items.arrow import pa
from flow_spark.items.columns import to_batches
from flow_spark.items.schema import ItemSchema
from flow_spark.items.types import item_type
from flow_spark.jobs.frames import frame_of
from flow_spark.jobs.job import lowered
from flow_spark.jobs.task import ChunkReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["to_dataframe"]


def to_dataframe(
    session: SparkSession | None = None, *, schema: object = None
) -> Operator[Any, DataFrame]:
    """End a flow as a Spark DataFrame.

    If the flow is on Spark, its items stay there, and the DataFrame is as lazy as any: the stages
    run when it is counted, written or joined. A flow of this process is run at once, to its end.

    >>> import flow_core as flow
    >>> odd = flow.range(10).pipe(on_spark(session)).filter(lambda n: n % 2)  # doctest: +SKIP
    >>> odd.pipe(to_dataframe(schema="n bigint")).write.parquet("odd")  # doctest: +SKIP

    Args:
        session: where the DataFrame is made, for a flow of this process; None takes the active one.
        schema: the columns: DDL such as ``"id bigint, name string"``, a StructType, a
            ``pyarrow.Schema``, a dataclass, NamedTuple or TypedDict, or a plain type. None takes
            what the last mapper is annotated to return.

    Returns:
        An operator that gives a DataFrame. Demand: unbounded, of a flow of this process.

    Raises:
        UnsupportedTypeError: when applied, if no schema is given and the stages do not tell.
        OrderedOperatorError: when applied, if a stage depends on an order that there is not.
        SchemaMismatchError: if an item does not fit; on Spark, from whatever runs the DataFrame.
    """
    return Operator(
        "to_dataframe",
        lambda flow: _apply(flow, session, schema),
        "" if schema is None else f"schema={schema!r}",
    )


def _apply(flow: Flow[Any], session: SparkSession | None, schema: object) -> DataFrame:
    source = flow.source
    if is_on_spark(source):
        return _on_spark(source, flow, schema)
    columns = _schema(flow, None, schema)
    table = pa.Table.from_batches(list(to_batches(flow, columns)), schema=columns.arrow)
    return frame_of(_session(session), table, columns.spark())


def _on_spark(source: SparkSource[Any], flow: Flow[Any], schema: object) -> DataFrame:
    parts = source.split(flow.stages)
    opened = source.origin.kept()
    if schema is None and not flow.stages and not isinstance(opened.reader, ChunkReader):
        return opened.df
    columns = _schema(flow, source.origin.item_type, schema)
    if not parts.local or source.origin.ordered:
        everything = Program[Any, Any](parts.remote + parts.local)
        return lowered(opened.df, opened.reader, everything, columns)
    # What has to see the items of all partitions gets them pickled, in one partition.
    remote = Program[Any, Any](parts.remote)
    partial = lowered(opened.df, opened.reader, remote, None).repartition(1)
    reader = ChunkReader((remote, opened.reader))
    return lowered(partial, reader, Program[Any, Any](parts.local), columns)


def _schema(flow: Flow[Any], source: object, given: object) -> ItemSchema:
    if given is not None:
        return ItemSchema.of(given)
    found = item_type(flow.stages, source)
    if found is None:
        raise UnsupportedTypeError(
            f"to_dataframe() does not know the columns of {flow!r}: its last mapper has no return "
            "annotation. Annotate it (def mapper(item) -> SomeDataclass), or give the columns: "
            "to_dataframe(schema='id bigint, name string')"
        )
    return ItemSchema.of(found)


def _session(given: SparkSession | None) -> SparkSession:
    from pyspark.sql import SparkSession

    found = given or SparkSession.getActiveSession()
    if found is None:
        raise SessionConflictError(
            "to_dataframe() of a flow of this process needs a session, and none is active: "
            "with flow_spark.session() as spark: flow.pipe(to_dataframe(spark))"
        )
    return found
