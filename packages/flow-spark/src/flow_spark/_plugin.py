"""The records that this package registers; see `flow_core.plugins`.

The objects are not imported here, as they need PySpark. So the record of a method takes its summary
from the method of `Flow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

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
from flow_core.surface.spark import SparkMethods, SparkWords

_METHODS: Any = SparkMethods  # Any: items of any type
_WORDS: Any = SparkWords
_ON_EXECUTORS: Final = Fusion.SYNC | Fusion.THREAD_BOUNDARY


@hookimpl
def flow_sources() -> Iterator[SourceSpec]:
    """Yield the sources of this package."""
    yield SourceSpec(
        "from_dataframe",
        "flow_spark.sources.from_dataframe:from_dataframe",
        summary="The rows of a Spark DataFrame; stages run where the rows are.",
        answers=_ON_EXECUTORS,
        distributed=True,
    )
    yield SourceSpec(
        "from_stream",
        "flow_spark.sources.from_stream:from_stream",
        summary="The rows of a streaming DataFrame; a micro-batch counts when it is consumed.",
        answers=_ON_EXECUTORS,
        distributed=True,
    )
    yield SourceSpec(
        "stream_source",
        "flow_spark.streams.stream_source:stream_source",
        summary="A flow of this process as a streaming DataFrame, through a spool on disk.",
        distributed=True,
    )
    yield SourceSpec(
        "union",
        "flow_spark.sources.union:union",
        summary="The items of several flows on Spark, as one flow there, in no order.",
        answers=_ON_EXECUTORS,
        distributed=True,
    )


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """Yield the operators of this package."""
    yield OperatorSpec.of(
        _METHODS.on_spark,
        target="flow_spark.sources.on_spark:on_spark",
        backpressure=Backpressure.UNBOUNDED_IN,
        answers=_ON_EXECUTORS,
        placement=Placement.CLUSTER,
        method="on_spark",
    )
    yield OperatorSpec.of(
        _WORDS.for_each_batch,
        target="flow_spark.streams.for_each_batch:for_each_batch",
        answers=_ON_EXECUTORS,
        placement=Placement.DRIVER,
        method="spark.for_each_batch",
    )
    yield OperatorSpec.of(
        _WORDS.for_each_batch_once,
        target="flow_spark.streams.for_each_batch:for_each_batch_once",
        answers=_ON_EXECUTORS,
        placement=Placement.DRIVER,
        method="spark.for_each_batch_once",
    )
    yield OperatorSpec.of(
        _WORDS.select,
        target="flow_spark.columns.select:select",
        answers=_ON_EXECUTORS,
        placement=Placement.CLUSTER,
        method="spark.select",
    )
    yield OperatorSpec.of(
        _WORDS.where,
        target="flow_spark.columns.where:where",
        answers=_ON_EXECUTORS,
        placement=Placement.CLUSTER,
        method="spark.where",
    )
    yield OperatorSpec.of(
        _WORDS.scan_by_key,
        target="flow_spark.streams.scan_by_key:scan_by_key",
        answers=_ON_EXECUTORS,
        placement=Placement.SHUFFLE,
        method="spark.scan_by_key",
    )
    yield OperatorSpec.of(
        _WORDS.write_each,
        target="flow_spark.streams.write_each:write_each",
        placement=Placement.CLUSTER,
        method="spark.write_each",
    )


@hookimpl
def flow_sinks() -> Iterator[SinkSpec]:
    """Yield the sinks of this package."""
    yield SinkSpec.of(
        _METHODS.to_dataframe,
        target="flow_spark.sinks.to_dataframe:to_dataframe",
        method="to_dataframe",
    )
    yield SinkSpec.of(
        _WORDS.write,
        name="write_spark",
        target="flow_spark.sinks.write:write",
        method="spark.write",
    )
    yield SinkSpec.of(
        _METHODS.to_arrow,
        target="flow_spark.sinks.to_arrow:to_arrow",
        method="to_arrow",
    )
    yield SinkSpec.of(
        _METHODS.to_pandas,
        target="flow_spark.sinks.to_pandas:to_pandas",
        method="to_pandas",
    )


@hookimpl
def flow_engines() -> Iterator[EngineSpec]:
    """Yield the engines of this package."""
    yield EngineSpec(
        "spark",
        "flow_spark.engine:spark_engine",
        summary="Apache Spark: a local session, a cluster (--master) or a server (--remote).",
        options=("master", "remote", "spool", "name"),
    )


@hookimpl
def flow_converters() -> Iterator[ConverterSpec]:
    """Yield the converters of this package."""
    for kind, accepts in (
        ("dataframe", "pyspark.sql.dataframe:DataFrame"),
        ("connect-dataframe", "pyspark.sql.connect.dataframe:DataFrame"),
    ):
        yield ConverterSpec(
            kind,
            "flow_spark.sources.from_dataframe:from_dataframe",
            summary="A Spark DataFrame as a flow of its rows.",
            accepts=accepts,
        )
