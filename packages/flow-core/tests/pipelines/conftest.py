"""A user's folder, and the core as the only plugin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from flow_core.plugins import PluginHost

Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plugin but the core's, whatever else is installed here."""
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*"})
    monkeypatch.setattr("flow_core.plugins.host._host", host)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a file there."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    return write
