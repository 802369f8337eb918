"""What is wrong with a cluster's Python is found in what a failed job says, with the way out."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from flow_spark.jobs.advice import short, way_out

MINE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "PYTHON_VERSION_MISMATCH: Python in worker has different version: 3.9 than that in …",
            [f"this process runs Python {MINE}", "executors run Python 3.9", "PYSPARK_PYTHON"],
        ),
        (
            "ModuleNotFoundError: No module named 'flow_core.stages'",
            ["has no flow_core", "flow_spark.session(master)", "PYSPARK_PYTHON"],
        ),
        (
            "ModuleNotFoundError: No module named 'flow_ops'",
            ["has no flow_ops", "flow_spark.session(master)", "install flow-ops", "PYSPARK_PYTHON"],
        ),
        (
            "ModuleNotFoundError: No module named 'flow_jobs'",
            ["has no flow_jobs", "what the functions of the flow import"],
        ),
        (
            "ModuleNotFoundError: No module named 'pyarrow.lib'",
            ["has no pyarrow", "Install flow-spark there", "PYSPARK_PYTHON"],
        ),
        (
            "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; however, it was not",
            ["has no PyArrow"],
        ),
        (
            'java.io.IOException: Cannot run program "python3.99": error=2, No such file',
            ["no program python3.99", "PYSPARK_PYTHON"],
        ),
    ],
)
def test_the_cause_and_the_way_out_are_told(text: str, told: list[str]) -> None:
    advice = way_out(f"Job aborted\n{text}\nmore")

    assert advice is not None
    assert [part for part in told if part not in advice] == []


def test_a_module_of_the_program_itself_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = types.ModuleType("flow_jobs")
    module.__file__ = str(tmp_path / "flow_jobs.py")
    monkeypatch.setitem(sys.modules, "flow_jobs", module)

    advice = way_out("ModuleNotFoundError: No module named 'flow_jobs'")

    assert advice is not None
    for told in ("that is not installed", "refers to them as globals", "spark.addArtifacts("):
        assert told in advice


def test_what_does_not_tell_gets_no_advice() -> None:
    assert way_out("java.lang.OutOfMemoryError: Java heap space") is None


class Silent(Exception):
    """As an error of Java when the JVM has ended."""

    def __str__(self) -> str:
        raise OSError("nobody answers")


def test_an_error_that_says_nothing_any_more_is_told_all_the_same() -> None:
    assert short(Silent()) == "(its text cannot be made)"
