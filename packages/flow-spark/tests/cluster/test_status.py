"""The progress of a job, and leaving it, are the same in each mode of Spark."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_spark import on_spark, running_jobs, to_arrow

from ..infrastructure.places import Place
from ..infrastructure.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TIMEOUT_S = 120.0


def gated(place: Place, folder: Path) -> Flow[int]:
    """Four tasks that wait until the test closes a pipe of theirs."""
    for number in range(4):
        os.mkfifo(folder / f"{number}")

    def work(number: int) -> int:
        (folder / f"{number}").read_bytes()
        return number

    return flow.range(4).pipe(on_spark(place.spark, partitions=4)).map(work)


def test_finished_tasks_are_reported_while_a_job_has_given_nothing_yet(
    place: Place, tmp_path: Path
) -> None:
    table = to_arrow(limit=None, schema="n long")
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(lambda: gated(place, tmp_path).pipe(table))
        gates = [tmp_path / f"{number}" for number in range(4)]
        assert wait_until(lambda: all(gate.exists() for gate in gates), TIMEOUT_S)
        for done, gate in enumerate(gates[:3], 1):
            gate.open("w").close()  # waits for the task

            def told(done: int = done) -> bool:
                jobs = running_jobs(place.spark)
                return [(job.name, job.tasks_done, job.tasks) for job in jobs] == [
                    ("to_arrow", done, 4)
                ]

            assert wait_until(told, TIMEOUT_S)
        gates[3].open("w").close()
        assert job.result(TIMEOUT_S).num_rows == 4

    assert running_jobs(place.spark) == ()


def test_ctrl_c_ends_the_job_of_a_sink(place: Place, tmp_path: Path) -> None:
    numbers = gated(place, tmp_path)
    main, closed = threading.main_thread().ident, threading.Event()
    assert main is not None

    def interrupt() -> None:
        with (tmp_path / "0").open("w"):  # waits for the task
            signal.pthread_kill(main, signal.SIGINT)
            assert closed.wait(TIMEOUT_S)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            numbers.pipe(to_arrow(schema="n long"))
        assert running_jobs(place.spark) == ()  # it has ended, and with it all that waited for it
    finally:
        closed.set()
        interrupter.join(TIMEOUT_S)

    assert flow.range(3).pipe(on_spark(place.spark)).map(lambda n: n).count().single() == 3
