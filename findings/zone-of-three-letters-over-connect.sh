#!/usr/bin/env bash
# PySpark 4.3.0, collect() over Spark Connect fails in a session whose time zone is PST.
#
# The server takes the zone, as Java does, and the client asks pytz for it, which knows it not. A
# session without Connect collects the same rows.
# Seen: pytz.exceptions.UnknownTimeZoneError: PST.
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
spark.conf.set("spark.sql.session.timeZone", "PST")
try:
    print("rows", spark.sql("SELECT TIMESTAMP '2024-07-01 12:00:00' AS t").collect())
except Exception as error:
    print(type(error).__name__, error)
"""
found = {
    mode: subprocess.run(
        [sys.executable, "-c", PROGRAM, mode], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    for mode in ("classic", "connect")
}
print(found)
assert found["classic"].startswith("rows [Row(t=")
assert found["connect"] == "UnknownTimeZoneError 'PST'"
PYTHON
