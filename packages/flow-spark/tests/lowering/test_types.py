"""The types that aggregates give, as far as their functions say."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_core.structure import stages_of
from flow_spark.items.types import item_type

if TYPE_CHECKING:
    Kilogram = int

F = flow.range(3)


def word(number: int) -> str:
    return str(number)


def weigh(unit: Kilogram) -> float:
    return float(unit)


def pow_of(base: Kilogram, exponent: int = 2):  # type: ignore[no-untyped-def]  # as many are
    return base**exponent


def unit(number: int) -> Kilogram:
    return number


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (F.count_by_key(word), tuple[str, int]),
        (F.reduce_by_key(word, max), tuple[str, int]),
        (F.reduce_by_key(word, max, float), tuple[str, float]),
        (F.count_by_key(lambda n: n), None),
        (F.reduce_by_key(word, max, lambda n: n), None),
        (F.average(), float),
        (F.map(word).sort().take(2), str),
        (F.map(word).max(), str),
        (F.map(weigh), float),
        (F.map(unit), None),
        (F.map(pow_of), None),
        (F.map(partial(pow_of, 2)), None),
        (F.map(partial(weigh)), float),
        (F.map(itemgetter(0)), None),
        (F.min(word), int),
        (F.sum(), int),
        (F.contains(3), bool),
        (F.is_empty(), bool),
        (F.all(bool), bool),
        (F.collect(list, list.append, list.extend), list),
    ],
    ids=repr,
)
def test_an_aggregate_of_ints(made: flow.Flow[Any], expected: object) -> None:
    assert item_type(stages_of(made), int) == expected
