"""The error of a call that Spark does not answer, or answers while it ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from flow_spark import NotPicklableError, SparkJobError
from flow_spark.jobs.cluster import cluster_of


class Context:
    """A SparkContext, as far as it is asked here."""

    def __init__(self, *, stopped: bool | None) -> None:
        self._stopped = stopped
        self._jsc = self

    def sc(self) -> Context:
        return self

    def isStopped(self) -> bool:  # noqa: N802 - Spark's name
        if self._stopped is None:
            raise Py4JNetworkError("An error occurred while trying to connect")
        return self._stopped


def asked(error: Exception, *, stopped: bool | None) -> None:
    session: Any = SimpleNamespace(sparkContext=Context(stopped=stopped))
    with cluster_of(session).answering("the job"):
        raise error


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError("refused"), Py4JNetworkError("refused")], ids=repr
)
def test_a_connection_that_ends_is_an_end_of_the_jvm(error: Exception) -> None:
    says = "the job is lost: nothing answers for Spark any more; its JVM has ended .*refused"
    with pytest.raises(SparkJobError, match=says) as caught:
        asked(error, stopped=None)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("stopped", [True, None])
@pytest.mark.parametrize(
    "error",
    [
        PySparkException("Error while calling o3\n: Job 3 was cancelled\n\tat Java"),
        Py4JError("py4j.reflection does not exist in the JVM"),
        AttributeError("'NoneType' object has no attribute 'setCallSite'"),
    ],
    ids=repr,
)
def test_a_failure_while_spark_ends_says_so(error: Exception, stopped: bool | None) -> None:
    """Two lines only: the traces of Java say nothing of it."""
    heard = r"(Error .* : Job 3[^\n]*|py4j.*|'NoneType.*)"
    says = rf"Spark was stopped under it, or its JVM is ending \({heard}\)\."
    with pytest.raises(SparkJobError, match=says) as caught:
        asked(error, stopped=stopped)
    assert caught.value.__cause__ is error


def test_an_error_that_says_itself_what_has_happened_is_left_as_it_is() -> None:
    error = NotPicklableError("a lock cannot be sent")
    with pytest.raises(NotPicklableError) as caught:
        asked(error, stopped=True)
    assert caught.value is error


@pytest.mark.parametrize("error", [PySparkException("too small"), ValueError("wrong")], ids=repr)
def test_a_failure_while_spark_runs_is_left_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        asked(error, stopped=False)
    assert caught.value is error
