"""What is printed while the JVM of a driver runs."""

from __future__ import annotations

import logging

import pytest
from py4j.protocol import Py4JNetworkError

from flow_spark.driver.gateway import _is_news
from flow_spark.errors import SparkJobError


@pytest.mark.parametrize(
    ("module", "function", "error", "kept"),
    [
        ("java_gateway", "send_command", Py4JNetworkError("lost"), False),
        ("clientserver", "_call_proxy", SparkJobError("micro-batch 1 failed"), False),
        ("clientserver", "_call_proxy", ValueError("a listener of the user's"), True),
        ("robot", "send_command", Py4JNetworkError("the user's own"), True),
        ("robot", "send_command", None, True),
    ],
)
def test_only_what_an_exception_says_too_is_left_out_of_the_log(
    module: str, function: str, error: Exception | None, kept: bool
) -> None:
    trace = None if error is None else (type(error), error, None)
    path = f"/somewhere/{module}.py"
    record = logging.LogRecord("any", logging.ERROR, path, 1, "said", (), trace, function)

    assert _is_news(record) is kept
