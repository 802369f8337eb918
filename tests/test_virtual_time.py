"""Virtual time in an event loop that a plugin of pytest runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flow_testing import TIMEOUT_S

TEST = """
import asyncio

import pytest

import flow_core as flow
from flow_testing import VirtualClock

@pytest.mark.anyio
async def test_hours():
    async def slow(n):
        await asyncio.sleep(3600)
        return n

    clock = VirtualClock()
    assert await clock.run_async(flow.range(3).map_concurrent(slow, 1)) == [0, 1, 2]
    assert clock.now() == 3 * 3600
    await asyncio.sleep(0.001)
@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


def test_hours_pass_in_no_time_in_the_loop_of_a_plugin(tmp_path: Path) -> None:
    pytest.importorskip("anyio")
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "anyio", "test_it.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=12 * TIMEOUT_S, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
