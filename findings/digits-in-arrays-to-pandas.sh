#!/usr/bin/env bash
# PySpark 4.3.0, toPandas() with Arrow: a null in an array makes its integers floats.
#
# Those beyond 2**53 become others, without a word; collect(), and toPandas() without Arrow, keep
# them. Integers of a column of their own become floats as well, in both ways.
# Seen: 9007199254740993 in an array with a null becomes 9007199254740992.0.
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
rows = spark.sql("SELECT array(9007199254740993L, NULL) AS a")
assert rows.collect()[0].a == [9007199254740993, None]
spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "false")
plain = rows.toPandas().a[0]
spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
arrow = rows.toPandas().a[0]
print(plain, arrow.dtype, int(arrow[0]))
assert list(plain) == [9007199254740993, None]
assert arrow.dtype == "float64" and int(arrow[0]) == 9007199254740992
PYTHON
