"""A Kafka broker, and Spark's own source and sink for it: what streams of flows build on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import flow_spark
from flow_core.testing import TestSubscriber
from flow_spark import (
    MicroBatch,
    SqliteBatchStore,
    WriteSubscriber,
    for_each_batch_once,
    from_dataframe,
    from_stream,
)

from ..infrastructure.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from ..infrastructure.kafka import KafkaBroker
    from ..infrastructure.sessions import Sessions

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(600)]
flow_multicast = pytest.importorskip("flow_multicast", reason="needs flow-multicast beside it")

TIMEOUT_S = 120.0


class Reading(NamedTuple):
    number: int
    text: str


def reading(number: int) -> Reading:
    return Reading(number, f"reading {number}")


@pytest.fixture(scope="module")
def spark(sessions: Sessions, kafka_source: str) -> Iterator[SparkSession]:
    """A session that can read from Kafka."""
    yield sessions.switch(flow_spark.session("local[2]", conf={"spark.jars": kafka_source}))
    sessions.close()


def produced(spark: SparkSession, kafka: KafkaBroker, topic: str, numbers: range) -> None:
    """Send numbers to a topic, each with itself as its key."""
    df = spark.range(numbers.start, numbers.stop)
    rows = df.selectExpr("cast(id as string) as key", "cast(id as string) as value")
    rows.write.format("kafka").options(**address(kafka)).option("topic", topic).save()


def address(kafka: KafkaBroker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": kafka.servers}


def stream_of(
    spark: SparkSession, kafka: KafkaBroker, topic: str, rows_of_batch: int = 10**6
) -> DataFrame:
    """The numbers of a topic as a stream, from its beginning."""
    reader = spark.readStream.format("kafka").options(**address(kafka))
    reader = reader.option("maxOffsetsPerTrigger", rows_of_batch)
    rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    return rows.selectExpr("cast(cast(value as string) as bigint) as n", "partition", "offset")


def test_what_is_sent_to_a_topic_can_be_read_by_a_flow(
    spark: SparkSession, kafka: KafkaBroker
) -> None:
    topic = kafka.topic()
    produced(spark, kafka, topic, range(1000))
    reader = spark.read.format("kafka").options(**address(kafka)).option("subscribe", topic)

    found = list(from_dataframe(reader.load().select("value")).map(int))

    assert sorted(found) == list(range(1000))


def test_a_stream_goes_on_behind_what_its_checkpoint_has_seen(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path
) -> None:
    topic = kafka.topic()
    batches: list[tuple[int, list[int]]] = []

    def keep(df: DataFrame, batch_id: int) -> None:
        batches.append((batch_id, sorted(row.n for row in df.collect())))

    def run() -> None:
        writer = stream_of(spark, kafka, topic).writeStream.foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        assert writer.start().awaitTermination(300)

    produced(spark, kafka, topic, range(100))
    run()
    produced(spark, kafka, topic, range(100, 150))
    run()
    run()

    assert [numbers for _, numbers in batches] == [list(range(100)), list(range(100, 150))]
    assert [batch_id for batch_id, _ in batches] == [0, 1]


def test_a_topic_is_spread_over_partitions(spark: SparkSession, kafka: KafkaBroker) -> None:
    topic = kafka.topic()
    produced(spark, kafka, topic, range(1000))
    reader = spark.read.format("kafka").options(**address(kafka)).option("subscribe", topic)

    assert {row.partition for row in reader.load().select("partition").collect()} == {0, 1}


def test_a_topic_goes_through_stages_on_spark_and_in_lock_step_into_two_sinks(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path, committed: Callable[[], set[int]]
) -> None:
    """One query reads the topic; a file sink and a slow consumer get the same items at one pace."""
    topic = kafka.topic()
    numbers = stream_of(spark, kafka, topic, rows_of_batch=400).select("n")
    runs = spark.sparkContext.accumulator(0)

    def read(number: int) -> Reading:
        runs.add(1)
        return reading(number)

    rows = from_stream(numbers, checkpoint=tmp_path / "state", trigger="available-now")
    published = rows.filter(lambda n: n % 2 == 0).map(read).pipe(flow_multicast.publish(prefetch=8))

    def sinks() -> tuple[TestSubscriber[Reading], list[Reading], WriteSubscriber]:
        consumer = TestSubscriber[Reading](request=0)
        seen: list[Reading] = []
        files = WriteSubscriber(
            spark, "parquet", tmp_path / "files", schema=Reading, mode="append", prefetch=64
        )
        published.flow.subscribe(consumer)
        published.flow.do_on_next(seen.append).subscribe(files)
        return consumer, seen, files

    def written() -> list[Reading]:
        df = spark.read.parquet(str(tmp_path / "files"))
        return sorted(from_dataframe(df, as_=Reading))

    def all_of(numbers: range) -> list[Reading]:
        return [reading(n) for n in numbers if n % 2 == 0]

    produced(spark, kafka, topic, range(1000))
    consumer, seen, files = sinks()
    published.connect()
    consumer.request(5)
    consumer.await_items(5, TIMEOUT_S)
    assert wait_until(lambda: len(seen) == 5, TIMEOUT_S)
    assert len(spark.streams.active) == 1
    assert committed() == set()  # the slow one holds the micro-batch, and the file sink with it
    consumer.request(10**6)
    consumer.await_terminal(TIMEOUT_S)

    assert files.done.result(TIMEOUT_S) == 500
    assert consumer.items == seen
    assert sorted(seen) == written() == all_of(range(1000))
    assert runs.value == 500  # the stages ran once for both
    assert wait_until(lambda: committed() >= {0, 1, 2}, TIMEOUT_S)

    produced(spark, kafka, topic, range(1000, 1100))
    consumer, seen, files = sinks()
    published.connect()
    consumer.request(10**6)
    consumer.await_terminal(TIMEOUT_S)

    assert files.done.result(TIMEOUT_S) == 50
    assert sorted(consumer.items) == all_of(range(1000, 1100))
    assert written() == all_of(range(1100))


def test_a_topic_is_put_into_a_database_once_and_who_watches_is_told_of_each_micro_batch(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path
) -> None:
    topic = kafka.topic()
    produced(spark, kafka, topic, range(100))
    numbers = stream_of(spark, kafka, topic, rows_of_batch=50).select("n")

    def insert(batch_id: int, items: Iterator[int], db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE IF NOT EXISTS numbers (number)")
        db.executemany("INSERT INTO numbers VALUES (?)", ((item,) for item in items))

    with closing(SqliteBatchStore(tmp_path / "store.db")) as store:
        rows = from_stream(numbers, checkpoint=tmp_path / "state", trigger="available-now")
        published = rows.pipe(for_each_batch_once(store, insert)).pipe(flow_multicast.publish())
        watching = [TestSubscriber[MicroBatch](), TestSubscriber[MicroBatch]()]
        for subscriber in watching:
            published.subscribe(subscriber)
        published.connect()
        for subscriber in watching:
            subscriber.await_terminal(TIMEOUT_S)
            assert subscriber.items == watching[0].items
        told = watching[0].items
        # Spark rounds what a micro-batch may have, per partition of the topic.
        assert [batch.batch_id for batch in told] == list(range(max(len(told), 2)))
        assert sum(batch.items for batch in told) == 100

    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        assert sorted(db.execute("SELECT number FROM numbers")) == [(n,) for n in range(100)]
