"""Write the table of Spark's types by trying each of them.

    python docs/spark_types.py            write spark-types.md
    python docs/spark_types.py --check    fail if it is not what would be written

Each value is read, goes through a stage and is written back, and also comes from a streaming query;
all in a local session and in one of Spark Connect. If a result differs from what ``df.collect()``
returns, its cell says so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.ml.linalg import DenseVector, Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.types import Geography, Geometry, Row, StructType, VariantVal

import flow_spark
from flow_spark import UnsupportedTypeError, from_dataframe, from_stream
from flow_spark.items.schema import ItemSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAGE: Final = Path(__file__).with_name("spark-types.md")

EXPRESSIONS: Final = (
    "true",
    "1Y",
    "1S",
    "1",
    "1L",
    "1.5F",
    "1.5D",
    "1.50BD",
    "CAST(1 AS decimal(38, 18))",
    "'a'",
    "'a' COLLATE UTF8_LCASE",
    "CAST('a' AS char(3))",
    "CAST('a' AS varchar(3))",
    "X'00ff'",
    "DATE '2024-07-01'",
    "TIME '12:30:00.000001'",
    "TIMESTAMP '2024-07-01 12:00:00.000001'",
    "TIMESTAMP_NTZ '2024-07-01 12:00:00.000001'",
    "INTERVAL '1 02:03:04.000005' DAY TO SECOND",
    "INTERVAL '1-2' YEAR TO MONTH",
    "make_interval(1, 2, 3)",
    "NULL",
    "array(1, NULL)",
    "map('a', 1)",
    "map(named_struct('a', 1), array(2))",
    "named_struct('a', 1, 'b', 'c')",
    "named_struct('a', array(map('b', named_struct('c', TIMESTAMP '2024-07-01 12:00:00'))))",
    """parse_json('{"a": [1, null]}')""",
    "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')",
    "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040', 4326)",
    "st_geogfromwkb(X'0101000000000000000000F03F0000000000000040')",
)
CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.preserveCharVarcharTypeInfo": "true",
    "spark.sql.session.timeZone": "Europe/Berlin",
}
DONE: Final = "yes"

Cells = dict[str, str]
# Any: values of any type.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--try", dest="tried", choices=["local", "connect"])
    arguments = parser.parse_args()
    if arguments.tried is not None:
        print(json.dumps(list(tried(arguments.tried))))
        return
    here, there = (_run(mode) for mode in ("local", "connect"))
    text = page(here, there)
    if not arguments.check:
        PAGE.write_text(text, "utf-8")
    elif text != PAGE.read_text("utf-8"):
        sys.exit(f"{PAGE.name} is out of date: python docs/spark_types.py writes it")


def _run(mode: str) -> list[Cells]:
    command = [sys.executable, __file__, "--try", mode]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: list[Cells] = json.loads(done.stdout.splitlines()[-1])
    return found


def tried(mode: str) -> Iterator[Cells]:
    """Yield the results of each type in a session of a mode."""
    session: AbstractContextManager[SparkSession]
    if mode == "local":
        session = flow_spark.session("local[1]", conf=CONF, fast_start=True)
    else:  # with its own server, which ends with it
        session = nullcontext(SparkSession.builder.remote("local[1]").getOrCreate())
    with session as spark:
        for name, value in CONF.items():
            if name.startswith("spark.sql."):
                spark.conf.set(name, value)
        frames = [spark.sql(f"SELECT {expression} AS c") for expression in EXPRESSIONS]
        vectors = StructType().add("c", VectorUDT())
        frames.append(spark.createDataFrame([(Vectors.dense(1.0, 2.0),)], vectors))
        for df in frames:
            print(df.schema.simpleString(), file=sys.stderr)
            yield cells(spark, df)


def cells(spark: SparkSession, df: DataFrame) -> Cells:
    """Return the results for the only column of `df`."""
    kind = df.schema["c"].dataType
    is_vector = isinstance(kind, VectorUDT)
    found = {"Spark": type(kind).__name__ if is_vector else kind.simpleString()}
    try:
        source = from_dataframe(df, as_=tuple)
    except UnsupportedTypeError as error:
        return {**found, "refused": str(error).rpartition(" as ")[2].removesuffix(" does")}
    field = ItemSchema.of(df.schema).arrow.field("c")
    found["Arrow"] = str(field.type).replace(" not null", "")
    [(collected,)] = df.collect()
    [(item,)] = source
    found["Python"] = named(item)
    found["read"] = _tell(lambda: same(item, collected))
    found["stage"] = _tell(lambda: same(next(iter(source.map(_itself)))[0], collected))
    found["write"] = _tell(lambda: _written(source, df, collected))
    found["stream"] = _tell(lambda: same(_streamed(spark, df), collected))
    return found


def _tell(attempt: Callable[[], bool]) -> str:
    try:
        return DONE if attempt() else "another value"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"


def _itself(row: Any) -> Any:
    return row


def _written(source: Any, df: DataFrame, collected: Any) -> bool:
    here = source.to_dataframe(schema=df.schema)
    there = source.map(_itself).to_dataframe(schema=df.schema)
    return all(
        made.schema == ItemSchema.of(df.schema).spark() and same(made.collect()[0][0], collected)
        for made in (here, there)
    )


def _streamed(spark: SparkSession, df: DataFrame) -> Any:
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    rows = rate.crossJoin(df).select("c", "value")
    with tempfile.TemporaryDirectory() as folder:
        [(value, _)] = from_stream(rows, as_=tuple, checkpoint=folder).take(1)
    return value


def same(item: Any, collected: Any) -> bool:
    """Return whether an item equals that of ``collect()``, apart from the page's differences."""
    return bool(plain(item) == plain(collected))


def plain(value: Any) -> Any:
    """Return the comparable form of a value."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC)
    if isinstance(value, VariantVal):
        return value.toJson()
    if isinstance(value, (Geometry, Geography)):
        return type(value), bytes(value.getBytes()), value.getSrid()
    if isinstance(value, Row):
        return plain(value.asDict())
    if isinstance(value, dict):
        return [(plain(key), plain(part)) for key, part in value.items()]
    if isinstance(value, list):
        return [plain(part) for part in value]
    return bytes(value) if isinstance(value, bytearray) else value


def named(value: Any) -> str:
    """Return the description of a value in Python's terms."""
    if isinstance(value, datetime.datetime):
        return "datetime, " + ("naive" if value.tzinfo is None else "aware")
    if isinstance(value, Row):
        return "Row"
    if isinstance(value, dict):
        if len(value) > 1:
            return "dict"
        key, part = next(iter(value.items()))
        return f"dict[{named(key)}, {named(part)}]"
    if isinstance(value, list):
        return f"list[{named(value[0])}]"
    if isinstance(value, DenseVector):
        return "DenseVector or SparseVector"
    return type(value).__name__ if value is not None else "None"


COLUMNS: Final = ("Spark", "Arrow", "Python", "read", "stage", "write", "stream")


def page(here: list[Cells], there: list[Cells]) -> str:
    """Return the page with the results of both modes."""
    lines = [f"| {' | '.join(COLUMNS)} | Connect |", "|---" * (len(COLUMNS) + 1) + "|"]
    refused: list[str] = []
    for one, other in zip(here, there, strict=True):
        if "refused" in one:
            refused.append(f"* `{one['Spark']}`: `{one['refused']}`")
            if "refused" not in other:
                raise AssertionError(f"Connect takes {one['Spark']}")
            continue
        differing = [f"{key}: {other[key]}" for key in COLUMNS if other[key] != one[key]]
        told = [f"`{one[key]}`" for key in COLUMNS[:3]] + [one[key] for key in COLUMNS[3:]]
        lines.append("| " + " | ".join([*told, "; ".join(differing) or DONE]) + " |")
    text = PAGE.read_text("utf-8")
    for name, found in (("table", lines), ("refused", refused)):
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->\n")
        text = "".join([before, mark, *(f"{line}\n" for line in found), end, after])
    return text


if __name__ == "__main__":
    main()
