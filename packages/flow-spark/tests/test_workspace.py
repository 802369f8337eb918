"""The private folders of sessions: whose processes live, keep them; the dead's are removed."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from flow_spark.driver.workspace import Workspace, sweep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs flock, and file modes")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_of_this_user_alone_and_goes_with_all_that_is_in_it(temporary: Path) -> None:
    made = Workspace()
    (made.path / "sub").mkdir()
    (made.path / "sub" / "file").write_text("x")
    assert made.path.parent == temporary
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o700

    made.remove()
    made.remove()

    assert not made.path.exists()


def test_a_workspace_of_a_live_process_is_kept() -> None:
    made = Workspace()

    sweep()

    assert made.path.is_dir()
    made.remove()


KILLED = """
import os, sys, tempfile
from flow_spark.driver.workspace import Workspace
tempfile.tempdir = sys.argv[1]
(Workspace().path / "left").write_text("x")
os._exit(9)
"""


def test_a_workspace_of_a_killed_process_is_removed(temporary: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, temporary], check=False).returncode == 9
    (left,) = temporary.iterdir()
    assert (left / "left").is_file()

    sweep()

    assert list(temporary.iterdir()) == []


def test_a_folder_that_only_looks_like_a_workspace_is_kept(temporary: Path) -> None:
    """The folder for temporary files is open to everybody."""
    mine = temporary / "mine"
    mine.mkdir()
    (mine / "owner").touch()
    (temporary / "flow-spark-link").symlink_to(mine)
    (temporary / "flow-spark-new").mkdir()  # is not locked yet
    linked = temporary / "flow-spark-linked"
    linked.mkdir()
    (linked / "owner").symlink_to(mine / "owner")
    (temporary / "flow-spark-file").touch()

    sweep()

    assert len(list(temporary.iterdir())) == 5
    assert (mine / "owner").exists()
