"""A task that is no longer wanted ends, even if it hangs in a function."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import sys, time
from flow_spark.channel.abandoned import ended_when

with ended_when(lambda: sys.argv[1] == "closed"):
    time.sleep(float(sys.argv[2]))
print("over")
"""


@pytest.mark.parametrize(
    ("channel", "works_s", "ends"),
    [("closed", 60, -signal.SIGKILL), ("closed", 0.3, 0), ("open", 1.5, 0)],
)
def test_only_what_hangs_although_the_channel_is_closed_is_killed(
    channel: str, works_s: float, ends: int
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, channel, str(works_s)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=50,
    )

    assert ran.returncode == ends
    assert ran.stdout == ("" if ends else "over\n")
