"""The owner of a checkpoint: a flow continues its own, in any process, and not another's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_spark import (
    CheckpointConflictError,
    for_each_batch,
    from_stream,
    select,
    stream_source,
    where,
)
from flow_spark.jobs.reads import described, reads

from ..infrastructure.drop import Drop
from ..infrastructure.versions import WITH_LIMITS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 120.0


class TestWhatIsRead:
    def test_options_that_may_change_between_two_runs_do_not_count(self) -> None:
        assert described("json", {"path": "in", "maxFilesPerTrigger": "1"}) == "json path=in"
        assert described("rate", {"rowsPerSecond": "5"}) == "rate"

    def test_a_topic_is_known_by_its_name_and_not_by_how_it_is_reached(self) -> None:
        given = {
            "subscribe": "trips",
            "startingOffsets": "earliest",
            "kafka.bootstrap.servers": "here:9092",
            "kafka.sasl.jaas.config": "hush",
        }
        assert described("Kafka", given) == "kafka subscribe=trips"

    def test_of_a_format_that_is_not_known_everything_counts_but_secrets(self) -> None:
        given = {"Feed": "a", "apiKey": "hush", "url": "db://me:hush@there/x", "password": "hush"}
        assert described("mine", given) == "mine feed=a url=db://there/x"

    @WITH_LIMITS
    @pytest.mark.spark
    def test_it_is_found_below_whatever_is_done_with_the_rows(
        self, spark: SparkSession, drop: Drop, tmp_path: Path
    ) -> None:
        files = drop.stream(spark)
        rates = spark.readStream.format("rate").load().selectExpr("value AS n")
        spooled = stream_source(flow.range(1), spark, schema="n long", spool=tmp_path / "spool")
        known = spark.range(3).withColumnRenamed("id", "n")
        rows = files.union(rates).union(files).union(spooled).where("n > 0").join(known, "n")

        assert reads(rows) == [
            f"json path={drop.folder}",
            "rate",
            f"flow-spool spool={tmp_path / 'spool'}",
        ]


def mark_of(state: Path) -> dict[str, Any]:
    (written,) = (state / "flow").glob("part-*")
    found: dict[str, Any] = json.loads(written.read_text())
    return found


@pytest.mark.spark
class TestWithoutAName:
    def test_a_flow_with_other_stages_is_refused(
        self, spark: SparkSession, drop: Drop, tmp_path: Path
    ) -> None:
        drop.put([1])
        stream, state = drop.stream(spark), tmp_path / "state"
        rows = from_stream(stream, checkpoint=state, trigger="available-now")
        list(rows.map(str).filter(bool))

        with pytest.raises(
            CheckpointConflictError,
            match=r"(?s)its stages are 'map \| filter', not 'map'.*its own.*begin again.*name=",
        ):
            list(rows.map(str))
        with pytest.raises(
            CheckpointConflictError, match=r"not 'where \| select \| map \| filter'"
        ):
            list(rows.pipe(where("n > 0")).pipe(select("n")).map(str).filter(bool))
        with pytest.raises(CheckpointConflictError, match=r"not 'map \| filter \| for_each_batch'"):
            list(rows.map(str).filter(bool).pipe(for_each_batch(lambda _, items: None)))
        drop.put([2])
        assert list(rows.map(str).filter(bool)) == ["2"]  # nobody else has taken it

    def test_a_flow_that_reads_something_else_is_refused(
        self, spark: SparkSession, drop: Drop, tmp_path: Path
    ) -> None:
        other = tmp_path / "other"
        other.mkdir()
        there = Drop(other)
        drop.put([1])
        there.put([2])
        settings: dict[str, Any] = {"checkpoint": tmp_path / "state", "trigger": "available-now"}
        list(from_stream(drop.stream(spark), **settings))

        with pytest.raises(CheckpointConflictError, match=rf"it reads '.*', not '.*{other}'"):
            list(from_stream(there.stream(spark), **settings))

    def test_another_process_continues_though_a_function_was_edited(
        self, spark: SparkSession, drop: Drop, tmp_path: Path
    ) -> None:
        drop.put([1])
        state = tmp_path / "state"
        rows = from_stream(drop.stream(spark), checkpoint=state, trigger="available-now")
        list(rows.map(lambda n: n * 10).filter(bool))
        before = mark_of(state)
        drop.put([2])

        ran = subprocess.run(
            [sys.executable, "-c", AGAIN, str(drop.folder), str(state)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

        assert ran.stdout == "[200]\n", ran.stderr
        assert mark_of(state) == before

    def test_a_mark_of_a_name_and_columns_only_is_completed(
        self, spark: SparkSession, drop: Drop, tmp_path: Path
    ) -> None:
        drop.put([1])
        state = tmp_path / "state"
        (state / "flow").mkdir(parents=True)
        old = {"name": None, "columns": "struct<n:bigint>"}
        (state / "flow" / "part-0").write_text(json.dumps(old))

        settings: dict[str, Any] = {"checkpoint": state, "trigger": "available-now"}

        with pytest.raises(CheckpointConflictError, match="its name is None, not 'mine'"):
            list(from_stream(drop.stream(spark), name="mine", **settings))
        assert list(from_stream(drop.stream(spark), **settings).map(str)) == ["1"]

        assert mark_of(state) == {**old, "stages": ["map"], "reads": [f"json path={drop.folder}"]}


AGAIN = """
import sys
from flow_spark import from_stream, session
folder, state = sys.argv[1:]
with session("local[1]", fast_start=True) as spark:
    stream = spark.readStream.schema("n long").json(folder)
    rows = from_stream(stream, checkpoint=state, trigger="available-now")
    print(list(rows.map(lambda number: 100 * number).filter(lambda number: number > 0)))
"""


@pytest.mark.spark
class TestWithAName:
    def test_it_is_trusted_with_other_stages(
        self, spark: SparkSession, drop: Drop, tmp_path: Path
    ) -> None:
        drop.put([1])
        rows = from_stream(
            drop.stream(spark), checkpoint=tmp_path / "s", trigger="available-now", name="mine"
        )
        first = list(rows)
        drop.put([2])

        assert (first, list(rows.map(str))) == ([1], ["2"])

    def test_a_flow_gets_one_while_it_is_still_the_same(
        self, spark: SparkSession, drop: Drop, tmp_path: Path
    ) -> None:
        drop.put([1])
        stream, state = drop.stream(spark), tmp_path / "state"
        list(from_stream(stream, checkpoint=state, trigger="available-now").map(str))
        named = from_stream(stream, checkpoint=state, trigger="available-now", name="mine")

        with pytest.raises(CheckpointConflictError, match="its stages are 'map', not none"):
            list(named)
        assert list(named.map(str)) == []
        assert list(named) == []
        with pytest.raises(CheckpointConflictError, match="its name is 'mine', not None"):
            list(from_stream(stream, checkpoint=state, trigger="available-now"))
