"""Third-party packages for these tests: wheels that are built from a folder, and broken ones."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

EXAMPLE = Path(__file__).parents[4] / "examples" / "plugin"

Install = Callable[..., Path]


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A folder for ``sys.path`` with acme-flow, installed from a wheel that is built here."""
    wheel = build_wheel(EXAMPLE, tmp_path)
    target = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def build_wheel(project: Path, folder: Path) -> Path:
    """Build the wheel of a pure project, as its pyproject.toml says. Needs no build backend."""
    facts = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    stem = f"{facts['name'].replace('-', '_')}-{facts['version']}"
    path = folder / f"{stem}-py3-none-any.whl"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in facts["entry-points"].items()
    )
    info = {
        "METADATA": f"Metadata-Version: 2.1\nName: {facts['name']}\nVersion: {facts['version']}\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": points,
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for source in sorted((project / "src").rglob("*.py")):
            wheel.write(source, source.relative_to(project / "src").as_posix())
        for name, text in info.items():
            wheel.writestr(f"{stem}.dist-info/{name}", text)
        record = "".join(f"{name},,\n" for name in wheel.namelist())
        wheel.writestr(f"{stem}.dist-info/RECORD", f"{record}{stem}.dist-info/RECORD,,\n")
    return path


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
