"""A flow that nobody reads holds nothing up, on one slot and on two, here and on a cluster.

A combination is random, and its seed is in the name of the test: ``-k "standalone-1-17"`` runs one
again. FLOW_SLOTS says how many there are for each number of slots, and where.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flow_spark

from ..infrastructure.processes import wait_until
from ..infrastructure.sessions import Sessions
from ..infrastructure.slots import WAITING, Combination
from ..infrastructure.standalone import EXECUTORS, StandaloneCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(180)]

SEEDS = int(os.environ.get("FLOW_SLOTS", "50"))
TIMEOUT_S = 30.0


@pytest.fixture(scope="module", params=["local-1", "local-2", "standalone-1", "standalone-2"])
def slots(request: pytest.FixtureRequest, sessions: Sessions) -> Iterator[SparkSession]:
    """A session with so many slots, and no more."""
    where, _, count = str(request.param).partition("-")
    if where == "local":
        opening = flow_spark.session(f"local[{count}]", fast_start=True)
    else:
        cluster: StandaloneCluster = request.getfixturevalue("standalone")
        cluster.repair()
        conf = {**EXECUTORS, "spark.cores.max": count}
        opening = flow_spark.session(cluster.url, conf=conf, fast_start=True)
    yield sessions.switch(opening)
    sessions.close()


@pytest.fixture(autouse=True)
def nothing_left(slots: SparkSession) -> Iterator[None]:
    """No job, no thread, no file and no socket of a flow is there afterwards."""
    slots.range(10).count()  # Spark keeps what it opens for its first job
    gc.collect()
    before = len([*Path("/proc/self/fd").iterdir()])
    yield
    tracker = slots.sparkContext.statusTracker()
    assert wait_until(lambda: not [*tracker.getActiveJobsIds()], TIMEOUT_S)
    assert wait_until(lambda: not threads(), TIMEOUT_S)
    gc.collect()
    # A thread that talked to the JVM keeps its socket until py4j finds that it has gone.
    assert wait_until(lambda: len([*Path("/proc/self/fd").iterdir()]) <= before + 4, TIMEOUT_S)


def threads() -> list[str]:
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.name in {"flow-spark-job", "flow-spark-relief", "flow-spark-cancel"}
    ]


@pytest.mark.parametrize("wait", WAITING.values(), ids=WAITING)
def test_who_waits_for_a_slot_gets_one(
    slots: SparkSession, wait: Callable[[SparkSession], None]
) -> None:
    wait(slots)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_combination_ends_with_the_right_items(slots: SparkSession, seed: int) -> None:
    Combination(slots, seed).check()
