"""The items of a flow as a DataFrame, and its columns."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flow_core.flow import Flow
from flow_core.stages import Program
from flow_core.structure import stages_of
from flow_spark.errors import (
    SessionConflictError,
    SparkJobError,
    UnsupportedTypeError,
)
from flow_spark.items.schema import ItemSchema
from flow_spark.items.types import item_type
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.job import lowered, lowered_all
from flow_spark.jobs.lowering import Split, has_an_end
from flow_spark.jobs.one_place import gathered
from flow_spark.jobs.origin import Opened
from flow_spark.jobs.task import ChunkReader
from flow_spark.jobs.united import in_their_order
from flow_spark.sources.spark_source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["frame_for_now", "frame_on_spark", "schema_of", "session_for"]


def frame_on_spark(
    source: SparkSource[Any], flow: Flow[Any], schema: object, name: str
) -> DataFrame:
    """Return the items of a flow on Spark as a DataFrame.

    `name` is the name of the sink, for messages.
    """
    origin, parts = source.lowered(stages_of(flow), stays=True)
    return _framed(source, flow, schema, name, parts=parts, opened=origin.kept())


@contextmanager
def frame_for_now(
    source: SparkSource[Any], flow: Flow[Any], schema: object, name: str
) -> Generator[DataFrame, None, None]:
    """Do the same as `frame_on_spark` for a ``with`` block, then remove data sent to Spark."""
    origin, parts = source.lowered(stages_of(flow), stays=True)
    with origin.opened(Stop()) as opened:
        if opened is None:
            raise SparkJobError(f"{name}() was stopped")
        yield _framed(source, flow, schema, name, parts=parts, opened=opened)


def _framed(
    source: SparkSource[Any],
    flow: Flow[Any],
    schema: object,
    name: str,
    *,
    parts: Split,
    opened: Opened,
) -> DataFrame:
    plain = not stages_of(flow) and not opened.others and not isinstance(opened.reader, ChunkReader)
    if schema is None and plain:
        return opened.df
    columns = schema_of(flow, source.origin.item_type, schema, name)
    if not parts.local or source.origin.ordered:
        everything = parts.remote + parts.local
        if source.origin.ordered and has_an_end(everything):
            given = in_their_order(opened, everything, source.origin.session)
            return lowered_all(given, None, columns)
        return lowered_all(opened, Program[Any, Any](everything), columns)
    if opened.df.isStreaming:
        raise UnsupportedTypeError(
            f"{parts.turn!r} goes over the items of all micro-batches, and a streaming DataFrame "
            "is made of one after the other: leave it out, or let Spark aggregate the DataFrame"
        )
    rows, local = gathered(opened, parts, source.origin.session)
    return lowered(rows.df, rows.reader, local, columns)


def schema_of(flow: Flow[Any], source: object, given: object, name: str) -> ItemSchema:
    if given is not None:
        return ItemSchema.of(given)
    found = item_type(stages_of(flow), source)
    if found is None:
        raise UnsupportedTypeError(
            f"{name}() does not know the columns of {flow!r}: its last mapper has no return "
            "annotation. Annotate it (def mapper(item) -> SomeDataclass), or give the columns: "
            f"{name}(…, schema='id bigint, name string')"
        )
    return ItemSchema.of(found)


def session_for(given: SparkSession | None, name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    found = given or SparkSession.getActiveSession()
    if found is None:
        raise SessionConflictError(
            f"{name}() of a flow of this process needs a session, and none is active: "
            f"with flow_spark.session() as spark: flow.pipe({name}(…, session=spark))"
        )
    return found
