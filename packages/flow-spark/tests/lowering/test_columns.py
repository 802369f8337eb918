"""Stages that are said in columns stay in Spark's own engine."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pyspark.sql import Row
from pyspark.sql.functions import col

import flow_core as flow
from flow_spark import (
    SchemaMismatchError,
    UnsupportedTypeError,
    from_dataframe,
    from_stream,
    on_spark,
    select,
    to_dataframe,
    where,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


class Pair(NamedTuple):
    number: int
    text: str


class Half(NamedTuple):
    half: float


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    numbers = spark.range(20).withColumnRenamed("id", "number")
    return numbers.withColumn("text", col("number").cast("string")).withColumn(
        "third", col("number") % 3
    )


def plan_of(df: DataFrame) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        df.explain()
    return text.getvalue()


@pytest.mark.parametrize("condition", ["number > 17", "a column"])
def test_the_condition_of_where_keeps_the_rows_for_which_it_is_true(
    df: DataFrame, condition: str
) -> None:
    given = col("number") > 17 if condition == "a column" else condition

    found = from_dataframe(df, as_=Pair).pipe(where(given)).map(lambda pair: pair.text)

    assert sorted(found) == ["18", "19"]


def test_it_may_be_about_columns_that_items_do_not_have(df: DataFrame) -> None:
    found = from_dataframe(df, as_=Pair).pipe(where("third = 2")).pipe(where("number < 6"))

    assert sorted(found) == [(2, "2"), (5, "5")]
    assert {type(pair) for pair in found} == {Pair}


def test_it_is_a_filter_of_catalyst(df: DataFrame) -> None:
    kept = from_dataframe(df).pipe(where(col("number") > 17)).pipe(to_dataframe())

    plan = plan_of(kept)
    assert "Filter" in plan
    assert "Python" not in plan
    assert "MapInArrow" not in plan


def test_the_order_that_was_declared_stays(df: DataFrame) -> None:
    ordered = from_dataframe(df.sort("number"), as_=Pair, ordered=True)

    found = ordered.pipe(where("third = 0")).map(lambda pair: pair.number).pairwise()

    assert list(found.take(2)) == [(0, 3), (3, 6)]


def test_select_makes_other_columns(df: DataFrame) -> None:
    doubled = (col("number") * 2).alias("twice")

    found = from_dataframe(df).pipe(where("number < 3")).pipe(select(doubled, "text"))

    assert sorted(found) == [(0, "0"), (2, "1"), (4, "2")]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, None, 1),
        (Pair, None, 1),
        ("scalar", "scalar", 1),
        (tuple, None, (1,)),
        (dict, None, {"number": 1}),
        (Row, None, Row(number=1)),
        (dict, "scalar", 1),
    ],
)
def test_an_item_after_select_has_the_requested_type(
    df: DataFrame, before: Any, after: Any, expected: object
) -> None:
    given = df.select("number") if before == "scalar" else df
    found = from_dataframe(given, as_=before).pipe(select("number", as_=after))

    (item,) = found.pipe(where("number = 1"))
    assert item == expected
    assert type(item) is type(expected)


def test_select_as_a_class(df: DataFrame) -> None:
    half = (col("number") / 2).alias("half")

    (item,) = from_dataframe(df).pipe(where("number = 3")).pipe(select(half, as_=Half))

    assert item == Half(1.5)
    with pytest.raises(SchemaMismatchError, match="Half needs the columns half"):
        from_dataframe(df).pipe(select("number", as_=Half))


def test_behind_a_stage_there_are_no_columns(df: DataFrame) -> None:
    text = from_dataframe(df).map(str)

    with pytest.raises(UnsupportedTypeError) as caught:
        text.pipe(where("number > 3"))

    said = str(caught.value)
    assert "before the first stage in Python" in said
    assert "map(str), assembled at" in said
    assert "test_columns.py:" in said
    assert "filter()" in said
    with pytest.raises(UnsupportedTypeError, match=r"use map\(\)"):
        text.pipe(select("number"))


def test_items_of_this_process_have_no_columns(spark: SparkSession) -> None:
    for items in (flow.range(3), flow.range(3).pipe(on_spark(spark))):
        with pytest.raises(UnsupportedTypeError, match=r"has none: use filter\(\)"):
            items.pipe(where("id > 1"))


def test_a_function_of_an_item_is_refused_as_a_condition() -> None:
    with pytest.raises(TypeError, match=r"belongs into filter\(\)"):
        where(lambda item: item)  # type: ignore[arg-type]  # that is the test
    with pytest.raises(TypeError, match=r"belongs into map\(\)"):
        select("a", lambda item: item)  # type: ignore[call-overload]  # that is the test
    with pytest.raises(TypeError, match="not 3"):
        where(3)  # type: ignore[arg-type]  # that is the test
    with pytest.raises(ValueError, match="at least one column"):
        select()


def test_a_stream_has_columns_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("spam\neggs\nham\n")
    lines = spark.readStream.text(str(tmp_path))
    found = from_stream(lines, trigger="available-now").pipe(where("value != 'eggs'"))

    assert sorted(found.pipe(select("value", as_=tuple)).map(lambda row: row[0].upper())) == [
        "HAM",
        "SPAM",
    ]
