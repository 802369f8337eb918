"""Cancelling a flow frees the cluster, whatever mode it runs in and whatever its tasks do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_spark import from_stream, on_spark
from flow_testing import TestSubscriber

from ..infrastructure.places import Place
from ..infrastructure.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

LIMIT_S = 2.0
TIMEOUT_S = 120.0
ROWS = 1_000_000


def job(place: Place) -> Flow[int]:
    return flow.range(ROWS).pipe(on_spark(place.spark, partitions=8))


def stream(place: Place) -> Flow[int]:
    source = place.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    return from_stream(source.option("numPartitions", 8).load().select("value"))


in_both = pytest.mark.parametrize("placed", [job, stream])
Placed = Callable[[Place], Flow[int]]


def last_beat(folder: Path) -> float:
    """When a task has last touched its file."""
    return max((file.stat().st_mtime for file in folder.iterdir()), default=0.0)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def run_a_job_of_its_own(place: Place) -> None:
    """One of Spark's, with a task for each core: Python workers take long to start."""
    assert place.spark.range(0, 1000, 1, 2).selectExpr("sum(id)").first()[0] == 499_500


@pytest.fixture(autouse=True)
def warm(place: Place) -> None:
    """Runs the job of Spark's own before it is measured, because its first runs take longer."""
    for _ in range(5):
        run_a_job_of_its_own(place)
    assert wait_until(lambda: not place.running_tasks(), TIMEOUT_S)


def seconds_until_free(place: Place, beats: Path, cancel: Callable[[], object]) -> float:
    """From before `cancel` until no query and no task runs and another job has had the cores."""
    assert wait_until(place.running_tasks, TIMEOUT_S)
    began, began_at = time.monotonic(), time.time()
    cancel()
    assert wait_until(lambda: not place.running_tasks(), TIMEOUT_S)
    assert wait_until(lambda: not place.spark.streams.active, TIMEOUT_S)
    assert not place.running_tasks()
    idle = time.monotonic() - began
    run_a_job_of_its_own(place)
    free = time.monotonic() - began
    print(f"{place.name}: no task {idle:.2f} s after cancel, and another job done {free:.2f} s")
    # Nor does anybody work of whom Spark does not know: half a second without a beat.
    assert wait_until(lambda: time.time() - last_beat(beats) > 0.5, LIMIT_S)
    assert last_beat(beats) - began_at < LIMIT_S
    return free


@in_both
def test_leaving_an_iteration_ends_tasks_that_work(
    place: Place, placed: Placed, tmp_path: Path
) -> None:
    def work(n: int) -> int:
        (tmp_path / str(os.getpid())).touch()
        time.sleep(0.002)
        return n

    items = iter(placed(place).map(work))
    next(items)

    assert seconds_until_free(place, tmp_path, items.close) < LIMIT_S  # type: ignore[attr-defined]


@in_both
def test_cancelling_ends_tasks_that_hang_in_a_function(
    place: Place, placed: Placed, tmp_path: Path
) -> None:
    def hang(n: int) -> int:
        (tmp_path / str(os.getpid())).touch()
        time.sleep(3600)
        return n

    subscriber = TestSubscriber[int]()
    placed(place).map(hang).subscribe(subscriber)
    assert wait_until(lambda: len(list(tmp_path.iterdir())) == 2, TIMEOUT_S)
    workers = [int(file.name) for file in tmp_path.iterdir()]

    assert seconds_until_free(place, tmp_path, subscriber.cancel) < LIMIT_S

    assert wait_until(lambda: not any(map(is_alive, workers)), LIMIT_S)
    assert len(list(tmp_path.iterdir())) == 2  # none of the other tasks has begun
    subscriber.assert_silent_after_cancel()


@in_both
def test_cancelling_ends_tasks_that_wait_for_the_reader(
    place: Place, placed: Placed, tmp_path: Path
) -> None:
    def work(n: int) -> bytes:
        (tmp_path / str(os.getpid())).touch()
        return bytes(10_000)

    subscriber = TestSubscriber[bytes](1)
    placed(place).map(work).subscribe(subscriber)
    assert wait_until(lambda: subscriber.items, TIMEOUT_S)
    assert wait_until(lambda: time.time() - last_beat(tmp_path) > 1, TIMEOUT_S)  # all block

    assert seconds_until_free(place, tmp_path, subscriber.cancel) < LIMIT_S

    subscriber.assert_silent_after_cancel()


@in_both
def test_the_workers_serve_the_next_flow(place: Place, placed: Placed) -> None:
    items = iter(placed(place).map(lambda n: n))
    next(items)
    items.close()  # type: ignore[attr-defined]

    there = flow.range(2).pipe(on_spark(place.spark, partitions=2)).map(lambda n: n)
    assert sorted(there) == [0, 1]
