"""A fault of a cluster's Python is found in the message of a failed job, with the way out."""

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
        (
            "org.apache.spark.SparkException: Python worker failed to connect back.",
            ["the log of its machine", "flow-spark[connect] in the Python of the server"],
        ),
    ],
)
def test_the_cause_and_the_way_out_are_stated(text: str, told: list[str]) -> None:
    advice = way_out(f"Job aborted\n{text}\nmore")

    assert advice is not None
    assert [part for part in told if part not in advice] == []


def test_a_module_of_the_program_itself_gets_advice_for_its_own_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = types.ModuleType("flow_jobs")
    module.__file__ = str(tmp_path / "flow_jobs.py")
    monkeypatch.setitem(sys.modules, "flow_jobs", module)

    advice = way_out("ModuleNotFoundError: No module named 'flow_jobs'")

    assert advice is not None
    for told in ("that is not installed", "refers to them as globals", "spark.addArtifacts("):
        assert told in advice


def test_an_error_of_an_unknown_cause_gets_no_advice() -> None:
    assert way_out("java.lang.OutOfMemoryError: Java heap space") is None


class Silent(Exception):
    """As an error of Java when the JVM has ended."""

    def __str__(self) -> str:
        raise OSError("nobody answers")


def test_an_error_with_a_text_that_cannot_be_made_is_reported_all_the_same() -> None:
    assert short(Silent()) == "(its text cannot be made)"


WORKER = """\
An error occurred while calling o64.collect.
: org.apache.spark.SparkException: Job aborted: Task 3 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "task.py", line 75, in __call__
    for bucket, items in self._divided(program.iterate(source), by):
ValueError: cannot be read

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "jobs.py", line 5, in inverse
    return 1 // (n - 77)
ZeroDivisionError: integer division or modulo by zero
in stage 2 of 4: map(inverse), assembled at jobs.py:17
at item 2 of partition 3: 77

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
\t... 23 more
Caused by: java.io.IOException: gone
"""


class Told(Exception):
    """As one of Java, which is asked for its text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)


def test_the_error_of_python_is_stated_before_the_message_of_spark() -> None:
    assert short(Told(WORKER)).splitlines() == [
        "ZeroDivisionError: integer division or modulo by zero",
        "in stage 2 of 4: map(inverse), assembled at jobs.py:17",
        "at item 2 of partition 3: 77",
        "Spark says: An error occurred while calling o64.collect.",
        "org.apache.spark.SparkException: Job aborted: Task 3 failed 1 times",
        "org.apache.spark.api.python.PythonException",
    ]


def test_the_way_out_is_said_before_what_spark_says() -> None:
    text = WORKER.replace(
        "ZeroDivisionError: integer division or modulo by zero",
        "ModuleNotFoundError: No module named 'x'",
    )
    first, *_, way, said, _, _ = short(Told(text)).splitlines()

    assert first == "ModuleNotFoundError: No module named 'x'"
    assert way.startswith("The way out: the executors' Python has no x.")
    assert said.startswith("Spark says: An error occurred")


def test_the_message_of_one_job_about_another_is_not_repeated() -> None:
    inner = short(Told(WORKER))
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated: Traceback (most recent call last):\n"
        f"  File streaming.py\nflow_spark.errors.SparkJobError: micro-batch 0 failed: {inner}\n"
        " SQLSTATE: 39000\n=== Streaming Query ===\nState: ACTIVE"
    )

    assert short(Told(text)).splitlines() == [
        "micro-batch 0 failed: ZeroDivisionError: integer division or modulo by zero",
        "in stage 2 of 4: map(inverse), assembled at jobs.py:17",
        "at item 2 of partition 3: 77",
        "Spark says: [STREAM_FAILED] Query [id = 1] terminated",
    ]


def test_an_error_that_python_has_not_raised_is_stated_as_it_is() -> None:
    text = "[DIVIDE_BY_ZERO] Division by zero.\n== SQL ==\nselect id/0\n\tat org.apache.X"

    assert short(Told(text)) == "[DIVIDE_BY_ZERO] Division by zero.\n== SQL ==\nselect id/0"


def test_the_way_out_that_a_process_of_the_cluster_has_stated_is_not_repeated() -> None:
    inner = "ModuleNotFoundError: No module named 'x'\nThe way out: do as a worker can tell."
    told = short(
        Told(WORKER.replace("ZeroDivisionError: integer division or modulo by zero", inner))
    )

    assert told.count("The way out: ") == 1
    assert "as a worker can tell" not in told
