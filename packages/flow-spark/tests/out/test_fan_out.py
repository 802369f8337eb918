"""One query, several sinks on the cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import StorageLevel

import flow_core as flow
from flow_spark import (
    MicroBatch,
    UnsupportedTypeError,
    batch_writer,
    from_dataframe,
    from_stream,
    stream_source,
    write_each,
)
from flow_testing import TestSubscriber

from ..infrastructure.versions import WITH_LIMITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TIMEOUT_S = 60.0


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Numbers from 0 to 29, ten in a micro-batch."""
    return stream_source(
        flow.range(30),
        spark,
        schema=int,
        spool=tmp_path / "spool",
        segment_rows=10,
        batch_segments=1,
    )


def ended(spark: SparkSession) -> bool:
    for query in spark.streams.active:
        query.awaitTermination(int(TIMEOUT_S))
    return not spark.streams.active


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def numbers(folder: Path, spark: SparkSession) -> list[tuple[int, int]]:
    rows = spark.read.parquet(str(folder)).select("batch_id", "value").collect()
    return sorted((row[0], row[1]) for row in rows)


@WITH_LIMITS
def test_each_sink_gets_each_micro_batch_and_the_stages_run_once(
    spark: SparkSession, stream: DataFrame, tmp_path: Path
) -> None:
    runs = spark.sparkContext.accumulator(0)
    levels: list[StorageLevel] = []

    def doubled(number: int) -> int:
        runs.add(1)
        return 2 * number

    def own(df: DataFrame, batch_id: int) -> None:
        levels.append(df.storageLevel)
        df.write.mode("overwrite").parquet(str(tmp_path / "own" / f"batch_id={batch_id}"))

    found = list(
        from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now")
        .map(doubled)
        .pipe(write_each(own, batch_writer("parquet", tmp_path / "files")))
    )

    assert found == [MicroBatch(number, 10) for number in range(3)]
    expected = [(number // 10, 2 * number) for number in range(30)]
    assert numbers(tmp_path / "own", spark) == expected
    assert numbers(tmp_path / "files", spark) == expected
    assert runs.value == 30
    assert all(level.useMemory for level in levels)
    assert ended(spark)


@WITH_LIMITS
@pytest.mark.cluster
def test_a_slow_subscriber_holds_the_sinks_back_and_disposing_stops_the_query(
    spark: SparkSession, stream: DataFrame, tmp_path: Path
) -> None:
    given: list[int] = []
    planned = tmp_path / "state" / "offsets"
    subscriber = TestSubscriber[MicroBatch](request=1)
    batches = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now").pipe(
        write_each(lambda _, batch_id: given.append(batch_id))
    )
    assert spark.streams.active == []

    batches.subscribe(subscriber)
    subscriber.await_items(1, TIMEOUT_S)
    assert until((planned / "1").exists)  # the next one waits for a request
    time.sleep(1)
    assert given == [0]
    subscriber.request(1)
    subscriber.await_items(2, TIMEOUT_S)
    assert given == [0, 1]
    subscriber.cancel()

    assert ended(spark)
    assert subscriber.items == [MicroBatch(0, 10), MicroBatch(1, 10)]


@WITH_LIMITS
@pytest.mark.cluster
def test_a_micro_batch_whose_sink_failed_comes_again_and_is_written_once(
    spark: SparkSession, stream: DataFrame, tmp_path: Path
) -> None:
    broken = threading.Event()
    broken.set()

    def picky(_: DataFrame, batch_id: int) -> None:
        if batch_id == 1 and broken.is_set():
            raise ValueError("not this one")

    batches = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now").pipe(
        write_each(batch_writer("parquet", tmp_path / "files"), picky, schema="value long")
    )
    with pytest.raises(Exception, match=r"sink 2 of 2, .*picky: ValueError: not this one"):
        list(batches)
    assert ended(spark)
    assert numbers(tmp_path / "files", spark)[-1][0] == 1  # written, and not committed

    broken.clear()
    assert [batch.batch_id for batch in batches] == [1, 2]
    assert numbers(tmp_path / "files", spark) == [(number // 10, number) for number in range(30)]


@WITH_LIMITS
def test_a_flow_that_is_not_a_stream_and_a_value_that_is_not_a_sink_are_refused(
    spark: SparkSession, stream: DataFrame
) -> None:
    with pytest.raises(ValueError, match="at least one"):
        write_each()
    with pytest.raises(TypeError, match="not callable"):
        write_each("parquet")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedTypeError, match="from_stream"):
        from_dataframe(spark.range(3)).pipe(write_each(print))
    with pytest.raises(UnsupportedTypeError, match="columns"):
        from_stream(stream).map(lambda n: n).pipe(write_each(print))
