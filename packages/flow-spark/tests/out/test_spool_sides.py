"""Both sides of the spool without Spark: the feeder, and the calls that Spark would make."""

from __future__ import annotations

import pickle
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, final

import pytest
from pyspark.sql.types import LongType, StructType

import flow_core as flow
from flow_core.flow import Flow
from flow_spark import SpoolError
from flow_spark._segments import Outcome, Segments
from flow_spark.items.schema import schema_of
from flow_spark.streams.stream_source import _Feeder, _Settings
from flow_testing import TestPublisher

from ..infrastructure.versions import WITH_LIMITS

TIMEOUT_S = 20.0
INTS = schema_of(int)
SCHEMA = StructType().add("value", LongType(), nullable=False)


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


@final
class Session:
    """As much of a session as the feeding side looks at."""

    def __init__(self) -> None:
        self.sparkContext = self
        self._jsc: object | None = self

    def stop(self) -> None:
        self._jsc = None


@pytest.fixture
def session() -> Iterator[Session]:
    opened = Session()
    yield opened
    opened.stop()


@pytest.fixture
def spool(tmp_path: Path) -> Segments:
    return Segments.made(tmp_path / "spool", INTS.arrow)


def feeder(
    session: Session, spool: Segments, make: Callable[[int], Flow[Any]], **given: Any
) -> _Feeder:
    facts: dict[str, Any] = {"segment_rows": 10, "flush_s": 0.0, "window": 4}
    opened: Any = session
    return _Feeder(opened, spool, make, INTS, _Settings(**{**facts, **given}))


def reader(spool: Segments, batch_segments: int = 2, tasks: int = 2) -> Any:
    from flow_spark._segment_source import SegmentSource, options

    source = SegmentSource(options(spool.folder, batch_segments, tasks))
    return source.streamReader(SCHEMA)


def values(made: Any, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    again = pickle.loads(pickle.dumps(made))  # as it gets to the tasks
    return [
        value
        for partition in made.partitions(start, end)
        for batch in again.read(partition)
        for value in batch.column("value").to_pylist()
    ]


class TestFeeder:
    def test_nothing_runs_before_there_is_a_reader(self, session: Session, spool: Segments) -> None:
        publisher = TestPublisher[int]()
        feeder(session, spool, lambda _: Flow(publisher))

        time.sleep(0.1)
        assert publisher.subscribed == 0
        lock = spool.reader
        assert lock.acquire(0)
        assert until(lambda: publisher.requests == [10])
        lock.release()
        assert until(lambda: publisher.cancelled)

    def test_the_window_bounds_what_is_put_in_and_planning_makes_room(
        self, session: Session, spool: Segments
    ) -> None:
        lock = spool.reader
        assert lock.acquire(1)
        feeder(session, spool, lambda seen: flow.range(seen, 1000))

        assert until(lambda: spool.end().segment == 4)
        time.sleep(0.2)
        assert spool.end().segment == 4
        spool.plan(3)
        assert until(lambda: spool.end().segment == 7)
        spool.commit(3)
        time.sleep(0.1)
        assert spool.end().items == 70
        lock.release()

    def test_a_flow_that_ended_says_how(self, session: Session, spool: Segments) -> None:
        lock = spool.reader
        assert lock.acquire(1)
        feeder(session, spool, lambda seen: flow.range(seen, 25))

        assert until(lambda: spool.outcome() == Outcome(None))
        assert spool.end().items == 25
        lock.release()

    def test_a_flow_that_failed_is_tried_again_for_the_next_reader(
        self, session: Session, spool: Segments
    ) -> None:
        asked: list[int] = []

        def make(seen: int) -> Flow[int]:
            asked.append(seen)
            if len(asked) == 1:
                return flow.range(10, stop=-1, step=-1).map(lambda n: n // (n - 3))
            return flow.range(seen, 9)

        lock = spool.reader
        assert lock.acquire(1)
        feeder(session, spool, make)
        assert until(lambda: spool.outcome() is not None)
        assert spool.end().items == 7
        time.sleep(0.1)
        assert "ZeroDivisionError" in str(spool.outcome())
        lock.release()
        assert until(lambda: spool.outcome() is None)
        assert lock.acquire(1)

        assert until(lambda: spool.outcome() == Outcome(None))
        assert (asked, spool.end().items) == ([0, 7], 9)
        lock.release()

    def test_items_taken_when_the_reader_leaves_are_kept(
        self, session: Session, spool: Segments
    ) -> None:
        publisher = TestPublisher[int]()
        lock = spool.reader
        assert lock.acquire(1)
        feeder(session, spool, lambda _: Flow(publisher), flush_s=0.01)
        assert until(lambda: publisher.requested == 10)
        publisher.next(1)
        assert until(lambda: spool.end().segment == 1)

        publisher.next(2)  # one waits for a reader: this one waits for more of its kind
        time.sleep(0.1)
        assert spool.end().segment == 1
        lock.release()

        assert until(lambda: spool.end().items == 2)

    def test_one_feeds_at_a_time(
        self, session: Session, spool: Segments, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("flow_spark.streams.stream_source._HANDOVER_S", 0.2)
        first = feeder(session, spool, lambda _: flow.never())
        second = feeder(session, spool, lambda _: flow.never())
        assert not first._thread.is_alive()
        lock = spool.reader
        assert lock.acquire(1)
        time.sleep(0.05)

        with pytest.raises(SpoolError, match="a query reads the spool"):
            second.leave()
        lock.release()

        other = Segments(spool.folder).writer
        assert not other.acquire(0)
        session.stop()
        assert until(lambda: other.acquire(0))
        other.release()

    def test_threads_that_begin_together_make_one_spool(self, tmp_path: Path) -> None:
        for turn in range(20):  # in most of them, one removed what another one wrote
            folder = tmp_path / str(turn)
            together = threading.Barrier(6)

            def made(_: int, folder: Path = folder, together: threading.Barrier = together) -> str:
                together.wait(TIMEOUT_S)
                return Segments.made(folder, INTS.arrow).id

            with ThreadPoolExecutor(6) as threads:
                assert len(set(threads.map(made, range(6)))) == 1

    def test_opening_a_spool_keeps_the_file_that_the_other_side_is_about_to_write(
        self, spool: Segments
    ) -> None:
        part = spool.folder / f"{0:016}.part"
        for lock in (spool.writer, spool.reader):
            part.touch()
            assert lock.acquire(0.0)
            Segments.made(spool.folder, INTS.arrow)
            assert part.exists()
            lock.release()
        Segments.made(spool.folder, INTS.arrow)
        assert not part.exists()

    def test_a_spool_that_is_removed_stays_so(self, session: Session, spool: Segments) -> None:
        made = feeder(session, spool, lambda _: flow.never())
        time.sleep(0.05)

        shutil.rmtree(spool.folder)

        made._thread.join(TIMEOUT_S)
        assert not made._thread.is_alive()
        assert not spool.folder.exists()


@WITH_LIMITS
class TestReader:
    def put(self, spool: Segments, *segments: list[int]) -> None:
        import pyarrow

        for numbers in segments:
            batch: Any = pyarrow.record_batch([numbers], schema=INTS.arrow)
            spool.append([batch], INTS.arrow, spool.end())

    def test_a_micro_batch_has_at_most_the_given_number_of_segments(self, spool: Segments) -> None:
        self.put(spool, [1], [2, 3], [4])
        made = reader(spool)

        start = made.initialOffset()
        first = made.latestOffset(start, made.getDefaultReadLimit())
        second = made.latestOffset(first, made.getDefaultReadLimit())

        assert sorted(values(made, start, first)) == [1, 2, 3]
        assert values(made, first, second) == [4]
        assert made.latestOffset(second, made.getDefaultReadLimit()) == second
        made.commit(first)
        assert spool.begin().segment == 2
        made.stop()

    def test_without_a_limit_it_has_all(self, spool: Segments) -> None:
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        self.put(spool, [1], [2], [3])
        made = reader(spool)

        start = made.initialOffset()
        end = made.latestOffset(start, ReadAllAvailable())

        assert values(made, start, end) == [1, 2, 3]
        assert spool.planned() == 3
        made.stop()

    def test_there_is_one_reader(self, spool: Segments, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("flow_spark._segment_source._PATIENCE_S", 0.05)
        first, second = reader(spool), reader(spool)
        first.initialOffset()

        with pytest.raises(SpoolError, match="another query"):
            second.initialOffset()
        first.stop()
        second.initialOffset()
        second.stop()

    def test_offsets_of_another_spool_are_refused(self, spool: Segments, tmp_path: Path) -> None:
        other = Segments.made(tmp_path / "other", INTS.arrow)
        made, foreign = reader(spool), reader(other)

        with pytest.raises(SpoolError, match="another spool"):
            made.latestOffset(foreign.initialOffset(), made.getDefaultReadLimit())
        with pytest.raises(SpoolError, match="it was emptied"):
            made.latestOffset({"spool": spool.id, "segment": 3}, made.getDefaultReadLimit())
        made.stop()
        foreign.stop()

    def test_a_file_that_an_executor_does_not_see_is_said_so(self, spool: Segments) -> None:
        self.put(spool, [1])
        made = reader(spool)
        start = made.initialOffset()
        (partition,) = made.partitions(start, made.latestOffset(start, made.getDefaultReadLimit()))
        spool.commit(1)

        with pytest.raises(SpoolError, match="file system that they share"):
            list(made.read(partition))
        made.stop()

    def test_to_the_end_means_waiting_for_it(self, spool: Segments) -> None:
        made = reader(spool)
        made.prepareForTriggerAvailableNow()
        start = made.initialOffset()
        threading.Timer(0.1, lambda: self.put(spool, [1])).start()

        first = made.latestOffset(start, made.getDefaultReadLimit())
        threading.Timer(0.1, lambda: spool.conclude(Outcome(None))).start()
        second = made.latestOffset(first, made.getDefaultReadLimit())

        assert (first["segment"], second) == (1, first)
        made.stop()

    def test_a_failure_comes_behind_what_came_before(self, spool: Segments) -> None:
        self.put(spool, [1])
        spool.conclude(Outcome("ValueError: no"))
        made = reader(spool)

        end = made.latestOffset(made.initialOffset(), made.getDefaultReadLimit())
        assert end["segment"] == 1
        with pytest.raises(Exception, match="ValueError: no"):
            made.latestOffset(end, made.getDefaultReadLimit())
        made.stop()
