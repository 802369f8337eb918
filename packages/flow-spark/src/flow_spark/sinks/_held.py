"""A flow as a table in the memory of this process, up to a limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from flow_core.flow import Flow
from flow_core.structure import source_of
from flow_spark.errors import (
    LimitExceededError,
    UnsupportedTypeError,
)
from flow_spark.items.arrow import ArrowBatch, ArrowTable, pa
from flow_spark.items.columns import to_batches
from flow_spark.items.objects import marked
from flow_spark.jobs.frames import at_most, table_of
from flow_spark.jobs.run import run
from flow_spark.sinks._framed import frame_for_now, schema_of
from flow_spark.sources.spark_source import is_on_spark

__all__ = ["LIMIT", "check_limit", "table_of_items"]

_MOST: Final = 2**31 - 1

LIMIT: Final = 1_000_000
"""The most items of a flow that becomes a table in memory, by default."""


def check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, or None for no limit, not {limit}")


def table_of_items(flow: Flow[Any], limit: int | None, schema: object, name: str) -> ArrowTable:
    source = source_of(flow)
    if is_on_spark(source):
        with frame_for_now(source, flow, schema, name) as df:
            if df.isStreaming:
                raise UnsupportedTypeError(
                    f"{name}() holds all items of a flow, and a stream has no end: deal with its "
                    "micro-batches, by for_each_batch or write_each"
                )
            # One more shows that there are more; Spark sends no further ones, and counts in an int.
            bounded = df
            if limit is not None and limit < _MOST:
                ordered = source.origin.ordered
                bounded = at_most(df, limit + 1) if ordered else df.limit(limit + 1)
            made = run(df.sparkSession, name, lambda: table_of(bounded))
            given = made.schema
            told = marked(given, df.schema)
            table = made if told is given else made.cast(told)
        _check_fits(table.num_rows, limit, name)
        return table
    columns = schema_of(flow, None, schema, name)
    batches = list(_at_most(to_batches(_cut(flow, limit), columns), limit, name))
    return pa.Table.from_batches(batches, schema=columns.arrow)


def _cut(flow: Flow[Any], limit: int | None) -> Flow[Any]:
    return flow if limit is None else flow.take(limit + 1)


def _at_most(batches: Iterator[ArrowBatch], limit: int | None, name: str) -> Iterator[ArrowBatch]:
    count = 0
    for batch in batches:
        count += batch.num_rows
        _check_fits(count, limit, name)
        yield batch


def _check_fits(count: int, limit: int | None, name: str) -> None:
    if limit is not None and count > limit:
        raise LimitExceededError(
            f"{name}() holds all items in memory, and this flow has more than {limit:,}. Take "
            f"some: .take({limit}); allow more: {name}(limit=…), or limit=None for all that come; "
            "or keep them out of memory: write(), to_dataframe()"
        )
