"""Where nothing may be missing, a test that would be skipped fails and says what it misses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

INFRASTRUCTURE = Path(__file__).parent / "infrastructure"

LACKING = """
import pytest

@pytest.fixture(scope="session")
def java():
    pytest.skip("no Java for a cluster")

def test_with_java(java):
    pass

def test_with_maven():
    pytest.skip("no kafka-broker: Maven Central did not give it")

@pytest.mark.skipif("True", reason="needs /proc")
def test_with_proc():
    pass

@pytest.mark.xfail(strict=True)
def test_with_a_known_fault():
    assert False

def test_with_nothing():
    pass
"""

LACKING_AT_ALL = """
import pytest

acme = pytest.importorskip("acme_that_is_nowhere", reason="needs acme beside it")
"""


def outcome(folder: Path, required: str) -> tuple[str, list[str]]:
    """The last line of a run of pytest, and why its tests did not pass."""
    (folder / "test_lacking.py").write_text(LACKING)
    (folder / "test_lacking_at_all.py").write_text(LACKING_AT_ALL)
    variables = {**os.environ, "PYTHONPATH": str(INFRASTRUCTURE), "FLOW_REQUIRE": required}
    command = [sys.executable, "-m", "pytest", "-p", "required", "-p", "no:cacheprovider", "-ra"]
    ran = subprocess.run(
        [*command, "--continue-on-collection-errors", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        cwd=folder,
    )
    lines = ran.stdout.splitlines()
    return lines[-1], [line for line in lines if line.startswith(("SKIPPED", "with FLOW_REQUIRE"))]


@pytest.mark.parametrize("required", ["", "0"])
def test_a_test_with_a_missing_requirement_is_skipped(tmp_path: Path, required: str) -> None:
    summary, reasons = outcome(tmp_path, required)

    assert "1 passed, 4 skipped, 1 xfailed" in summary
    assert len(reasons) == 4


def test_a_missing_requirement_fails_where_it_is_required(tmp_path: Path) -> None:
    summary, reasons = outcome(tmp_path, "1")

    assert "1 failed, 1 passed, 1 xfailed, 3 errors" in summary
    text = "\n".join(reasons)
    for piece in ("no Java for a cluster", "no kafka-broker: Maven", "needs /proc", "needs acme"):
        assert re.search(f"must not be missing: .*{piece}", text), piece
