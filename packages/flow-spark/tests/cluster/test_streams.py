"""Streaming queries as flows, on every mode of Spark: what holds on ``local`` holds there."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

import flow_core as flow
from flow_spark import (
    CheckpointConflictError,
    MicroBatch,
    SparkJobError,
    SqliteBatchStore,
    batch_writer,
    for_each_batch,
    for_each_batch_once,
    from_stream,
    scan_by_key,
    stream_source,
    write_each,
)
from flow_spark.errors import RemoteTracebackError
from flow_testing import TestSubscriber

from ..infrastructure.drop import Drop
from ..infrastructure.fixtures import each_place
from ..infrastructure.places import Place
from ..infrastructure.processes import wait_until
from ..infrastructure.versions import WITH_LIMITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),  # the first test of a mode waits for its servers and its session
    pytest.mark.parametrize("place", each_place("local"), indirect=True, scope="session"),
]

TIMEOUT_S = 60.0
LIMIT_S = 2.0

Committed = Callable[[], set[int]]


@pytest.fixture
def few_partitions(place: Place) -> Iterator[None]:
    """Each partition of a stateful query has a store of states."""
    place.spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    place.spark.conf.unset("spark.sql.shuffle.partitions")


def no_query(place: Place, within_s: float = TIMEOUT_S) -> bool:
    """Return whether no query runs any more, after `within_s` seconds at the latest."""
    return wait_until(lambda: place.spark.streams.active == [], within_s)


@pytest.mark.cluster
def test_a_stream_gives_the_rows_of_all_micro_batches_and_resumes_at_its_checkpoint(
    place: Place, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put(range(1000))
    drop.put(range(1000, 1100))
    stream = drop.stream(place.spark)
    rows = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now", name="all")
    there = rows.filter(lambda n: n % 3).map(str)

    first = list(there)
    drop.put([7])
    again = list(there)

    assert sorted(first, key=int) == [str(n) for n in range(1100) if n % 3]
    assert again == ["7"]
    assert committed() == {0, 1, 2}
    assert no_query(place)


def test_a_micro_batch_is_committed_when_it_is_consumed_and_not_before(
    place: Place, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put([1, 2])
    drop.put([3, 4])
    subscriber = TestSubscriber[int](request=1)
    stream = drop.stream(place.spark)

    from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now").subscribe(
        subscriber
    )
    subscriber.await_items(1, TIMEOUT_S)
    at_first = committed()
    subscriber.request(2)
    subscriber.await_items(3, TIMEOUT_S)
    then = committed()
    subscriber.request(1)
    subscriber.await_terminal(TIMEOUT_S)

    assert (at_first, then, committed()) == (set(), {0}, {0, 1})
    subscriber.assert_result(1, 2, 3, 4)


def test_micro_batches_are_dealt_with_as_a_whole(place: Place, drop: Drop) -> None:
    drop.put([1, 2])
    drop.put([3])
    dealt: list[tuple[int, list[int]]] = []

    def deal(batch_id: int, items: Iterator[int]) -> None:
        dealt.append((batch_id, sorted(items)))

    rows = from_stream(drop.stream(place.spark), trigger="available-now").map(lambda n: n * 10)
    found = list(rows.pipe(for_each_batch(deal)))

    assert dealt == [(0, [10, 20]), (1, [30])]
    assert found == [MicroBatch(0, 2), MicroBatch(1, 1)]


def test_a_micro_batch_whose_action_failed_comes_again_and_one_that_was_done_does_not(
    place: Place, drop: Drop, tmp_path: Path
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

    stream = drop.stream(place.spark)
    rows = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now")
    once = rows.pipe(for_each_batch_once(store, add))

    with pytest.raises(OSError, match="the disk is full") as caught:
        list(once)
    assert caught.value.__notes__ == [
        "in for_each_batch_once(), micro-batch 1, of which 1 items were taken"
    ]
    assert no_query(place)
    again = list(once)

    with store.begin("reader", "", 0, "") as db:
        assert db is not None
        sums = [row[0] for row in db.execute("SELECT amount FROM sums")]
    store.close()
    # The first micro-batch was done, and may or may not have been committed by then.
    assert [batch for batch in again if not batch.repeated] == [MicroBatch(1, 1)]
    assert (calls, sums) == ([0, 1, 1], [3, 3])


def test_an_error_of_a_stage_arrives_as_itself_and_ends_the_query(
    place: Place, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put([0])
    stream = drop.stream(place.spark)
    rows = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now")

    with pytest.raises(ZeroDivisionError) as caught:
        list(rows.map(lambda n: 1 // n))

    stage, item = caught.value.__notes__
    assert stage.startswith("in stage 1 of 1: map(")
    assert item == "at item 0 of partition 0: 0"
    assert isinstance(caught.value.__cause__, RemoteTracebackError)
    assert no_query(place)
    assert committed() == set()


def test_a_query_that_dies_says_so_and_has_sparks_own_error_as_its_cause(
    place: Place, drop: Drop
) -> None:
    drop.put([1])
    wrong = drop.stream(place.spark).selectExpr("n", "assert_true(n > 1, 'too small')")

    with pytest.raises(
        SparkJobError, match=r"(?s)^the streaming query failed: .*too small"
    ) as died:
        list(from_stream(wrong, as_=tuple, trigger="available-now"))
    assert isinstance(died.value.__cause__, StreamingQueryException)


@pytest.mark.cluster
def test_cancelling_stops_the_query_and_the_micro_batch_comes_again(
    place: Place, drop: Drop, tmp_path: Path, committed: Committed
) -> None:
    drop.put(range(100_000))
    stream, state = drop.stream(place.spark), tmp_path / "state"
    rows = from_stream(stream, checkpoint=state, name="rows")
    subscriber = TestSubscriber[int](request=10)
    rows.subscribe(subscriber)
    subscriber.await_items(10, TIMEOUT_S)

    began = time.monotonic()
    subscriber.cancel()

    assert no_query(place, LIMIT_S)
    print(f"{place.name}: no query {time.monotonic() - began:.2f} s after cancel")
    subscriber.assert_silent_after_cancel()
    assert committed() == set()
    now = from_stream(stream, checkpoint=state, trigger="available-now", name="rows")
    assert now.count().single() == 100_000


def test_a_checkpoint_is_refused_to_a_flow_of_another_name_or_other_columns(
    place: Place, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1])
    stream = drop.stream(place.spark)
    state = tmp_path / "state"
    list(from_stream(stream, checkpoint=state, trigger="available-now", name="mine"))

    with pytest.raises(CheckpointConflictError, match=r"'mine'.*'yours'.*its own checkpoint"):
        list(from_stream(stream, checkpoint=state, trigger="available-now", name="yours"))
    with pytest.raises(CheckpointConflictError, match=r"(?s)columns.*begin again"):
        renamed = stream.withColumnRenamed("n", "m")
        list(from_stream(renamed, checkpoint=state, trigger="available-now", name="mine"))


def test_without_a_name_a_checkpoint_is_refused_to_a_flow_that_reads_something_else(
    place: Place, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1])
    other = tmp_path / "other"
    other.mkdir()
    there = Drop(other)
    there.put([2])

    def run(files: Drop) -> list[str]:
        stream = files.stream(place.spark).where("n > 0")
        rows = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now")
        return list(rows.map(str))

    found = run(drop)
    with pytest.raises(CheckpointConflictError, match=f"'json path={drop.folder}', not 'json p"):
        run(there)
    drop.put([3])
    assert (found, run(drop)) == (["1"], ["3"])


@pytest.mark.cluster
def test_sinks_on_the_cluster_take_each_micro_batch(
    place: Place, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1, 2])
    drop.put([3])
    second = str(tmp_path / "two")

    def write(df: DataFrame, batch_id: int) -> None:
        df.write.mode("overwrite").json(f"{second}/batch_id={batch_id}")

    rows = from_stream(drop.stream(place.spark), trigger="available-now").map(lambda n: n * 10)
    sinks = write_each(batch_writer("json", tmp_path / "one"), write, schema="n long")

    assert list(rows.pipe(sinks)) == [MicroBatch(0, 2), MicroBatch(1, 1)]
    for name in ("one", "two"):
        written = place.spark.read.json(str(tmp_path / name)).select("batch_id", "n").collect()
        assert sorted((row[0], row[1]) for row in written) == [(0, 10), (0, 20), (1, 30)]


@WITH_LIMITS
@pytest.mark.cluster
def test_a_flow_of_this_process_is_a_stream_there(place: Place, tmp_path: Path) -> None:
    sent = stream_source(
        flow.range(2000),
        place.spark,
        schema=int,
        spool=tmp_path / "spool",
        segment_rows=100,
        batch_segments=4,
    )

    rows = from_stream(sent, checkpoint=tmp_path / "state", trigger="available-now")

    assert sorted(rows.map(lambda n: -n)) == sorted(-n for n in range(2000))


@pytest.mark.cluster
def test_states_of_keys_are_in_the_checkpoint(
    place: Place, drop: Drop, tmp_path: Path, few_partitions: None
) -> None:
    drop.put(range(10))
    stream = drop.stream(place.spark)
    rows = from_stream(stream, checkpoint=tmp_path / "state", trigger="available-now")
    sums = rows.pipe(scan_by_key(lambda n: n % 2, lambda total, n: total + n, 0))

    before = dict(sums)
    drop.put([100, 101])
    after = dict(sums)

    assert before == {0: 20, 1: 25}
    assert after == {0: 120, 1: 126}
