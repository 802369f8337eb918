#!/usr/bin/env bash
# PySpark 4.3.0 declares pyarrow>=18.0.0. createDataFrame(table) needs pyarrow 20 as soon as a column
# is a struct with a field that is never null and one that is a list.
#
# PySpark makes such structs anew, without "never null", and casts them to the schema of the table:
# pyarrow 18 and 19 refuse that cast also when nothing is null, pyarrow 20 looks at the values.
# Seen on a classic session and on Spark Connect, with pyarrow 18.0.0 and 19.0.1: "ArrowTypeError:
# cannot cast nullable field to non-nullable field"; with pyarrow 20.0.0: "3 rows".
#
# Needs Linux, Java 17 and Python 3.11 to 3.13, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'pyspark[connect]==4.3.0' pyarrow==18.0.0 pandas==2.3.3 numpy==2.3.5
cd "$folder"
export PYSPARK_PYTHON="$folder/venv/bin/python"
cat > try.py <<'PYTHON'
import sys

import pyarrow
from pyspark.sql import SparkSession

size = pyarrow.field("size", pyarrow.int64(), nullable=False)
vector = pyarrow.struct([size, ("values", pyarrow.list_(pyarrow.float64()))])
rows = [{"vector": {"size": size, "values": [0.5] * size}} for size in (1, 2, 3)]
table = pyarrow.Table.from_pylist(rows, schema=pyarrow.schema([("vector", vector)]))
builder = SparkSession.builder.config("spark.ui.enabled", "false")
way = sys.argv[1]
spark = (builder.master("local[1]") if way == "classic" else builder.remote("local[1]")).getOrCreate()
try:
    print(way, len(spark.createDataFrame(table).collect()), "rows")
except pyarrow.ArrowTypeError as refused:
    print(way, "ArrowTypeError:", str(refused).partition(":")[0])
finally:
    spark.stop()
PYTHON
wanted="ArrowTypeError: cannot cast nullable field to non-nullable field"
for version in 18.0.0 19.0.1 20.0.0; do
    "$folder/venv/bin/pip" install --quiet "pyarrow==$version"
    [ "$version" = 20.0.0 ] && wanted="3 rows"
    for way in classic Connect; do
        found=$("$folder/venv/bin/python" try.py "$way" 2>"$folder/log") || { tail -n 20 "$folder/log"; exit 1; }
        echo "pyarrow $version: $found"
        [ "$found" = "$way $wanted" ] || { echo "expected: $way $wanted"; exit 1; }
    done
done
