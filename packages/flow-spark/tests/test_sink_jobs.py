"""The jobs of sinks: a thread that waits for one may leave, and learns why it failed."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_spark import (
    SparkJobError,
    WriteSubscriber,
    on_spark,
    running_jobs,
    to_arrow,
    to_pandas,
    write,
)

from .infrastructure.processes import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]

TIMEOUT_S = 60.0

SINKS = ["write", "to_arrow", "to_pandas"]


def sink(name: str, folder: Path) -> Any:
    sinks: dict[str, Any] = {
        "write": lambda: write("csv", folder / "out", schema="n long"),
        "to_arrow": lambda: to_arrow(schema="n long"),
        "to_pandas": lambda: to_pandas(schema="n long"),
    }
    return sinks[name]()


@pytest.mark.parametrize("name", ["write", "to_arrow"])
def test_ctrl_c_ends_the_job_of_a_sink_and_the_session_continues(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    main = threading.main_thread().ident
    assert main is not None

    def hang(number: int) -> int:
        gate.read_bytes()  # until the other end is closed
        return number

    def interrupt(closed: threading.Event) -> None:
        with gate.open("w"):  # waits for the task
            signal.pthread_kill(main, signal.SIGINT)
            assert closed.wait(TIMEOUT_S)

    closed = threading.Event()
    interrupter = threading.Thread(target=interrupt, args=(closed,))
    interrupter.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            flow.range(1).pipe(on_spark(spark, partitions=1)).map(hang).pipe(sink(name, tmp_path))
        assert running_jobs(spark) == ()
        tracker = spark.sparkContext.statusTracker()
        assert wait_until(lambda: not tracker.getActiveJobsIds(), 2)
    finally:
        closed.set()
        interrupter.join(TIMEOUT_S)

    assert not list(tmp_path.glob("out/part-*"))
    assert flow.range(3).pipe(on_spark(spark)).map(lambda n: n).count().single() == 3


def test_settings_of_a_thread_for_spark_hold_for_the_jobs_of_its_sinks(
    spark: SparkSession, tmp_path: Path
) -> None:
    context = spark.sparkContext

    def in_a_group() -> Any:
        context.setJobGroup("a group of sinks", "a description")
        spark.addTag("a_tag")
        flow.range(3).pipe(on_spark(spark)).pipe(sink("write", tmp_path))
        return spark.getTags(), context.getJobTags()

    with ThreadPoolExecutor(1) as pool:
        tags, job_tags = pool.submit(in_a_group).result(TIMEOUT_S)

    tracker = context.statusTracker()
    assert len(tracker.getJobIdsForGroup("a group of sinks")) == 1
    assert (tags, [tag for tag in job_tags if tag.startswith("flow-")]) == ({"a_tag"}, [])
    assert spark.getTags() == set()


@pytest.mark.parametrize("name", SINKS)
def test_the_cause_of_a_failed_job_comes_without_traces_of_java_and_with_the_way_out(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    def fail(number: int) -> int:
        raise ModuleNotFoundError("No module named 'nowhere'")

    numbers = flow.range(3).pipe(on_spark(spark)).map(fail)
    with pytest.raises(SparkJobError) as caught:
        numbers.pipe(sink(name, tmp_path))

    raised, stage, item, way, says, *_ = str(caught.value).splitlines()
    start = f"the Spark job '{name}' failed: "
    assert raised == f"{start}ModuleNotFoundError: No module named 'nowhere'"
    assert stage.startswith("in stage 1 of 1: map(")
    assert item.startswith("at item 0 of partition ")
    assert way.startswith("The way out: the executors' Python has no nowhere.")
    assert says.startswith("Spark says: ")
    assert "\tat " not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_wrong_query_is_reported_by_spark_itself(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    (tmp_path / "out").mkdir()
    with pytest.raises(AnalysisException, match="already exists"):
        flow.range(3).pipe(on_spark(spark)).pipe(sink("write", tmp_path))


def test_a_subscriber_tells_why_its_job_failed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file is in the way")
    subscriber = WriteSubscriber(
        spark, "csv", tmp_path / "out" / "in", schema="n long", mode="overwrite"
    )

    flow.range(3).subscribe(subscriber)

    error = subscriber.done.exception(TIMEOUT_S)
    assert isinstance(error, SparkJobError)
    assert "the Spark job 'write' failed: " in str(error)
