#!/usr/bin/env bash
# PySpark 4.3.0: df.limit(n).toArrow() has the rows in another order than df.limit(n).collect().
#
# collect() takes the partitions one after the other. toArrow(), as toPandas() with Arrow, moves the
# rows to one partition first, whose blocks arrive as they do from several executors, so that even a
# limit that leaves nothing out changes the order. The same call without limit() keeps it, and so
# does a master on one machine.
# Seen, of 10 tries each that differ from the order of the rows: collect() 0, limit().collect() 0,
# toArrow() 0, limit().toArrow() 10, limit().toPandas() 10.
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
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local-cluster[2,1,1024]")
builder = builder.config("spark.sql.execution.arrow.pyspark.enabled", "true")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()


def same(batches):
    yield from batches


df = spark.range(0, 400, 1, 8).orderBy("id").mapInArrow(same, "id long")
limited = df.limit(1000)
ways = {
    "collect()": lambda: [row.id for row in df.collect()],
    "limit().collect()": lambda: [row.id for row in limited.collect()],
    "toArrow()": lambda: df.toArrow().column("id").to_pylist(),
    "limit().toArrow()": lambda: limited.toArrow().column("id").to_pylist(),
    "limit().toPandas()": lambda: limited.toPandas()["id"].tolist(),
}
wanted = list(range(400))
differ = {name: 0 for name in ways}
for _ in range(10):
    for name, way in ways.items():
        found = way()
        assert sorted(found) == wanted, name
        differ[name] += found != wanted
print(differ)
for name in ("collect()", "limit().collect()", "toArrow()"):
    assert differ[name] == 0, name
for name in ("limit().toArrow()", "limit().toPandas()"):
    assert differ[name] > 0, name
PYTHON
