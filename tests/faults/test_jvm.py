"""Spark or its JVM ends under a running flow: one error, no hanging thread, a new session works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(170)]

WAIT_S = 160

# Prints the results; all of it within one process, as a user's program would continue.
SCRIPT = """
import contextlib, json, os, signal, sys, threading, time
from pathlib import Path

from pyspark import SparkContext

import flow_core as flow
from flow_core import hooks
from flow_spark import from_stream, from_dataframe, on_spark, session, stream_source

told = json.loads(sys.argv[1])

def jvm():
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and told["mark"].encode() in (entry / "environ").read_bytes():
                if b"java" in (entry / "cmdline").read_bytes().split(b"\\0")[0]:
                    found.append(int(entry.name))
        except OSError:
            pass
    return found

def end():
    died.append(time.monotonic())
    if told["death"] == "stop":
        with contextlib.suppress(Exception):  # its thread leaves the session meanwhile
            SparkContext._active_spark_context.stop()
        return
    if told["death"] == "exit":
        with contextlib.suppress(Exception):  # nothing answers any more
            SparkContext._active_spark_context._jvm.java.lang.System.exit(0)
        return
    ended = jvm()
    assert ended
    for pid in ended:
        os.kill(pid, getattr(signal, told["death"]))

def slow(n):
    time.sleep(0.001)
    return n

def iterated(spark):
    for item in flow.range(100_000).pipe(on_spark(spark, partitions=2)).map(slow):
        items.append(item)
        if len(items) == 500:
            end()

def subscribed(spark):
    over = threading.Event()
    def take(item):
        items.append(item)
        if len(items) == 500:
            end()
    def fail(error):
        errors.append(error)
        over.set()
    made = flow.range(100_000).pipe(on_spark(spark, partitions=2)).map(slow)
    handle = made.subscribe(take, fail, over.set)
    over.wait()
    if errors:
        raise errors.pop()

def summed(spark):
    made = flow.range(100_000).pipe(on_spark(spark, partitions=2)).map(slow)
    threading.Timer(2, end).start()
    items.append(made.sum().single())

def streamed(spark):
    df = stream_source(
        flow.range(1_000_000), spark, schema=int, spool=told["spool"], segment_rows=100
    )
    for item in from_stream(df):
        items.append(item)
        if len(items) == 500:
            end()

items, errors, dropped, died = [], [], [], []
before = set(threading.enumerate())
with hooks.dropped_errors.scoped("test", dropped.append):
    failed = None
    try:
        with session("local[2]", fast_start=True) as spark:
            globals()[told["how"]](spark)
    except Exception as error:
        failed = error
    took = time.monotonic() - died[0] if died else None
    deadline = time.monotonic() + 20
    def left():  # but for the daemons that PySpark itself leaves after any session
        new = [one for one in threading.enumerate() if one not in before]
        return [one for one in new if one.name.startswith("flow") or not one.daemon]
    while left() and time.monotonic() < deadline:
        time.sleep(0.05)
    with session("local[2]", fast_start=True) as spark:
        again = sorted(flow.range(5).pipe(on_spark(spark, partitions=1)).map(abs))
print(json.dumps({
    "error": None if failed is None else f"{type(failed).__name__}: {failed}",
    "items": len(items), "doubled": len(items) - len(set(items)), "took": took,
    "threads": [one.name for one in left()],
    "dropped": [repr(one)[:300] for one in dropped], "again": again,
}))
"""


def processes_with(mark: str) -> list[str]:
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("how", ["iterated", "subscribed", "summed", "streamed"])
@pytest.mark.parametrize("death", ["SIGKILL", "SIGTERM", "exit", "stop"])
def test_spark_that_ends_fails_the_flow_once_and_another_can_start(
    how: str, death: str, tmp_path: Path
) -> None:
    """Killed; or in an orderly way, in which it stops its jobs first; or stopped by the program."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    mark = f"FLOW_TEST_MARK={tmp_path}"
    told = {"how": how, "mark": mark, "death": death, "spool": str(tmp_path / "spool")}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(told)],
        env={**os.environ, "TMPDIR": str(scratch), "FLOW_TEST_MARK": str(tmp_path)},
        text=True,
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["error"] is not None, said
    assert said["doubled"] == 0
    assert said["took"] is not None, said
    assert said["took"] < 30, said
    assert said["threads"] == []
    assert said["dropped"] == []
    assert said["again"] == list(range(5))
    assert re.match(r"SparkJobError: the (Spark job '.*'|streaming query) is lost: ", said["error"])
    # PySpark's server of accumulators says by itself that it has lost a connection.
    printed = re.sub(r"(?s)-{40}\nException occurred.*?EOFError\n-{40}\n", "", ran.stderr)
    assert "Traceback (most" not in printed
    assert list(scratch.iterdir()) == []
    assert processes_with(mark) == []
    print(how, said)
