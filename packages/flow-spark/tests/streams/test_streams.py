"""Streaming queries as flows: demand, acknowledgement, restart, errors."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from pyspark.sql.streaming import StreamingQueryManager

import flow_core as flow
from flow_spark import (
    CheckpointConflictError,
    MicroBatch,
    OrderedOperatorError,
    SparkJobError,
    SqliteBatchStore,
    UnsupportedTypeError,
    WriteSubscriber,
    for_each_batch,
    for_each_batch_once,
    from_dataframe,
    from_stream,
    to_dataframe,
)
from flow_spark.jobs import streaming
from flow_spark.jobs.checkpoint import Fingerprints
from flow_testing import TestSubscriber

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..infrastructure.drop import Drop

pytestmark = [pytest.mark.spark, pytest.mark.essential]

TIMEOUT_S = 60.0

NO_STORE = cast("SqliteBatchStore", None)

Committed = Callable[[], set[int]]


def stopped(spark: SparkSession) -> bool:
    """Return whether no query runs, waiting for those that are just being stopped."""
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


def test_a_count_over_a_stream_counts_all_micro_batches(spark: SparkSession, drop: Drop) -> None:
    drop.put(range(10))
    drop.put(range(5))

    assert list(from_stream(drop.stream(spark), trigger="available-now").count()) == [15]


def test_a_restart_continues_at_the_checkpoint(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    rows = from_stream(
        drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now", name="numbers"
    )
    drop.put([1, 2])
    first = list(rows)
    drop.put([3])

    assert (sorted(first), list(rows)) == ([1, 2], [3])


def test_a_micro_batch_that_was_being_read_when_the_flow_was_cancelled_comes_again(
    spark: SparkSession, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put([1, 2, 3])
    rows = from_stream(
        drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now", name="rows"
    )

    some = list(rows.take(2))
    assert stopped(spark)

    assert (len(some), committed()) == (2, set())
    assert sorted(rows) == [1, 2, 3]


@pytest.mark.parametrize("trigger", ["available-now", None])
def test_a_flow_fails_with_a_conflict_when_another_one_takes_its_checkpoint(
    spark: SparkSession, drop: Drop, tmp_path: Path, trigger: str | None
) -> None:
    drop.put([1, 2])
    state = str(tmp_path / "state")
    # Anew each time, as a cell of a notebook that is run again.
    first = iter(from_stream(drop.stream(spark), checkpoint=state, trigger=trigger))
    next(first)
    with closing(
        iter(from_stream(drop.stream(spark), checkpoint=state, trigger=trigger))
    ) as second:
        found = [next(second), next(second)]

        with pytest.raises(CheckpointConflictError, match=r"another query.*stopActiveR") as caught:
            list(first)

    assert state in str(caught.value)
    assert sorted(found) == [1, 2]
    assert stopped(spark)


def test_a_taken_checkpoint_is_reported_though_spark_lists_the_new_query_late(
    spark: SparkSession, drop: Drop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop.put([1])
    state = str(tmp_path / "state")
    first = iter(from_stream(drop.stream(spark), checkpoint=state))
    next(first)
    listed = StreamingQueryManager.active.fget
    assert listed is not None
    looks = iter(range(2))  # at which there is none
    found = property(lambda manager: listed(manager) if next(looks, None) is None else [])
    with closing(iter(from_stream(drop.stream(spark), checkpoint=state))) as second:
        monkeypatch.setattr(StreamingQueryManager, "active", found)
        next(second)
        with pytest.raises(CheckpointConflictError, match="another query"):
            list(first)
        monkeypatch.undo()
    assert next(looks, None) is None
    assert stopped(spark)


@pytest.mark.parametrize("trigger", ["available-now", None])
def test_a_new_query_does_not_wait_for_a_reader_that_asks_for_no_more(
    spark: SparkSession, drop: Drop, tmp_path: Path, committed: Committed, trigger: str | None
) -> None:
    drop.put([1, 2])

    def batches() -> Iterator[MicroBatch]:
        rows = from_stream(drop.stream(spark), checkpoint=tmp_path / "state", trigger=trigger)
        return iter(rows.pipe(for_each_batch(lambda _, items: list(items))))

    first = batches()
    next(first)  # Spark's job has ended, and nothing is acknowledged
    with closing(batches()) as second:
        assert next(second).items == 2
        assert committed() == set()
        with pytest.raises(CheckpointConflictError, match="another query"):
            next(first)
    assert stopped(spark)


def test_a_query_that_is_stopped_waits_for_the_action_at_work(
    spark: SparkSession, drop: Drop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_ACTIVE_S", 0.02)
    drop.put([1, 2])
    at_work, leave = threading.Event(), threading.Event()

    def work(_: int, items: Iterator[int]) -> None:
        list(items)
        at_work.set()
        leave.wait(TIMEOUT_S)

    rows = from_stream(drop.stream(spark), checkpoint=tmp_path / "state")
    subscriber = TestSubscriber[MicroBatch](request=1)
    rows.pipe(for_each_batch(work)).subscribe(subscriber)
    assert at_work.wait(TIMEOUT_S)
    (query,) = spark.streams.active

    with ThreadPoolExecutor() as pool:
        stopping = pool.submit(query.stop)
        with pytest.raises(TimeoutError):
            stopping.result(1.0)
        leave.set()
        stopping.result(TIMEOUT_S)

    subscriber.await_terminal(TIMEOUT_S)
    assert [batch.items for batch in subscriber.items] == [2]


def test_a_flow_fails_with_a_message_when_its_query_is_stopped(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1, 2])
    state = str(tmp_path / "state")
    rows = iter(from_stream(drop.stream(spark), checkpoint=state))
    next(rows)
    (query,) = spark.streams.active

    query.stop()

    with pytest.raises(SparkJobError, match=r"stopped by someone else.*stop\(\)") as caught:
        list(rows)
    assert state in str(caught.value)


def test_cancelling_stops_a_query_that_waits_for_rows(spark: SparkSession, drop: Drop) -> None:
    drop.put([1])
    came = threading.Event()
    handle = from_stream(drop.stream(spark)).subscribe(lambda _: came.set())
    assert came.wait(TIMEOUT_S)

    handle.dispose()

    assert stopped(spark)


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


def test_an_action_is_called_for_a_micro_batch_that_is_requested_and_not_before(
    spark: SparkSession, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    for number in range(3):
        drop.put([number])
    dealt: list[tuple[int, int]] = []
    subscriber = TestSubscriber[MicroBatch](request=1)
    rows = from_stream(drop.stream(spark), checkpoint=tmp_path / "state", trigger="available-now")

    def deal(batch_id: int, _: Iterator[int]) -> None:
        dealt.append((batch_id, requested))

    requested = 1
    rows.pipe(for_each_batch(deal)).subscribe(subscriber)
    subscriber.await_items(1, TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while not (tmp_path / "state/offsets/1").exists() and time.monotonic() < deadline:
        threading.Event().wait(0.05)  # Spark tells nobody

    assert committed() == {0}
    requested = 3
    subscriber.request(2)
    subscriber.await_terminal(TIMEOUT_S)  # nothing more is requested to hear of the end
    assert dealt == [(0, 1), (1, 3), (2, 3)]
    assert committed() == {0, 1, 2}
    assert subscriber.completed


def test_items_that_an_action_does_not_read_are_skipped(spark: SparkSession, drop: Drop) -> None:
    drop.put(range(1000))
    drop.put([1])
    firsts: list[int] = []

    rows = from_stream(drop.stream(spark), trigger="available-now")
    found = list(rows.pipe(for_each_batch(lambda _, items: firsts.append(next(items)))))

    assert firsts == [0, 1]
    assert [batch.items for batch in found] == [1, 1]


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


def test_a_subscriber_that_writes_at_the_end_refuses_a_stream_without_an_end(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1])
    endless = WriteSubscriber(spark, "json", tmp_path / "out", schema="n long")
    from_stream(drop.stream(spark)).map(lambda n: n).subscribe(endless)
    until_now = WriteSubscriber(spark, "json", tmp_path / "out", schema="n long")
    from_stream(drop.stream(spark), trigger="available-now").subscribe(until_now)

    with pytest.raises(UnsupportedTypeError, match=r"no end.*write_each.*available-now"):
        endless.done.result(TIMEOUT_S)
    assert until_now.done.result(TIMEOUT_S) == 1
    assert stopped(spark)


def test_a_checkpoint_that_is_older_than_the_store_loses_nothing_in_silence(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    state, backup = tmp_path / "state", tmp_path / "backup"
    store = SqliteBatchStore(tmp_path / "store.db")
    seen: list[list[int]] = []

    def add(_: int, items: Iterator[int], db: object) -> None:
        seen.append(sorted(items))

    rows = from_stream(drop.stream(spark), checkpoint=state, trigger="available-now", name="sums")
    once = rows.pipe(for_each_batch_once(store, add))
    drop.put([1])
    list(once)
    shutil.copytree(state, backup)
    drop.put([2])
    list(once)

    shutil.rmtree(state)
    shutil.copytree(backup, state)
    again = list(once)
    shutil.rmtree(state)
    shutil.copytree(backup, state)
    (drop.folder / "0001.json").unlink()
    drop.put([3])
    with pytest.raises(CheckpointConflictError) as caught:
        list(once)
    store.close()

    assert [(batch.batch_id, batch.repeated) for batch in again] == [(1, True)]
    assert seen == [[1], [2]]
    assert f"the checkpoint {str(state)!r} is older than the store: SqliteBatch" in str(
        caught.value
    )
    assert stopped(spark)


def test_a_micro_batch_of_which_the_checkpoint_says_nothing_is_refused(
    spark: SparkSession, drop: Drop, tmp_path: Path
) -> None:
    with pytest.raises(SparkJobError, match="does not say what micro-batch 3 holds"):
        Fingerprints(drop.stream(spark), str(tmp_path)).of(3)


def test_the_scheduler_pool_of_a_thread_holds_for_its_stream(
    spark: SparkSession, drop: Drop
) -> None:
    drop.put([1, 2])

    def pool_of(_: int) -> str | None:
        from pyspark import TaskContext

        context = TaskContext.get()
        return None if context is None else context.getLocalProperty("spark.scheduler.pool")

    def asked() -> list[str | None]:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", "a pool")
        return list(from_stream(drop.stream(spark), trigger="available-now").map(pool_of))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(asked).result(TIMEOUT_S) == ["a pool"] * 2


def test_operators_that_make_no_sense_on_a_stream_are_refused_at_once(
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
    with pytest.raises(UnsupportedTypeError, match=r"checkpoint each run.*checkpoint='…'"):
        from_stream(stream).pipe(for_each_batch_once(NO_STORE, lambda _, items, db: None))
    with pytest.raises(UnsupportedTypeError, match="count"):
        from_stream(stream).count().pipe(for_each_batch(lambda _, items: None))
    with pytest.raises(UnsupportedTypeError, match="count"):
        from_stream(stream).count().pipe(to_dataframe(schema="n long"))
    with pytest.raises(OrderedOperatorError):
        list(from_stream(stream).pairwise())
