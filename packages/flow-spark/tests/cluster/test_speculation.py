"""A Spark that speculates runs copies of slow tasks: the job gives the same result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flow_core as flow
import flow_spark
from flow_spark import on_spark

from ..infrastructure.processes import wait_until
from ..infrastructure.sessions import Sessions
from ..infrastructure.standalone import EXECUTORS, StandaloneCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

TIMEOUT_S = 60.0

EAGER = {
    "spark.speculation": True,
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": 1.01,
    "spark.speculation.quantile": 0.5,
    "spark.speculation.efficiency.enabled": False,
    "spark.task.maxFailures": 1,
}


@pytest.fixture
def spark(sessions: Sessions, standalone: StandaloneCluster) -> Iterator[SparkSession]:
    standalone.repair()
    yield sessions.switch(
        flow_spark.session(standalone.url, conf={**EXECUTORS, **EAGER}, fast_start=True)
    )
    sessions.close()


def test_a_copy_of_a_slow_task_fails_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """With the one failure that is too much here, the job would end."""
    go_on = tmp_path / "go on"

    def slow(n: int) -> int:
        while n == 999 and not go_on.exists():
            time.sleep(0.01)
        return n

    tracker = spark.sparkContext.statusTracker()

    def attempts_that_run() -> int:
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        return sum(stage.numActiveTasks for stage in stages if stage and stage.numCompletedTasks)

    assert flow.range(2).pipe(on_spark(spark, partitions=2)).count().single() == 2
    future = flow.range(1000).pipe(on_spark(spark, partitions=2)).map(slow).to_list().to_future()
    assert wait_until(lambda: attempts_that_run() == 2, TIMEOUT_S), "no copy was started"
    # The copy would have taken over within this time.
    assert not wait_until(future.done, 2)
    go_on.touch()

    assert sorted(future.result(TIMEOUT_S)) == list(range(1000))
