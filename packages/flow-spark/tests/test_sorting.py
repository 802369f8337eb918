"""Sorting in bounded memory: the order is that of `sorted`, whatever the sizes are."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_core.stages import Stage
from flow_core.structure import stages_of
from flow_spark.jobs import sorting as module
from flow_spark.jobs.sorting import sorting
from flow_spark.pickling.pickles import dumps, loads_here

Build = Callable[[Flow[Any]], Flow[Any]]

SORTS: dict[str, Build] = {
    "sort": lambda f: f.sort(),
    "the largest first": lambda f: f.sort(reverse=True),
    "by a key": lambda f: f.sort(operator.itemgetter(0)),
    "the largest key first": lambda f: f.sort(operator.itemgetter(0), reverse=True),
    "with stages behind": lambda f: f.sort(operator.itemgetter(0)).map(repr).take(700),
}


def stages(build: Build) -> tuple[Stage[Any, Any], ...]:
    return stages_of(build(flow.just(0)))


def pairs(count: int, keys: int) -> list[tuple[int, int]]:
    """Return pairs, by whose second item equal keys can be told apart."""
    generator = random.Random(count)
    return [(generator.randrange(keys), n) for n in range(count)]


@pytest.mark.parametrize("most", [32, 300, 1000, 10**6])
@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1000, 5003])
@pytest.mark.parametrize("name", SORTS)
def test_the_result_is_that_of_the_stages_in_memory(
    monkeypatch: pytest.MonkeyPatch, name: str, count: int, most: int
) -> None:
    monkeypatch.setattr(module, "_MOST", most)
    items, build = pairs(count, keys=50), SORTS[name]

    found = list(sorting(stages(build)).iterate(iter(items)))

    assert found == list(build(flow.from_iterable(items)))


def test_other_stages_stay_as_they_are() -> None:
    found = sorting(stages(lambda f: f.map(str).take(2)))

    assert list(found.iterate(iter(range(5)))) == ["0", "1"]


class Counted:
    """An item that counts its instances."""

    there = 0
    most = 0

    def __init__(self, number: int, text: str = "") -> None:
        self.number = number
        self.text = text
        self._note(1)

    def _note(self, more: int) -> None:
        Counted.there += more
        Counted.most = max(Counted.most, Counted.there)

    def __lt__(self, other: Counted) -> bool:
        return self.number < other.number

    def __reduce__(self) -> tuple[Any, ...]:
        return Counted, (self.number, self.text)

    def __del__(self) -> None:
        self._note(-1)


def most_of(items: Iterator[Counted]) -> int:
    Counted.there = Counted.most = 0
    last = -1
    for item in sorting(stages(lambda f: f.sort())).iterate(items):
        assert item.number >= last
        last = item.number
    return Counted.most


def test_a_run_of_items_and_a_part_of_each_other_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST", 2000)

    assert most_of(Counted(n * 7919 % 20_011) for n in range(20_011)) < 2000 + 10 * 300


def test_large_items_make_short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RUN_BYTES", 1_000_000)

    monkeypatch.setattr(module, "FRAME_BYTES", 10_000)
    assert most_of(Counted(n * 7919 % 4001, f"{n:01000}") for n in range(4001)) < 1000 + 5 * 20


def test_nothing_is_written_for_few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", None)

    assert list(sorting(stages(lambda f: f.sort())).iterate(iter([3, 1, 2]))) == [1, 2, 3]


def test_items_that_cannot_be_compared_are_an_error() -> None:
    with pytest.raises(TypeError, match="'<' not supported"):
        list(sorting(stages(lambda f: f.sort())).iterate(iter([1, "a"])))


@pytest.mark.parametrize("name", SORTS)
def test_it_can_be_sent(name: str) -> None:
    program = loads_here(dumps(sorting(stages(SORTS[name])), "stages"))

    assert list(program.iterate(iter([(2, 0), (1, 0)])))
