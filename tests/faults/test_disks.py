"""A full disk: one error that says so, what was there before is still there, nothing half done."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.sinks import write_csv, write_json_lines, write_lines
from flow_spark import SpoolError, SqliteBatchStore
from flow_spark._segments import Outcome, Segments
from flow_spark._spool import Spool, spooled
from flow_spark.items.columns import to_batches
from flow_spark.items.schema import schema_of
from flow_spark.streams.stream_source import _Feeder, _Settings

pytestmark = pytest.mark.usefixtures("nothing_left")

WAIT_S = 20
SIZE = 512 * 1024
"""Bytes of the disk."""
MUCH = 400_000
"""Items that do not fit there."""


class Disk:
    """A folder on a disk that is nearly full, and can be filled up and emptied."""

    says = "No space left on device"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, leave: int = 0) -> None:
        """Let no room be left, but for a number of bytes."""
        with self._ballast.open("wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(4096))
            except OSError as error:
                assert error.errno == errno.ENOSPC
            if leave:
                ballast.truncate(max(0, ballast.tell() - leave))

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


def _mounted(folder: Path) -> bool:
    """Return whether a file system in memory, of a few pages, could be mounted there."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "flow-test", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not _mounted(folder):
        pytest.skip("needs root, and a kernel that lets it mount a tmpfs")
    yield Disk(folder)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Quota:
    """A folder where no file may grow beyond a size, as a quota has it: needs no privilege."""

    says = "File too large"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self, leave: int = 0) -> None:
        """Let each file have a number of bytes at most."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (leave, self._before[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@pytest.fixture
def quota(tmp_path: Path) -> Iterator[Quota]:
    limited = Quota(tmp_path)
    yield limited
    limited.free()


@pytest.fixture
def tight(request: pytest.FixtureRequest) -> Disk | Quota:
    found: Disk | Quota = request.getfixturevalue(request.param)
    return found


@contextmanager
def no_room(kind: str, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder where there is no room for `MUCH`."""
    if kind == "a full disk":
        yield request.getfixturevalue("disk").folder
    else:
        quota = request.getfixturevalue("quota")
        quota.fill(SIZE)
        try:
            yield quota.folder
        finally:
            quota.free()


either = pytest.mark.parametrize("kind", ["a full disk", "a quota"])
in_either = pytest.mark.parametrize("tight", ["disk", "quota"], indirect=True)
FULL = {errno.ENOSPC, errno.EFBIG}


def until(condition: Callable[[], object]) -> bool:
    deadline = time.monotonic() + WAIT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return bool(condition())


# -- sinks of files


@either
@pytest.mark.parametrize("sink", [write_lines, write_json_lines, write_csv])
def test_a_file_that_cannot_be_written_is_as_it_was(
    kind: str, sink: Any, request: pytest.FixtureRequest
) -> None:
    closed: list[bool] = []
    with no_room(kind, request) as folder:
        before = set(folder.iterdir())
        path = folder / "out"
        path.write_text("before")
        items: Flow[Any] = flow.range(MUCH).finally_action(lambda: closed.append(True))
        if sink is write_csv:
            items = items.map(lambda n: {"n": n})
        with pytest.raises(OSError, match=r".") as raised:
            items.pipe(sink(path))
        assert raised.value.errno in FULL
        assert path.read_text() == "before"
        assert set(folder.iterdir()) == before | {path}
    assert closed == [True]


# -- the spool of what is written by Spark


@either
def test_a_spool_that_cannot_be_written_is_removed(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flow_spark._spool.IN_MEMORY_BYTES", 10_000)
    monkeypatch.setattr("flow_spark._spool._ROW_GROUP_BYTES", 10_000)
    columns = schema_of(int)
    closed: list[bool] = []
    session: Any = None  # it is asked for nothing before all is written
    with no_room(kind, request) as folder:
        before = set(folder.iterdir())
        items = flow.range(MUCH).finally_action(lambda: closed.append(True))
        with pytest.raises(OSError, match=r".") as raised:
            spooled(Spool(session, columns, folder), to_batches(items, columns))
        assert raised.value.errno in FULL or "No space" in str(raised.value)
        assert set(folder.iterdir()) == before
        raised.value.__traceback__ = None
    assert closed == [True]


# -- the spool of a stream


class Session:
    """As much of a session as the feeding side looks at."""

    def __init__(self) -> None:
        self.sparkContext = self
        self._jsc: object | None = self


@pytest.fixture
def session() -> Iterator[Session]:
    opened = Session()
    yield opened
    opened._jsc = None


INTS = schema_of(int)


def feeder(session: Any, segments: Segments, made: Flow[int]) -> _Feeder:
    return _Feeder(
        session, segments, lambda seen: made.skip(seen), INTS, _Settings(5_000, 0.0, 1_000)
    )


def rows(segments: Segments) -> int:
    return segments.end().items


@pytest.mark.parametrize(
    ("tight", "left", "some"),
    [("disk", 0, False), ("disk", 100_000, True), ("quota", 1_000, False)],
    indirect=["tight"],
)
def test_a_stream_with_its_spool_on_a_full_disk_fails_and_continues_with_room(
    tight: Disk | Quota, session: Session, left: int, some: bool, drops: Any
) -> None:
    """The query gets the error: else it would take the flow for complete, or wait for ever."""
    segments = Segments.made(tight.folder / "spool", INTS.arrow)
    tight.fill(left)
    reading = segments.reader
    assert reading.acquire(WAIT_S)
    fed = feeder(session, segments, flow.range(40_000))
    try:
        assert until(segments.outcome)
        outcome = segments.outcome()
        assert outcome is not None
        assert tight.says in str(outcome.error)
        assert list(segments.folder.glob("*.part")) == []
        assert drops.errors == []
        had = rows(segments)
        assert had < 40_000
        assert (had > 0) == some
        reading.release()  # as the query does, which fails with that error
        tight.free()
        assert until(lambda: segments.outcome() is None)
        assert reading.acquire(WAIT_S)  # and as one that is started again
        assert until(segments.outcome)
        assert segments.outcome() == Outcome(None)
        assert rows(segments) == 40_000
        firsts = [segment.first for segment in segments.between(0, segments.end().segment)]
        assert firsts == sorted(set(firsts))
    finally:
        reading.release()
        session._jsc = None
        fed._thread.join(WAIT_S)


@in_either
def test_a_spool_that_cannot_even_be_made_says_so(tight: Disk | Quota) -> None:
    tight.fill()
    with pytest.raises(OSError, match=tight.says):
        Segments.made(tight.folder / "spool", INTS.arrow)
    tight.free()
    assert rows(Segments.made(tight.folder / "spool", INTS.arrow)) == 0


# -- the store of a stream


@in_either
def test_a_micro_batch_whose_store_is_full_is_undone_and_done_later(tight: Disk | Quota) -> None:
    store = SqliteBatchStore(tight.folder / "store.db")
    with store.begin("totals", "query", 0, "rows") as db:
        assert db is not None
        db.execute("CREATE TABLE numbers (n INTEGER)")

    def insert() -> None:
        with store.begin("totals", "query", 1, "rows") as db:
            assert db is not None
            db.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(20_000)))

    tight.fill(50_000)
    with pytest.raises(sqlite3.OperationalError, match=r"disk is full|disk I/O error"):
        insert()
    tight.free()
    with store.begin("totals", "query", 0, "rows") as db:
        assert db is None  # that one is known
    insert()
    with sqlite3.connect(tight.folder / "store.db") as reading:
        found = reading.execute("SELECT COUNT(*), SUM(n) FROM numbers").fetchone()
    reading.close()
    assert found == (20_000, sum(range(20_000)))
    store.close()


def test_a_folder_that_is_not_a_spool_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(SpoolError, match="no flow has spooled"):
        Segments.made(tmp_path, INTS.arrow)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
