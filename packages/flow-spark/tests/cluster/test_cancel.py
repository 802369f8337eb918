"""Cancelling a flow frees the cluster, whatever mode it runs in and whatever its tasks do."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import flow_core as flow
from flow_core.testing import TestSubscriber
from flow_spark import on_spark

from ..infrastructure.places import Place
from ..infrastructure.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

LIMIT_S = 2.0
TIMEOUT_S = 120.0


def last_beat(folder: Path) -> float:
    """When a task has last touched its file."""
    return max((file.stat().st_mtime for file in folder.iterdir()), default=0.0)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def active_tasks(place: Place) -> int:
    """Of the tasks that Spark knows; a client of Connect cannot ask for them."""
    if place.name.startswith("connect"):
        return 0
    tracker = place.spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


def assert_free(place: Place, since: float) -> None:
    """Another job gets the cores: one of Spark's own, since Python workers take long to start."""
    assert place.spark.range(0, 1000, 1, 2).selectExpr("sum(id)").first()[0] == 499_500
    lasted = time.monotonic() - since
    print(f"{place.name}: the next job had ended {lasted:.2f} s later")
    assert lasted < 2 * LIMIT_S
    there = flow.range(2).pipe(on_spark(place.spark, partitions=2)).map(lambda n: n)
    assert sorted(there) == [0, 1]


def test_leaving_an_iteration_ends_tasks_that_work(place: Place, tmp_path: Path) -> None:
    def work(n: int) -> int:
        (tmp_path / str(os.getpid())).touch()
        time.sleep(0.002)
        return n

    items = iter(flow.range(10**9).pipe(on_spark(place.spark, partitions=8)).map(work))
    next(items)
    left = time.time()
    items.close()  # type: ignore[attr-defined]

    assert wait_until(lambda: not active_tasks(place), LIMIT_S)
    # Nobody works any more: half a second without a beat.
    assert wait_until(lambda: time.time() - last_beat(tmp_path) > 0.5, LIMIT_S + 0.5)
    lasted = last_beat(tmp_path) - left
    print(f"{place.name}: last work {lasted:.2f} s after cancel")
    assert lasted < LIMIT_S
    assert_free(place, time.monotonic())


def test_cancelling_ends_tasks_that_hang_in_a_function(place: Place, tmp_path: Path) -> None:
    def hang(n: int) -> int:
        (tmp_path / str(os.getpid())).touch()
        time.sleep(3600)
        return n

    subscriber = TestSubscriber[int]()
    flow.range(8).pipe(on_spark(place.spark, partitions=8)).map(hang).subscribe(subscriber)
    assert wait_until(lambda: len(list(tmp_path.iterdir())) == 2, TIMEOUT_S)
    workers = [int(file.name) for file in tmp_path.iterdir()]
    cancelled = time.monotonic()
    subscriber.cancel()

    assert wait_until(lambda: not any(map(is_alive, workers)), LIMIT_S)
    print(f"{place.name}: workers gone {time.monotonic() - cancelled:.2f} s after cancel")
    assert wait_until(lambda: not active_tasks(place), LIMIT_S)
    assert len(list(tmp_path.iterdir())) == 2  # none of the other tasks has begun
    assert_free(place, time.monotonic())
    subscriber.assert_silent_after_cancel()


def test_cancelling_ends_tasks_that_wait_for_the_reader(place: Place, tmp_path: Path) -> None:
    def work(n: int) -> bytes:
        (tmp_path / str(os.getpid())).touch()
        return bytes(10_000)

    subscriber = TestSubscriber[bytes](1)
    there = flow.range(10**6).pipe(on_spark(place.spark, partitions=8)).map(work)
    there.subscribe(subscriber)
    assert wait_until(lambda: subscriber.items, TIMEOUT_S)
    assert wait_until(lambda: time.time() - last_beat(tmp_path) > 1, TIMEOUT_S)  # all block
    left, cancelled = time.time(), time.monotonic()
    subscriber.cancel()

    assert wait_until(lambda: not active_tasks(place), LIMIT_S)
    assert_free(place, cancelled)
    assert last_beat(tmp_path) - left < LIMIT_S
