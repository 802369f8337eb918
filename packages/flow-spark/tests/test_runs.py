"""Results of partitions in sorted runs, and their merge: all of each key, in bounded memory."""

from __future__ import annotations

import collections
import itertools
import operator
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_core.stages import Program
from flow_core.structure import stages_of
from flow_spark.items.arrow import ArrowBatch, pa
from flow_spark.items.hashing import partition_values
from flow_spark.items.rows import RowReader
from flow_spark.jobs import merging, runs
from flow_spark.jobs.merging import MergeReader
from flow_spark.jobs.runs import RunsTask
from flow_spark.jobs.translations import bounded, translated
from flow_spark.pickling.pickles import dumps, loads_here

SCHEMA = pa.schema([("n", pa.int64())])
BUCKETS = partition_values(4)

Build = Callable[[Flow[int]], Flow[Any]]


def batches(numbers: Iterable[int], size: int = 100) -> list[ArrowBatch]:
    all_ = list(numbers)
    return [
        pa.record_batch([all_[start : start + size]], schema=SCHEMA)
        for start in range(0, len(all_), size)
    ]


def parts_of(build: Build, most: int = runs.MOST_KEYS) -> tuple[bytes, MergeReader]:
    (*before, stage) = stages_of(build(flow.just(0)))
    found = translated(stage)
    assert found is not None
    partial = tuple(bounded(one, most) for one in found.partial)
    program = dumps((Program[Any, Any]((*before, *partial)), found.by), "stages")
    return program, MergeReader(Program(found.combine), ())


def rows_of(program: bytes, partitions: Iterable[list[ArrowBatch]]) -> list[ArrowBatch]:
    """Return the rows of tasks, each as a batch."""
    reader = dumps(RowReader(SCHEMA), "a reader")
    made = [RunsTask(reader, program, BUCKETS)(iter(part)) for part in partitions]
    return [
        many.slice(index, 1)
        for many in itertools.chain.from_iterable(made)
        for index in range(many.num_rows)
    ]


def low_of(row: ArrowBatch) -> int:
    low: int = row.column("low")[0].as_py()
    return low


def merged(rows: list[ArrowBatch], reader: MergeReader) -> Iterator[Any]:
    """Yield the results for the rows of all buckets, as Spark gives them to the tasks."""
    by_bucket: dict[int, list[ArrowBatch]] = collections.defaultdict(list)
    for row in rows:
        by_bucket[row.column("bucket")[0].as_py()].append(row)
    for found in by_bucket.values():
        mine: MergeReader = loads_here(dumps(reader, "a reader"))
        for row in sorted(found, key=low_of):
            yield from mine(row)


BUILDS: dict[str, Build] = {
    "reduce_by_key": lambda f: f.reduce_by_key(lambda n: n % 1009, operator.add),
    "with values": lambda f: f.reduce_by_key(lambda n: n % 97, operator.add, lambda n: [n]),
    "count_by_key": lambda f: f.map(lambda n: -n).count_by_key(lambda n: f"text {n % 1009}"),
    "distinct": lambda f: f.map(lambda n: n % 1009).distinct(),
    "distinct of a key": lambda f: f.map(lambda n: n % 1009).distinct(lambda n: (n, "key")),
    "a hash for all": lambda f: f.count_by_key(lambda n: frozenset([n % 50])),
}


def normal(items: Iterable[Any]) -> list[str]:
    """Return the items in an order, with lists in them in order."""
    return sorted(
        repr([sorted(part) if isinstance(part, list) else part for part in item])
        if isinstance(item, tuple)
        else repr(item)
        for item in items
    )


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("most", [1, 7, 500, 100_000])
def test_all_results_of_a_key_are_combined(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_KEYS", most)
    monkeypatch.setattr(runs, "_WINDOW_BYTES", 2000)
    monkeypatch.setattr(runs, "_ROW_ITEMS", 5)
    monkeypatch.setattr(merging, "_FEW", 50)
    build = BUILDS[name]
    numbers = [random.Random(7).randrange(3000) for _ in range(3000)]
    program, reader = parts_of(build, most)
    rows = rows_of(program, [batches(numbers[:1000]), batches(numbers[1000:]), []])

    assert normal(merged(rows, reader)) == normal(build(flow.from_iterable(numbers)))


def test_results_come_in_the_same_order_whatever_the_windows_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = BUILDS["count_by_key"]
    numbers = [random.Random(3).randrange(3000) for _ in range(2000)]
    found: list[list[Any]] = []
    for most, size, few in [(10**6, 10**9, 10**6), (10, 1, 1), (200, 3000, 64)]:
        monkeypatch.setattr(runs, "MOST_KEYS", most)
        monkeypatch.setattr(runs, "_WINDOW_BYTES", size)
        monkeypatch.setattr(runs, "_ROW_ITEMS", max(1, most // 10))
        monkeypatch.setattr(merging, "_FEW", few)
        program, reader = parts_of(build, most)
        found.append(list(merged(rows_of(program, [batches(numbers)]), reader)))

    assert found[0] == found[1] == found[2]


def test_a_task_holds_a_bounded_number_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_KEYS", 100)
    program, _ = parts_of(BUILDS["distinct"], 100)
    read = 0

    def given() -> Iterator[ArrowBatch]:
        nonlocal read
        for one in batches(range(100_000), 1000):
            read += 1
            yield one

    task = RunsTask(dumps(RowReader(SCHEMA), "a reader"), program, BUCKETS)
    first = next(task(given()))
    assert read == 1
    assert first.num_rows <= 64


def test_a_merge_holds_about_a_row_of_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_KEYS", 1000)
    monkeypatch.setattr(runs, "_ROW_ITEMS", 10)
    monkeypatch.setattr(merging, "_FEW", 100)
    program, reader = parts_of(lambda f: f.count_by_key(lambda n: n), 1000)
    task = RunsTask(dumps(RowReader(SCHEMA), "a reader"), program, (0,))
    made = list(task(iter(batches(range(20_000)))))
    rows = [many.slice(index, 1) for many in made for index in range(many.num_rows)]
    held = count = 0
    for row in sorted(rows, key=low_of):
        count += sum(1 for _ in reader(row))
        held = max(held, len(reader._items))

    assert count == 20_000
    assert held <= 2 * 20 * 10 + 100, "20 runs, with rows of 10 items, twice"


def test_large_items_come_in_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    program, reader = parts_of(lambda f: f.map(lambda n: str(n) * 100_000).distinct())
    rows = rows_of(program, [batches(range(40))])
    assert max(len(row.column("payload")[0].as_py()) for row in rows) < 3 * 512 * 1024
    assert {len(item) // 100_000 for item in merged(rows, reader)} == {1, 2}


def test_an_error_says_at_which_item_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_WINDOW_BYTES", 1)
    program, _ = parts_of(lambda f: f.map(lambda n: 1 // (n - 250)).distinct())
    with pytest.raises(ZeroDivisionError) as caught:
        rows_of(program, [batches(range(1000))])
    assert "at item 250 of partition -1" in "".join(caught.value.__notes__)


def test_a_partition_without_rows_gives_none() -> None:
    program, reader = parts_of(BUILDS["distinct"])
    assert rows_of(program, [[], []]) == []
    assert list(merged([], reader)) == []
