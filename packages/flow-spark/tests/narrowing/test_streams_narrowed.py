"""The micro-batches of a stream are narrowed; its query stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from flow_cli.explain import explain
from flow_spark import MicroBatch, for_each_batch, from_stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.essential]


class Row(NamedTuple):
    number: int
    text: str
    half: float


def stream(spark: SparkSession, folder: Path, start: int, stop: int) -> DataFrame:
    """Return a stream of the files in a folder, after one was added."""
    rows = spark.range(start, stop).selectExpr(
        "id as number", "if(id % 2 = 0, null, 'odd') as text", "id / 2 as half"
    )
    rows.coalesce(1).write.mode("append").parquet(str(folder / "rows"))
    return spark.readStream.schema(rows.schema).parquet(str(folder / "rows"))


def test_columns_and_rows_that_no_stage_needs_do_not_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = stream(spark, tmp_path, 0, 20)
    rows = from_stream(df, as_=Row, trigger="available-now")
    # A null in the text is an error where the text is read.
    made = rows.filter(lambda t: t.number > 15).map(lambda t: t.half)
    assert sorted(made) == [8.0, 8.5, 9.0, 9.5]
    text = str(explain(made))
    assert "(number, half: 2 of 3 columns, where `number` > 15 OR `number` IS NULL)" in text
    wide = from_stream(df, as_=Row, trigger="available-now", narrow=False)
    with pytest.raises(Exception, match=r"Row\.text is str"):
        list(wide.filter(lambda t: t.number > 15).map(lambda t: t.half))


def test_a_checkpoint_holds_for_functions_that_read_other_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    def counted(column: int, start: int, stop: int) -> list[int]:
        df = stream(spark, tmp_path, start, stop).groupBy("number").count()
        rows = from_stream(
            df, checkpoint=tmp_path / "at", trigger="available-now", output_mode="update"
        )
        return sorted(rows.map((lambda t: t[0]) if column == 0 else (lambda t: t[1])))

    assert counted(0, 0, 10) == list(range(10))
    assert counted(1, 5, 12) == [1, 1, 2, 2, 2, 2, 2]


def test_micro_batches_as_a_whole_have_the_needed_rows(spark: SparkSession, tmp_path: Path) -> None:
    rows = from_stream(stream(spark, tmp_path, 0, 20), trigger="available-now")
    seen: list[int] = []
    made = rows.filter(lambda t: t[0] < 3).map(lambda t: t[0])
    assert list(made.pipe(for_each_batch(lambda _, items: seen.extend(items)))) == [
        MicroBatch(0, 3)
    ]
    assert sorted(seen) == [0, 1, 2]
