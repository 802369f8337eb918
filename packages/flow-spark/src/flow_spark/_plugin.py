"""What flow-spark registers with the core."""

from __future__ import annotations

from collections.abc import Iterator

from flow_core.plugins import (
    Backpressure,
    ConverterSpec,
    EngineSpec,
    OperatorSpec,
    Placement,
    SinkSpec,
    SourceSpec,
    hookimpl,
)
from flow_core.protocols import Fusion

_ON_EXECUTORS = Fusion.SYNC | Fusion.THREAD_BOUNDARY


@hookimpl
def flow_sources() -> Iterator[SourceSpec]:
    """Where flows can begin."""
    yield SourceSpec(
        "from_dataframe",
        "flow_spark._sources:from_dataframe",
        summary="The rows of a Spark DataFrame; stages run where the rows are.",
        answers=_ON_EXECUTORS,
        distributed=True,
    )
    yield SourceSpec(
        "from_stream",
        "flow_spark._streams:from_stream",
        summary="The rows of a streaming DataFrame; a micro-batch counts when it is consumed.",
        answers=_ON_EXECUTORS,
        distributed=True,
    )
    yield SourceSpec(
        "stream_source",
        "flow_spark._source_stream:stream_source",
        summary="A flow of this process as a streaming DataFrame, through a spool on disk.",
        distributed=True,
    )
    yield SourceSpec(
        "union",
        "flow_spark._sources:union",
        summary="The items of several flows on Spark, as one flow there, in no order.",
        answers=_ON_EXECUTORS,
        distributed=True,
    )


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """What `Flow.pipe` can take."""
    yield OperatorSpec(
        "on_spark",
        "flow_spark._sources:on_spark",
        summary="Moves what comes before to Spark; the stages that follow run there.",
        backpressure=Backpressure.UNBOUNDED_IN,
        answers=_ON_EXECUTORS,
        placement=Placement.CLUSTER,
        method="on_spark",
    )
    yield OperatorSpec(
        "for_each_batch",
        "flow_spark._streams:for_each_batch",
        summary="Deals with a stream micro-batch by micro-batch, in this process.",
        answers=_ON_EXECUTORS,
        placement=Placement.DRIVER,
        method="spark.for_each_batch",
    )
    yield OperatorSpec(
        "for_each_batch_once",
        "flow_spark._streams:for_each_batch_once",
        summary="Deals with each micro-batch exactly once, whatever crashes.",
        answers=_ON_EXECUTORS,
        placement=Placement.DRIVER,
        method="spark.for_each_batch_once",
    )
    yield OperatorSpec(
        "select",
        "flow_spark._columns:select",
        summary="Makes rows of other columns, in Spark's own engine.",
        answers=_ON_EXECUTORS,
        placement=Placement.CLUSTER,
        method="spark.select",
    )
    yield OperatorSpec(
        "where",
        "flow_spark._columns:where",
        summary="Keeps the rows for which a condition on columns is true, in Spark itself.",
        answers=_ON_EXECUTORS,
        placement=Placement.CLUSTER,
        method="spark.where",
    )
    yield OperatorSpec(
        "scan_by_key",
        "flow_spark._keyed:scan_by_key",
        summary="Accumulates the items of each key of a stream, with states that outlive restarts.",
        answers=_ON_EXECUTORS,
        placement=Placement.SHUFFLE,
        method="spark.scan_by_key",
    )
    yield OperatorSpec(
        "write_each",
        "flow_spark._fan_out:write_each",
        summary="Gives each micro-batch of a stream to several sinks on the cluster.",
        placement=Placement.CLUSTER,
        method="spark.write_each",
    )


@hookimpl
def flow_sinks() -> Iterator[SinkSpec]:
    """Where flows can end."""
    yield SinkSpec(
        "to_dataframe",
        "flow_spark._sinks:to_dataframe",
        summary="Ends a flow as a Spark DataFrame, lazily if the flow is on Spark.",
        method="to_dataframe",
    )
    yield SinkSpec(
        "write_spark",
        "flow_spark._sinks:write",
        summary="Writes a flow to files by Spark, from the executors if it is there.",
        method="spark.write",
    )
    yield SinkSpec(
        "to_arrow",
        "flow_spark._sinks:to_arrow",
        summary="Holds a flow in memory as a pyarrow.Table, up to a limit.",
        method="to_arrow",
    )
    yield SinkSpec(
        "to_pandas",
        "flow_spark._sinks:to_pandas",
        summary="Holds a flow in memory as a pandas.DataFrame, up to a limit.",
        method="to_pandas",
    )


@hookimpl
def flow_engines() -> Iterator[EngineSpec]:
    """Where flows can run."""
    yield EngineSpec(
        "spark",
        "flow_spark.engine:spark_engine",
        summary="Apache Spark: a local session, a cluster (--master) or a server (--remote).",
        options=("master", "remote", "spool", "name"),
    )


@hookimpl
def flow_converters() -> Iterator[ConverterSpec]:
    """What flows can be made of."""
    for kind, accepts in (
        ("dataframe", "pyspark.sql.dataframe:DataFrame"),
        ("connect-dataframe", "pyspark.sql.connect.dataframe:DataFrame"),
    ):
        yield ConverterSpec(
            kind,
            "flow_spark._sources:from_dataframe",
            summary="A Spark DataFrame as a flow of its rows.",
            accepts=accepts,
        )
