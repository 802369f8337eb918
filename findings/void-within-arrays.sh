#!/usr/bin/env bash
# PySpark 4.3.0 hands arrays and maps of void over as Arrow with too few elements.
#
# The nulls within are counted once for each row, and not once for each element. So toArrow() fails
# for rows of which collect() gives all.
# Seen: ArrowInvalid: Length spanned by list offsets (3) larger than values array (length 2).
#
# Needs Java 17 and Python 3.11 or later, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'pyspark[connect]==4.3.0' pyarrow==26.0.1 pandas==2.3.3 numpy==2.3.5
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { tail -n 20 "$folder/log"; exit 1; }
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.sql("SELECT * FROM VALUES (array(NULL)), (array(NULL, NULL)) AS t(a)").coalesce(1)
assert [row.a for row in rows.collect()] == [[None], [None, None]]
try:
    rows.toArrow()
except Exception as error:
    print(type(error).__name__, error)
    assert "Length spanned by list offsets (3) larger than values array (length 2)" in str(error)
else:
    raise SystemExit("toArrow() gives a table")
PYTHON
