"""A session whose Python workers cannot run a flow is refused before there is a job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import flow_core as flow
from flow_spark import SessionConflictError, from_stream
from flow_spark.jobs.workers import check_workers

from .infrastructure.drop import Drop

pytestmark = [pytest.mark.spark, pytest.mark.essential]

KILLS = "spark.sql.execution.pyspark.udf.killOnIdleTimeout"
IDLE = "spark.sql.execution.pyspark.udf.idleTimeoutSeconds"


@pytest.fixture
def strict(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that kills workers which are silent for a minute; no test is."""
    spark.conf.set(KILLS, "true")
    spark.conf.set(IDLE, "60")
    yield spark
    spark.conf.unset(KILLS)
    spark.conf.unset(IDLE)


def program_that_says(folder: Path, text: str) -> str:
    program = folder / "python"
    program.write_text(f"#!/bin/sh\necho {text}\n")
    program.chmod(0o755)
    return str(program)


def test_workers_that_may_not_wait_are_refused_with_the_setting(strict: SparkSession) -> None:
    with pytest.raises(SessionConflictError, match=r"silent for 60.*idleTimeoutSeconds.*conf\.set"):
        list(flow.range(3).on_spark(strict).map(str))


def test_a_stream_is_refused_with_the_setting_too(strict: SparkSession, drop: Drop) -> None:
    with pytest.raises(SessionConflictError, match="idleTimeoutSeconds"):
        list(from_stream(drop.stream(strict), trigger="available-now"))
    assert not strict.streams.active


def test_a_flow_that_stays_on_the_cluster_waits_for_no_consumer(strict: SparkSession) -> None:
    made = flow.range(3).on_spark(strict).map(str).to_dataframe(schema="s string")

    assert sorted(row.s for row in made.collect()) == ["0", "1", "2"]


def test_a_limit_of_zero_sets_no_limit(strict: SparkSession) -> None:
    strict.conf.set(IDLE, "0")

    assert sorted(flow.range(3).on_spark(strict).map(str)) == ["0", "1", "2"]


def test_another_python_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_that_says(tmp_path, "2.7")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", program)

    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(SessionConflictError, match=f"Python {mine}, .*2.7.*PYSPARK_PYTHON"):
        list(flow.range(3).on_spark(spark).map(str))


@pytest.mark.parametrize("told", [f"{sys.version_info.major}.{sys.version_info.minor}", ""])
def test_a_python_of_the_same_version_or_of_none_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", program_that_says(tmp_path, told))

    check_workers(spark)
