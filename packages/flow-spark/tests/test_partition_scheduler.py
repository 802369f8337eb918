"""The partitions of a job run wave by wave, while their items are requested."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from flow_spark import JobStatus, from_dataframe, running_jobs, union
from flow_spark.channel.receiver import Statistics
from flow_spark.errors import SparkJobError
from flow_spark.jobs import partition_scheduler as waving
from flow_spark.jobs.partition_scheduler import PartitionScheduler, Parts
from flow_testing import TestSubscriber
from flow_testing.interleave import Scenario, explore_all

from .infrastructure.processes import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 30.0
PARTITIONS = 20


class Receiver:
    """Stands for a `BatchReceiver`: the test says what has come, and whether the consumer asks."""

    def __init__(self) -> None:
        self.silent = 0.0
        self.asked = 1
        self.waiting = 0
        self.known: set[int] = set()
        self.over = False
        self.is_asked = False

    def silence_s(self) -> float:
        return self.silent

    def statistics(self) -> Statistics:
        return Statistics(self.asked, 0, 0, 0, 0, self.waiting, 0, 0)

    def knows(self, partition: int) -> bool:
        return partition in self.known

    def is_over(self) -> bool:
        return self.over

    def let_go(self, end: Callable[[], None]) -> bool:
        if self.is_asked:
            return False
        end()
        self.known.clear()
        return True


class Cluster(Parts):
    """Partitions that end when the test says so."""

    def __init__(self, count: int, slots: int) -> None:
        self.count, self.slots = count, slots
        self.are_few = False
        self.started: list[range] = []
        self.told: SimpleQueue[tuple[range, Future[None]]] = SimpleQueue()
        self.unfinished: list[Future[None]] = []
        self.cancelled = 0

    def run(self, partitions: range) -> list[tuple[Any, ...]]:
        end = Future[None]()
        self.unfinished.append(end)
        self.started.append(partitions)
        self.told.put((partitions, end))
        try:
            end.result(TIMEOUT_S)
        finally:
            self.unfinished.remove(end)
        return [(partition,) for partition in partitions]

    def next(self) -> tuple[range, Future[None]]:
        return self.told.get(timeout=TIMEOUT_S)

    def cancel(self) -> None:
        self.cancelled += 1
        for end in [*self.unfinished]:
            if not end.done():
                end.set_exception(ConnectionError("cancelled"))


class Run:
    """A scheduler that runs in a thread."""

    def __init__(
        self, count: int, slots: int, branches: int = 1, *, first: int = 1, few: bool = False
    ) -> None:
        self.cluster, self.receiver = Cluster(count, slots), Receiver()
        self.cluster.are_few = few
        receiver: Any = self.receiver
        self.tellers: list[int] = []
        self.repeats = True
        self.scheduler = PartitionScheduler(
            self.cluster,
            receiver,
            first=first or None,
            branches=branches,
            repeats=lambda: self.repeats,
            tell=lambda: self.tellers.append(threading.get_ident()),
            cancel=self.cluster.cancel,
            what="the job",
        )
        self.looks = 0
        self.rows: Future[list[tuple[Any, ...]]] = Future()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.rows.set_result(self.scheduler.run())
        except BaseException as error:
            self.rows.set_exception(error)

    def starts(self) -> tuple[range, Future[None]]:
        """The next wave, all of whose tasks have come."""
        wave, end = self.cluster.next()
        self.receiver.known.update(wave)
        return wave, end


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    """Makes schedulers that look often, and run until the test has ended, while no time passes."""
    monkeypatch.setattr(waving, "_LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(waving, "_CANCEL_EVERY_S", 0.001)
    monkeypatch.setattr(waving, "time", SimpleNamespace(monotonic=lambda: 0.0))
    made: list[Run] = []

    def make(*args: int, first: int = 1, few: bool = False) -> Run:
        made.append(Run(*args, first=first, few=few))
        made[-1].thread.start()
        return made[-1]

    yield make
    for one in made:
        one.receiver.over = True
        one.cluster.cancel()
        one.thread.join(TIMEOUT_S)
        assert not one.thread.is_alive()


def looks(run: Run, count: int = 20) -> None:
    """Wait until it has looked this number of times whether the next wave is to start."""
    seen, inner = threading.Semaphore(0), run.receiver.is_over

    def counting() -> bool:
        seen.release()
        return inner()

    run.receiver.is_over = counting  # type: ignore[method-assign]
    for _ in range(count):
        assert seen.acquire(timeout=TIMEOUT_S)
    run.receiver.is_over = inner  # type: ignore[method-assign]


def test_each_partition_runs_once_and_their_rows_are_given(run: Callable[..., Run]) -> None:
    made = run(1000, 2)
    done = 0
    while done < 1000:
        wave, end = made.starts()
        made.receiver.asked += len(wave)
        done += len(wave)
        end.set_result(None)

    assert sorted(made.rows.result(TIMEOUT_S)) == [(n,) for n in range(1000)]
    assert made.scheduler.later == 0
    assert len(made.tellers) == len(made.cluster.started), "each thread is told whose jobs they are"


def test_one_partition_runs_until_more_is_asked_for_than_its_first_items(
    run: Callable[..., Run],
) -> None:
    made = run(100, 2)
    wave, _ = made.starts()
    assert wave == range(1)
    looks(made)
    assert made.scheduler.later == 99

    made.receiver.asked = 2
    wave, _ = made.starts()
    assert wave == range(1, 5)


def test_where_no_end_is_near_two_partitions_for_each_slot_run_at_first(
    run: Callable[..., Run],
) -> None:
    made = run(100, 2, first=0)
    wave, _ = made.starts()
    assert wave == range(4)
    looks(made)
    assert made.scheduler.later == 96

    made.receiver.asked = 2
    assert made.starts()[0].start == 4


def test_others_start_if_the_first_gives_nothing_for_some_time(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(100, 2)
    assert made.starts()[0] == range(1)
    monkeypatch.setattr(waving, "_SOON_S", 0.0)
    assert made.starts()[0] == range(1, 5)


def test_others_start_if_the_first_has_ended(run: Callable[..., Run]) -> None:
    made = run(100, 2)
    _, end = made.starts()
    end.set_result(None)
    assert made.starts()[0] == range(1, 5)


def test_the_next_wave_starts_when_few_tasks_wait_for_a_slot(run: Callable[..., Run]) -> None:
    made = run(100, 2)
    made.starts()
    made.receiver.asked = 2
    wave, _ = made.cluster.next()
    made.receiver.known.add(1)
    looks(made)
    assert made.cluster.told.empty(), "three of four wait"

    made.receiver.known.add(2)
    following, _ = made.cluster.next()
    assert following.start == wave.stop


def test_waves_of_which_no_task_has_come_are_followed_by_none(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(waving, "time", SimpleNamespace(monotonic=lambda: now[0]))
    made = run(100, 2, first=0)
    made.receiver.asked = 2
    wave, end = made.cluster.next()
    now[0] = 10.0
    made.receiver.known.update(wave[:2])
    following, _ = made.cluster.next()
    assert len(following) == 8
    made.receiver.known.update(following[:6])
    looks(made)
    assert made.cluster.told.empty(), "four wait now, two of each wave"

    end.set_result(None)
    assert made.cluster.next()[0].start == following.stop


def test_united_partitions_have_separate_numbers(run: Callable[..., Run]) -> None:
    made = run(100, 2, 3)
    made.starts()
    made.receiver.asked = 2
    made.cluster.next()
    made.receiver.known.add(1 * 3 + 2)
    looks(made)
    assert made.cluster.told.empty()

    made.receiver.known.add(2 * 3 + 1)
    made.cluster.next()


@pytest.mark.parametrize("away", ["silent", "waiting"])
def test_no_wave_starts_without_a_request_or_while_much_waits_here(
    run: Callable[..., Run], away: str
) -> None:
    made = run(100, 2)
    _, first = made.starts()
    made.receiver.asked = 2
    wave, second = made.cluster.next()
    setattr(made.receiver, away, 2**30)
    made.receiver.known.update(wave)
    looks(made)
    first.set_result(None)
    second.set_result(None)
    looks(made)
    assert made.scheduler.later == 95

    setattr(made.receiver, away, 0)
    assert made.starts()[0].start == 5


@pytest.mark.parametrize(
    ("slots", "times", "expected"),
    [
        (2, (0.1, 0.1, 0.5, 1.0), [4, 16, 64, 128, 256]),
        (10, (3_200.0, 10.0), [20, 40, 80]),
    ],
    ids=["short tasks", "long tasks"],
)
def test_a_wave_is_what_the_cluster_does_in_a_second_or_twice_the_last_one(
    run: Callable[..., Run],
    monkeypatch: pytest.MonkeyPatch,
    slots: int,
    times: tuple[float, ...],
    expected: list[int],
) -> None:
    """It grows to four times the last one at most, as the rate of few tasks says little."""
    now = [0.0]
    monkeypatch.setattr(waving, "time", SimpleNamespace(monotonic=lambda: now[0]))
    made = run(10_000, slots, first=0)
    made.receiver.asked = 2
    sizes: list[int] = []
    for took in times:
        wave, _ = made.cluster.next()
        sizes.append(len(wave))
        now[0] += took
        made.receiver.known.update(wave)
    sizes.append(len(made.cluster.next()[0]))

    assert sizes == expected


def test_an_error_ends_the_other_waves_and_is_raised_when_they_have_ended(
    run: Callable[..., Run],
) -> None:
    made = run(100, 2)
    made.starts()
    made.receiver.asked = 2
    _, end = made.cluster.next()
    end.set_exception(LookupError("a task"))

    with pytest.raises(LookupError, match="a task"):
        made.rows.result(TIMEOUT_S)
    assert made.cluster.unfinished == []
    assert made.scheduler.later == 95


def test_partitions_that_have_not_started_never_do_after_the_job_has_ended(
    run: Callable[..., Run],
) -> None:
    made = run(100, 2)
    _, end = made.starts()
    made.receiver.over = True
    end.set_result(None)

    assert made.rows.result(TIMEOUT_S) == [(0,)]
    assert wait_until(lambda: not made.thread.is_alive(), TIMEOUT_S)
    assert made.scheduler.later == 99


def test_partitions_that_left_start_again_on_a_request(run: Callable[..., Run]) -> None:
    made = run(100, 2)
    _, first = made.starts()
    made.receiver.asked = 2
    wave, _ = made.starts()
    assert wave == range(1, 5)
    first.set_result(None)
    made.receiver.silent = 2.0
    assert made.scheduler.leave()
    assert wait_until(lambda: made.scheduler.later == 99, TIMEOUT_S)
    assert wait_until(lambda: made.cluster.unfinished == [], TIMEOUT_S)
    looks(made)
    assert made.scheduler.later == 99

    made.receiver.silent = 0.0
    found = [(0,)]
    while len(found) < 100:
        wave, end = made.starts()
        found += [(n,) for n in wave]
        end.set_result(None)
    assert sorted(made.rows.result(TIMEOUT_S)) == sorted(found) == [(n,) for n in range(100)]
    assert made.cluster.started[2] == range(1, 2), "as few as at first: it may leave again"


def test_few_partitions_start_at_once_and_may_leave_as_well(run: Callable[..., Run]) -> None:
    made = run(3, 2, few=True)
    assert made.starts()[0] == range(3)
    made.receiver.silent = 2.0
    assert made.scheduler.leave()
    assert wait_until(lambda: made.scheduler.later == 3, TIMEOUT_S)

    made.receiver.silent = 0.0
    for wanted in (range(2), range(2, 3)):
        wave, end = made.starts()
        assert wave == wanted
        end.set_result(None)
    assert sorted(made.rows.result(TIMEOUT_S)) == [(0,), (1,), (2,)]


@pytest.mark.parametrize("reason", ["asked", "not to be repeated"])
def test_tasks_stay_if_the_consumer_is_back_or_they_might_give_others(
    run: Callable[..., Run], reason: str
) -> None:
    made = run(100, 2)
    made.starts()
    made.receiver.is_asked = reason == "asked"
    made.repeats = reason == "asked"
    assert not made.scheduler.leave()
    looks(made)
    assert made.cluster.cancelled == 0
    assert len(made.cluster.unfinished) == 1


def test_a_job_that_holds_no_slot_has_left(run: Callable[..., Run]) -> None:
    made = run(100, 2)
    _, end = made.starts()
    made.receiver.silent = 2.0
    made.repeats = False
    end.set_result(None)
    assert wait_until(made.scheduler.leave, TIMEOUT_S)
    assert made.cluster.cancelled == 0


def test_an_error_of_those_that_came_back_is_raised(run: Callable[..., Run]) -> None:
    made = run(100, 2)
    made.starts()
    assert made.scheduler.leave()
    _, end = made.starts()
    end.set_exception(LookupError("a task"))
    with pytest.raises(LookupError, match="a task"):
        made.rows.result(TIMEOUT_S)


def test_partitions_that_left_never_start_again_after_the_job_has_ended(
    run: Callable[..., Run],
) -> None:
    made = run(100, 2)
    made.starts()
    made.receiver.silent = 2.0
    assert made.scheduler.leave()
    made.receiver.over = True
    made.rows.exception(TIMEOUT_S)
    assert made.cluster.unfinished == []
    assert len(made.cluster.started) == 1


class Slots(Parts):
    """Two partitions in the thread of the scheduler, until they are cancelled or may end."""

    count, slots, are_few = 2, 2, True

    def __init__(self) -> None:
        self.running: SimpleQueue[bool] | None = None
        self.may_end = False

    def run(self, partitions: range) -> list[tuple[Any, ...]]:
        self.running = told = SimpleQueue[bool]()
        if not (self.may_end or told.get()):
            raise ConnectionError("cancelled")
        return [(partition,) for partition in partitions]

    def cancel(self) -> None:
        if self.running is not None:
            self.running.put(False)

    def end(self) -> None:
        self.may_end = True
        if self.running is not None:
            self.running.put(True)


@pytest.mark.interleave
@pytest.mark.essential
def test_whenever_they_leave_each_ends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancel may come before they have begun, while they run, or too late."""
    monkeypatch.setattr(waving, "time", SimpleNamespace(monotonic=lambda: 0.0))

    def body() -> Scenario:
        slots, receiver = Slots(), Receiver()
        any_receiver: Any = receiver
        rows: list[tuple[Any, ...]] = []
        scheduler = PartitionScheduler(
            slots,
            any_receiver,
            first=None,
            branches=1,
            repeats=lambda: True,
            tell=lambda: None,
            cancel=slots.cancel,
            what="the job",
        )

        def leave() -> None:
            for _ in range(2):
                scheduler.leave()
            slots.end()

        def check() -> None:
            assert sorted(rows) == [(0,), (1,)]
            assert scheduler.later == 0

        return Scenario(lambda: rows.extend(scheduler.run()), leave, check=check)

    explore_all(body, modules=[waving.__name__, __name__])


# -- with Spark, on two slots


@pytest.mark.spark
@pytest.mark.parametrize("short", [lambda f: f.first(), lambda f: f.take(10).to_list().first()])
def test_a_flow_that_ends_soon_runs_one_partition(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, short: Any
) -> None:
    monkeypatch.setattr(waving, "_SOON_S", TIMEOUT_S)
    folder = str(tmp_path)

    def note(n: int) -> int:
        Path(folder, str(n // 10_000)).touch()
        return n

    short(from_dataframe(spark.range(0, 200_000, 1, PARTITIONS)).map(note))

    assert [path.name for path in tmp_path.iterdir()] == ["0"]
    tracker = spark.sparkContext.statusTracker()
    assert wait_until(lambda: not [*tracker.getActiveJobsIds()], TIMEOUT_S)


@pytest.mark.spark
def test_rows_of_any_kind_give_all_items(spark: SparkSession) -> None:
    rows = spark.range(0, 200_000, 1, PARTITIONS)
    wanted = [*range(200_000)]

    assert sorted(from_dataframe(rows)) == wanted
    assert sorted(from_dataframe(rows.repartition(PARTITIONS))) == wanted
    assert sorted(from_dataframe(rows.groupBy("id").count().select("id"))) == wanted
    assert sorted(union(from_dataframe(rows), from_dataframe(rows))) == sorted(wanted * 2)
    assert [*from_dataframe(rows.sort("id"), ordered=True)] == wanted


@pytest.mark.spark
def test_an_error_of_a_later_wave_ends_the_flow_where_it_was_raised(spark: SparkSession) -> None:
    def fail(n: int) -> int:
        if n == 150_000:
            raise LookupError(n)
        return n

    with pytest.raises(LookupError) as caught:
        list(from_dataframe(spark.range(0, 200_000, 1, PARTITIONS)).map(fail))
    assert "partition 15" in "".join(caught.value.__notes__)
    tracker = spark.sparkContext.statusTracker()
    assert wait_until(lambda: not [*tracker.getActiveJobsIds()], TIMEOUT_S)


@pytest.mark.spark
def test_progress_tells_of_partitions_that_have_not_started(spark: SparkSession) -> None:
    subscriber = TestSubscriber[int](10)
    from_dataframe(spark.range(0, 2_000_000, 1, PARTITIONS)).map(abs).subscribe(subscriber)
    assert wait_until(lambda: len(subscriber.items) == 10, TIMEOUT_S)
    (status,) = running_jobs(spark)
    subscriber.cancel()

    assert (status.name, status.tasks) == ("flow | map", PARTITIONS)
    assert isinstance(status, JobStatus)


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [2, PARTITIONS], ids=["at once", "in waves"])
def test_interrupting_a_tag_ends_the_flows_of_its_thread(
    spark: SparkSession, partitions: int
) -> None:
    spark.addTag("a_tag")
    try:
        items = iter(from_dataframe(spark.range(0, 2_000_000, 1, partitions)).map(abs))
        next(items)
        spark.interruptTag("a_tag")
        with pytest.raises(SparkJobError, match="cancel"):
            list(items)
    finally:
        spark.removeTag("a_tag")


@pytest.mark.spark
def test_an_observation_hears_of_all_rows(spark: SparkSession) -> None:
    from pyspark.sql import Observation, functions

    seen = Observation("rows")
    rows = spark.range(0, 1_000, 1, PARTITIONS).observe(seen, functions.count("*").alias("n"))

    assert from_dataframe(rows).count().first() == 1_000
    assert seen.get == {"n": 1_000}
