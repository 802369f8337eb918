"""What flow-spark registers with the core."""

from __future__ import annotations

from collections.abc import Iterator

from flow_core.plugins import (
    Backpressure,
    ConverterSpec,
    EngineSpec,
    OperatorSpec,
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
        "flow_spark:from_dataframe",
        summary="The rows of a Spark DataFrame; stages run where the rows are.",
        answers=_ON_EXECUTORS,
        distributed=True,
    )


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """What `Flow.pipe` can take."""
    yield OperatorSpec(
        "on_spark",
        "flow_spark:on_spark",
        summary="Moves what comes before to Spark; the stages that follow run there.",
        backpressure=Backpressure.UNBOUNDED_IN,
        answers=_ON_EXECUTORS,
    )


@hookimpl
def flow_sinks() -> Iterator[SinkSpec]:
    """Where flows can end."""
    yield SinkSpec(
        "to_dataframe",
        "flow_spark:to_dataframe",
        summary="Ends a flow as a Spark DataFrame, lazily if the flow is on Spark.",
        backpressure=Backpressure.UNBOUNDED_IN,
    )


@hookimpl
def flow_engines() -> Iterator[EngineSpec]:
    """Where flows can run."""
    yield EngineSpec(
        "spark",
        "flow_spark.engine:spark_engine",
        summary="Apache Spark: a local session, a cluster (--master) or a server (--remote).",
        options=("master", "remote", "name"),
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
            "flow_spark:from_dataframe",
            summary="A Spark DataFrame as a flow of its rows.",
            accepts=accepts,
        )
