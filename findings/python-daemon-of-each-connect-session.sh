#!/usr/bin/env bash
# PySpark 4.3.0: a Spark Connect server keeps a Python daemon for each session that has run Python.
#
# Workers are kept by what is in their environment, and that names the session. When the session is
# released its daemon stays, idle, for as long as the server lives: some 30 MB each. Without Spark
# Connect all sessions of an application share one.
# Seen: 1, 2, 3, 4 daemons after as many sessions, each released, and 4 half a minute later.
#
# Needs Linux, Java 17 and Python 3.11 or later, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'pyspark[connect]==4.3.0' pyarrow==26.0.1 pandas==2.3.3 numpy==2.3.5
cd "$folder"
export PYSPARK_PYTHON="$folder/venv/bin/python"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { tail -n 20 "$folder/log"; exit 1; }
import os
import time
from pathlib import Path

from pyspark.sql import SparkSession

os.environ["OF_THIS_RUN"] = mark = f"daemons-{os.getpid()}"


def status(process):
    return dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())


def daemons():
    """The daemons that this run has started; not the workers that they have forked."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            known = mark.encode() in (process / "environ").read_bytes()
            if known and b"pyspark.daemon" in (process / "cmdline").read_bytes():
                found[process.name] = status(process)["PPid"].strip()
        except OSError:
            continue
    return [name for name, parent in found.items() if parent not in found]


def same(batches):
    yield from batches


first = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
seen = []
for _ in range(4):
    session = first.newSession()
    session.range(1).mapInArrow(same, "id long").collect()
    session.client.release_session()
    seen.append(len(daemons()))
time.sleep(30)
seen.append(len(daemons()))
print(seen)
assert seen == [1, 2, 3, 4, 4], seen
PYTHON
