"""The rows of a DataFrame in their order, whichever partition Spark begins with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flow_spark import from_dataframe, to_dataframe
from flow_spark.errors import SparkJobError
from flow_spark.jobs.ordering import in_partition_order, repeats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[tuple[int, int]]
"""The number of the partition, and what the row holds."""


def batches_of(rows: Rows, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        numbers, values = zip(*rows[start : start + size], strict=True)
        yield pa.record_batch(
            [pa.array(values), pa.array(numbers, pa.int32())], ["n", "__flow_partition"]
        )


def values(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column("n").to_pylist()]


@settings(deadline=None)
@given(st.lists(st.integers(0, 7), max_size=6), st.integers(0, 5), st.integers(1, 9))
def test_one_partition_that_came_before_its_turn_is_put_in_its_place(
    counts: list[int], first: int, size: int
) -> None:
    rows = [(number, n) for number, count in enumerate(counts) for n in range(count)]
    early = [row for row in rows if row[0] == first]
    given = early + [row for row in rows if row[0] != first]

    found = values(in_partition_order(batches_of(given, size)))

    assert found == [n for _, n in rows]


def test_batches_without_a_partition_number_come_as_they_are() -> None:
    batches = [pa.record_batch([pa.array([3, 1])], ["n"]), pa.record_batch([], [])]

    assert list(in_partition_order(batches)) == batches


def test_only_a_partition_that_may_be_early_waits() -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield from batches_of([(0, 1), (0, 2)], 1)
        raise OSError("more was read than was asked for")

    assert values(itertools.islice(in_partition_order(rows()), 2)) == [1, 2]


def test_more_disorder_is_an_error_that_names_the_way_out() -> None:
    rows = batches_of([(0, 1), (2, 2), (1, 3)], 2)

    with pytest.raises(SparkJobError, match=r"partition 1 after 2.*sortWithinPartitions"):
        list(in_partition_order(rows))


@pytest.fixture
def joined(spark: SparkSession) -> Iterator[DataFrame]:
    """Rows of which the last ones are cached, so that Spark likes to begin with them."""
    cached = spark.range(6, 12, 1, 2).persist()
    cached.count()
    yield spark.range(0, 6, 1, 2).union(cached)
    cached.unpersist()


@pytest.mark.spark
def test_rows_keep_their_order_where_spark_joins_partitions_in_another_one(
    joined: DataFrame,
) -> None:
    assert [row.id for row in joined.coalesce(1).collect()] != list(range(12))  # as it does alone

    ordered = from_dataframe(joined, ordered=True)

    assert list(ordered) == list(range(12))
    assert list(ordered.map(str)) == [str(n) for n in range(12)]
    assert list(ordered.pairwise().map(lambda pair: pair[1] - pair[0])) == [1] * 11
    negated = ordered.map(lambda n: -n).pipe(to_dataframe(schema="n long"))
    assert [row.n for row in negated.collect()] == [-n for n in range(12)]
    assert ordered.pipe(to_dataframe()) is joined


def read_twice(spark: SparkSession, shuffled: Callable[[DataFrame], DataFrame]) -> list[list[Any]]:
    """The rows that one task reads when they come in two orders, as blocks of a shuffle may."""
    low, high = spark.range(0, 500, 1, 1), spark.range(500, 1000, 1, 1)
    return [list(from_dataframe(shuffled(df))) for df in (low.union(high), high.union(low))]


@pytest.mark.spark
@pytest.mark.parametrize(
    "columns",
    [
        ["id"],
        ["id % 3 as n", "cast(id as string) as text"],
        ["map(id, array(id)) as numbers"],
        ["id", "map('k', map(id, id)) as deep"],
    ],
    ids=["number", "text", "map", "map-of-maps"],
)
def test_rows_behind_a_shuffle_come_in_one_order_however_its_blocks_arrive(
    spark: SparkSession, columns: list[str]
) -> None:
    first, second = read_twice(spark, lambda df: df.selectExpr(*columns).repartition(1))

    assert len(first) == 1000
    assert first == second


@pytest.mark.spark
def test_rows_that_are_sorted_behind_a_shuffle_come_in_the_order_of_the_user(
    spark: SparkSession,
) -> None:
    first, second = read_twice(
        spark, lambda df: df.repartition(1).sortWithinPartitions("id").filter("id % 2 = 0")
    )

    assert first == second == list(range(0, 1000, 2))


@pytest.mark.spark
def test_rows_of_a_plan_without_a_shuffle_are_left_as_they_come(spark: SparkSession) -> None:
    first, second = read_twice(spark, lambda df: df.coalesce(1))

    assert first == list(range(1000))
    assert second == [*range(500, 1000), *range(500)]


def many(sql: Any) -> list[Any]:
    """More columns than Spark shows of a plan."""
    return [sql.sum("id").alias(f"c{n}") for n in range(40)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda df, _: df, True),
        (lambda df, _: df.repartition(3).withColumn("n", df.id + 1).filter("n > 3"), True),
        (lambda df, _: df.groupBy("id").count(), True),
        (lambda df, _: df.sort("id").limit(5), True),
        (lambda df, _: df.sort("id").select("id").filter("id > 3").limit(5), True),
        (lambda df, _: df.limit(5), False),
        (lambda df, _: df.join(df.limit(5), "id"), False),
        (lambda df, _: df.sample(0.5), False),
        (lambda df, sql: df.withColumn("x", sql.rand()), False),
        (lambda df, sql: df.groupBy("id").agg(sql.first("id")), False),
        (lambda df, _: df.dropDuplicates(["even"]), False),
        (lambda df, sql: df.groupBy("even").agg(*many(sql), sql.max_by("id", "even")), False),
    ],
)
def test_rows_come_again_if_nothing_is_drawn_by_lot_or_taken_as_it_comes(
    spark: SparkSession, made: Any, expected: bool
) -> None:
    from pyspark.sql import functions as sql

    rows = spark.range(20).withColumn("even", sql.col("id") % 2)

    assert repeats(made(rows, sql)) is expected
