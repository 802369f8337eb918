#!/usr/bin/env bash
# PySpark 4.3.0: functions of a streaming query over Spark Connect find no modules of addArtifacts.
#
# A module that is sent with addArtifacts(pyfile=True) is found by mapInPandas of a batch, and of a
# batch within foreachBatch. The same mapInPandas in the query itself, and transformWithStateInPandas,
# fail to import it: their workers have the folder of all sessions as theirs, and the artifacts are in
# one below it, that is named after the session of the query.
# Seen: 7 for the batch and within foreachBatch; ModuleNotFoundError for both in the query, where
# SPARK_JOB_ARTIFACT_UUID is "default".
#
# Needs Linux, Java 17 and Python 3.11 or later, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'pyspark[connect]==4.3.0' pyarrow==26.0.1 pandas==2.3.3 numpy==2.3.5
cd "$folder"
export PYSPARK_PYTHON="$folder/venv/bin/python"
cat >"$folder/job.py" <<'PYTHON'
import json
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor

builder = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false")
spark = builder.getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "1")
spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
)
Path("sent").mkdir()
Path("sent/prices.py").write_text("PRICE = 7")
Path("in").mkdir()
Path("in/1.json").write_text(json.dumps({"key": "a"}))
spark.addArtifacts("sent/prices.py", pyfile=True)


def told():
    import os
    from pathlib import Path

    from pyspark import SparkFiles

    try:
        import prices

        found = str(prices.PRICE)
    except ModuleNotFoundError as error:
        found = type(error).__name__
    root = Path(SparkFiles.getRootDirectory())
    depths = sorted({len(path.relative_to(root).parts) for path in root.rglob("prices.py")})
    return json.dumps([found, os.environ["SPARK_JOB_ARTIFACT_UUID"] == "default", depths])


def mapped(frames):
    for frame in frames:
        yield pd.DataFrame({"told": [told() for _ in range(len(frame))]})


class Told(StatefulProcessor):
    def init(self, handle):
        self.handle = handle

    def handleInputRows(self, key, rows, timerValues):
        for _ in rows:
            pass
        yield pd.DataFrame({"told": [told()]})

    def close(self):
        pass


def seen(name, df):
    query = df.writeStream.format("memory").queryName(name)
    query = query.outputMode("append").option("checkpointLocation", f"state/{name}")
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    return json.loads(spark.table(name).collect()[0].told)


def within(df, number):
    df.mapInPandas(mapped, "told string").write.mode("append").json("within")


rows = spark.readStream.schema("key string").json("in")
query = rows.writeStream.foreachBatch(within).option("checkpointLocation", "state/within")
query.trigger(availableNow=True).start().awaitTermination()
found = {
    "batch": json.loads(spark.read.json("in").mapInPandas(mapped, "told string").collect()[0].told),
    "within foreachBatch": json.loads(spark.read.json("within").collect()[0].told),
    "query": seen("mapped", rows.mapInPandas(mapped, "told string")),
    "state": seen(
        "kept",
        rows.groupBy("key").transformWithStateInPandas(
            statefulProcessor=Told(),
            outputStructType="told string",
            outputMode="append",
            timeMode="none",
        ),
    ),
}
print(found)
assert found["batch"][:2] == found["within foreachBatch"][:2] == ["7", False], found
assert found["query"][:2] == found["state"][:2] == ["ModuleNotFoundError", True], found
assert 2 in found["query"][2], found
PYTHON
"$folder/venv/bin/python" "$folder/job.py" 2>"$folder/log" || { tail -n 20 "$folder/log"; exit 1; }
