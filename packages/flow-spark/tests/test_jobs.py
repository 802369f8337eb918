"""Jobs on a real Spark: everything arrives once, whatever happens to the tasks."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_core.errors import NoneItemError
from flow_core.stages import Program
from flow_core.structure import stages_of
from flow_spark import UnsupportedTypeError, on_spark, to_dataframe
from flow_spark.errors import PartitionChangedError, RemoteTracebackError, SparkJobError
from flow_spark.jobs.frames import divided
from flow_spark.jobs.job import PushedJob
from flow_spark.jobs.origin import FlowOrigin, FrameOrigin

from .infrastructure.processes import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.essential]

TIMEOUT_S = 30.0
ROWS = 200_000


def program(build: Callable[[flow.Flow[Any]], flow.Flow[Any]]) -> Program[Any, Any]:
    return Program(stages_of(build(flow.range(0))))


def job(df: DataFrame, build: Callable[[flow.Flow[Any]], flow.Flow[Any]] | None) -> PushedJob:
    return PushedJob(FrameOrigin(df), None if build is None else program(build))


def items_of(job: PushedJob) -> Iterator[Any]:
    for batch in job:
        yield from batch


def all_of(job: PushedJob) -> list[Any]:
    return list(items_of(job))


@pytest.fixture
def quiet(spark: SparkSession) -> Iterator[None]:
    """Nothing of a job may be left when the test has ended."""
    before = set(threading.enumerate())
    yield
    tracker = spark.sparkContext.statusTracker()
    assert wait_until(lambda: not tracker.getActiveJobsIds(), 5)
    assert wait_until(
        lambda: (
            not [
                thread
                for thread in threading.enumerate()
                if thread not in before and thread.name.startswith("flow-spark")
            ]
        ),
        5,
    )


@pytest.mark.parametrize("build", [None, lambda f: f.map(lambda n: n)], ids=["arrow", "stages"])
def test_all_rows_arrive_and_partitions_keep_their_order(
    spark: SparkSession, quiet: None, build: Any
) -> None:
    found = all_of(job(spark.range(0, ROWS, 1, 5), build))

    assert sorted(found) == list(range(ROWS))
    size = ROWS // 5
    for partition in range(5):
        mine = [number for number in found if number // size == partition]
        assert mine == list(range(partition * size, (partition + 1) * size))


def test_empty_partitions_and_empty_frames_are_complete(spark: SparkSession, quiet: None) -> None:
    assert all_of(job(spark.range(0, 3, 1, 8), None)) in ([0, 1, 2], *permutations())
    assert all_of(job(spark.range(0), None)) == []
    assert all_of(job(spark.range(0), lambda f: f.map(lambda n: n))) == []


def permutations() -> list[list[int]]:
    import itertools

    return [list(each) for each in itertools.permutations(range(3))]


def test_a_job_runs_once(spark: SparkSession) -> None:
    once = job(spark.range(3), None)
    all_of(once)

    with pytest.raises(SparkJobError, match="runs once"):
        all_of(once)


def test_nothing_runs_before_the_first_item_is_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    marker = tmp_path / "ran"
    made = job(spark.range(3), lambda f: f.map(lambda n: (marker.touch(), n)[1]))
    iter(made)

    assert made.statistics() is None
    assert not marker.exists()


def test_tasks_stand_still_while_nothing_is_read(spark: SparkSession, quiet: None) -> None:
    counter = spark.sparkContext.accumulator(0)

    def count(n: int) -> tuple[int, bytes]:
        counter.add(1)
        return n, bytes(10_000)

    made = job(spark.range(0, 4000, 1, 8), lambda f: f.map(count))
    batches = iter(made)
    next(batches)
    tracker = spark.sparkContext.statusTracker()

    def completed() -> int:
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        return sum(stage.numCompletedTasks for stage in stages if stage is not None)

    # 40 MB are to come; the sockets hold a few hundred kB. Nobody reads for a while.
    assert not wait_until(lambda: completed() > 0, 1.5)
    statistics = made.statistics()
    assert statistics is not None
    assert statistics.batches == 1
    rest = sum(len(list(batch)) for batch in batches)
    assert statistics.rows + rest == 4000
    assert counter.value == 4000


def test_leaving_early_ends_the_job_at_once(spark: SparkSession, quiet: None) -> None:
    made = job(spark.range(10**10), lambda f: f.map(lambda n: n + 1))

    for _ in made:
        break

    assert made.join(2)


def test_cancel_wakes_a_reader_that_waits_and_ends_a_task_that_hangs(
    spark: SparkSession, quiet: None, tmp_path: Path
) -> None:
    started = tmp_path / "started"

    def hang(n: int) -> int:
        started.touch()
        time.sleep(600)
        return n

    made = job(spark.range(2), lambda f: f.map(hang))
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.extend(all_of(made)), daemon=True)
    reader.start()
    assert wait_until(started.exists, TIMEOUT_S)
    made.cancel()
    made.cancel()

    reader.join(2)
    assert not reader.is_alive()
    assert made.join(2)
    assert found == []


def test_a_job_that_is_cancelled_before_it_starts_never_starts(spark: SparkSession) -> None:
    made = job(spark.range(3), None)
    made.cancel()

    assert all_of(made) == []
    assert made.join(0)


class OwnError(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def test_an_exception_of_a_function_arrives_as_itself(spark: SparkSession, quiet: None) -> None:
    def fail(n: int) -> int:
        if n == 777:
            raise OwnError(n)
        return n

    found: list[Any] = []
    with pytest.raises(OwnError) as caught:
        found.extend(items_of(job(spark.range(0, 1000, 1, 1), lambda f: f.map(fail))))

    assert caught.value.number == 777
    assert found == list(range(777))
    cause = caught.value.__cause__
    assert isinstance(cause, RemoteTracebackError)
    assert "in fail" in cause.text
    assert any("map(fail), assembled at" in note for note in caught.value.__notes__)


def test_a_mapper_that_gives_none_is_named(spark: SparkSession, quiet: None) -> None:
    with pytest.raises(NoneItemError, match="gave None"):
        all_of(job(spark.range(3), lambda f: f.map(lambda n: None)))


def test_a_query_that_spark_refuses_says_so_itself(spark: SparkSession, quiet: None) -> None:
    df = spark.sql("select assert_true(id < 2, 'too large') as ok, id from range(5)")

    with pytest.raises(SparkJobError, match="too large") as caught:
        all_of(job(df, None))

    assert "\tat " not in str(caught.value)


def test_a_killed_python_worker_costs_nothing(
    spark: SparkSession, quiet: None, tmp_path: Path
) -> None:
    """kill -9 in the middle of a partition; Spark retries the task (``local[2,4]``)."""
    marker = tmp_path / "killed"

    def die_once(n: int) -> int:
        if n == 70_000 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    made = job(spark.range(0, ROWS, 1, 3), lambda f: f.map(die_once).filter(lambda n: n % 3))
    found = all_of(made)

    assert marker.exists()
    assert sorted(found) == [n for n in range(ROWS) if n % 3]
    size = ROWS // 3 + 1
    mine = [n for n in found if n < size]
    assert mine == sorted(mine)


def test_a_retry_that_gives_fewer_items_fails_the_flow(
    spark: SparkSession, quiet: None, tmp_path: Path
) -> None:
    marker = tmp_path / "killed"

    def die_once(n: int) -> int:
        if n == 90_000 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    def fewer(n: int) -> bool:
        return n < 100 or not marker.exists()

    made = job(spark.range(0, 100_000, 1, 1), lambda f: f.map(die_once).filter(fewer))
    with pytest.raises(PartitionChangedError, match="when it was retried"):
        all_of(made)


def dying_once(marker: Path, at: int) -> Callable[[Any], Any]:
    """Kills the Python worker at the item with that id, the first time."""

    def die_once(row: Any) -> Any:
        if row[0] == at and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return row

    return die_once


def test_rows_of_all_kinds_are_known_again(
    spark: SparkSession, quiet: None, tmp_path: Path
) -> None:
    """Whatever they are made of, the same rows have the same checksums, with nulls and all."""
    marker = tmp_path / "killed"
    df = spark.range(0, 60_000, 1, 1).selectExpr(
        "id",
        "if(id % 3 = 0, null, id) as number",
        "if(id % 5 = 0, null, repeat('x', cast(id % 17 as int))) as text",
        "cast(if(id % 7 = 0, null, id) as decimal(20, 2)) as price",
        "if(id % 4 = 0, null, id % 2 = 0) as flag",
        "if(id % 11 = 0, null, array(id, null, id + 1)) as several",
        "if(id % 13 = 0, null, map(id, cast(id as string))) as named",
        "if(id % 6 = 0, null, struct(id, if(id % 9 = 0, null, 'y') as y)) as inner",
        "timestamp_seconds(id) as at",
        "null as nothing",
    )

    found = all_of(job(df, lambda f: f.map(dying_once(marker, 50_000)).map(lambda row: row[0])))

    assert marker.exists()
    assert found == list(range(60_000))


def test_rows_that_come_in_another_order_when_a_task_is_retried_fail_the_flow(
    spark: SparkSession, quiet: None, tmp_path: Path
) -> None:
    """Their number is the same; without the checksums, some were lost and others came twice."""
    marker = tmp_path / "killed"

    def other_order(batches: Iterator[Any]) -> Iterator[Any]:
        read = list(batches)
        return iter(read[::-1] if marker.exists() else read)

    rows: Any = spark.range(0, 60_000, 1, 1)
    df = rows.mapInArrow(other_order, "id long")
    die_once = dying_once(marker, 50_000)
    found: list[int] = []
    with pytest.raises(PartitionChangedError, match="other rows than to the attempt before"):
        found.extend(items_of(job(df, lambda f: f.map(lambda n: die_once((n,))[0]))))

    assert marker.exists()
    assert found == list(range(len(found)))


@pytest.mark.parametrize(("by", "order"), [(3, ()), ("bucket", ("bucket",))])
def test_rows_that_are_divided_keep_their_order_in_each_partition(
    spark: SparkSession, by: int | str, order: tuple[str, ...]
) -> None:
    """A second shuffle gives them in the same order, on which a retried task relies."""
    df = spark.range(0, 1000, 1, 4).selectExpr("id % 7 as bucket", "id")

    found = divided(df, by, *order).selectExpr("spark_partition_id()", "bucket", "id").collect()

    assert sorted(row[2] for row in found) == list(range(1000))
    assert len({row[0] for row in found}) > 1 or by == "bucket"
    key = (0, 1, 2) if by == "bucket" else (0, 2)
    in_order = [tuple(row[column] for column in key) for row in found]
    assert in_order == sorted(in_order)


def test_two_jobs_do_not_disturb_each_other(spark: SparkSession, quiet: None) -> None:
    first = iter(job(spark.range(0, ROWS, 1, 1), None))
    second = iter(job(spark.range(ROWS, 2 * ROWS, 1, 1), None))
    found: list[list[int]] = [[], []]
    found[0].extend(next(first))
    found[1].extend(next(second))
    for batch in second:
        found[1].extend(batch)
    for batch in first:
        found[0].extend(batch)

    assert found == [list(range(ROWS)), list(range(ROWS, 2 * ROWS))]


def test_memory_of_the_driver_stays_flat(spark: SparkSession, quiet: None) -> None:
    """Reading is the demand: however much there is, little of it is here."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        pytest.skip("needs /proc to read this process's memory")

    def resident() -> float:
        return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    made = job(spark.range(2_000_000), lambda f: f.map(lambda n: (n, str(n), bytes(50))))
    total, peak, base = 0, 0.0, 0.0
    for number, batch in enumerate(made):
        total += len(list(batch))
        if number == 50:
            base = resident()
        peak = max(peak, resident())

    assert total == 2_000_000
    assert peak < base * 1.1


@pytest.mark.parametrize("source", ["never", "endless"])
def test_cancel_ends_the_flow_whose_items_are_being_sent(
    spark: SparkSession, quiet: None, source: str
) -> None:
    taking = threading.Event()

    def endless() -> Iterator[int]:
        number = 0
        while True:
            number += 1
            if number == 1000:
                taking.set()
            yield number

    if source == "never":
        taking.set()
    items = flow.never() if source == "never" else flow.from_iterable(endless())
    made = PushedJob(FlowOrigin(items, spark, 2), program(lambda f: f.map(str)))
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.extend(all_of(made)), daemon=True)
    reader.start()
    assert taking.wait(TIMEOUT_S)
    made.cancel()

    reader.join(2)
    assert not reader.is_alive()
    assert made.join(2)
    assert found == []


def test_a_flow_with_separate_threads_can_be_sent(spark: SparkSession, quiet: None) -> None:
    items = flow.range(5000).pipe(on_spark(spark, partitions=2)).map(lambda n: n + 1).hide()

    found = all_of(PushedJob(FlowOrigin(items, spark, 2), program(lambda f: f.map(str))))

    assert sorted(found) == sorted(map(str, range(1, 5001)))


def test_a_stream_is_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()

    with pytest.raises(UnsupportedTypeError, match="is a stream"):
        FrameOrigin(stream)


PROPERTIES = ("spark.scheduler.pool", "spark.jobGroup.id", "spark.job.description")


def told_in_the_task(_: int) -> tuple[str | None, ...]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return tuple(context.getLocalProperty(name) for name in PROPERTIES)


def subscribed(found: flow.Flow[Any]) -> set[Any]:
    return set(found.to_list().to_future().result(TIMEOUT_S))


@pytest.mark.parametrize("consume", [set, subscribed], ids=["for", "subscribe"])
@pytest.mark.parametrize("shuffled", [False, True], ids=["rows", "shuffle"])
def test_settings_of_a_thread_for_spark_hold_for_the_jobs_of_its_flows(
    spark: SparkSession, consume: Callable[[Any], set[Any]], shuffled: bool
) -> None:
    context, told = spark.sparkContext, ("a pool", "a group", "a description")

    def asked() -> set[Any]:
        context.setLocalProperty("spark.scheduler.pool", told[0])
        context.setJobGroup(*told[1:])
        spark.addTag("a_tag")
        numbers = flow.range(8).pipe(on_spark(spark, partitions=2))
        if shuffled:
            return consume(numbers.count_by_key(lambda n: n % 3).map(told_in_the_task))
        return consume(numbers.map(told_in_the_task))

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(asked).result(TIMEOUT_S)

    assert found == {told}
    assert spark.getTags() == set()


def in_columns(numbers: flow.Flow[int], look: Callable[[int], int]) -> list[int]:
    df = numbers.map(look).pipe(to_dataframe(schema="n long"))
    return [row.n for row in df.collect()]


@pytest.mark.parametrize(
    ("build", "expected", "calls"),
    [
        (lambda f, look: f.map(look), {10, 11, 12, 13}, 4),
        (lambda f, look: f.map(look).count_by_key(lambda n: n % 2), {(0, 2), (1, 2)}, 4),
        (lambda f, look: f.count_by_key(lambda n: n % 2).map(lambda kv: look(kv[1])), {12}, 2),
        (in_columns, {10, 11, 12, 13}, 4),
    ],
    ids=["rows", "before a shuffle", "behind a shuffle", "columns"],
)
def test_functions_use_broadcast_variables_and_accumulators(
    spark: SparkSession, build: Any, expected: set[Any], calls: int
) -> None:
    known, called = spark.sparkContext.broadcast({"more": 10}), spark.sparkContext.accumulator(0)

    def look(n: int) -> int:
        called.add(1)
        return n + known.value["more"]

    found = set(build(flow.range(4).pipe(on_spark(spark, partitions=2)), look))

    assert (found, called.value) == (expected, calls)


def test_a_function_with_a_broadcast_variable_runs_here_where_spark_makes_no_task(
    spark: SparkSession,
) -> None:
    known = spark.sparkContext.broadcast(7)
    found = job(spark.range(5).limit(0), lambda f: f.default_if_empty(0).map(lambda _: known.value))

    assert all_of(found) == [7]
