"""A Kafka broker, and Spark's own source and sink for it: what streams of flows build on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.dataset as dataset
import pytest

import flow_spark
from flow_spark import (
    MicroBatch,
    SqliteBatchStore,
    WriteSubscriber,
    for_each_batch_once,
    from_dataframe,
    from_stream,
)
from flow_testing import TestSubscriber

from ..infrastructure.processes import processes_with, wait_until

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
    yield sessions.switch(
        flow_spark.session("local[2]", conf={"spark.jars": kafka_source}, fast_start=True)
    )
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


def test_items_that_are_sent_to_a_topic_can_be_read_by_a_flow(
    spark: SparkSession, kafka: KafkaBroker
) -> None:
    topic = kafka.topic()
    produced(spark, kafka, topic, range(1000))
    reader = spark.read.format("kafka").options(**address(kafka)).option("subscribe", topic)

    found = list(from_dataframe(reader.load().select("value")).map(int))

    assert sorted(found) == list(range(1000))


def test_a_stream_continues_behind_the_rows_that_its_checkpoint_has_seen(
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


def test_a_topic_is_put_into_a_database_once_and_subscribers_get_each_micro_batch(
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


# --- What survives a crash ------------------------------------------------------------------------

# It ends itself in the midst of a micro-batch; with none, when all is done.
DRIVER = """
import json, os, signal, sys
from flow_spark import (
    SqliteBatchStore, batch_writer, for_each_batch_once, from_stream, session, write_each
)

told = json.loads(sys.argv[1])

def here(batch_id):
    if told["kill_in"] == batch_id:
        os.kill(os.getpid(), signal.SIGKILL)

def insert(batch_id, items, db):
    db.executemany("INSERT INTO numbers VALUES (?)", ((item,) for item in items))
    here(batch_id)

with session("local[2]", conf={"spark.jars": told["jars"]}, fast_start=True) as spark:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", told["servers"])
    reader = reader.option("maxOffsetsPerTrigger", 400).option("startingOffsets", "earliest")
    rows = reader.option("subscribe", told["topic"]).load()
    numbers = rows.selectExpr("cast(cast(value as string) as bigint) as n")
    tens = from_stream(numbers, checkpoint=told["state"], trigger="available-now")
    tens = tens.filter(lambda n: n % 2 == 0).map(lambda n: 10 * n)
    if told["sink"] == "database":
        store = SqliteBatchStore(told["database"])
        batches = tens.pipe(for_each_batch_once(store, insert))
    else:
        one, two = (batch_writer("parquet", told["files"] + name) for name in ("/one", "/two"))
        between = lambda df, batch_id: here(batch_id)
        batches = tens.pipe(write_each(one, between, two, schema="n long"))
    print(json.dumps([[batch.batch_id, batch.items] for batch in batches]))
"""


@pytest.mark.parametrize("sink", ["database", "files"])
def test_a_killed_driver_continues_its_topic_and_its_sinks_have_each_item_once(
    sink: str,
    kafka: KafkaBroker,
    spark: SparkSession,
    kafka_source: str,
    tmp_path: Path,
    committed: Callable[[], set[int]],
) -> None:
    topic = kafka.topic()
    produced(spark, kafka, topic, range(1000))
    database, files = tmp_path / "numbers.db", tmp_path / "files"
    with closing(sqlite3.connect(database)) as db:
        db.execute("CREATE TABLE numbers (number)")
    told = {
        "sink": sink,
        "topic": topic,
        "servers": kafka.servers,
        "jars": kafka_source,
        "state": str(tmp_path / "state"),
        "database": str(database),
        "files": str(files),
    }

    def run(kill_in: int | None) -> subprocess.CompletedProcess[str]:
        mark = uuid.uuid4().hex
        ran = subprocess.run(
            [sys.executable, "-c", DRIVER, json.dumps({**told, "kill_in": kill_in})],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            # Who is killed cannot remove the folder of its session.
            env={**os.environ, "FLOW_TEST_MARK": mark, "TMPDIR": str(tmp_path)},
        )
        assert wait_until(lambda: not processes_with(mark), TIMEOUT_S)  # its JVM ends with it
        return ran

    killed = run(1)
    seen = committed()
    again = run(None)

    assert (killed.returncode, seen) == (-signal.SIGKILL, {0}), killed.stderr
    assert again.returncode == 0, again.stderr
    assert [batch_id for batch_id, _ in json.loads(again.stdout)][:2] == [1, 2]
    expected = [10 * n for n in range(0, 1000, 2)]
    if sink == "database":
        with closing(sqlite3.connect(database)) as db:
            assert sorted(row[0] for row in db.execute("SELECT number FROM numbers")) == expected
    else:
        for name in ("one", "two"):
            table = dataset.dataset(files / name, partitioning="hive").to_table()
            assert sorted(table.column("n").to_pylist()) == expected
