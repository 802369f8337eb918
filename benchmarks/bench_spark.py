"""Stages on Spark: absorption beside `mapInArrow` written by hand for the same functions.

The rows are those of the flights example, in a Parquet file. Every case reads them, parses, filters
and derives in Python workers, and gives one count. Times are wall times, since Spark's own
processes do the work.
"""

from __future__ import annotations

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
from pyspark.sql import DataFrame

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


def main() -> None:
    flights = flights_module()
    with tempfile.TemporaryDirectory() as folder, session("local[2]") as spark:
        path = Path(folder) / "rows.parquet"
        items = write_rows(flights, path)
        df = spark.read.parquet(str(path))
        compare(
            "flights: parse, filter, derive on Spark, local[2], wall time",
            Case("mapInArrow by hand", lambda: by_hand(df, flights)),
            Case("absorbed stages", lambda: by_absorption(df, flights), 1.15),
            Case("DataFrame.rdd", lambda: by_rdd(df, flights)),
            items=items,
            clock=time.perf_counter,
        )


if __name__ == "__main__":
    main()
