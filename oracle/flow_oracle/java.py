"""RxJava's side: the virtual machine, and one call for each pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jpype

from flow_oracle.language import Node, text

__all__ = ["start"]


def start(classpath: Sequence[str]) -> Callable[[Node], list[str]]:
    """Start the virtual machine of this process, unless it is already running.

    Args:
        classpath: folders and jars.

    Returns:
        A function that returns the events of a case, as `pipelines.run` does.
    """
    machine: Any = jpype  # Any: it has no types to check against
    if not machine.isJVMStarted():
        machine.startJVM(
            "-Xmx512m",
            "-Xss4m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",  # a pipeline runs once, so there is little to optimise
            classpath=[*classpath],
            convertStrings=True,
        )
    oracle = machine.JClass("flow.oracle.Oracle")

    def run(case: Node) -> list[str]:
        return str(oracle.run(text(case))).splitlines()

    return run
