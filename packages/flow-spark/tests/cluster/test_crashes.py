"""kill -9 of the driver: what its stream had begun is gone on with, without loss and repetition."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..infrastructure.connect import ConnectServer
from ..infrastructure.drop import Drop
from ..infrastructure.processes import processes_with, wait_until
from ..infrastructure.runtime import Runtime
from ..infrastructure.sessions import Sessions
from ..infrastructure.standalone import EXECUTORS

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(400)]

TIMEOUT_S = 180.0
ROWS = 1000

# It ends itself at the point that it is told; with none, when all is done.
DRIVER = """
import contextlib, json, os, signal, sys
from flow_spark import SqliteBatchStore, for_each_batch_once, from_stream, session

told = json.loads(sys.argv[1])

def here(point, batch_id):
    if told["at"] == [point, batch_id]:
        os.kill(os.getpid(), signal.SIGKILL)

class Store:
    def __init__(self, store):
        self.store = store

    @contextlib.contextmanager
    def begin(self, subscriber, query_id, batch_id, digest):
        with self.store.begin(subscriber, query_id, batch_id, digest) as db:
            yield db
            here("before the store commits", batch_id)
        here("between the store and the acknowledgement", batch_id)

def insert(batch_id, items, db):
    for number in items:
        db.execute("INSERT INTO numbers VALUES (?, ?)", (batch_id, number))
        here("in the action", batch_id)

store = SqliteBatchStore(told["store"])
with session(told["master"], remote=told["remote"], conf=told["conf"]) as spark:
    reader = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1)
    stream = reader.json(told["folder"])
    rows = from_stream(stream, checkpoint=told["state"], trigger="available-now", name="numbers")
    for batch in rows.map(lambda n: n + 1).pipe(for_each_batch_once(Store(store), insert)):
        print(json.dumps([batch.batch_id, batch.repeated]), flush=True)
        here("when it is known to be done", batch.batch_id)
print(json.dumps("end"))
"""

POINTS = {
    "in the action": False,
    "between the store and the acknowledgement": True,
    "before the store commits": False,
    "when it is known to be done": True,
}
"""The place where the driver is killed, and whether the micro-batch is done by then."""

# Each kill costs a session.
PLACES = {"local": 4, "standalone": 2, "connect": 2}


@contextmanager
def on(place: str, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Whom the driver asks for a session; that survives it."""
    nobody: dict[str, Any] = {"master": None, "remote": None, "conf": None}
    if place == "local":
        yield {**nobody, "master": "local[2]"}
    elif place == "standalone":
        cluster = request.getfixturevalue("standalone")
        cluster.repair()
        yield {**nobody, "master": cluster.url, "conf": EXECUTORS}
    else:
        make: Callable[[str], Runtime] = request.getfixturevalue("runtime")
        server = ConnectServer(make("crashes"), "local[2]")
        try:
            yield {**nobody, "remote": server.url}
        finally:
            server.stop()


@pytest.mark.parametrize("where", PLACES)
def test_a_killed_driver_continues_its_stream_and_each_item_is_there_once(
    where: str,
    sessions: Sessions,
    request: pytest.FixtureRequest,
    drop: Drop,
    tmp_path: Path,
    committed: Callable[[], set[int]],
) -> None:
    sessions.close()  # the cores are for the processes that are started here
    points = dict(list(POINTS.items())[: PLACES[where]])
    batches = len(points) + 1
    for number in range(batches):
        drop.put(range(number * ROWS, (number + 1) * ROWS))
    database, state, stderr = tmp_path / "store.db", tmp_path / "state", tmp_path / "stderr"
    with closing(sqlite3.connect(database)) as db:
        db.execute("CREATE TABLE numbers (batch, number)")
    told = {"folder": str(drop.folder), "state": str(state), "store": str(database)}

    def run(session: dict[str, Any], at: tuple[str, int] | None) -> tuple[int, list[str]]:
        mark = uuid.uuid4().hex
        with stderr.open("ab") as output:
            ran = subprocess.run(
                [sys.executable, "-c", DRIVER, json.dumps({**told, **session, "at": at})],
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
                # Who is killed cannot remove the folder of its session.
                env={**os.environ, "FLOW_TEST_MARK": mark, "TMPDIR": str(tmp_path)},
            )
        # A JVM of its own ends with the driver.
        assert wait_until(lambda: not processes_with(mark), 60)
        return ran.returncode, ran.stdout.splitlines()

    def kept() -> list[tuple[int, int]]:
        with closing(sqlite3.connect(database)) as db:
            return sorted(db.execute("SELECT batch, number FROM numbers"))

    expected = [(n // ROWS, n + 1) for n in range(batches * ROWS)]
    repeated = False
    with on(where, request) as session:
        for batch_id, (point, done) in enumerate(points.items()):
            code, said = run(session, (point, batch_id))
            assert code == -signal.SIGKILL, stderr.read_text()
            if batch_id and point != "when it is known to be done":
                assert [json.loads(line) for line in said] == [[batch_id - 1, repeated]]
            assert kept() == expected[: (batch_id + done) * ROWS]
            assert committed() == set(range(batch_id))  # Spark knows of none that was cut short
            repeated = done

        code, said = run(session, None)

    assert code == 0, stderr.read_text()
    last = batches - 1
    assert [json.loads(line) for line in said] == [[last - 1, repeated], [last, False], "end"]
    assert kept() == expected
    assert committed() == set(range(batches))
