"""RxJava 3 beside plain Java loops: the cases of `java/`, each in its own virtual machine.

This library's ratios are compared with RxJava's ratio to its loop; microseconds in two languages
are not comparable.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "jvm"))

from flow_jvm import missing_tools, prepare  # noqa: E402 - see above

__all__ = ["measure", "missing"]

OPTIONS = ("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
LIMIT_S = 300
"""A case takes some seconds; one that takes this long has hung."""


def missing() -> list[str]:
    """Return the names of the tools that the machine lacks."""
    return list(missing_tools(()))


def measure(cache: Path, rounds: int) -> list[dict[str, object]]:
    """Run all cases, one after the other.

    Args:
        cache: a folder for the jars and the compiled classes.
        rounds: how often each case is timed once it is warm.

    Returns:
        The key of each case, its name, its nanoseconds, and its ratio to the loop.

    Raises:
        subprocess.SubprocessError: if a case fails or hangs.
    """
    classpath = os.pathsep.join(prepare(HERE, cache).classpath)
    command = (shutil.which("java") or "java", *OPTIONS, "-cp", classpath, "flow.bench.Bench")
    found: list[dict[str, object]] = []
    for name in _lines(*command):
        [line] = _lines(*command, name, str(rounds))
        found.append(json.loads(line))
        print(f"RxJava, {name}: {found[-1]['ratio']:.2f} loops", flush=True)
    return found


def _lines(*command: str) -> list[str]:
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    return run.stdout.splitlines()
