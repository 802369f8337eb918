"""A mapper that gives one iterator for several items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, FlowError

MAPPINGS: dict[str, Callable[[Flow[int], Callable[[int], Any]], Flow[Any]]] = {
    "flat_map": lambda numbers, mapper: numbers.flat_map(mapper),
    "flat_map, pushed": lambda numbers, mapper: numbers.hide().flat_map(mapper),
    "concat_map": lambda numbers, mapper: numbers.concat_map(mapper),
    "concat_map, pushed": lambda numbers, mapper: numbers.hide().concat_map(mapper),
    "concat_map_eager": lambda numbers, mapper: numbers.concat_map_eager(mapper),
    "switch_map": lambda numbers, mapper: numbers.switch_map(mapper),
    "exhaust_map": lambda numbers, mapper: numbers.exhaust_map(mapper),
    "expand": lambda numbers, mapper: numbers.expand(mapper),
}


@pytest.mark.parametrize("mapping", MAPPINGS.values(), ids=MAPPINGS)
@pytest.mark.parametrize("kind", ["a generator", "map"])
def test_it_is_refused_the_second_time(
    mapping: Callable[[Flow[int], Callable[[int], Any]], Flow[Any]], kind: str
) -> None:
    shared: Any = map(abs, [1, 2]) if kind == "map" else (n for n in (1, 2))
    with pytest.raises(FlowError, match="iterated over before, and an iterator gives its items"):
        list(mapping(flow.range(2), lambda _: shared))


@pytest.mark.parametrize("mapping", [MAPPINGS[name] for name in MAPPINGS if name != "expand"])
def test_a_new_iterator_for_each_item_is_accepted(
    mapping: Callable[[Flow[int], Callable[[int], Any]], Flow[Any]],
) -> None:
    assert sorted(mapping(flow.range(1, 3), lambda n: iter([n, n]))) == [1, 1, 2, 2]


def test_a_repeat_or_retry_of_an_iterator_says_that_it_cannot() -> None:
    with pytest.raises(FlowError, match="iterated over before"):
        list(flow.from_(iter([1])).repeat(2))
    with pytest.raises(FlowError, match="iterated over before"):
        list(flow.from_(iter([1, 0])).map(lambda n: 1 // n).retry(2))
