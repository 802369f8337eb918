"""A task knows whether the process whose flow it runs is there."""

from __future__ import annotations

import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from flow_spark.channel.lifeline import Client, Hold, Lifeline, held, reach
from flow_spark.channel.wire import Target

from .infrastructure.processes import wait_until

WITHIN_S = 20.0

CLIENT = """
import pickle, sys, time
from flow_spark.channel.lifeline import Lifeline
line = Lifeline("127.0.0.1", "127.0.0.1")
print(pickle.dumps(line.client()).hex(), flush=True)
while not line.client().hosts:
    time.sleep(0.02)
print("is reached", flush=True)
sys.stdin.readline()
"""

TASK = """
import pickle, sys, threading
from flow_spark.channel.lifeline import held
with held(pickle.loads(bytes.fromhex(sys.argv[1]))):
    print("runs", flush=True)
    print(sys.stdin.readline(), end="", flush=True)
"""


@pytest.fixture
def line() -> Iterator[Lifeline]:
    with closing(Lifeline("127.0.0.1", "127.0.0.1")) as line:
        yield line


def nowhere() -> Target:
    """An address at which no process listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return Target("127.0.0.1", server.getsockname()[1])


def started(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.timeout(60)
def test_a_task_ends_when_its_client_is_killed_though_a_function_of_it_hangs() -> None:
    client = started(CLIENT)
    with started(TASK, said(client)) as task:
        assert said(task) == "runs"
        assert said(client) == "is reached"
        client.kill()
        client.communicate()

        assert task.wait(WITHIN_S) == -signal.SIGKILL


@pytest.mark.timeout(60)
def test_a_task_continues_where_no_way_leads_to_its_client() -> None:
    unreached = pickle.dumps(Client(nowhere(), frozenset())).hex()
    with started(TASK, unreached) as task:
        assert said(task) == "runs"
        with pytest.raises(subprocess.TimeoutExpired):
            task.wait(2.0)
        task.communicate("ends\n")

        assert task.returncode == 0


def test_a_client_that_tasks_of_this_host_have_reached_and_that_does_not_answer_is_gone(
    line: Lifeline,
) -> None:
    with closing(Hold(line.client())) as hold:
        assert not hold.is_gone()
        assert wait_until(lambda: line.client().hosts, WITHIN_S)
        hosts = line.client().hosts
        line.close()
        assert wait_until(hold.is_gone, WITHIN_S)

    assert Hold(Client(nowhere(), hosts)).is_gone()
    assert not Hold(Client(nowhere(), frozenset({0}))).is_gone()


def test_a_client_is_reached_by_one_that_has_other_classes(line: Lifeline) -> None:
    target = line.client().target

    reach((target.host, target.port, target.query, target.token), frozenset())

    assert wait_until(lambda: line.client().hosts, WITHIN_S)


def test_a_stranger_to_the_client_is_not_taken_for_a_task(line: Lifeline) -> None:
    target = line.client().target
    with closing(Hold(Client(Target(target.host, target.port), frozenset()))) as hold:
        assert wait_until(hold.is_gone, WITHIN_S)

    assert not line.client().hosts


def test_a_task_of_another_kind_of_cluster_needs_no_connection() -> None:
    before = threading.active_count()
    with held(None):
        assert threading.active_count() == before
