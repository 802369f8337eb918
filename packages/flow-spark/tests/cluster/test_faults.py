"""Parts of a cluster are killed in the middle of a job: the result is right, and it is said."""

from __future__ import annotations

import logging
import operator
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flow_core as flow
from flow_spark import from_dataframe, on_spark
from flow_spark.errors import PartitionChangedError

from ..infrastructure.places import Place
from ..infrastructure.processes import wait_until
from ..infrastructure.standalone import KILLS, StandaloneCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.parametrize("place", ["standalone", "connect-standalone"], indirect=True),
]

ROWS = 400_000
TIMEOUT_S = 120.0


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """A folder for files that show which process of the cluster has got to which item."""
    folder = tmp_path / "seen"
    folder.mkdir()
    return folder


def items_and_processes(seen: Path) -> list[tuple[str, int]]:
    found = [path.name.split() for path in seen.iterdir()]
    return [(item, int(pid)) for item, pid in found]


def seen_again(seen: Path) -> set[str]:
    """Items that two processes have got to: a task was lost there, and started again."""
    counts = Counter(item for item, _ in items_and_processes(seen))
    return {item for item, count in counts.items() if count > 1}


def said_who_takes_over(caplog: pytest.LogCaptureFixture) -> bool:
    said = re.compile(r"task \d+ takes over from task \d+, which was lost")
    return any(said.search(record.getMessage()) for record in caplog.records)


def half_read(
    there: flow.Flow[int],
    kill: Callable[[StandaloneCluster, int | None], object],
    cluster: StandaloneCluster,
) -> list[tuple[int, str]]:
    """The items, if what runs a task that is not over is killed when some of them have come."""
    found: list[tuple[int, str]] = []
    for n, text, process in there.map(lambda n: (n, str(n), os.getpid())):
        found.append((n, text))
        if len(found) == 20_000:
            kill(cluster, process)
    return found


@pytest.mark.parametrize("partitions", [4, 20], ids=["at once", "in waves"])
@pytest.mark.parametrize("what", KILLS)
def test_every_item_arrives_once_although_something_is_killed(
    place: Place,
    cluster: StandaloneCluster,
    what: str,
    partitions: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    df = place.spark.range(0, ROWS, 1, partitions)
    there = from_dataframe(df).filter(lambda n: n % 3 > 0)

    with caplog.at_level(logging.WARNING, logger="flow.spark"):
        found = half_read(there, KILLS[what], cluster)

    assert len(found) == len(set(found))
    assert sorted(found) == [(n, str(n)) for n in range(ROWS) if n % 3 > 0]
    assert said_who_takes_over(caplog)


def test_items_that_were_shuffled_arrive_once_although_an_executor_is_killed(
    place: Place, cluster: StandaloneCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows that it had shuffled are made again, in another order; ours are put in order."""
    with caplog.at_level(logging.WARNING, logger="flow.spark"):
        items = flow.from_iterable(range(ROWS)).pipe(on_spark(place.spark, partitions=4))
        found = half_read(items, StandaloneCluster.kill_executor, cluster)

    assert sorted(found) == [(n, str(n)) for n in range(ROWS)]
    assert any("takes over from task" in record.getMessage() for record in caplog.records)


def test_rows_behind_a_shuffle_arrive_once_although_an_executor_is_killed(
    place: Place, cluster: StandaloneCluster
) -> None:
    """Its blocks arrive in any order; a task that resumes finds the rows in one."""
    df = place.spark.range(0, ROWS, 1, 32).repartition(7)

    found = half_read(from_dataframe(df), StandaloneCluster.kill_executor, cluster)

    assert sorted(found) == [(n, str(n)) for n in range(ROWS)]


def test_random_rows_are_refused_by_the_first_task_that_resumes(
    place: Place, cluster: StandaloneCluster, caplog: pytest.LogCaptureFixture
) -> None:
    def other(batches: Iterator[Any]) -> Iterator[Any]:
        import random

        import pyarrow

        for batch in batches:
            drawn = [random.randrange(10**9) for _ in range(batch.num_rows)]
            yield pyarrow.record_batch([drawn], names=["id"])

    rows: Any = place.spark.range(0, ROWS, 1, 4)
    df = rows.mapInArrow(other, "id long")
    with (
        caplog.at_level(logging.WARNING, logger="flow.spark"),
        pytest.raises(PartitionChangedError, match="checkpoint"),
    ):
        half_read(from_dataframe(df), StandaloneCluster.kill_executor, cluster)

    taken_over = re.findall(r"partition (\d+): task \d+ takes over", caplog.text)
    assert len(taken_over) == len(set(taken_over))


def test_shuffled_rows_that_are_sorted_arrive_once_although_an_executor_is_killed(
    place: Place, cluster: StandaloneCluster
) -> None:
    """The order of the user is kept."""
    df = place.spark.range(0, ROWS, 1, 4).repartition(7).sortWithinPartitions("id")

    found = half_read(from_dataframe(df), StandaloneCluster.kill_executor, cluster)

    assert sorted(found) == [(n, str(n)) for n in range(ROWS)]


@pytest.mark.parametrize("what", KILLS)
def test_a_result_over_all_items_is_right_although_something_is_killed(
    place: Place, cluster: StandaloneCluster, what: str, seen: Path, tmp_path: Path
) -> None:
    """The items that a partition gives at its end are lost with its task, and made again."""
    go_on = tmp_path / "go on"

    def work(n: int) -> int:
        if n % 1000 == 999:
            (seen / f"{n} {os.getpid()}").touch()
            while not go_on.exists():
                time.sleep(0.01)
        return n

    there = flow.range(40_000).pipe(on_spark(place.spark, partitions=4)).map(work)
    future = there.sum().to_future()
    assert wait_until(lambda: items_and_processes(seen), TIMEOUT_S)
    item, pid = items_and_processes(seen)[0]
    KILLS[what](cluster, pid)
    go_on.touch()

    assert future.result(TIMEOUT_S) == sum(range(40_000))
    assert item in seen_again(seen)


@pytest.mark.parametrize("phase", ["before the shuffle", "behind the shuffle"])
@pytest.mark.parametrize("what", KILLS)
def test_sums_by_key_are_right_although_something_is_killed_during_the_shuffle(
    place: Place,
    cluster: StandaloneCluster,
    what: str,
    phase: str,
    seen: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The killed executor holds a part of what was shuffled: that is made again, too."""
    go_on = tmp_path / "go on"

    def held(item: tuple[str, int]) -> tuple[str, int]:
        (seen / f"{item[0]} {os.getpid()}").touch()
        while not go_on.exists():
            time.sleep(0.01)
        return item

    pairs = flow.range(40_000).pipe(on_spark(place.spark, partitions=4)).map(lambda n: (str(n), n))
    if phase == "before the shuffle":
        pairs = pairs.map(lambda pair: held(pair) if pair[1] % 10_000 == 9_999 else pair)
    sums = pairs.reduce_by_key(lambda pair: pair[0][-2:], operator.add, lambda pair: pair[1])
    if phase == "behind the shuffle":
        sums = sums.map(held)
    with caplog.at_level(logging.WARNING, logger="flow.spark"):
        future = sums.to_list().to_future()
        assert wait_until(lambda: items_and_processes(seen), TIMEOUT_S)
        item, pid = items_and_processes(seen)[0]
        KILLS[what](cluster, pid)
        go_on.touch()
        found = future.result(TIMEOUT_S)

    expected: dict[str, int] = {}
    for n in range(40_000):
        expected[str(n)[-2:]] = expected.get(str(n)[-2:], 0) + n
    assert sorted(found) == sorted(expected.items())
    assert item in seen_again(seen)
    # A task before the shuffle says nothing to this process, and Spark's own log tells of it.
    assert phase == "before the shuffle" or said_who_takes_over(caplog)


def test_a_killed_python_worker_costs_nothing(
    place: Place, cluster: StandaloneCluster, tmp_path: Path
) -> None:
    marker = tmp_path / "killed"

    def die_once(n: int) -> int:
        if n == 30_000 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    there = flow.range(100_000).pipe(on_spark(place.spark, partitions=3)).map(die_once)

    assert sorted(there) == list(range(100_000))
    assert marker.exists()
