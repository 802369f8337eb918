"""The classes as a third party uses them: subclassed, collected, skipped, without pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from flow_testing.tck import (
    OperatorVerification,
    ProcessorVerification,
    PublisherVerification,
    SubscriberVerification,
    SubscriberWhiteboxVerification,
)

pytestmark = pytest.mark.tck

VERIFICATIONS = [
    OperatorVerification,
    ProcessorVerification,
    PublisherVerification,
    SubscriberVerification,
    SubscriberWhiteboxVerification,
]

THEIRS = """
import flow_core as flow
from flow_testing.tck import PublisherVerification

class TestEvery(PublisherVerification[int]):
    max_items = 100
    quiet_s = 0
    def create_publisher(self, count):
        return flow.range(count)
"""


def collected(tmp_path: Path, text: str, *options: str) -> str:
    Path(tmp_path, "test_theirs.py").write_text(text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", "-q", *options, "."]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def test_a_subclass_in_a_foreign_project_is_collected_and_passes(tmp_path: Path) -> None:
    output = collected(tmp_path, THEIRS)
    assert " passed" in output
    assert re.search(r"\d (failed|error|warning)", output) is None


def test_a_rule_that_says_nothing_is_skipped_with_the_reason(tmp_path: Path) -> None:
    output = collected(tmp_path, THEIRS, "-k", "spec104 or spec303")
    assert "create_failed_publisher() gives none" in output
    assert "create_publisher() gives 0 to 100 items, not 1000" in output


def test_markers_may_be_strict(tmp_path: Path) -> None:
    assert " passed" in collected(tmp_path, THEIRS, "--strict-markers", "-W", "error")


def test_a_project_that_knows_the_marker_can_select_by_it(tmp_path: Path) -> None:
    Path(tmp_path, "pytest.ini").write_text("[pytest]\nmarkers =\n    tck: rules\n", "utf-8")
    assert " passed" in collected(tmp_path, THEIRS, "-m", "tck", "-k", "spec101")


def test_the_testing_kit_does_not_import_pytest() -> None:
    code = "import flow_testing, sys; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_pytest_the_import_says_what_is_missing() -> None:
    code = "import sys; sys.modules['pytest'] = None; import flow_testing.tck"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: flow_testing.tck is made of pytest tests: pip install" in run.stderr


@pytest.mark.parametrize("verification", VERIFICATIONS, ids=lambda v: v.__name__)
def test_every_rule_has_its_text(verification: type) -> None:
    for name in dir(verification):
        if name.startswith("test_"):
            assert (getattr(verification, name).__doc__ or "").endswith((".", ")")), name


@pytest.mark.parametrize("verification", VERIFICATIONS, ids=lambda v: v.__name__)
def test_every_rule_is_marked(verification: type) -> None:
    for name in dir(verification):
        if name.startswith("test_"):
            marks = [mark.name for mark in getattr(getattr(verification, name), "pytestmark", [])]
            assert marks == ["tck"], name


@pytest.mark.parametrize("verification", VERIFICATIONS, ids=lambda v: v.__name__)
def test_a_method_that_has_to_be_overridden_is_named(verification: type) -> None:
    names = {
        OperatorVerification: ("apply", (None,)),
        ProcessorVerification: ("create_processor", ()),
        PublisherVerification: ("create_publisher", (1,)),
        SubscriberVerification: ("create_subscriber", ()),
        SubscriberWhiteboxVerification: ("create_subscriber", (None,)),
    }
    method, arguments = names[verification]
    with pytest.raises(NotImplementedError, match=method):
        getattr(verification(), method)(*arguments)
