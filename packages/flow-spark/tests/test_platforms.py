"""A system without groups of processes gets a named error, where the first thing is asked of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
import flow_spark
from flow_spark import UnsupportedPlatformError
from flow_testing import TIMEOUT_S

LACKS = [(os, "killpg"), (signal, "SIGKILL"), (socket, "MSG_DONTWAIT")]

ENTRIES: dict[str, Callable[[], Any]] = {
    "session": lambda: flow_spark.session("local[1]").__enter__(),
    "on_spark": lambda: flow.range(3).pipe(flow_spark.on_spark(_never())),
    "stream_source": lambda: flow_spark.stream_source(_never(), flow.range(3), spool="spool"),
}


def _never() -> Any:
    """Stand for a session that nothing is asked of."""
    return object()


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(("module", "name"), LACKS, ids=[name for _, name in LACKS])
def test_each_entry_says_what_the_system_lacks(
    entry: str, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(module, name)
    with pytest.raises(UnsupportedPlatformError, match=rf"flow-spark needs \w+\.{name}, which"):
        ENTRIES[entry]()


WINDOWS = """
import asyncio, os, signal, socket, sys  # asyncio and PySpark choose by the real system

import pyspark

sys.modules["fcntl"] = None
sys.platform = "win32"
del os.killpg, signal.SIGKILL, socket.MSG_DONTWAIT
import flow_core
import flow_spark
from flow_core.plugins import plugin_host

assert not plugin_host().problems
assert "on_spark" in plugin_host().operators
for name in flow_spark.__all__:
    getattr(flow_spark, name)
try:
    flow_core.range(3).on_spark(None)
except flow_spark.UnsupportedPlatformError as error:
    print(error)
"""


def test_everything_can_be_imported_where_there_are_no_groups_of_processes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS],
        capture_output=True,
        text=True,
        check=False,
        timeout=12 * TIMEOUT_S,
    )
    assert done.stderr == ""
    assert done.stdout.startswith(
        "flow-spark needs os.killpg, signal.SIGKILL, socket.MSG_DONTWAIT, which"
    )
    assert "Run it on Linux, in WSL 2 or in a container" in done.stdout
