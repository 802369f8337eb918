"""Prepares what a Java virtual machine needs before it can start: jars, and our classes.

A project that needs one is a folder with a ``pom.xml``, which names the artifacts from Maven
Central, and a folder ``java`` with sources.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, final

__all__ = ["MissingToolError", "Toolchain", "missing_tools", "prepare"]

RELEASE: Final = "17"


class MissingToolError(Exception):
    """The error if the machine lacks a required program; the message names it."""


@final
@dataclass(frozen=True)
class Toolchain:
    """The classes that a Java virtual machine has to load.

    Args:
        classpath: folders and jars.
    """

    classpath: tuple[str, ...]


def missing_tools(modules: Sequence[str] = ("jpype", "rich")) -> Sequence[str]:
    """Return the names of the programs and modules that are missing and have to be installed."""
    tools = [f"{tool} (on the PATH)" for tool in ("java", "javac", "mvn") if not shutil.which(tool)]
    missing = [f"{name} (for Python)" for name in modules if not find_spec(name)]
    return [*tools, *missing]


def prepare(project: Path, cache: Path) -> Toolchain:
    """Fetch the jars and compile the classes, unless `cache` has them for exactly these sources.

    Args:
        project: the project's folder; see the module's docstring.
        cache: a private folder, whose content can be made again at any time.

    Raises:
        MissingToolError: if there is no Java compiler or no Maven.
        subprocess.CalledProcessError: if Maven or the compiler fails; its own output says why.
    """
    if missing := missing_tools(()):
        raise MissingToolError(", ".join(missing))
    sources = sorted((project / "java").rglob("*.java"))
    pom = project / "pom.xml"
    jars = cache / f"jars-{_digest(pom)}"
    if not (jars / "complete").exists():
        _run(
            "mvn",
            "--batch-mode",
            "--quiet",
            f"--file={pom}",
            f"-DoutputDirectory={_emptied(jars)}",
            "dependency:copy-dependencies",
        )
        (jars / "complete").touch()
    classes = cache / f"classes-{_digest(pom, *sources)}"
    if not (classes / "complete").exists():
        _run(
            "javac",
            f"--release={RELEASE}",
            f"--class-path={jars / '*'}",
            "-d",
            str(_emptied(classes)),
            *map(str, sources),
        )
        (classes / "complete").touch()
    return Toolchain((str(classes), *map(str, sorted(jars.glob("*.jar")))))


def _digest(*files: Path) -> str:
    digest = hashlib.sha256(RELEASE.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _run(tool: str, *arguments: str) -> None:
    # Use its full path: on Windows, Maven is a script that its bare name does not find.
    subprocess.run([shutil.which(tool) or tool, *arguments], check=True)
