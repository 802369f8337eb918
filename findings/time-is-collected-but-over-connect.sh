#!/usr/bin/env bash
# PySpark 4.3.0: a TIME is collected without Spark Connect, and refused with it.
#
# spark.sql.timeType.enabled is false unless set. A session without Connect gives the value all the
# same; over Connect the same query fails.
# Seen: [UNSUPPORTED_TIME_TYPE] The data type TIME is not supported.
#
# Needs Java 17 and Python 3.11 or later, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'pyspark[connect]==4.3.0' pyarrow==26.0.1 pandas==2.3.3 numpy==2.3.5
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { tail -n 20 "$folder/log"; exit 1; }
import subprocess
import sys

PROGRAM = """
import sys
from pyspark.sql import SparkSession

made = SparkSession.builder.config("spark.ui.enabled", "false")
spark = (made.remote if sys.argv[1] == "connect" else made.master)("local[1]").getOrCreate()
try:
    print("rows", spark.sql("SELECT TIME '12:30:00' AS t").collect())
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
"""
found = {
    mode: subprocess.run(
        [sys.executable, "-c", PROGRAM, mode], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    for mode in ("classic", "connect")
}
print(found)
assert found["classic"] == "rows [Row(t=datetime.time(12, 30))]"
assert "UNSUPPORTED_TIME_TYPE" in found["connect"]
PYTHON
