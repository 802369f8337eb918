#!/usr/bin/env bash
# PySpark 4.3.0: mapInArrow() and mapInPandas() refuse columns whose names differ in case only.
#
# A DataFrame may have the columns n and N: collect() and toArrow() give both, since nobody asks for
# one of them by its name. mapInArrow() does ask: it looks each column up, as df[name], before it
# hands all of them over, and without spark.sql.caseSensitive the name fits two. Over Connect as well.
# Seen: both functions raise AnalysisException, AMBIGUOUS_REFERENCE; after toDF("_0", "_1"), which
# renames by position, both work.
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

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

builder = SparkSession.builder.config("spark.ui.enabled", "false")
how = sys.argv[1]
builder = builder.master("local[1]") if how == "classic" else builder.remote("local[1]")
spark = builder.getOrCreate()
rows = spark.range(2).selectExpr("id as n", "id * 10 as N")
expected = [(0, 0), (1, 10)]


def values(df):
    return sorted(tuple(row) for row in df.collect())


assert values(rows) == expected
assert rows.toArrow().to_pydict() == {"n": [0, 1], "N": [0, 10]}
for name in ("mapInArrow", "mapInPandas"):
    try:
        values(getattr(rows, name)(lambda parts: parts, "n long, N long"))
    except AnalysisException as error:
        assert "AMBIGUOUS_REFERENCE" in str(error), error
    else:
        raise AssertionError(f"{name} has accepted them")
    renamed = getattr(rows.toDF("_0", "_1"), name)
    assert values(renamed(lambda parts: parts, "_0 long, _1 long")) == expected
print(how, "both functions refuse the names, and work once they are renamed by position")
PYTHON
for how in classic connect; do
    "$folder/venv/bin/python" "$folder/job.py" $how 2>"$folder/log" || { tail -n 20 "$folder/log"; exit 1; }
done
