"""Servers that tests start end with them, however these end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..infrastructure.processes import Server, ServerError, processes_of_group, wait_until

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs /proc to see other processes"
)

# A server with a child, which do not heed a friendly request to end.
STUBBORN = [
    "sh",
    "-c",
    "trap '' TERM; (while :; do sleep 1; done) & echo started; while :; do sleep 1; done",
]

DRIVER = """
import sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from infrastructure.processes import Server
server = Server("stubborn", sys.argv[3:], Path(sys.argv[2]), {})
server.wait_for("started")
print(server.group, flush=True)
threading.Event().wait()
"""


def test_a_server_is_stopped_with_what_it_has_started(tmp_path: Path) -> None:
    server = Server("friendly", ["sh", "-c", "sleep 600 & echo started; wait"], tmp_path, {})
    server.wait_for("started")
    assert len(processes_of_group(server.group)) == 3

    server.stop()
    server.stop()

    assert not server.runs()
    assert wait_until(lambda: not processes_of_group(server.group), 5)


def test_a_server_that_does_not_start_is_reported_with_its_output(tmp_path: Path) -> None:
    server = Server("broken", ["sh", "-c", "echo 'no room' >&2; exit 3"], tmp_path, {})

    with pytest.raises(ServerError, match=r"(?s)the broken has ended.*no room"):
        server.wait_for("started")

    assert wait_until(lambda: not processes_of_group(server.group), 5)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.cluster
def test_no_server_outlives_the_process_that_has_started_it(
    tmp_path: Path, how: signal.Signals
) -> None:
    folder = Path(__file__).parents[1]
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder), str(tmp_path), *STUBBORN],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert driver.stdout is not None
    group = int(driver.stdout.readline())
    assert len(processes_of_group(group)) >= 3
    os.kill(driver.pid, how)
    driver.communicate()

    assert wait_until(lambda: not processes_of_group(group), 15)
