"""Whatever schema rows have, items and tables hold what ``collect()`` gives, and go back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from flow_spark import from_dataframe
from flow_spark.items.objects import marked
from flow_spark.items.rows import RowReader

from .infrastructure.any_schema import AT_ONCE, SCHEMAS, ZONES, normal, schemas_with_rows

ZONE = "spark.sql.session.timeZone"
LAX = settings(
    max_examples=max(1, SCHEMAS * 2 // AT_ONCE),
    deadline=None,
    database=None,
    phases=[Phase.generate],  # a smaller case takes as long again, and the message names the type
    suppress_health_check=list(HealthCheck),
)


def itself(row: Any) -> Any:
    return row


def check(spark: SparkSession, schema: StructType, rows: list[tuple[Any, ...]]) -> None:
    """Read and written, in tasks and here, they stay what they are.

    Raises:
        AssertionError: for the first column that does not; it says which.
    """
    try:
        check_all(spark, schema, rows)
    except Exception:
        for index, field in enumerate(schema):
            one = StructType([field, StructField("n", LongType())])
            try:
                check_all(spark, one, [(row[index], 1) for row in rows])
            except Exception as error:
                values = [row[index] for row in rows]
                raise AssertionError(f"{one!r}: {values!r}") from error
        raise


def check_all(spark: SparkSession, schema: StructType, rows: list[tuple[Any, ...]]) -> None:
    """As `check`, but with whatever error there is."""
    frame = spark.createDataFrame(rows, schema)
    want = [normal(row, schema) for row in rows]

    def same(found: Any, what: str) -> None:
        for row, wanted in zip(found, want, strict=True):
            for (_, got), (name, right) in zip(normal(row, schema), wanted, strict=True):
                assert got == right, f"{what}: {schema[name].dataType.simpleString()}"

    same(frame.collect(), "collect()")
    table = from_dataframe(frame, ordered=True).to_arrow()
    reader = RowReader(marked(table.schema, schema))
    same([row for batch in table.to_batches() for row in reader(batch)], "table")
    for what, items in (
        ("read", from_dataframe(frame, ordered=True)),
        ("stage", from_dataframe(frame, ordered=True).map(itself)),
    ):
        same(items, what)
        made = items.to_dataframe(schema=schema)
        assert made.schema == schema
        same(made.collect(), f"{what} and written")


@pytest.mark.spark
@pytest.mark.timeout(3000)
@pytest.mark.filterwarnings("ignore:all .* columns are read:RuntimeWarning")  # a wide schema
@given(schemas_with_rows(), st.sampled_from(ZONES))
@LAX
def test_rows_of_any_schema_come_and_go_as_they_are(
    spark: SparkSession, drawn: tuple[StructType, list[tuple[Any, ...]]], zone: str
) -> None:
    schema, rows = drawn
    in_zone(spark, zone, schema, rows)


def in_zone(
    spark: SparkSession, zone: str, schema: StructType, rows: list[tuple[Any, ...]]
) -> None:
    """`check` in a session of a time zone."""
    given = {ZONE: zone, "spark.sql.timeType.enabled": "true"}
    before = {name: spark.conf.get(name) for name in given}
    try:
        for name, value in given.items():
            spark.conf.set(name, value)
        check(spark, schema, rows)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value or "")
