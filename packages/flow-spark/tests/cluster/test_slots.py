"""A flow without a reader holds nothing up, on one, two and four slots, here and on a cluster.

A combination is random, and its seed is in the name of the test: ``-k "standalone-1-17"`` runs one
again. FLOW_SLOTS says how many there are for each number of slots, and where. In four of
five, almost nothing may wait here, so that tasks have to leave and come back.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flow_spark
from flow_spark.channel import background_reader
from flow_spark.errors import LimitExceededError
from flow_spark.jobs.cluster import BACKLOG_LIMIT

from ..infrastructure.connect import ConnectServer
from ..infrastructure.places import AT_ONCE
from ..infrastructure.processes import wait_until
from ..infrastructure.runtime import Runtime
from ..infrastructure.sessions import Sessions
from ..infrastructure.slots import WAITING, Combination, long_flow
from ..infrastructure.standalone import EXECUTORS, StandaloneCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(180)]

SEEDS = int(os.environ.get("FLOW_SLOTS", "34"))
TIMEOUT_S = 30.0


PLACES = [f"{where}-{count}" for where in ("local", "standalone") for count in (1, 2, 4)]


@pytest.fixture(scope="module", params=PLACES)
def slots(request: pytest.FixtureRequest, sessions: Sessions) -> Iterator[SparkSession]:
    """A session with this number of slots."""
    where, _, count = str(request.param).partition("-")
    if where == "local":
        opening = flow_spark.session(f"local[{count}]", fast_start=True)
    else:
        cluster: StandaloneCluster = request.getfixturevalue("standalone")
        cluster.repair(max(2, int(count)))
        conf = {**EXECUTORS, "spark.cores.max": count}
        opening = flow_spark.session(cluster.url, conf=conf, fast_start=True)
    yield sessions.switch(opening)
    sessions.close()


@pytest.fixture
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
        if thread.name in {"flow-spark-job", "flow-spark-reader", "flow-spark-cancel"}
    ]


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("wait", WAITING.values(), ids=WAITING)
def test_a_job_that_waits_for_a_slot_gets_one(
    slots: SparkSession, wait: Callable[[SparkSession], None]
) -> None:
    wait(slots)


@pytest.fixture(scope="module")
def leavers() -> Iterator[dict[int, bool]]:
    """For each combination that ran, whether tasks have left."""
    seen: dict[int, bool] = {}
    yield seen
    if len(seen) >= 30:
        assert sum(seen.values()) * 3 >= len(seen), "too few had to leave to show anything"


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_combination_ends_with_the_right_items(
    slots: SparkSession,
    seed: int,
    leavers: dict[int, bool],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(background_reader, "LEFT_S", 0.0)
    if seed % 5:
        slots.conf.set(BACKLOG_LIMIT, "64k")
    try:
        with caplog.at_level(logging.INFO, "flow.spark"):
            Combination(slots, seed).check()
    finally:
        slots.conf.unset(BACKLOG_LIMIT)
    leavers[len(leavers)] = "give their slots back" in caplog.text


# -- a client of Spark Connect hears of the jobs of its own process


@pytest.fixture(scope="module")
def client(runtime: Callable[[str], Runtime], sessions: Sessions) -> Iterator[SparkSession]:
    """A client of a server with two slots, which often reports how far its jobs are."""
    often = {**AT_ONCE, "spark.connect.progress.reportInterval": "200ms"}
    server = ConnectServer(runtime("slots"), "local[2]", often)
    yield sessions.switch(opened(server))
    sessions.close()


@contextmanager
def opened(server: ConnectServer) -> Iterator[SparkSession]:
    with ExitStack() as stack:
        stack.callback(server.stop)
        spark = stack.enter_context(flow_spark.session(remote=server.url))
        yield spark
        assert wait_until(lambda: not server.running_tasks(), TIMEOUT_S)


@pytest.mark.parametrize(
    "wait",
    [pytest.param(wait, id=name) for name, wait in WAITING.items() if "stream" not in name],
)
def test_a_job_that_waits_for_a_slot_of_a_server_gets_one(
    client: SparkSession, wait: Callable[[SparkSession], None]
) -> None:
    wait(client)
    assert wait_until(lambda: not threads(), TIMEOUT_S)


@pytest.mark.parametrize("seed", range(min(SEEDS, 20)))
def test_any_combination_on_a_server_ends_with_the_right_items(
    client: SparkSession, seed: int
) -> None:
    Combination(client, seed).check()
    assert wait_until(lambda: not threads(), TIMEOUT_S)


def test_a_flow_of_a_server_of_which_more_waits_than_may_ends_and_says_so(
    client: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_reader, "GIVEN_UP_S", 0.5)
    client.conf.set(BACKLOG_LIMIT, "1m")
    try:
        items = iter(long_flow(client).map(str))
        next(items)
        assert client.range(10).count() == 10
        with pytest.raises(LimitExceededError, match="the Spark job 'flow' was ended"):
            list(items)
    finally:
        client.conf.unset(BACKLOG_LIMIT)
