"""A worker notices that the JVM that feeds it has gone."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, socket, sys
from flow_spark.jobs.liveness import jvm_is_gone
jvm, worker = socket.socketpair()
copies = [os.dup(worker.fileno()), os.dup(worker.fileno())]
users, peer = socket.socketpair()  # a user's connection, which the other side has closed
peer.close()
exec(sys.argv[1])
print(jvm_is_gone())
"""


@pytest.mark.parametrize(
    ("happens", "gone"),
    [
        ("pass", False),
        ("jvm.send(b'the rest of the protocol')", False),
        ("jvm.send(b'the rest'); jvm.close()", False),
        ("jvm.close()", True),
        ("worker.send(b'unread'); jvm.close()", True),
    ],
)
def test_only_the_closed_socket_to_the_jvm_counts(happens: str, gone: bool) -> None:
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT, happens], stdout=subprocess.PIPE, text=True, check=True
    )

    assert said.stdout.strip() == str(gone)
