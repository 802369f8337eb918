"""Batches that are not requested yet: their order, their bounds, and where they are kept."""

from __future__ import annotations

import logging
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flow_spark.channel import backlog
from flow_spark.channel.backlog import MIB, Backlog, Batch
from flow_spark.channel.wire import Kind
from flow_spark.jobs.cluster import Cluster, cluster_of
from flow_testing.interleave import Scenario, explore_all

SIZE = 1_000
ROUGHLY = 600
"""Bytes that a batch counts for besides its items, and some more."""


def batch(number: int, size: int = SIZE) -> Batch:
    return Batch(
        number % 3, number, Kind.ARROW, bytearray([number % 256]) * size, b"%d" % (number % 2)
    )


def small(**options: object) -> Backlog:
    """A backlog with memory for two batches, and files for three each."""
    return Backlog(memory=2 * (SIZE + ROUGHLY), segment=3 * SIZE, **options)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def files_of(folder: Path) -> list[str]:
    """The files below `folder` that this process has open, named or not."""
    found: list[str] = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:  # that of the listing itself
            continue
        if target.startswith(str(folder)):
            found.append(target)
    return found


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow beyond a few bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE // 2, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("files", [True, False], ids=["files", "memory alone"])
def test_batches_come_back_whole_and_in_the_order_in_which_they_came(files: bool) -> None:
    kept = small(files=files)
    given = [batch(n, size=n * 37) for n in range(100)]
    for one in given:
        kept.put(one)

    assert [kept.take() for _ in given] == given
    assert kept.take() is None
    assert (kept.size, kept.in_memory) == (0, 0)


def test_the_order_holds_while_it_grows_and_shrinks() -> None:
    kept, taken, put = small(), 0, 0
    for grows in (5, 1, 7, 0, 12, 3, 40, 0, 2):
        for _ in range(grows):
            kept.put(batch(put))
            put += 1
        for _ in range(5):
            if taken < put:
                assert kept.take() == batch(taken)
                taken += 1
    while taken < put:
        assert kept.take() == batch(taken)
        taken += 1
    assert kept.take() is None
    assert kept.size == 0


def test_the_memory_is_bounded_and_the_rest_is_in_files_that_go_when_they_are_read(
    folder: Path,
) -> None:
    kept = small()
    for n in range(10):
        kept.put(batch(n))
    assert kept.in_memory <= 2 * (SIZE + ROUGHLY)
    assert kept.size >= 10 * SIZE
    assert len(files_of(folder)) == 3

    for n in range(9):
        assert kept.take() == batch(n)
    assert len(files_of(folder)) == 1
    kept.take()
    kept.put(batch(10))
    assert kept.in_memory >= SIZE, "there is room again"
    assert kept.take() == batch(10)
    assert not files_of(folder)


def test_no_file_has_a_name_so_that_nothing_is_left_of_a_process_that_is_killed(
    folder: Path,
) -> None:
    kept = small()
    for n in range(10):
        kept.put(batch(n))
    assert files_of(folder)
    assert not list(folder.iterdir())


def test_nothing_is_in_files_where_that_is_not_allowed(folder: Path) -> None:
    kept = small(files=False)
    for n in range(10):
        kept.put(batch(n))
    assert not files_of(folder)
    assert kept.in_memory == kept.size


def test_it_is_full_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = small(limit=5 * SIZE)
    while not kept.is_full():
        kept.put(batch(0))
    assert 5 * SIZE <= kept.size < 7 * SIZE
    kept.take()
    kept.take()
    assert not kept.is_full()

    monkeypatch.setattr(backlog, "_MEMORY_ALONE", 4 * SIZE)
    assert small(limit=5 * SIZE, files=False).limit == 4 * SIZE


def test_a_full_disk_leaves_what_comes_in_memory_and_says_so_once(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "_MEMORY_ALONE", 8 * SIZE)
    kept, put = small(), 0

    def more(count: int) -> None:
        nonlocal put
        for _ in range(count):
            kept.put(batch(put))
            put += 1

    more(4)
    with caplog.at_level(logging.WARNING, "flow.spark"), full_disk():
        more(4)
        assert kept.is_full(), "memory alone is not for all that a disk may hold"
    more(4)

    assert [kept.take() for _ in range(put)] == [batch(n) for n in range(put)]
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        f"items of Spark that are not requested cannot be kept in a file of {folder} "
        "([Errno 27] File too large); they stay in memory, up to 0 MiB"
    )


def test_a_cleared_backlog_is_empty_and_takes_nothing_in_any_more(folder: Path) -> None:
    kept = small()
    for n in range(10):
        kept.put(batch(n))
    kept.clear()
    assert kept.take() is None
    kept.put(batch(11))
    assert kept.take() is None
    assert not files_of(folder)


def cluster_with(**settings: str) -> Cluster:
    """A cluster whose session has these settings, with dots for the double underscores."""
    told = {name.replace("__", "."): value for name, value in settings.items()}
    session: Any = SimpleNamespace(conf=told)
    return cluster_of(session)


@pytest.mark.parametrize(
    ("told", "size"), [("1000", 1_000), ("8k", 2**13), ("512MB", 2**29), (" 2g ", 2**31)]
)
def test_the_limit_is_a_size_as_spark_writes_it(told: str, size: int) -> None:
    assert cluster_with(spark__flow__backlog__limit=told).backlog().limit == size


def test_a_limit_that_is_not_a_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spark\.flow\.backlog\.limit is a size.*not 'much'"):
        cluster_with(spark__flow__backlog__limit="much").backlog()


def test_nothing_goes_to_a_file_where_spark_encrypts_its_own() -> None:
    secret = cluster_with(spark__io__encryption__enabled="true").backlog()
    secret.put(Batch(0, 1, Kind.PICKLE, bytearray(20 * MIB), b""))
    secret.put(Batch(0, 1, Kind.PICKLE, bytearray(20 * MIB), b""))
    assert secret.in_memory == secret.size
    assert secret.limit < cluster_with().backlog().limit


@pytest.mark.interleave
@pytest.mark.essential
@pytest.mark.parametrize("before", [0, 1, 4])
def test_one_thread_puts_while_another_takes_under_every_schedule(before: int) -> None:
    def body() -> Scenario:
        kept = Backlog(memory=0 if before else SIZE, segment=2 * SIZE)
        for n in range(before):
            kept.put(batch(n))
        seen: list[Batch] = []

        def put() -> None:
            for n in range(before, before + 3):
                kept.put(batch(n))

        def take() -> None:
            taken = (kept.take() for _ in range(before + 3))
            seen.extend(one for one in taken if one is not None)

        def check() -> None:
            while (found := kept.take()) is not None:
                seen.append(found)
            assert seen == [batch(n) for n in range(before + 3)]
            assert kept.size == 0

        return Scenario(put, take, check=check)

    explore_all(body, modules=["flow_spark.channel.backlog"])


@pytest.mark.interleave
@pytest.mark.parametrize("memory", [0, 10 * SIZE])
def test_it_is_cleared_at_any_moment_under_every_schedule(memory: int) -> None:
    def body() -> Scenario:
        kept = Backlog(memory=memory, segment=SIZE)
        kept.put(batch(0))
        seen: list[Batch | None] = []

        def check() -> None:
            found = [one for one in seen if one is not None]
            assert found == [batch(n) for n in range(len(found))], "none is left out"
            assert kept.take() is None

        def put() -> None:
            kept.put(batch(1))
            kept.put(batch(2))

        return Scenario(
            put,
            lambda: seen.extend([kept.take(), kept.take()]),
            kept.clear,
            check=check,
        )

    explore_all(body, modules=["flow_spark.channel.backlog"])
