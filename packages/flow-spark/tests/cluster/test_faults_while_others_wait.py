"""Parts of a cluster are killed while a paused flow is taken in, has no room, or has left."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator

import pytest

from flow_spark import from_dataframe
from flow_spark.channel.backlog import MIB
from flow_spark.channel.receiver import BatchReceiver
from flow_spark.jobs import job as jobs
from flow_spark.jobs.cluster import BACKLOG_LIMIT
from flow_testing import TestSubscriber

from ..infrastructure.places import Place
from ..infrastructure.processes import wait_until
from ..infrastructure.standalone import KILLS, StandaloneCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.parametrize("place", ["standalone"], indirect=True),
]

ROWS = 1_600_000
TIMEOUT_S = 120.0


@pytest.fixture
def receivers(monkeypatch: pytest.MonkeyPatch) -> list[BatchReceiver]:
    """Those of the jobs that start."""
    made: list[BatchReceiver] = []

    def make(*args: object, **options: object) -> BatchReceiver:
        made.append(BatchReceiver(*args, **options))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(jobs, "BatchReceiver", make)
    return made


@pytest.fixture(params=["taking in", "no room", "left"])
def state(request: pytest.FixtureRequest, place: Place) -> Iterator[str]:
    """A flow without a reader; there is as much room as that takes."""
    state = str(request.param)
    place.spark.conf.set(BACKLOG_LIMIT, "1g" if state == "taking in" else "12m")
    yield state
    place.spark.conf.unset(BACKLOG_LIMIT)


@pytest.mark.parametrize("what", KILLS)
def test_waiting_and_later_items_arrive_once_although_something_is_killed(
    place: Place,
    cluster: StandaloneCluster,
    receivers: list[BatchReceiver],
    what: str,
    state: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="flow.spark")

    def slowly(n: int) -> tuple[int, str, int]:
        if n % 1000 == 0:
            time.sleep(0.01)
        return n, str(n), os.getpid()

    subscriber = TestSubscriber[tuple[int, str, int]](1_000)
    from_dataframe(place.spark.range(0, ROWS, 1, 4)).map(slowly).hide().subscribe(subscriber)
    assert wait_until(lambda: len(subscriber.items) == 1_000, TIMEOUT_S)
    _, _, process = subscriber.items[-1]
    counted: list[int] = []
    other = threading.Thread(
        target=lambda: counted.append(place.spark.range(10).count()), daemon=True
    )
    other.start()
    assert wait_until(lambda: receivers[0].statistics().waiting >= 12 * MIB, TIMEOUT_S)
    if state == "left":
        assert wait_until(lambda: "give their slots back" in caplog.text, TIMEOUT_S)
    KILLS[what](cluster, None if state == "left" else process)
    other.join(TIMEOUT_S)
    assert counted == [10]
    assert len(subscriber.items) == 1_000
    subscriber.request(ROWS)
    subscriber.await_terminal(TIMEOUT_S)

    assert sorted((n, text) for n, text, _ in subscriber.items) == [
        (n, str(n)) for n in range(ROWS)
    ]
    assert ("takes over from task" in caplog.text) or state != "taking in"
    assert ("give their slots back" in caplog.text) == (state != "taking in")
