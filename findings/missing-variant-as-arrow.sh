#!/usr/bin/env bash
# PySpark 4.3.0 makes no Arrow table of a column of Variants of which one is missing.
#
# A Variant is a struct whose two fields are never null; under a missing struct they are, and the
# cast in toArrow() refuses that. The same goes for any struct that may be missing and has a field
# that may not. collect() gives the rows.
# Seen: ArrowInvalid: nulls in input cannot be viewed as non-nullable.
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
for value in ("parse_json('1')", "named_struct('n', struct(id))"):
    rows = spark.sql(f"SELECT if(id = 0, NULL, {value}) AS v FROM range(2)")
    assert sum(row.v is None for row in rows.collect()) == 1
    try:
        table = rows.toArrow()
    except Exception as error:
        print(value, type(error).__name__, error)
        assert "nulls in input cannot be viewed as non-nullable" in str(error)
    else:
        raise SystemExit(f"toArrow() gives a table of {value}: {table}")
PYTHON
