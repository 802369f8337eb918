"""Third-party packages for these tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that installs a distribution with one plugin module into this process."""
    site = tmp_path / "site"
    site.mkdir()

    def install(
        distribution: str, code: str, *, version: str = "1.0", name: str | None = None
    ) -> Path:
        module = f"{distribution.replace('-', '_')}_plugin"
        (site / f"{module}.py").write_text(dedent(code), "utf-8")
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[flow]\n{name or distribution} = {module}\n")
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(__import__("sys").modules, module, raising=False)
        return site

    return install
