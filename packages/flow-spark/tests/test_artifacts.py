"""Modules that a session has sent along are found in a worker that another one has used."""

from __future__ import annotations

import importlib
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest

from flow_spark.pickling.artifacts import find_modules_in


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", sys.modules.copy())


def folder_in(root: Path, *, price: int) -> Path:
    """The files that a session has sent: a module, and a zip with another."""
    folder = root / str(uuid.uuid4())
    folder.mkdir()
    (folder / "flow_sent.py").write_text(f"PRICE = {price}")
    with zipfile.ZipFile(folder / "more.zip", "w") as zipped:
        zipped.writestr("flow_sent_zipped.py", f"PRICE = {price}")
    return folder


def prices() -> list[Any]:
    return [importlib.import_module(name).PRICE for name in ("flow_sent", "flow_sent_zipped")]


def test_modules_and_those_in_zips_are_found(tmp_path: Path) -> None:
    find_modules_in(folder_in(tmp_path, price=3))

    assert prices() == [3, 3]


def test_modules_of_another_session_are_found_no_longer(tmp_path: Path) -> None:
    first, second = folder_in(tmp_path, price=3), folder_in(tmp_path, price=4)
    (first / "flow_only_there.py").touch()
    find_modules_in(first)
    assert prices() == [3, 3]

    find_modules_in(second)

    assert prices() == [4, 4]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("flow_only_there")


def test_a_module_stays_as_it_was_imported_while_the_session_is_the_same(tmp_path: Path) -> None:
    folder = folder_in(tmp_path, price=3)
    find_modules_in(folder)
    importlib.import_module("flow_sent").PRICE = 5

    find_modules_in(folder)

    assert prices() == [5, 3]


def test_modules_that_all_sessions_share_stay(tmp_path: Path) -> None:
    (tmp_path / "flow_shared.py").write_text("PRICE = 1")
    sys.path.insert(1, str(tmp_path))
    importlib.import_module("flow_shared")

    find_modules_in(folder_in(tmp_path, price=3))

    assert "flow_shared" in sys.modules
    assert str(tmp_path) in sys.path
