"""Flows of this process as streams of Spark: the spool, demand, restarts."""

from __future__ import annotations

import itertools
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_spark import (
    SessionConflictError,
    SpoolError,
    UnsupportedTypeError,
    from_stream,
    stream_source,
)
from flow_spark._segments import Lock, Outcome, Segments, SpoolPosition
from flow_spark.items.schema import schema_of
from flow_testing import TestPublisher

from ..infrastructure.versions import WITH_LIMITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = WITH_LIMITS
spark_test = pytest.mark.spark

TIMEOUT_S = 60.0
INTS = schema_of(int).arrow


class Pair(NamedTuple):
    number: int
    text: str


def pair(number: int) -> Pair:
    return Pair(number, str(number))


def until(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def batch(*numbers: int) -> list[Any]:
    import pyarrow

    return [pyarrow.record_batch([list(numbers)], schema=INTS)]


class TestSegments:
    def test_a_spool_knows_how_far_it_is_when_it_is_opened_again(self, tmp_path: Path) -> None:
        spool = Segments.made(tmp_path / "spool", INTS)
        end = spool.append(batch(1, 2, 3), INTS, spool.end())
        spool.append(batch(4), INTS, end)

        again = Segments.made(tmp_path / "spool", INTS)

        assert (again.id, again.begin(), again.end()) == (
            spool.id,
            SpoolPosition(),
            SpoolPosition(2, 4),
        )

    def test_committed_segments_are_removed_and_still_counted(self, tmp_path: Path) -> None:
        spool = Segments.made(tmp_path / "spool", INTS)
        end = spool.append(batch(1, 2, 3), INTS, spool.end())
        end = spool.append(batch(4), INTS, end)

        spool.commit(1)
        assert (spool.begin(), spool.end()) == (SpoolPosition(1, 3), SpoolPosition(2, 4))
        spool.commit(2)
        spool.commit(2)
        spool.commit(1)
        assert (spool.begin(), spool.end()) == (SpoolPosition(2, 4), SpoolPosition(2, 4))
        assert list((tmp_path / "spool").glob("*.arrow")) == []

    def test_a_segment_that_is_gone_is_not_left_out_silently(self, tmp_path: Path) -> None:
        spool = Segments.made(tmp_path / "spool", INTS)
        end = spool.append(batch(1), INTS, spool.end())
        spool.append(batch(2), INTS, end)
        spool.commit(1)

        assert [segment.first for segment in spool.between(1, 2)] == [1]
        with pytest.raises(SpoolError, match="segments 0 to 1"):
            spool.between(0, 2)

    def test_a_half_written_segment_does_not_count(self, tmp_path: Path) -> None:
        spool = Segments.made(tmp_path / "spool", INTS)
        (spool.folder / "abc.part").write_bytes(b"half")

        assert Segments.made(spool.folder, INTS).end() == SpoolPosition()
        assert not (spool.folder / "abc.part").exists()

    def test_a_crash_before_there_is_a_spool_leaves_none_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "0123456789abcdef.part").write_bytes(b'{"id"')

        assert Segments.made(tmp_path, INTS).end() == SpoolPosition()
        assert not list(tmp_path.glob("*.part"))

    @pytest.mark.parametrize("side", ["writer", "reader"])
    def test_opening_a_spool_a_second_time_does_not_disturb_its_writer(
        self, side: str, tmp_path: Path
    ) -> None:
        """A second `stream_source` of a spool is refused, and the first one continues."""
        spool = Segments.made(tmp_path / "spool", INTS)
        lock: Lock = getattr(spool, side)
        assert lock.acquire(0.0)
        written = spool.folder / "0123456789abcdef.part"
        written.write_bytes(b"half")

        Segments.made(spool.folder, INTS)

        assert written.exists()
        lock.release()

    def test_all_files_are_private(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            spool = Segments.made(tmp_path / "spool", INTS)
            end = spool.append(batch(1), INTS, spool.end())
            spool.append(batch(2), INTS, end)
            spool.commit(1)
            spool.plan(2)
            spool.conclude(Outcome(None))
            lock = spool.reader
            assert lock.acquire(0)
            lock.release()
        finally:
            os.umask(before)

        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in spool.folder.iterdir()}
        assert stat.S_IMODE(spool.folder.stat().st_mode) == 0o700
        assert len(modes) == 8
        assert set(modes.values()) == {0o600}

    def test_a_lock_is_held_by_one(self, tmp_path: Path) -> None:
        spool = Segments.made(tmp_path / "spool", INTS)
        first, second = spool.reader, spool.reader

        assert first.acquire(0)
        assert not second.acquire(0)
        assert spool.reader.held_by_anyone()
        first.release()
        assert not spool.reader.held_by_anyone()
        assert second.acquire(0)
        second.release()

    def test_other_columns_or_other_files_are_refused(self, tmp_path: Path) -> None:
        Segments.made(tmp_path / "spool", INTS)
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "file").touch()

        with pytest.raises(SpoolError, match="value int64"):
            Segments.made(tmp_path / "spool", schema_of(str).arrow)
        with pytest.raises(SpoolError, match="no flow has spooled"):
            Segments.made(tmp_path / "full", INTS)
        with pytest.raises(SpoolError, match="no spool at"):
            _ = Segments(tmp_path / "missing").id


def all_of(df: DataFrame, tmp_path: Path) -> list[Any]:
    state = tmp_path / "state"
    return list(from_stream(df, checkpoint=state, trigger="available-now", name="all"))


@spark_test
def test_a_flow_is_streamed_to_its_end(spark: SparkSession, tmp_path: Path) -> None:
    df = stream_source(
        flow.range(2_500).map(pair), spark, spool=tmp_path / "spool", segment_rows=100
    )

    assert df.isStreaming
    assert df.columns == ["number", "text"]
    assert sorted(all_of(df, tmp_path)) == [(n, str(n)) for n in range(2_500)]
    assert all_of(df, tmp_path) == []


@spark_test
def test_a_restart_continues_without_loss_and_without_duplicates(
    spark: SparkSession, tmp_path: Path
) -> None:
    asked: list[int] = []

    def rest(seen: int) -> Flow[int]:
        asked.append(seen)
        return flow.range(seen, 1_000)

    df = stream_source(
        rest, spark, schema=int, spool=tmp_path / "spool", segment_rows=50, batch_segments=1
    )
    rows = from_stream(df, checkpoint=tmp_path / "state", name="all")
    some = list(rows.take(120))  # in the middle of the third micro-batch, which is not committed
    assert until(lambda: not spark.streams.active)

    # As after a restart of the driver: everything anew, but for what is on disk.
    df = stream_source(
        rest, spark, schema=int, spool=tmp_path / "spool", segment_rows=50, batch_segments=1
    )
    others = all_of(df, tmp_path)

    assert sorted({*some, *others}) == list(range(1_000))
    assert sorted(others) == list(range(100, 1_000))
    assert asked[0] == 0
    assert asked[1] >= 150


@spark_test
def test_the_spool_is_bounded_and_a_slow_query_holds_the_flow_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    seen: list[int] = []

    def items() -> Iterator[int]:
        for number in itertools.count():
            seen.append(number)
            yield number

    df = stream_source(
        flow.from_iterable(items()),
        spark,
        schema=int,
        spool=tmp_path / "spool",
        segment_rows=10,
        batch_segments=2,
    )
    time.sleep(0.3)
    assert seen == []  # nothing runs before a query does

    stream = iter(from_stream(df, checkpoint=tmp_path / "state"))
    next(stream)
    assert until(lambda: len(seen) >= 60)
    time.sleep(0.5)

    # Two segments in the micro-batch at hand, four in the window, two on their way.
    assert len(seen) <= 80
    assert len(list((tmp_path / "spool").glob("*.arrow"))) <= 6
    for _ in range(40):
        next(stream)
    assert until(lambda: len(seen) >= 100)
    stream.close()  # type: ignore[attr-defined]
    assert until(lambda: not spark.streams.active)
    at_the_end = len(seen)
    time.sleep(0.3)
    assert len(seen) == at_the_end


@spark_test
@pytest.mark.cluster
def test_a_segment_that_does_not_fill_up_is_not_kept_waiting(
    spark: SparkSession, tmp_path: Path
) -> None:
    publisher = TestPublisher[int]()
    df = stream_source(Flow(publisher), spark, schema=int, spool=tmp_path / "spool", flush=0.05)
    came = threading.Event()
    handle = from_stream(df).subscribe(lambda _: came.set())
    assert until(lambda: publisher.requested > 0)

    publisher.next(1)

    assert came.wait(TIMEOUT_S)
    handle.dispose()
    assert until(lambda: publisher.cancelled)
    assert until(lambda: not spark.streams.active)


@spark_test
@pytest.mark.cluster
def test_an_error_of_the_flow_ends_the_query_after_the_items_before_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    good = False

    def check(number: int) -> int:
        if number == 30 and not good:
            raise ValueError("thirty")
        return number

    df = stream_source(flow.range(40).map(check), spark, spool=tmp_path / "spool", segment_rows=10)
    found: list[int] = []
    with pytest.raises(Exception, match="ValueError: thirty"):
        from_stream(df, checkpoint=tmp_path / "state", trigger="available-now").pipe(_into(found))
    assert sorted(found) == list(range(30))

    good = True  # a restart tries it again, and skips what has come
    assert until(lambda: Segments(tmp_path / "spool").outcome() is None)
    assert sorted(all_of(df, tmp_path)) == list(range(30, 40))


def _into(found: list[int]) -> Any:
    from flow_core import Operator

    return Operator("into", lambda items: [found.append(item) for item in items])


@spark_test
@pytest.mark.cluster
def test_an_item_that_does_not_fit_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    items: list[Any] = [1, "two"]
    df = stream_source(flow.from_iterable(items), spark, schema=int, spool=tmp_path / "spool")

    with pytest.raises(Exception, match=r"item 1.*'value'"):
        all_of(df, tmp_path)


@spark_test
@pytest.mark.cluster
def test_a_spool_has_one_query(spark: SparkSession, tmp_path: Path) -> None:
    df = stream_source(Flow(TestPublisher[int]()), spark, schema=int, spool=tmp_path / "spool")
    first = df.writeStream.format("noop").start()
    try:
        assert until(Segments(tmp_path / "spool").reader.held_by_anyone)
        with pytest.raises(Exception, match="another query reads the spool"):
            list(from_stream(df, trigger="available-now"))
        with pytest.raises(SpoolError, match="a query reads the spool"):
            stream_source(flow.range(3), spark, schema=int, spool=tmp_path / "spool")
    finally:
        first.stop()


@spark_test
def test_a_checkpoint_of_another_spool_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    first = stream_source(flow.range(3), spark, schema=int, spool=tmp_path / "one")
    assert sorted(all_of(first, tmp_path)) == [0, 1, 2]
    second = stream_source(flow.range(3), spark, schema=int, spool=tmp_path / "two")

    with pytest.raises(Exception, match="another spool"):
        all_of(second, tmp_path)


def test_an_older_spark_is_refused() -> None:
    class Session:
        version = "4.1.2"

    with pytest.raises(SessionConflictError, match=r"needs Spark 4\.2.*4\.1\.2.*append"):
        stream_source(flow.range(3), cast("SparkSession", Session()), spool="spool")


@spark_test
def test_wrong_arguments_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    numbers = flow.range(3)
    with pytest.raises(ValueError, match="two micro-batches, 16"):
        stream_source(numbers, spark, spool=tmp_path / "spool", schema=int, window=15)
    with pytest.raises(ValueError, match="segment_rows"):
        stream_source(numbers, spark, spool=tmp_path / "spool", schema=int, segment_rows=0)
    with pytest.raises(ValueError, match="flush must be at least 0 s"):
        stream_source(numbers, spark, spool=tmp_path / "spool", schema=int, flush=-1)
    with pytest.raises(ValueError, match="hdfs"):
        stream_source(numbers, spark, spool="hdfs://host/spool", schema=int)
    with pytest.raises(UnsupportedTypeError, match="schema="):
        stream_source(numbers.map(lambda n: n), spark, spool=tmp_path / "spool")


DRIVER = """
import os, signal, sys
from pathlib import Path
import flow_core as flow
from flow_spark import SqliteBatchStore, for_each_batch_once, from_stream, session, stream_source

home, kill_at = Path(sys.argv[1]), int(sys.argv[2])
with session("local[2]", fast_start=True) as spark:
    df = stream_source(
        flow.range(2000), spark, schema=int, spool=home / "spool", segment_rows=50,
        batch_segments=4,
    )
    store = SqliteBatchStore(home / "out.db")

    def save(batch_id, items, db):
        db.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
        db.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in items))

    done = 0
    rows = from_stream(df, checkpoint=home / "state", trigger="available-now")
    for batch in rows.pipe(for_each_batch_once(store, save)):
        done += 1
        if done == kill_at:  # its work is committed, and Spark has not heard of it
            os.kill(os.getpid(), signal.SIGKILL)
"""


@spark_test
@pytest.mark.timeout(300)
@pytest.mark.cluster
def test_a_killed_driver_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    import sqlite3

    codes = []
    for kill_at in (3, 0):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(DRIVER), str(tmp_path), str(kill_at)],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        codes.append(done.returncode)

    assert codes == [-signal.SIGKILL, 0], done.stderr
    with sqlite3.connect(tmp_path / "out.db") as db:
        found = [row[0] for row in db.execute("SELECT n FROM numbers ORDER BY n")]
    db.close()
    assert found == list(range(2000))
