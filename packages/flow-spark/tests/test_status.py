"""The progress of Spark's jobs, for a program that asks, and on a terminal where it is wanted."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_cli.testing import Screen, recorded_screen
from flow_core.engine import EngineOptions
from flow_core.flow import Flow
from flow_spark import JobStatus, on_spark, running_jobs, to_arrow, write
from flow_spark.engine import spark_engine
from flow_spark.jobs.running_jobs import followed, showing

from .infrastructure.processes import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 60.0

A_SESSION: Any = object()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "progress" in thread.name]


@pytest.fixture
def screen() -> Iterator[Screen]:
    with recorded_screen() as screen:
        yield screen
    assert threads() == []


def not_stopped() -> bool:
    return False


def stopped() -> bool:
    return True


class TestBar:
    """The display of a job that only pretends."""

    def test_it_shows_tasks_and_stages_as_spark_tells_of_them(self, screen: Screen) -> None:
        now = [JobStatus("flow | map", tasks_done=3, tasks=12, stages_done=1, stages=2)]

        with showing(A_SESSION), followed(A_SESSION, "flow | map", lambda: now[0], not_stopped):
            assert screen.shows("3 tasks of 12, 1 of 2 stages")
            now[0] = JobStatus("flow | map", tasks_done=15, tasks=16, stages_done=2, stages=3)
            assert screen.shows("15 tasks of 16, 2 of 3 stages")

        assert screen.last.startswith("Spark: flow | map ")
        assert re.search(r" 16 tasks of 16, 3 of 3 stages  \d+ tasks/s  0:0\d\.\d$", screen.last)

    @pytest.mark.parametrize(("told_to", "how"), [(not_stopped, "failed"), (stopped, "stopped")])
    def test_it_says_how_the_job_ended(
        self, screen: Screen, told_to: Callable[[], bool], how: str
    ) -> None:
        status = JobStatus("write", tasks_done=3, tasks=12, stages=1)

        with (
            pytest.raises(ValueError, match="x"),
            showing(A_SESSION),
            followed(A_SESSION, "write", lambda: status, told_to),
        ):
            raise ValueError("x")

        assert "3 tasks of 12, 0 of 1 stages" in screen.last
        assert screen.last.endswith(how)

    def test_an_error_of_spark_is_reported_by_the_job_and_not_by_the_bar(
        self, screen: Screen
    ) -> None:
        def look() -> JobStatus:
            raise ConnectionError

        with showing(A_SESSION), followed(A_SESSION, "write", look, not_stopped):
            pass

        assert "0 tasks" in screen.last

    @pytest.mark.parametrize("terminal", [False, True], ids=["no terminal", "not wanted"])
    def test_spark_is_not_asked_without_a_display(self, terminal: bool) -> None:
        asked: list[bool] = []

        def look() -> JobStatus:
            asked.append(True)
            return JobStatus("write")

        other: Any = object()
        with (
            recorded_screen(terminal=terminal) as screen,
            showing(other if terminal else A_SESSION),
            followed(A_SESSION, "write", look, not_stopped),
        ):
            assert threads() == []

        assert (asked, screen.text) == ([], "")

    def test_a_program_asks_for_the_jobs_of_its_session(self) -> None:
        status, other = JobStatus("write", tasks=12), JobStatus("to_arrow")
        another: Any = object()

        with (
            followed(A_SESSION, "write", lambda: status, not_stopped),
            followed(another, "to_arrow", lambda: other, not_stopped),
        ):
            assert running_jobs(A_SESSION) == (status,)
            assert running_jobs(another) == (other,)
        assert running_jobs(A_SESSION) == ()


def counted(numbers: Flow[int], _: Path) -> None:
    assert numbers.count().single() == 4


def written(numbers: Flow[int], folder: Path) -> None:
    numbers.pipe(write("csv", folder / "out", schema="n long"))


def tabled(numbers: Flow[int], _: Path) -> None:
    assert numbers.pipe(to_arrow(limit=None, schema="n long")).num_rows == 4


@pytest.mark.spark
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("end", "name"),
    [(counted, "flow | map | count"), (written, "write"), (tabled, "to_arrow")],
    ids=["pulled", "write", "to_arrow"],
)
def test_finished_tasks_are_reported_while_a_job_has_given_nothing_yet(
    spark: SparkSession, tmp_path: Path, end: Callable[[Flow[int], Path], None], name: str
) -> None:
    for number in range(4):
        os.mkfifo(tmp_path / f"{number}")

    def work(number: int) -> int:
        (tmp_path / f"{number}").read_bytes()  # until the test closes the other end
        return number

    numbers = flow.range(4).pipe(on_spark(spark, partitions=4)).map(work)
    told: list[tuple[JobStatus, ...]] = []
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(end, numbers, tmp_path)
        for number in range(4):
            (tmp_path / f"{number}").open("w").close()  # waits for the task
            if number < 3:
                told.append((JobStatus(name, number + 1, 4, 0, 1),))
                assert wait_until(lambda: running_jobs(spark) == told[-1], TIMEOUT_S)
        job.result(TIMEOUT_S)

    assert running_jobs(spark) == ()


@pytest.mark.spark
def test_the_engine_of_flow_run_shows_its_jobs(
    spark: SparkSession, screen: Screen, tmp_path: Path
) -> None:
    with spark_engine(EngineOptions(master="local[2,4]")) as engine:
        numbers = engine.place(flow.range(4)).map(lambda n: n + 1)
        assert sorted(numbers) == [1, 2, 3, 4]
        shown = screen.last
        written(numbers, tmp_path)
    again = screen.last
    assert sorted(numbers) == [1, 2, 3, 4]

    assert shown.startswith("Spark: flow | map ")
    assert " 2 tasks of 2, 1 of 1 stages " in shown
    assert again.startswith("Spark: write ")
    assert screen.last == again  # the engine is closed
