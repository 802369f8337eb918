"""Stages that need the items of all partitions, in one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flow_core.stages import Program
from flow_spark.items.arrow import pa
from flow_spark.jobs.frames import divided, frame_of
from flow_spark.jobs.job import lowered, lowered_all
from flow_spark.jobs.lowering import Split
from flow_spark.jobs.origin import Opened
from flow_spark.jobs.sorting import sorting
from flow_spark.jobs.task import CHUNK_SCHEMA, ChunkReader, RemoteProgram, no_items
from flow_spark.jobs.translations import SORTS, bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["gathered", "in_one_place", "partial"]

_RUN: Final = 1024
"""The most items that a partition sorts at a time: one task sorts the results of all of them."""


def partial(parts: Split) -> Program[Any, Any]:
    """Return the stages for each partition. A stage that sorts there holds a bounded number."""
    before, last = parts.remote[:-1], parts.remote[-1:]
    return Program((*before, *(bounded(s, _RUN) if s.template in SORTS else s for s in last)))


def gathered(opened: Opened, parts: Split, session: SparkSession) -> tuple[Opened, RemoteProgram]:
    """Return the results of partitions in one partition, and the stages that follow.

    Args:
        opened: the rows.
        parts: the stages.
        session: the session of the rows.
    """
    remote = partial(parts)
    nothing = frame_of(session, pa.Table.from_batches([no_items()], schema=CHUNK_SCHEMA))
    # A row that is always there: without rows Spark makes no task, and so no count of them.
    rows = divided(lowered_all(opened, remote, None).union(nothing), 1)
    return Opened(rows, ChunkReader((remote, *opened.readers))), sorting(parts.local)


def in_one_place(opened: Opened, parts: Split, session: SparkSession) -> Opened:
    """Return the results of all stages, on the cluster; see `gathered`."""
    rows, local = gathered(opened, parts, session)
    df = lowered(rows.df, rows.reader, local, None)
    return Opened(df, ChunkReader((*rows.readers, local)))
