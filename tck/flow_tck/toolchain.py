"""The Java side of the kit: its jars from Maven Central, and our few classes, compiled here."""

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

HERE: Final = Path(__file__).parents[1]
RELEASE: Final = "17"


class MissingToolError(Exception):
    """The machine lacks something that the kit needs, which the message names."""


@final
@dataclass(frozen=True)
class Toolchain:
    """Everything that a Java virtual machine has to load.

    Args:
        classpath: folders and jars.
    """

    classpath: tuple[str, ...]


def missing_tools() -> Sequence[str]:
    """What has to be installed before the kit can run, by name."""
    tools = [f"{tool} (on the PATH)" for tool in ("java", "javac", "mvn") if not shutil.which(tool)]
    modules = [f"{name} (for Python)" for name in ("jpype", "rich") if not find_spec(name)]
    return [*tools, *modules]


def prepare(cache: Path) -> Toolchain:
    """Fetch the jars and compile our classes, unless `cache` has them for these very sources.

    Args:
        cache: a folder of our own; what is in it can be made again at any time.

    Raises:
        MissingToolError: if there is no Java compiler, no Maven or no JPype.
        subprocess.CalledProcessError: if Maven or the compiler fails; it has said why.
    """
    if missing := missing_tools():
        raise MissingToolError(", ".join(missing))
    sources = sorted((HERE / "java").rglob("*.java"))
    pom = HERE / "pom.xml"
    digest = hashlib.sha256(RELEASE.encode())
    for path in (pom, *sources):
        digest.update(path.read_bytes())
    folder = cache / digest.hexdigest()[:16]
    jars, classes = folder / "jars", folder / "classes"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        jars.mkdir(parents=True)
        _run(
            "mvn",
            "--batch-mode",
            "--quiet",
            f"--file={pom}",
            f"-DoutputDirectory={jars}",
            "dependency:copy-dependencies",
        )
        _run(
            "javac",
            f"--release={RELEASE}",
            f"--class-path={jars / '*'}",
            "-d",
            str(classes),
            *map(str, sources),
        )
        (folder / "complete").touch()
    return Toolchain((str(classes), *map(str, sorted(jars.glob("*.jar")))))


def _run(tool: str, *arguments: str) -> None:
    # By its full path: on Windows, Maven is a script that is not found by its bare name.
    subprocess.run([shutil.which(tool) or tool, *arguments], check=True)
