"""Flows that are tried here and on Spark, and what their items are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from flow_core.flow import Flow


class Pair(NamedTuple):
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Half:
    number: int
    half: float


def halved(number: int) -> Half:
    return Half(number, number / 2)


def spelled(number: int) -> list[Pair]:
    return [Pair(number, str(number))] * (number % 3)


FLOWS: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "as they are": lambda f: f,
    "map": lambda f: f.map(halved),
    "filter": lambda f: f.filter(lambda n: n % 7 == 0),
    "flat_map_iterable": lambda f: f.flat_map_iterable(spelled),
    "distinct": lambda f: f.map(lambda n: n % 10).distinct(),
    "count": lambda f: f.filter(bool).count(),
    "reduce": lambda f: f.reduce(lambda a, b: a + b),
    "to_list": lambda f: f.to_list().map(sorted),
    "do_on_next": lambda f: f.do_on_next(lambda n: None).map(str),
    "nothing": lambda f: f.filter(lambda n: False),
}


def in_any_order(items: Iterable[Any]) -> list[tuple[type, Any]]:
    """Items and their types (a tuple equals a Pair), to be compared with others."""
    return sorted(((type(item), item) for item in items), key=repr)
