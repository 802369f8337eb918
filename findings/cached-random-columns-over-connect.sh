#!/usr/bin/env bash
# PySpark 4.3.0: over Spark Connect cache() keeps nothing of a DataFrame with rand() in an SQL text.
#
# selectExpr("rand() r"), as uuid(), gets its seed when the server analyses it, which it does anew for
# each job. So the plan is never the one that was cached: each collect() gives other numbers, and the
# storage level says that nothing is stored. Without Connect the seed is drawn once, and so it is
# with functions.rand(), whose seed the client draws, and with rand(7).
# Seen, whether two collect() after cache() are equal: without Connect all four; over Connect neither
# of the two that are SQL texts without a seed.
#
# Needs Linux, Java 17 and Python 3.11 or later, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'pyspark[connect]==4.3.0' pyarrow==26.0.1 pandas==2.3.3 numpy==2.3.5
cd "$folder"
cat >"$folder/job.py" <<'PYTHON'
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

builder = SparkSession.builder.config("spark.ui.enabled", "false")
how = sys.argv[1]
builder = builder.master("local[1]") if how == "classic" else builder.remote("local[1]")
spark = builder.getOrCreate()
rows = spark.range(5)
made = {
    "text": rows.selectExpr("rand() r"),
    "uuid": rows.selectExpr("uuid() r"),
    "function": rows.select(F.rand().alias("r")),
    "seed": rows.selectExpr("rand(7) r"),
}
found = {}
for name, df in made.items():
    df.cache()
    found[name] = df.collect() == df.collect(), df.storageLevel.useMemory
print(how, found)
kept = (True, True)
texts = kept if how == "classic" else (False, False)
assert found == {"text": texts, "uuid": texts, "function": kept, "seed": kept}
PYTHON
for how in classic connect; do
    "$folder/venv/bin/python" "$folder/job.py" $how 2>"$folder/log" || { tail -n 20 "$folder/log"; exit 1; }
done
