"""flat_map and concat_map of what was prepared: its stages are in the loop over the upstream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.prepared import Prepared

Mapped = Callable[[Flow[Any], Callable[[Any], Any]], Flow[Any]]

WAYS: dict[str, Mapped] = {
    "flat_map": lambda upstream, mapper: upstream.flat_map(mapper),
    "flat_map, few ahead": lambda upstream, mapper: upstream.flat_map(mapper, prefetch=2),
    "concat_map": lambda upstream, mapper: upstream.concat_map(mapper),
    "concat_map, errors later": lambda upstream, mapper: upstream.concat_map(
        mapper, delay_error=True
    ),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def twice(x: Any) -> Any:
    return x * 2


def some(x: Any) -> bool:
    return bool(x)


def chars(items: Flow[Any]) -> Flow[Any]:
    return items.map(twice).filter(some)


def sums(items: Flow[Any]) -> Flow[Any]:
    return items.map(twice).scan(lambda a, b: a + b)


def pairs(items: Flow[Any]) -> Flow[Any]:
    return items.flat_map_iterable(lambda x: [x, x])


def opened(items: Any) -> Flow[Any]:
    return flow.from_iterable(items) if isinstance(items, str) else flow.from_(items)


def odd() -> list[Any]:
    return [
        *("ab", "", [1, 0, 3], (4,), range(3), frozenset([5]), "abcdefg"),
        *(iter([6, 7]), flow.just(8, 9), flow.range(3).hide(), "yz", flow.empty(), [0, 1, 2, 3]),
    ]


@each_way
@pytest.mark.parametrize("function", [chars, sums, pairs])
def test_it_gives_what_the_function_itself_gives(
    way: Mapped, function: Callable[[Flow[Any]], Flow[Any]]
) -> None:
    expected = list(way(flow.from_iterable(odd()), lambda items: function(opened(items))))
    prepared = flow.prepare(function)
    assert list(way(flow.from_iterable(odd()), prepared)) == expected
    seen: list[Any] = []
    way(flow.from_iterable(odd()), prepared).subscribe(seen.append)
    assert seen == expected


@each_way
def test_one_loop_runs_all_of_it(way: Mapped) -> None:
    names: list[str] = []

    def caller(x: int) -> int:
        names.append(sys._getframe(1).f_code.co_qualname)
        return x

    prepared = flow.prepare(lambda items: items.map(caller))
    made = way(flow.just([1], [2]), prepared)
    assert list(made) == [1, 2]
    spliced = [name.startswith("opened|") for name in names]
    assert spliced == [way is not WAYS["concat_map, errors later"]] * 2


@each_way
def test_an_error_says_in_which_stage_of_the_inner_flow(way: Mapped) -> None:
    def told(mapper: Callable[[Any], Any]) -> tuple[list[Any], str, list[str]]:
        seen: list[Any] = []
        with pytest.raises(ZeroDivisionError) as raised:
            way(flow.just([1, 2], [3, 0, 4]), mapper).for_each(seen.append)
        return seen, str(raised.value), [note.split(",")[0] for note in raised.value.__notes__]

    def inverse(x: float) -> float:
        return 1 / x

    expected = told(lambda items: flow.from_iterable(items).filter(some_or_0).map(inverse))
    assert told(flow.prepare(lambda items: items.filter(some_or_0).map(inverse))) == expected


def some_or_0(x: float) -> bool:
    return x >= 0


@each_way
def test_none_among_the_items_fails_the_flow(way: Mapped) -> None:
    nothing: Any = [1, None]
    with pytest.raises(flow.FlowError, match="gave None, which is not an item"):
        list(way(flow.just(nothing), flow.prepare(chars)))


@each_way
def test_closing_the_iterator_closes_the_upstream(way: Mapped) -> None:
    closed: list[bool] = []

    def words() -> Iterator[str]:
        try:
            yield from ("ab", "cd")
        finally:
            closed.append(True)

    items = iter(way(flow.from_iterable(words()), flow.prepare(chars)))
    assert next(items) == "aa"
    items.close()  # type: ignore[attr-defined]  # a generator
    assert closed == [True]


def test_only_stages_that_look_at_one_item_are_spliced() -> None:
    def spliced(function: Callable[[Flow[Any]], Flow[Any]]) -> bool:
        made: Prepared[Any, Any] = flow.prepare(function)
        return made.spliced is not None

    assert spliced(chars)
    assert not spliced(sums)
    assert not spliced(pairs)
    assert not spliced(lambda items: items.take(2))
    assert not spliced(lambda items: items.to_list())
    assert not spliced(lambda items: items.concat(flow.just(1)))
