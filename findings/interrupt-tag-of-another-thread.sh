#!/usr/bin/env bash
# PySpark 4.3.0: interruptTag() of a classic session finds no job that another thread has started.
#
# addTag() belongs to a session over Spark Connect, and to the calling thread of the JVM without it:
# a job whose thread has called addTag("mine") runs to its end, and interruptTag("mine"), called in
# another thread, returns an empty list. Over Spark Connect the same program cancels it.
# interruptAll(), and addJobTag() with cancelJobsWithTag() of the SparkContext, do so without Connect.
# Seen: classic [] and all rows; Spark Connect one operation and OPERATION_CANCELED.
#
# Needs Linux, Java 17 and Python 3.11 or later, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'pyspark[connect]==4.3.0' pyarrow==26.0.1 pandas==2.3.3 numpy==2.3.5
cd "$folder"
export PYSPARK_PYTHON="$folder/venv/bin/python"
cat >"$folder/job.py" <<'PYTHON'
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

builder = SparkSession.builder.config("spark.ui.enabled", "false")
how = sys.argv[1]
builder = builder.master("local[1]") if how == "classic" else builder.remote("local[1]")
spark = builder.getOrCreate()
begun, go_on, told = Path(f"{how}-begun").resolve(), Path(f"{how}-go-on").resolve(), []


def wait(batches):
    begun.touch()
    while not go_on.exists():
        time.sleep(0.05)
    yield from batches


def run():
    spark.addTag("mine")
    try:
        told.append(len(spark.range(3).mapInArrow(wait, "id long").collect()))
    except Exception as error:
        told.append("cancelled" if "CANCEL" in str(error) else str(error))


runs = threading.Thread(target=run)
runs.start()
while not begun.exists():
    time.sleep(0.05)
found = spark.interruptTag("mine")
if not found:
    go_on.touch()
runs.join()
print(how, len(found), told)
assert (len(found), told) == ((0, [3]) if how == "classic" else (1, ["cancelled"]))
PYTHON
for how in classic connect; do
    "$folder/venv/bin/python" "$folder/job.py" $how 2>"$folder/log" || { tail -n 20 "$folder/log"; exit 1; }
done
