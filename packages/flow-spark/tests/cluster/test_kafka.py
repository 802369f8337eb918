"""A Kafka broker, and Spark's own source and sink for it: what streams of flows build on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flow_spark
from flow_spark import from_dataframe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from ..infrastructure.kafka import KafkaBroker
    from ..infrastructure.sessions import Sessions

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(600)]


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


def stream_of(spark: SparkSession, kafka: KafkaBroker, topic: str) -> DataFrame:
    """The numbers of a topic as a stream, from its beginning."""
    reader = spark.readStream.format("kafka").options(**address(kafka))
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
