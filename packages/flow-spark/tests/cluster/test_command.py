"""``flow run`` on a Spark Connect server, as it is typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..infrastructure.places import Place

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),  # the first test of a mode waits for its servers and its session
    pytest.mark.parametrize("place", ["connect"], indirect=True, scope="session"),
]

TIMEOUT_S = 200.0

JOBS = """
import flow_core as flow
from pyspark import TaskContext

def on_an_executor(n):
    return n, TaskContext.get() is not None

def inverse(n):
    return 60 // n

placed = flow.range(4).map(on_an_executor)
words = flow.from_iterable("abcabca").map(str.upper).count_by_key(str)
wrong = flow.range(4).map(inverse)
"""


def run(folder: Path, target: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "jobs.py").write_text(JOBS)
    return subprocess.run(
        [sys.executable, "-m", "flow_cli", "run", f"jobs.py:{target}", *options],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=folder,
    )


def remotely(place: Place) -> tuple[str, ...]:
    assert place.server is not None
    return ("--on", "spark", "--remote", place.server.url)


def test_it_runs_there_and_is_printed_here(place: Place, tmp_path: Path) -> None:
    done = run(tmp_path, "placed", *remotely(place))

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"({n}, True)" for n in range(4)]
    assert place.spark.range(3).count() == 3  # the server lives on


@pytest.mark.cluster
def test_it_prints_what_it_prints_without_a_server(place: Place, tmp_path: Path) -> None:
    here, there = run(tmp_path, "words"), run(tmp_path, "words", *remotely(place))

    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    assert sorted(there.stdout.splitlines()) == sorted(here.stdout.splitlines())
    assert len(here.stdout.splitlines()) == 3


@pytest.mark.cluster
def test_an_error_of_a_stage_there_ends_the_command_with_an_error(
    place: Place, tmp_path: Path
) -> None:
    done = run(tmp_path, "wrong", *remotely(place))

    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "in inverse" in done.stderr
