"""Multicasting with Spark: one query, and many subscribers of its micro-batches in lock-step."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flow_core as flow
from flow_multicast import publish, share
from flow_testing import TestSubscriber

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TIMEOUT_S = 60.0
EXAMPLE = Path(__file__).parent.parent / "examples" / "stream_to_sinks.py"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    from flow_spark import session

    with session("local[2]", fast_start=True) as opened:
        yield opened


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Numbers from 0 to 29, ten in a micro-batch."""
    from flow_spark import stream_source

    return stream_source(
        flow.range(30),
        spark,
        schema=int,
        spool=tmp_path / "spool",
        segment_rows=10,
        batch_segments=1,
    )


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def committed(tmp_path: Path) -> set[int]:
    return {int(file.name) for file in (tmp_path / "state" / "commits").glob("[0-9]*")}


def test_one_query_serves_three_consumers_in_lock_step(
    spark: SparkSession, stream: DataFrame, tmp_path: Path
) -> None:
    from flow_spark import from_stream

    runs = spark.sparkContext.accumulator(0)

    def doubled(number: int) -> int:
        runs.add(1)
        return 2 * number

    rows = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now")
    published = rows.map(doubled).pipe(publish(prefetch=4))
    eager = [TestSubscriber[int](), TestSubscriber[int]()]
    slow = TestSubscriber[int](request=0)
    for subscriber in (*eager, slow):
        published.subscribe(subscriber)
    assert spark.streams.active == []

    published.connect()
    assert until(lambda: len(spark.streams.active) == 1)
    slow.request(3)
    slow.await_items(3, TIMEOUT_S)
    time.sleep(0.3)
    assert [len(subscriber.items) for subscriber in eager] == [3, 3]
    assert committed(tmp_path) == set()  # the slowest one holds the micro-batch

    slow.request(100)
    for subscriber in (*eager, slow):
        subscriber.await_terminal(TIMEOUT_S)
        assert subscriber.completed
        assert sorted(subscriber.items) == list(range(0, 60, 2))
    assert runs.value == 30
    assert until(lambda: committed(tmp_path) == {0, 1, 2})


def test_disposing_of_the_connection_stops_the_query(
    spark: SparkSession, stream: DataFrame
) -> None:
    from flow_spark import from_stream

    published = from_stream(stream).pipe(publish())
    subscriber = TestSubscriber[int]()
    published.subscribe(subscriber)

    connection = published.connect()
    subscriber.await_items(1, TIMEOUT_S)
    connection.dispose()

    assert until(lambda: spark.streams.active == [])


def test_the_first_subscriber_of_a_shared_stream_starts_it_and_the_last_stops_it(
    spark: SparkSession, stream: DataFrame
) -> None:
    from flow_spark import from_stream

    shared = from_stream(stream).pipe(share())
    first, second = TestSubscriber[int](), TestSubscriber[int]()

    shared.subscribe(first)
    shared.subscribe(second)
    first.await_items(1, TIMEOUT_S)
    assert len(spark.streams.active) == 1
    first.cancel()
    time.sleep(0.2)
    assert len(spark.streams.active) == 1
    second.cancel()

    assert until(lambda: spark.streams.active == [])


def test_sinks_on_the_cluster_start_and_stop_with_the_connection(
    spark: SparkSession, stream: DataFrame, tmp_path: Path
) -> None:
    from flow_spark import MicroBatch, batch_writer, from_stream, write_each

    batches = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now").pipe(
        write_each(*(batch_writer("parquet", tmp_path / name) for name in ("one", "two")))
    )
    published = batches.pipe(publish())
    progress = TestSubscriber[MicroBatch]()
    published.subscribe(progress)
    assert not (tmp_path / "one").exists()

    published.connect()

    progress.await_terminal(TIMEOUT_S).assert_result(*(MicroBatch(n, 10) for n in range(3)))
    for name in ("one", "two"):
        assert spark.read.parquet(str(tmp_path / name)).count() == 30


def test_the_example_with_three_sinks_continues_where_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("stream_to_sinks", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "stream_to_sinks", example)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "READINGS", 900)

    first = example.run(spark, tmp_path)
    assert first == {"all": 900, "hot": first["counted"], "counted": 290}
    again = example.run(spark, tmp_path)
    assert again == {"all": 900, "hot": 290, "counted": 0}
