"""Stages of empty input, where Spark makes no task of no rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_core.stages import Program
from flow_core.structure import stages_of
from flow_spark.items.arrow import pa
from flow_spark.items.rows import RowReader
from flow_spark.items.schema import ItemSchema
from flow_spark.jobs.task import LastReader, LoweredTask, last_row
from flow_spark.pickling.pickles import dumps

NUMBERS = pa.schema([("n", pa.int64())])

Build = Callable[[Flow[int]], Flow[Any]]


def found(build: Build, items: list[int], *, task: bool) -> list[int]:
    """As `in_their_order` does it, without Spark.

    Args:
        build: the stages.
        items: of the only partition.
        task: whether Spark makes a task of it.
    """
    program: Program[Any, Any] = Program(stages_of(build(flow.range(0))))
    rows = []
    if task:
        batches = [pa.record_batch([items], schema=NUMBERS)] if items else []
        first = LoweredTask(
            dumps(RowReader(NUMBERS), "a reader"), dumps(program, "stages"), None, tells=True
        )
        rows = list(first(iter(batches)))
    reader = dumps(LastReader(program, (program,)), "a reader")
    second = LoweredTask(
        dumps(pickle.loads(reader), "a reader"), None, dumps(ItemSchema.of(NUMBERS), "columns")
    )
    given = second(iter([*rows, last_row()]))
    return [number for batch in given for number in batch.column("n").to_pylist()]


@pytest.mark.parametrize(
    ("build", "of_two", "of_none"),
    [
        pytest.param(lambda f: f.count(), [2], [0], id="count"),
        pytest.param(lambda f: f.default_if_empty(7), [5, 6], [7], id="default_if_empty"),
        pytest.param(lambda f: f.end_with(8), [5, 6, 8], [8], id="end_with"),
        pytest.param(lambda f: f.start_with(8), [8, 5, 6], [8], id="start_with"),
        pytest.param(lambda f: f.sort(), [5, 6], [], id="sort"),
    ],
)
def test_the_end_is_given_once_whether_there_was_a_task_or_not(
    build: Build, of_two: list[int], of_none: list[int]
) -> None:
    assert found(build, [5, 6], task=True) == of_two
    assert found(build, [], task=True) == of_none
    assert found(build, [], task=False) == of_none


def test_stages_that_gave_nothing_are_not_run_over_nothing() -> None:
    def build(numbers: Flow[int]) -> Flow[int]:
        return numbers.default_if_empty(7).filter(lambda n: n != 5)

    assert found(build, [5], task=True) == []
    assert found(build, [], task=False) == [7]
