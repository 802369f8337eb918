"""A flow without a reader holds nothing up: two slots, which its own tasks need."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flow_spark import from_dataframe, union
from flow_spark.channel import background_reader
from flow_spark.errors import LimitExceededError
from flow_spark.jobs import partition_scheduler, run
from flow_spark.jobs.cluster import BACKLOG_LIMIT

from .infrastructure.processes import wait_until
from .infrastructure.slots import ALONE, ROWS, long_flow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(60)]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("flow-spark")]


@pytest.mark.essential
@pytest.mark.parametrize("wait", ALONE.values(), ids=ALONE)
def test_a_job_that_waits_for_a_slot_gets_one(
    spark: SparkSession, wait: Callable[[SparkSession], None]
) -> None:
    before = threads()
    wait(spark)
    assert wait_until(lambda: len(threads()) <= len(before), 20)
    assert not [*spark.sparkContext.statusTracker().getActiveJobsIds()]


@pytest.mark.essential
def test_a_flow_of_which_more_waits_than_may_ends_and_says_so(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks cannot leave and come back, as other rows would come."""
    from pyspark.sql import functions

    monkeypatch.setattr(background_reader, "GIVEN_UP_S", 0.5)
    spark.conf.set(BACKLOG_LIMIT, "1m")
    random = spark.range(0, ROWS, 1, 4).withColumn("random", functions.rand())
    try:
        items = iter(from_dataframe(random).map(str))
        assert next(items).startswith("(")
        assert spark.range(10).count() == 10
        with pytest.raises(LimitExceededError) as caught:
            assert sum(1 for _ in items) > 100_000, "what was taken in comes first"
    finally:
        spark.conf.unset(BACKLOG_LIMIT)

    said = str(caught.value)
    assert "the Spark job 'flow | map' was ended: its items were not requested for" in said
    assert "of 1,048,576 that may (spark.flow.backlog.limit)" in said
    assert not [*spark.sparkContext.statusTracker().getActiveJobsIds()]


@pytest.mark.essential
def test_a_flow_of_many_partitions_may_make_more_than_may_wait(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions that are not requested yet do not start."""
    monkeypatch.setattr(background_reader, "GIVEN_UP_S", 0.5)
    monkeypatch.setattr(partition_scheduler, "_AHEAD_S", 0.0)
    spark.conf.set(BACKLOG_LIMIT, "8m")
    rows, seen = 4_000_000, 0
    try:
        for text in from_dataframe(spark.range(0, rows, 1, 40)).map(str):
            seen += 1
            if int(text) % 500_000 == 99_999:
                assert spark.range(10).count() == 10
    finally:
        spark.conf.unset(BACKLOG_LIMIT)
    assert seen == rows


@pytest.mark.essential
@pytest.mark.parametrize("rows", ["few", "many", "shuffled", "united"])
def test_tasks_leave_when_no_more_may_wait_and_continue_on_a_request(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    rows: str,
) -> None:
    monkeypatch.setattr(background_reader, "LEFT_S", 0.2)
    spark.conf.set(BACKLOG_LIMIT, "64k")
    df = spark.range(0, ROWS, 1, 40 if rows == "many" else 4)
    made = {
        "shuffled": lambda: from_dataframe(df.repartition(5)).map(int),
        "united": lambda: union(from_dataframe(df).map(int), from_dataframe(df).map(str)).map(int),
    }.get(rows, lambda: from_dataframe(df).map(int))()
    found: list[int] = []
    try:
        with caplog.at_level(logging.INFO, "flow.spark"):
            for n in made:
                found.append(n)
                if len(found) in {1, ROWS // 2}:
                    assert spark.range(10).count() == 10
    finally:
        spark.conf.unset(BACKLOG_LIMIT)

    assert sorted(found) == sorted([*range(ROWS)] * (2 if rows == "united" else 1))
    said = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    assert "of its tasks give their slots back to others that wait" in said[0]


@pytest.mark.essential
def test_a_task_that_does_not_end_gives_its_slot_back(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(background_reader, "GIVEN_UP_S", 0.5)
    go_on = str(tmp_path / "go on")

    def held(n: int) -> int:
        while n % 1_000 == 999 and not os.path.exists(go_on):  # noqa: PTH110 - see below
            time.sleep(0.05)
        return n

    items = iter(from_dataframe(spark.range(0, 3_000, 1, 3)).map(held))
    found = [next(items)]
    assert spark.range(10).count() == 10
    Path(go_on).touch()
    assert sorted([*found, *items]) == [*range(3_000)]


@pytest.mark.essential
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda rows: from_dataframe(rows).map(abs).count(), "flow | map | count"),
        (lambda rows: from_dataframe(rows).count(), "flow | count"),
    ],
    ids=["in tasks", "of Spark itself"],
)
def test_a_job_that_gets_no_slot_names_the_jobs_that_hold_them(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    make: Callable[[Any], Any],
    name: str,
) -> None:
    go_on = str(tmp_path / "go on")

    def held(batches: Iterator[Any]) -> Iterator[Any]:
        while not os.path.exists(go_on):  # noqa: PTH110 - a function that travels needs few modules
            time.sleep(0.05)
        yield from batches

    def hold() -> None:
        spark.sparkContext.setJobDescription("the nightly report")
        rows: Any = spark.range(0, 2, 1, 2)
        rows.mapInArrow(held, "id long").collect()

    monkeypatch.setattr(background_reader, "STARVED_S", 0.5)
    monkeypatch.setattr(run, "STARVED_S", 0.5)
    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    tracker = spark.sparkContext.statusTracker()
    assert wait_until(lambda: [*tracker.getActiveJobsIds()], 20)

    with caplog.at_level(logging.WARNING, "flow.spark"):
        future = make(spark.range(10)).to_future()
        assert wait_until(lambda: caplog.records, 20)
        Path(go_on).touch()
        assert future.result(20) == 10
    holder.join(20)

    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        f"no task of the Spark job {name!r} has a slot yet: all are held by 'the nightly report'"
    )


def test_a_job_that_runs_says_nothing_of_slots(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background_reader, "STARVED_S", 0.0)
    with caplog.at_level(logging.WARNING, "flow.spark"):
        assert long_flow(spark).count().first() == ROWS
    assert not caplog.records
