"""RxJava 3 beside plain Java loops: the cases of `java/`, each in a virtual machine of its own.

Its ratio to the loop is what the ratios of this library are held against; microseconds of two
languages say nothing.
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
"""A case takes some seconds; one that takes so long hangs."""


def missing() -> list[str]:
    """What the machine lacks, by name."""
    return list(missing_tools(()))


def measure(cache: Path, rounds: int) -> list[dict[str, object]]:
    """Run all cases, one after the other.

    Args:
        cache: a folder for the jars and the compiled classes.
        rounds: how often each case is timed once it is warm.

    Returns:
        For each its key, its name, nanoseconds, and its ratio to the loop.

    Raises:
        subprocess.SubprocessError: if one fails, or hangs.
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
