"""A client of Spark Connect that is killed leaves nothing on the server that works for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flow_spark import from_stream, session

from ..infrastructure.connect import ConnectServer
from ..infrastructure.drop import Drop, committed_in
from ..infrastructure.fixtures import Runtimes
from ..infrastructure.processes import processes_of_group, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

WITHIN_S = 10.0
STARTS_WITHIN_S = 120.0

HEAD = """
import os, sys, time
from pathlib import Path
from flow_spark import batch_writer, from_dataframe, from_stream, session, to_dataframe
url, folder = sys.argv[1:]
def slow(n):
    Path(folder, "began").touch()
    time.sleep(1)
    return n
with session(remote=url) as spark:
"""

JOBS = {
    "an aggregation": "list(from_dataframe(spark.range(0, 400, 1, 4)).map(slow)"
    ".count_by_key(lambda n: n % 3))",
    "a write": "from_dataframe(spark.range(0, 400, 1, 4)).map(slow)"
    '.spark.write("parquet", folder + "/out", schema="n long")',
    "a DataFrame that Spark writes": "from_dataframe(spark.range(0, 400, 1, 4)).map(slow)"
    '.pipe(to_dataframe(schema="n long")).write.parquet(folder + "/out")',
    "items that are pulled": "list(from_dataframe(spark.range(0, 400, 1, 4)).map(slow))",
}

STREAMS = {
    "read": "",
    "written": '.spark.write_each(batch_writer("parquet", folder + "/out"), schema="n long")',
}


@pytest.fixture(scope="module")
def server(runtime: Runtimes) -> Iterator[ConnectServer]:
    """A separate server, where no other tasks run."""
    server = ConnectServer(runtime("dead-clients"), "local[2]")
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def client(
    server: ConnectServer, folder: Path, body: str, has_begun: Callable[[], bool]
) -> Iterator[None]:
    """A client that is killed, once it has begun, before the block."""
    script = f"{HEAD}    {body}"
    with subprocess.Popen([sys.executable, "-c", script, server.url, str(folder)]) as process:
        try:
            assert wait_until(lambda: has_begun() or process.poll(), STARTS_WITHIN_S)
            assert process.poll() is None
        finally:
            process.kill()
    yield


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_tasks_end_when_their_client_is_killed(
    job: str, server: ConnectServer, tmp_path: Path
) -> None:
    def has_begun() -> bool:
        return (tmp_path / "began").exists() and server.running_tasks() == 2

    with client(server, tmp_path, job, has_begun):
        assert wait_until(lambda: server.running_tasks() == 0, WITHIN_S)


@pytest.mark.parametrize("end", STREAMS.values(), ids=STREAMS.keys())
def test_an_idle_query_ends_when_its_client_is_killed(
    end: str, server: ConnectServer, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1])
    state = tmp_path / "state"
    rows = f'spark.readStream.schema("n long").json({str(drop.folder)!r})'
    body = f"for _ in from_stream({rows}, checkpoint={str(state)!r}){end}: pass"

    with client(server, tmp_path, body, lambda: committed_in(state)):
        assert wait_until(lambda: not queries(server), WITHIN_S)


def test_the_next_client_continues_the_stream_of_one_that_was_killed(
    server: ConnectServer, drop: Drop, tmp_path: Path
) -> None:
    drop.put([1])
    state = tmp_path / "state"
    rows = f'spark.readStream.schema("n long").json({str(drop.folder)!r})'
    body = f"for _ in from_stream({rows}, checkpoint={str(state)!r}): pass"

    with (
        client(server, tmp_path, body, lambda: committed_in(state)),
        session(remote=server.url) as spark,
    ):
        items = iter(from_stream(drop.stream(spark), checkpoint=str(state)))
        drop.put([2])
        assert next(items) == 2


def queries(server: ConnectServer) -> list[str]:
    """The processes that the server has for the functions of streaming queries."""
    found = processes_of_group(server.server.group).values()
    return [command for command in found if "foreach_batch_worker" in command]
