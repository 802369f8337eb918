"""Output while the JVM of a driver runs."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from flow_spark.driver.gateway import _is_news, write_settings
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


def test_settings_are_in_a_file_of_this_user_alone_and_come_back_as_they_were(
    tmp_path: Path,
) -> None:
    conf = {
        "spark.a b=c:#!": " pass word\\=:\n\t#",
        "spark.text": "ä€\U0001f600 \\u0041",
        "spark.empty": "",
    }

    write_settings(tmp_path / "settings", conf)

    written = (tmp_path / "settings").read_text("ascii").splitlines()
    assert [tuple(map(unescaped, line.split("=", 1))) for line in written] == list(conf.items())
    assert (tmp_path / "settings").stat().st_mode & 0o777 == 0o600


def unescaped(text: str) -> str:
    """The text that Java makes of escaped UTF-16."""
    units = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
