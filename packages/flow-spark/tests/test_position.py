"""An error in a task says which item of its partition it has to do with."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_core.stages import Program
from flow_core.structure import stages_of
from flow_spark.channel.wire import Kind
from flow_spark.items.rows import RowReader
from flow_spark.jobs.position import Position
from flow_spark.jobs.task import ChunkReader, LastReader, last_row, to_chunk

COLUMNS = pa.schema([("n", pa.int64())])
HERE = "in stage 1 of 1: map("


def batches(*counts: int) -> Iterator[pa.RecordBatch]:
    """Batches of this number of rows, of the integers from 0 on."""
    first = 0
    for count in counts:
        yield pa.record_batch([list(range(first, first + count))], schema=COLUMNS)
        first += count


def notes(position: Position, given: Iterator[pa.RecordBatch], made: Flow[Any]) -> list[str]:
    """The notes about the place where `made`, which raises, has raised."""
    program: Program[Any, Any] = Program(stages_of(made))
    with pytest.raises(Exception) as caught, position.told():
        list(program.iterate(position.items(given)))
    return [note for note in caught.value.__notes__ if not note.startswith("in stage")]


def inverse(n: int) -> float:
    return 1 / (n - 5)


@pytest.mark.parametrize("counts", [(9,), (3, 3, 3), (6, 3), (5, 1, 3), (0, 5, 0, 4)])
def test_an_item_is_counted_over_all_batches_of_the_partition(counts: tuple[int, ...]) -> None:
    position = Position(RowReader(COLUMNS), 7)

    assert notes(position, batches(*counts), flow.empty().map(inverse)) == [
        "at item 5 of partition 7: 5"
    ]


def test_items_that_stages_leave_out_or_make_are_not_counted() -> None:
    position = Position(RowReader(COLUMNS, tuple), 0)
    made = flow.empty().filter(lambda row: row[0] > 3).flat_map_iterable(lambda row: row * 3)

    assert notes(position, batches(9), made.map(inverse)) == ["at item 5 of partition 0: (5,)"]


def test_an_aggregation_that_fails_has_no_item() -> None:
    position = Position(RowReader(COLUMNS), 2)
    made = flow.empty().sort(key=lambda n: inverse(n))

    assert notes(position, batches(3, 3), made) == ["at the end of partition 2, behind its 6 items"]


def test_a_chunk_of_pickled_items_is_read_again_for_its_item() -> None:
    payloads = [pickle.dumps(part) for part in ([1, 2, 3], [4, 5, 6])]
    given = (to_chunk(Kind.PICKLE, payload) for payload in payloads)

    assert notes(Position(ChunkReader(), 1), given, flow.empty().map(inverse)) == [
        "at item 4 of partition 1: 5"
    ]


def test_stages_do_not_run_again_for_a_message() -> None:
    ran: list[int] = []
    program: Program[Any, Any] = Program(
        stages_of(flow.range(1).map(ran.append).default_if_empty(5))
    )
    position = Position(LastReader(program, ()), 1)

    assert notes(position, iter([last_row()]), flow.empty().map(inverse)) == [
        "at item 0 of partition 1"
    ]
    assert ran == []


@dataclass
class Small:
    n: int

    def __post_init__(self) -> None:
        if self.n > 3:
            raise ValueError(f"{self.n} is too large")


@pytest.mark.parametrize("counts", [(9,), (4, 5), (3, 6)])
def test_a_row_that_makes_no_item_is_shown_as_it_is(counts: tuple[int, ...]) -> None:
    position = Position(RowReader(COLUMNS, Small), 0)

    assert notes(position, batches(*counts), flow.empty().map(str)) == [
        "at item 4 of partition 0, made of {'n': 4}"
    ]


def test_a_batch_that_cannot_be_read_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    nulls = pa.record_batch([[1, None]], schema=COLUMNS)
    position = Position(RowReader(COLUMNS), 3)

    assert notes(position, iter([*batches(2), nulls]), flow.empty().map(str)) == [
        "in partition 3, behind 2 items"
    ]


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("not told")


def test_an_item_that_cannot_be_shown_is_left_out() -> None:
    given = to_chunk(Kind.PICKLE, pickle.dumps([Shy()]))

    assert notes(Position(ChunkReader(), 0), iter([given]), flow.empty().map(len)) == [
        "at item 0 of partition 0"
    ]
