"""With ``FLOW_REQUIRE=1``, a test that is skipped because something is missing has failed.

Otherwise, a run on a machine without Java, Maven Central or another Python would be green and have
shown nothing. These are hooks of pytest, which ``conftest.py`` takes over.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

ReportT = TypeVar("ReportT", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test, or a fixture of it."""
    return _required((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A whole file."""
    return _required((yield))


def _required(report: ReportT) -> ReportT:
    if os.environ.get("FLOW_REQUIRE") != "1" or not report.skipped or hasattr(report, "wasxfail"):
        return report
    # Of what is skipped: the file, the line and why.
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    report.outcome = "failed"
    missing = reason.removeprefix("Skipped: ")
    report.longrepr = f"with FLOW_REQUIRE=1 this must not be missing: {missing}"
    return report
