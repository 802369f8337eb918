"""The stages that are translated instead of emulated, on every mode of Spark."""

from __future__ import annotations

import operator

import pytest
from pyspark.sql.functions import col

import flow_core as flow
from flow_cli.explain import explain
from flow_core.flow import Flow
from flow_spark import from_dataframe, on_spark, select, to_dataframe, union, where

from ..infrastructure.places import Place

# The first test of a mode waits for its servers and its session.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def placed(place: Place, count: int, partitions: int = 3) -> Flow[int]:
    return flow.range(count).pipe(on_spark(place.spark, partitions=partitions))


def test_items_of_a_key_meet(place: Place) -> None:
    """Texts have another hash in each process of Python."""
    digits = placed(place, 1000).map(str)

    found = digits.reduce_by_key(lambda text: text[-1], operator.add, int)

    assert sorted(found) == [(str(n), sum(range(n, 1000, 10))) for n in range(10)]


def test_items_of_a_key_meet_and_stay(place: Place) -> None:
    words = placed(place, 100).map(lambda n: str(n % 7)).distinct().map(lambda word: word + "!")

    df = words.pipe(to_dataframe(schema="word string"))

    assert sorted(row.word for row in df.collect()) == [f"{n}!" for n in range(7)]


def test_flows_are_united(place: Place) -> None:
    united = union(
        placed(place, 3, 1).map(lambda n: -n),
        placed(place, 4, 1).filter(bool),
        from_dataframe(place.spark.range(2)),
        placed(place, 9).count(),
    )

    assert sorted(united) == [-2, -1, 0, 0, 1, 1, 2, 3, 9]
    df = united.map(lambda n: n * 2).pipe(to_dataframe(schema="n int"))
    assert df.where("n > 4").count() == 2


def test_columns_stay_columns(place: Place) -> None:
    rows = from_dataframe(place.spark.range(10)).pipe(where(col("id") > 6))

    assert sorted(rows.pipe(select((col("id") * 2).alias("twice"))).map(str)) == ["14", "16", "18"]


def test_the_plan_is_shown(place: Place) -> None:
    text = explain(from_dataframe(place.spark.range(10)).map(abs).count_by_key(str), plan=True)

    assert "MapInArrow" in text
    assert "hashpartitioning(bucket" in text
