"""Measures small jobs on Spark: by its own functions, and by Flow.

* little: 1,000 rows, counted by key or iterated; ten jobs in a round, as one takes some 100 ms.
* parts: few rows in each of 200 partitions.

    python benchmarks/bench_spark_small.py [little|parts ...] [--rounds N]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from bench_spark import Way, compare
from flow_spark import from_dataframe, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMES = 10


def often(work: Callable[[], object]) -> Callable[[], object]:
    return lambda: [work() for _ in range(TIMES)]


def compare_little(spark: SparkSession, rounds: int) -> None:
    df = spark.range(0, 1000, 1, 2)

    def counted_by_spark() -> int:
        return sum(row["count"] for row in df.groupBy(df.id % 10).count().collect())

    def counted() -> int:
        return sum(count for _, count in from_dataframe(df).count_by_key(lambda n: n % 10))

    def reduced() -> int:
        pairs = from_dataframe(df).reduce_by_key(
            lambda n: n % 10, lambda one, other: one + other, lambda _: 1
        )
        return sum(count for _, count in pairs)

    def collected() -> int:
        return sum(row[0] for row in df.collect())

    def iterated() -> int:
        return sum(from_dataframe(df))

    groups: dict[str, Sequence[Way]] = {
        "counted by key": (
            Way("groupBy().count()", often(counted_by_spark)),
            Way("count_by_key", often(counted), 1.5),
            Way("reduce_by_key", often(reduced), 1.5),
        ),
        "iterated": (
            Way("DataFrame.collect()", often(collected)),
            Way("from_dataframe", often(iterated), 1.5),
        ),
    }
    compare("jobs of 1,000 rows, on local[2]", groups, items=TIMES, rounds=rounds)


def mapped_by_hand(df: DataFrame) -> int:
    def counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(1 for batch in batches for _ in batch.column(0).to_pylist())
        yield pa.record_batch({"n": [rows]})

    return sum(row[0] for row in df.mapInArrow(counts, "n long").collect())


def compare_parts(spark: SparkSession, rounds: int) -> None:
    df = spark.range(0, 20_000, 1, 200)
    groups: dict[str, Sequence[Way]] = {
        "100 rows each": (
            Way("mapInArrow, by hand", lambda: mapped_by_hand(df)),
            Way("from_dataframe, iterated", lambda: sum(1 for _ in from_dataframe(df)), 1.15),
        )
    }
    compare("200 partitions of few rows, on local[2]", groups, items=200, rounds=rounds)


GROUPS = {"little": compare_little, "parts": compare_parts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("groups", nargs="*", help=f"all if none is given: {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with session("local[2]") as spark:
        for name in options.groups or GROUPS:
            GROUPS[name](spark, options.rounds)


if __name__ == "__main__":
    main()
