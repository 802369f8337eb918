"""The output of ``flow explain`` for a flow on Spark: what runs where, and Spark's plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import flow_core as flow
from flow_cli.explain import explain
from flow_core.flow import Flow
from flow_spark import from_dataframe, on_spark, select, where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def told(made: Flow[object]) -> list[str]:
    """The lines about what runs where."""
    return [
        line.lstrip("├└│─ ").partition("  test_explained.py")[0]
        for line in explain(made).splitlines()
        if "absorbed" in line or "loop" in line
    ]


def test_partitions_have_their_part_and_this_process_combines(spark: SparkSession) -> None:
    made = from_dataframe(spark.range(10)).map(abs).count().map(str)

    assert told(made) == [
        "absorbed by one mapInArrow over from_dataframe(id): map | count",
        "loop 1, in this process, fed: reduce | map; requests everything at once",
    ]


def test_a_step_that_spark_itself_does_is_not_a_boundary(spark: SparkSession) -> None:
    from pyspark.sql.functions import col

    made = (
        from_dataframe(spark.range(10))
        .pipe(where("id > 3"))
        .pipe(select(col("id").alias("n")))
        .map(str)
    )

    assert "boundary" not in explain(made)
    assert told(made) == [
        "absorbed, which makes from_dataframe(id): where('id > 3')",
        "absorbed, which makes from_dataframe(n): select(Column<'id AS n'>)",
        "absorbed by one mapInArrow over from_dataframe(n): map",
    ]


def test_a_stage_that_needs_no_python_is_done_by_spark_itself(spark: SparkSession) -> None:
    rows = from_dataframe(spark.range(10))

    assert told(rows.take(2))[0] == "absorbed by Spark itself over from_dataframe(id): take"
    assert told(rows.count())[0] == "absorbed by Spark itself over from_dataframe(id): count"
    assert "MapInArrow" not in explain(rows.take(2), plan=True)
    assert "MapInArrow" in explain(rows.map(abs).take(2), plan=True)


def test_both_sides_of_a_shuffle_are_shown(spark: SparkSession) -> None:
    made = from_dataframe(spark.range(10)).map(abs).count_by_key(str).map(str)

    before, behind = told(made)
    assert before == "absorbed by one mapInArrow over from_dataframe(id): map | count_by_key"
    place, _, stages = behind.rpartition(": ")
    assert place.endswith("what a shuffle by key gives of from_dataframe(id)")
    assert stages == "reduce_by_key | map"


def test_the_physical_plan_comes_on_request(spark: SparkSession) -> None:
    made = from_dataframe(spark.range(10)).pipe(where("id > 3")).map(abs).count_by_key(str)

    assert "Physical Plan" not in explain(made)
    text = explain(made, plan=True)
    assert "Physical Plan" in text
    assert "Exchange hashpartitioning(bucket" in text
    assert "Sort [low" in text  # a retried task has to give the same items in the same order
    assert "Filter" in text


def test_nothing_runs_for_a_plan(spark: SparkSession) -> None:
    ran: list[int] = []
    made = flow.just(1, 2).map(ran.append).pipe(on_spark(spark)).map(str)

    assert "when the items are there" in explain(made, plan=True)
    assert ran == []
