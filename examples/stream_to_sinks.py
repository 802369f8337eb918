"""One stream, three sinks: a Spark query that writes two tables, and counts hot readings.

Run it:  python examples/stream_to_sinks.py [FOLDER]

This process makes the readings of some sensors. They go to Spark through a spool on disk, which
holds them back when the query is slower. Spark parses each micro-batch once, and passes it to all
sinks before the next one begins. Started again with the same folder, it continues where it was.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import flow_core as flow
from flow_spark import batch_writer, from_stream, session, stream_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READINGS = 60_000


@dataclass(frozen=True, slots=True)
class Reading:
    sensor: str
    celsius: float


def lines() -> Iterator[str]:
    """Yield the sensors' lines: always the same, so that a restart can skip those it has seen."""
    for number in range(READINGS):
        yield f"sensor-{number % 7},{number % 90 - 20}"


def parse(line: str) -> Reading:
    sensor, celsius = line.split(",")
    return Reading(sensor, float(celsius))


def run(spark: SparkSession, folder: Path) -> dict[str, int]:
    """Stream to the end; return the rows of each sink, and the number of hot readings."""
    hot: dict[int, int] = {}

    def hot_ones(df: DataFrame, batch_id: int) -> None:
        df.where("celsius > 40").write.mode("overwrite").parquet(
            str(folder / "hot" / f"batch_id={batch_id}")
        )

    def count(df: DataFrame, batch_id: int) -> None:
        hot[batch_id] = df.where("celsius > 40").count()  # a replay stores the same count again

    sent = stream_source(
        flow.from_iterable(lines()), spark, schema="line string", spool=folder / "spool"
    )
    readings = from_stream(sent, checkpoint=folder / "state", trigger="available-now").map(parse)
    batches = readings.spark.write_each(batch_writer("parquet", folder / "all"), hot_ones, count)
    for batch in batches:
        print(f"micro-batch {batch.batch_id}: {batch.items} readings")
    return {
        "all": spark.read.parquet(str(folder / "all")).count(),
        "hot": spark.read.parquet(str(folder / "hot")).count(),
        "counted": sum(hot.values()),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary, session("local[2]") as spark:
        print(run(spark, Path(sys.argv[1] if len(sys.argv) > 1 else temporary)))
