"""Stages on Spark: absorption beside `mapInArrow` written by hand for the same functions.

The rows are those of the flights example, in a Parquet file. Every case reads them, parses, filters
and derives in Python workers, and gives one count. Then rows that Spark itself makes, of one column
and of three, in batches of 10,000 and of 50,000: a map, a filter and a count. Times are wall times,
since Spark's own processes do the work.

    python benchmarks/bench_spark.py [--rows N] [--rounds N] [--without-flights]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf, col
from pyspark.sql.types import BooleanType, LongType

from flow_spark import from_dataframe, session
from rounds import Case, compare

REPEAT = 3
"""How often the 336,776 rows are in the file, so that Spark's fixed time per job counts less."""


def flights_module() -> ModuleType:
    path = Path(__file__).parent.parent / "examples" / "flights.py"
    spec = importlib.util.spec_from_file_location("flights", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flights"] = module
    spec.loader.exec_module(module)
    # Executors cannot import an example by its name.
    cloudpickle.register_pickle_by_value(module)
    return module


def write_rows(flights: ModuleType, path: Path) -> int:
    rows = list(flights.FlightRows(flights.data_file())) * REPEAT
    numbers, lines = zip(*rows, strict=True)
    table = pa.table({"number": pa.array(numbers, pa.int64()), "line": pa.array(lines)})
    pq.write_table(table, path, row_group_size=50_000)
    return len(rows)


def by_hand(df: DataFrame, flights: ModuleType) -> int:
    parse, departed, delay_of = flights.parse, flights.departed, flights.delay_of

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = 0
        for batch in batches:
            for row in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                flight = parse(row)
                if departed(flight) and delay_of(flight):
                    total += 1
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], ["n"])

    return sum(row[0] for row in df.mapInArrow(count, "n long").collect())


def by_absorption(df: DataFrame, flights: ModuleType) -> int:
    return flights.delays(from_dataframe(df, as_=tuple)).count().single()


def by_rdd(df: DataFrame, flights: ModuleType) -> int:
    parse, departed, delay_of = flights.parse, flights.departed, flights.delay_of
    return df.rdd.map(tuple).map(parse).filter(departed).map(delay_of).count()


def compare_flights(spark: SparkSession, rounds: int) -> None:
    flights = flights_module()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        items = write_rows(flights, path)
        df = spark.read.parquet(str(path))
        compare(
            "flights: parse, filter, derive on Spark, local[2], wall time",
            Case("mapInArrow by hand", lambda: by_hand(df, flights)),
            Case("absorbed stages", lambda: by_absorption(df, flights), 1.15),
            Case("DataFrame.rdd", lambda: by_rdd(df, flights)),
            items=items,
            rounds=rounds,
            clock=time.perf_counter,
        )


def grown(n: int) -> int:
    return n * 3 + 1


def kept(n: int) -> bool:
    return n % 2 == 0


def grown_row(row: tuple[int, float, str]) -> tuple[int, str]:
    return row[0] * 3 + 1, row[2]


def kept_row(row: tuple[int, str]) -> bool:
    return row[0] % 2 == 0


def one_by_hand(df: DataFrame) -> int:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = 0
        for batch in batches:
            for n in batch.column(0).to_pylist():
                if kept(grown(n)):
                    total += 1
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], ["n"])

    return sum(row[0] for row in df.mapInArrow(count, "n long").collect())


def three_by_hand(df: DataFrame) -> int:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = 0
        for batch in batches:
            for row in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                if kept_row(grown_row(row)):
                    total += 1
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], ["n"])

    return sum(row[0] for row in df.mapInArrow(count, "n long").collect())


@arrow_udf(LongType())
def grown_batch(numbers: pa.Array) -> pa.Array:
    return pa.array([grown(n) for n in numbers.to_pylist()], pa.int64())


@arrow_udf(BooleanType())
def kept_batch(numbers: pa.Array) -> pa.Array:
    return pa.array([kept(n) for n in numbers.to_pylist()], pa.bool_())


def by_udfs(df: DataFrame) -> int:
    columns = [grown_batch(df.columns[0]).alias("n"), *df.columns[2:]]
    return df.select(*columns).filter(kept_batch("n")).count()


def compare_shapes(spark: SparkSession, rows: int, rounds: int) -> None:
    one = spark.range(rows)
    three = one.select("id", (col("id") / 2).alias("half"), col("id").cast("string").alias("text"))
    for batch in (10_000, 50_000):
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch))
        compare(
            f"map, filter, count: 1 column, batches of {batch:,}, wall time",
            Case("mapInArrow by hand", lambda: one_by_hand(one)),
            Case(
                "absorbed stages",
                lambda: from_dataframe(one).map(grown).filter(kept).count().single(),
                1.05,
            ),
            Case("scalar Arrow UDFs", lambda: by_udfs(one)),
            Case(
                "DataFrame.rdd",
                lambda: one.rdd.map(lambda row: row[0]).map(grown).filter(kept).count(),
            ),
            items=rows,
            rounds=rounds,
            clock=time.perf_counter,
        )
        compare(
            f"map, filter, count: 3 columns, batches of {batch:,}, wall time",
            Case("mapInArrow by hand", lambda: three_by_hand(three)),
            Case(
                "absorbed stages",
                lambda: (
                    from_dataframe(three, as_=tuple)
                    .map(grown_row)
                    .filter(kept_row)
                    .count()
                    .single()
                ),
                1.05,
            ),
            Case("scalar Arrow UDFs", lambda: by_udfs(three)),
            Case(
                "DataFrame.rdd",
                lambda: three.rdd.map(tuple).map(grown_row).filter(kept_row).count(),
            ),
            items=rows,
            rounds=rounds,
            clock=time.perf_counter,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--without-flights", action="store_true")
    options = parser.parse_args()
    with session("local[2]") as spark:
        if not options.without_flights:
            compare_flights(spark, options.rounds)
        compare_shapes(spark, options.rows, options.rounds)


if __name__ == "__main__":
    main()
