"""Several flows on Spark as one."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_core.structure import source_of
from flow_spark import (
    OrderedOperatorError,
    UnsupportedTypeError,
    from_dataframe,
    from_stream,
    on_spark,
    to_dataframe,
    union,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


class Numbered(NamedTuple):
    id: int


def placed(spark: SparkSession, count: int, partitions: int = 2) -> Flow[int]:
    return flow.range(count).pipe(on_spark(spark, partitions=partitions))


def plan_of(df: DataFrame) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        df.explain()
    return text.getvalue()


def test_it_gives_the_items_of_all(spark: SparkSession) -> None:
    united = union(placed(spark, 3), placed(spark, 4, 1), placed(spark, 2))

    assert sorted(united) == [0, 0, 0, 1, 1, 1, 2, 2, 3]


def test_each_flow_has_its_stages_and_those_behind_count_for_all(spark: SparkSession) -> None:
    united = union(
        placed(spark, 3).map(lambda n: -n),
        placed(spark, 4).filter(bool).flat_map_iterable(lambda n: [n, n]),
        from_dataframe(spark.range(2), as_=tuple).map(lambda row: row[0] * 100),
    )

    found = sorted(united.map(lambda n: n + 1))
    assert found == [-1, 0, 1, 1, 2, 2, 3, 3, 4, 4, 101]
    assert united.count().single() == 11
    assert sorted(united.distinct()) == [-2, -1, 0, 1, 2, 3, 100]


def test_partitions_that_spark_reads_in_one_task_are_distinguished(spark: SparkSession) -> None:
    """Of DataFrames with one partition each, Spark's union makes one task."""
    united = union(*(placed(spark, 50, 1).map(str) for _ in range(3)))

    assert sorted(united) == sorted([*map(str, range(50))] * 3)


def test_stages_that_go_over_all_items_of_one_flow_do_so(spark: SparkSession) -> None:
    united = union(
        placed(spark, 9).count(),
        placed(spark, 9, 1).skip(7),
        placed(spark, 9).map(lambda n: n % 2).distinct(),
        placed(spark, 9).sort().take(1),
        placed(spark, 9).filter(lambda n: n > 100).count(),
    )

    assert sorted(united) == [0, 0, 0, 1, 7, 8, 9]


def test_items_of_this_process_are_sent(spark: SparkSession) -> None:
    words = flow.just("spam", "eggs").pipe(on_spark(spark))

    assert sorted(union(words, words.map(str.upper))) == ["EGGS", "SPAM", "eggs", "spam"]


def test_a_union_may_be_united(spark: SparkSession) -> None:
    inner = union(placed(spark, 2), placed(spark, 2).map(lambda n: -n))

    united = union(inner, inner.map(lambda n: n * 10), placed(spark, 1))

    assert sorted(united) == [-10, -1, 0, 0, 0, 0, 0, 1, 10]


def test_items_are_what_each_flow_says(spark: SparkSession) -> None:
    frame = spark.range(1)

    mixed = union(from_dataframe(frame, as_=dict), from_dataframe(frame, as_=Numbered))
    same = union(from_dataframe(frame, as_=dict), from_dataframe(frame, as_=dict))

    assert sorted(mixed, key=repr) == [Numbered(0), {"id": 0}]
    assert [type(item) for item in same] == [dict, dict]


def test_dataframes_that_are_read_alike_are_united_by_catalyst(spark: SparkSession) -> None:
    df = union(from_dataframe(spark.range(3)), from_dataframe(spark.range(4))).pipe(to_dataframe())

    assert "Union" in plan_of(df)
    assert "MapInArrow" not in plan_of(df)
    assert df.count() == 7


def test_results_of_stages_are_united_on_the_cluster(spark: SparkSession) -> None:
    united = union(placed(spark, 3).map(str), placed(spark, 2).map(str))

    df = united.map(lambda text: text + "!").pipe(to_dataframe(schema="text string"))

    assert plan_of(df).count("MapInArrow") == 2
    assert sorted(row[0] for row in df.collect()) == ["0!", "0!", "1!", "1!", "2!"]


def test_by_key_over_all(spark: SparkSession) -> None:
    united = union(placed(spark, 30), placed(spark, 40))

    assert sorted(united.count_by_key(lambda n: n % 3)) == [(0, 24), (1, 23), (2, 23)]


def test_cancelled_in_between(spark: SparkSession) -> None:
    united = union(placed(spark, 10**9), placed(spark, 10**9).map(lambda n: -n))

    assert len(list(united.take(5))) == 5


def test_it_has_no_order(spark: SparkSession) -> None:
    with pytest.raises(OrderedOperatorError, match=r"sort\(\)"):
        list(union(placed(spark, 3, 1), placed(spark, 3, 1)).pairwise())


def test_flows_that_cannot_be_united_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    here: Any = flow.range(3)
    with pytest.raises(TypeError, match="on_spark"):
        union(placed(spark, 3), here)
    with pytest.raises(TypeError, match="at least one"):
        union()
    with pytest.raises(UnsupportedTypeError, match="behind union"):
        union(placed(spark, 3).do_on_next(print))
    with pytest.raises(UnsupportedTypeError, match=r"from_stream\(df.union"):
        union(from_stream(spark.readStream.text(str(tmp_path))))


def test_flows_that_are_merged_say_whether_they_can_be_united(spark: SparkSession) -> None:
    """The requests of ``merge`` of flow-ops to the first source."""
    there, here = placed(spark, 3), flow.range(3)
    source: Any = source_of(there)

    united = source.united((there, there.map(lambda n: -n)))

    assert sorted(united) == [-2, -1, 0, 0, 1, 2]
    assert source.united((there, here)) is None
    assert source.united((there, there.do_on_next(print))) is None
