#!/usr/bin/env bash
# PySpark 4.3.0: `python -c` ends with status 0 where a package of Spark Connect is missing.
#
# Without grpcio, SparkSession.builder.remote(...).getOrCreate() raises PySparkImportError in a
# program that is a file. In `python -c`, as in a worker of pytest-xdist and in an embedded Python,
# whose main module has no file, PySpark takes the program for a doctest and leaves it by
# sys.exit(0): nothing that follows runs, and whoever looks at the status sees success.
# Seen: a file gives status 1; `python -c` gives 0 and "Skipping doctests: ..." on stderr.
#
# Needs Linux and Python 3.11 or later, and a network for the packages; Java is not started.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.3.0 pyarrow==26.0.1 pandas==2.3.3 numpy==2.3.5
cd "$folder"
program='
from pyspark.sql import SparkSession
SparkSession.builder.remote("sc://127.0.0.1:15002").getOrCreate().range(3).count()
print("the program went on")'
echo "$program" > job.py
status=0
"$folder/venv/bin/python" job.py >out 2>err || status=$?
echo "a file: status $status, $(tail -n 1 err)"
[ "$status" = 1 ]
grep -q "PACKAGE_NOT_INSTALLED" err
status=0
"$folder/venv/bin/python" -c "$program" >out 2>err || status=$?
echo "python -c: status $status, $(tail -n 1 err)"
[ "$status" = 0 ]
[ ! -s out ]
grep -q "Skipping doctests" err
