#!/usr/bin/env bash
# PySpark 4.3.0, toPandas() without Arrow refuses each geometry and geography.
#
# collect() gives it, and so does toPandas() with Arrow.
# Seen: [MALFORMED_GEOMETRY] and [MALFORMED_GEOGRAPHY].
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
for make, name in (("st_geomfromwkb", "GEOMETRY"), ("st_geogfromwkb", "GEOGRAPHY")):
    rows = spark.sql(f"SELECT {make}(X'0101000000000000000000F03F0000000000000040') AS g")
    assert len(bytes(rows.collect()[0].g.getBytes())) == 21
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    assert len(bytes(rows.toPandas().g[0].getBytes())) == 21
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "false")
    try:
        rows.toPandas()
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
        assert f"MALFORMED_{name}" in str(error)
    else:
        raise SystemExit(f"toPandas() without Arrow takes a {name}")
PYTHON
