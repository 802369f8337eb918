"""Jars from Maven Central, fetched by the Ivy that comes with Spark, into the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from .runtime import Runtime

__all__ = ["Dependency", "fetched"]

TIMEOUT_S = 600.0

# An organisation, a module, a revision, and whether what it needs in turn comes with it.
Dependency = tuple[str, str, str, bool]

SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" checksums="sha1"/></resolvers>
</ivysettings>
"""
"""A jar whose checksum is not the one that the registry states is refused."""


def fetched(runtime: Runtime, name: str, dependencies: tuple[Dependency, ...]) -> list[Path]:
    """The jars of some modules; the test that needs them is skipped if they cannot be had.

    Args:
        runtime: runs Ivy.
        name: for messages and the folder.
        dependencies: the modules.
    """
    written = _module(dependencies)
    digest = hashlib.sha256((SETTINGS + written).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flow-spark"
    folder = cache / f"{name}-{digest}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            _retrieve(runtime, name, written, Path(made))
            # At once: another run meanwhile finds all of them or none.
            try:
                (Path(made) / "jars").rename(folder)
            except OSError:
                if not folder.exists():
                    raise
    return sorted(folder.glob("*.jar"))


def _module(dependencies: tuple[Dependency, ...]) -> str:
    lines = [
        f"<dependency org={quoteattr(organisation)} name={quoteattr(name)} "
        f'rev={quoteattr(revision)} transitive="{str(closed).lower()}" '
        f'conf="default->{"master,compile,runtime" if closed else "master"}"/>'
        for organisation, name, revision, closed in dependencies
    ]
    return "\n".join(
        [
            '<ivy-module version="2.0">',
            '<info organisation="flow" module="tests"/>',
            *("<dependencies>", *lines, "</dependencies>"),
            "</ivy-module>",
        ]
    )


def _retrieve(runtime: Runtime, name: str, written: str, folder: Path) -> None:
    ivy = next((runtime.spark_home / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        pytest.skip(f"no {name}: this Spark has no Ivy to fetch it with")
    (folder / "settings.xml").write_text(SETTINGS)
    (folder / "ivy.xml").write_text(written)
    command = [str(runtime.java_home / "bin" / "java"), "-jar", str(ivy), "-warn"]
    command += ["-settings", str(folder / "settings.xml"), "-ivy", str(folder / "ivy.xml")]
    command += ["-cache", str(folder / "ivy"), "-types", "jar", "bundle"]
    command += ["-retrieve", str(folder / "jars" / "[artifact]-[revision](-[classifier]).[ext]")]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"no {name}: Maven Central took more than {TIMEOUT_S:.0f} s")
    if ran.returncode or not any((folder / "jars").glob("*.jar")):
        said = (ran.stdout + ran.stderr).strip().splitlines()
        told = [line.strip() for line in said if "not found" in line or "rror" in line]
        shutil.rmtree(folder / "jars", ignore_errors=True)
        pytest.skip(f"no {name}: Maven Central did not give it: {'; '.join(told[:3] or said[-3:])}")
