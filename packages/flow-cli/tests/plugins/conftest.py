"""A third-party package for these tests: a wheel that is built from a folder."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[4] / "examples" / "plugin"


@pytest.fixture(autouse=True)
def no_other_plugin() -> None:
    """All that is installed here is used."""


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
