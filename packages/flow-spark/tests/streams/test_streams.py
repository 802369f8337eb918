"""Streaming queries as flows: demand, acknowledgement, restart, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

import flow_core as flow
from flow_core.testing import TestSubscriber
from flow_spark import (
    CheckpointConflictError,
    MicroBatch,
    OrderedOperatorError,
    SqliteBatchStore,
    UnsupportedTypeError,
    for_each_batch,
    for_each_batch_once,
    from_dataframe,
    from_stream,
    to_dataframe,
)

if TYPE_CHECKING:
    import sqlite3

    from pyspark.sql import SparkSession

    from ..infrastructure.drop import Drop

pytestmark = pytest.mark.spark

TIMEOUT_S = 60.0

Committed = Callable[[], set[int]]


def stopped(spark: SparkSession) -> bool:
    """Whether no query runs, waiting for those that are just being stopped."""
    for query in spark.streams.active:
        query.awaitTermination(int(TIMEOUT_S))
    return not spark.streams.active


def test_a_stream_gives_the_rows_of_all_micro_batches_through_its_stages(
    spark: SparkSession, drop: Drop
) -> None:
    drop.put(range(10))
    drop.put(range(10, 20))

    found = from_stream(drop.stream(spark), trigger="available-now").map(str).filter("15".__ne__)

    assert sorted(found) == sorted(str(n) for n in range(20) if n != 15)
    assert stopped(spark)


def test_what_is_counted_over_a_stream_is_counted_over_all_micro_batches(
    spark: SparkSession, drop: Drop
) -> None:
    drop.put(range(10))
    drop.put(range(5))

    assert list(from_stream(drop.stream(spark), trigger="available-now").count()) == [15]


def test_a_restart_goes_on_where_the_checkpoint_is(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    rows = from_stream(
        drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now", name="numbers"
    )
    drop.put([1, 2])
    first = list(rows)
    drop.put([3])

    assert (sorted(first), list(rows)) == ([1, 2], [3])


def test_a_micro_batch_is_committed_when_it_is_consumed_and_not_before(
    spark: SparkSession, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put([1, 2])
    drop.put([3, 4])
    subscriber = TestSubscriber[int](request=1)
    rows = from_stream(drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now")

    rows.subscribe(subscriber)
    subscriber.await_items(1, TIMEOUT_S)
    at_first = committed()
    subscriber.request(2)
    subscriber.await_items(3, TIMEOUT_S)
    then = committed()
    subscriber.request(1)
    subscriber.await_terminal(TIMEOUT_S)

    assert (at_first, then, committed()) == (set(), {0}, {0, 1})
    subscriber.assert_result(1, 2, 3, 4)


def test_a_micro_batch_that_was_being_read_when_the_flow_was_cancelled_comes_again(
    spark: SparkSession, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put([1, 2, 3])
    rows = from_stream(drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now")

    some = list(rows.take(2))
    assert stopped(spark)

    assert (len(some), committed()) == (2, set())
    assert sorted(rows) == [1, 2, 3]


def test_cancelling_stops_a_query_that_waits_for_rows(spark: SparkSession, drop: Drop) -> None:
    drop.put([1])
    came = threading.Event()
    handle = from_stream(drop.stream(spark)).subscribe(lambda _: came.set())
    assert came.wait(TIMEOUT_S)

    handle.dispose()

    assert stopped(spark)


def test_what_a_stage_raises_arrives_as_itself_and_ends_the_query(
    spark: SparkSession, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put([0])
    rows = from_stream(drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now")

    with pytest.raises(ZeroDivisionError) as caught:
        list(rows.map(lambda n: 1 // n))

    assert "map" in caught.value.__notes__[0]
    assert stopped(spark)
    assert committed() == set()


def test_a_query_that_dies_says_so_with_sparks_own_error(spark: SparkSession, drop: Drop) -> None:
    drop.put([1])
    wrong = drop.stream(spark).selectExpr("n", "assert_true(n > 1, 'too small')")

    with pytest.raises(StreamingQueryException, match="too small"):
        list(from_stream(wrong, as_=tuple, trigger="available-now"))


def test_a_query_that_someone_else_stops_between_micro_batches_completes_the_flow(
    spark: SparkSession, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put([1])
    subscriber = TestSubscriber[int]()
    from_stream(drop.stream(spark), checkpoint=tmp_path / "state").subscribe(subscriber)
    deadline = time.monotonic() + TIMEOUT_S
    while committed() != {0} and time.monotonic() < deadline:
        threading.Event().wait(0.05)  # Spark tells nobody

    (query,) = spark.streams.active
    query.stop()

    subscriber.await_terminal(TIMEOUT_S)
    subscriber.assert_result(1)


def test_micro_batches_can_be_dealt_with_as_a_whole(spark: SparkSession, drop: Drop) -> None:
    drop.put([1, 2])
    drop.put([3])
    dealt: list[tuple[int, list[int]]] = []

    def deal(batch_id: int, items: Iterator[int]) -> None:
        dealt.append((batch_id, sorted(items)))

    rows = from_stream(drop.stream(spark), trigger="available-now").map(lambda n: n * 10)
    found = list(rows.pipe(for_each_batch(deal)))

    assert dealt == [(0, [10, 20]), (1, [30])]
    assert found == [MicroBatch(0, 2), MicroBatch(1, 1)]


def test_an_action_is_called_for_a_micro_batch_that_is_requested_and_not_before(
    spark: SparkSession, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    for number in range(3):
        drop.put([number])
    dealt: list[int] = []
    subscriber = TestSubscriber[MicroBatch](request=1)
    rows = from_stream(drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now")

    rows.pipe(for_each_batch(lambda batch_id, _: dealt.append(batch_id))).subscribe(subscriber)
    subscriber.await_items(1, TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while not (tmp_path / "state/offsets/1").exists() and time.monotonic() < deadline:
        threading.Event().wait(0.05)  # Spark tells nobody
    threading.Event().wait(0.5)

    assert (dealt, committed()) == ([0], {0})
    subscriber.request(2)
    subscriber.await_terminal(TIMEOUT_S)  # nothing more is requested to hear of the end
    assert (dealt, committed()) == ([0, 1, 2], {0, 1, 2})
    assert subscriber.completed


def test_what_an_action_does_not_read_is_skipped(spark: SparkSession, drop: Drop) -> None:
    drop.put(range(1000))
    drop.put([1])
    firsts: list[int] = []

    rows = from_stream(drop.stream(spark), trigger="available-now")
    found = list(rows.pipe(for_each_batch(lambda _, items: firsts.append(next(items)))))

    assert firsts == [0, 1]
    assert [batch.items for batch in found] == [1, 1]


def test_a_micro_batch_whose_action_failed_comes_again_and_one_that_was_done_does_not(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1, 2])
    drop.put([3])
    store = SqliteBatchStore(tmp_path / "store.db")
    calls: list[int] = []

    def add(batch_id: int, items: Iterator[int], db: sqlite3.Connection) -> None:
        calls.append(batch_id)
        db.execute("CREATE TABLE IF NOT EXISTS sums (amount)")
        db.execute("INSERT INTO sums VALUES (?)", (sum(items),))
        if calls == [0, 1]:
            raise OSError("the disk is full")

    rows = from_stream(drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now")
    once = rows.pipe(for_each_batch_once(store, add))

    with pytest.raises(OSError, match="the disk is full"):
        list(once)
    assert stopped(spark)
    again = list(once)

    with store.begin("reader", "", 0) as db:
        assert db is not None
        sums = [row[0] for row in db.execute("SELECT amount FROM sums")]
    store.close()
    # The first micro-batch was done, and may or may not have been committed by then.
    assert [batch for batch in again if not batch.repeated] == [MicroBatch(1, 1)]
    assert (calls, sums) == ([0, 1, 1], [3, 3])


def test_a_checkpoint_is_refused_to_a_flow_of_another_name_or_other_columns(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1])
    stream = drop.stream(spark)
    state = tmp_path / "state"
    list(from_stream(stream, checkpoint=state, trigger="available-now", name="mine"))

    with pytest.raises(CheckpointConflictError, match=r"'mine'.*'yours'"):
        list(from_stream(stream, checkpoint=state, trigger="available-now", name="yours"))
    with pytest.raises(CheckpointConflictError, match="columns"):
        renamed = stream.withColumnRenamed("n", "m")
        list(from_stream(renamed, checkpoint=state, trigger="available-now", name="mine"))


def test_a_stream_stays_on_the_cluster_as_a_streaming_dataframe(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1, 2])
    tens = from_stream(drop.stream(spark)).map(lambda n: n * 10)

    df = tens.pipe(to_dataframe(schema="n long"))
    writing = df.writeStream.option("checkpointLocation", str(tmp_path / "state"))
    query = writing.trigger(availableNow=True).start(str(tmp_path / "out"), format="parquet")
    query.awaitTermination(int(TIMEOUT_S))

    assert sorted(row.n for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [10, 20]


def test_what_makes_no_sense_on_a_stream_is_refused_at_once(
    spark: SparkSession, drop: Drop
) -> None:
    stream = drop.stream(spark)

    with pytest.raises(UnsupportedTypeError, match="from_dataframe"):
        from_stream(spark.range(3))
    with pytest.raises(UnsupportedTypeError, match="from_stream"):
        from_dataframe(stream)
    with pytest.raises(ValueError, match="trigger"):
        from_stream(stream, trigger=-1)
    with pytest.raises(UnsupportedTypeError, match="micro-batches"):
        flow.range(3).pipe(for_each_batch(lambda _, items: None))
    with pytest.raises(UnsupportedTypeError, match="count"):
        from_stream(stream).count().pipe(for_each_batch(lambda _, items: None))
    with pytest.raises(UnsupportedTypeError, match="count"):
        from_stream(stream).count().pipe(to_dataframe(schema="n long"))
    with pytest.raises(OrderedOperatorError):
        list(from_stream(stream).pairwise())
