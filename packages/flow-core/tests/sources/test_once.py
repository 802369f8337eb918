"""An iterator serves one run, and says so to the next one."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, FlowError
from flow_testing import TestSubscriber

AGAIN = r"assembled at .*test_once\.py:\d+.*was iterated over before.*only once.*defer\(lambda"


def generated() -> Iterator[str]:
    yield from ("a", "b", "c")


async def generated_later() -> AsyncIterator[str]:
    for item in generated():
        yield item


class Counting:
    """An iterator of a user's own class."""

    def __init__(self) -> None:
        self.left = 3

    def __iter__(self) -> Counting:
        return self

    def __next__(self) -> int:
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


ITERATORS: dict[str, Callable[[], Any]] = {
    "a generator": generated,
    "a generator expression": lambda: (n for n in range(3)),
    "map": lambda: map(str, range(3)),
    "zip": lambda: zip("abc", "def", strict=True),
    "filter": lambda: filter(None, [1, 2, 3]),
    "enumerate": lambda: enumerate("abc"),
    "an iterator over a list": lambda: iter([1, 2, 3]),
    "a file": lambda: io.StringIO("1\n2\n3\n"),
    "rows of a csv file": lambda: csv.reader(io.StringIO("1\n2\n3\n")),
    "a class of one's own": Counting,
    "an async generator": generated_later,
}


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_a_second_run_fails_and_says_what_to_do(make: Callable[[], Any]) -> None:
    items = flow.from_(make())
    assert items.count().first() == 3
    with pytest.raises(FlowError, match=AGAIN):
        list(items)
    seen: TestSubscriber[Any] = TestSubscriber()
    items.subscribe(seen)
    seen.await_terminal()
    seen.assert_failure(FlowError)


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_so_does_one_after_a_run_that_was_left_early(make: Callable[[], Any]) -> None:
    items = flow.from_(make())
    assert len(list(items.take(1))) == 1
    with pytest.raises(FlowError, match=AGAIN):
        list(items)


def test_so_does_a_run_in_an_event_loop() -> None:
    async def twice(items: Flow[str]) -> list[str]:
        assert len([item async for item in items]) == 3
        return [item async for item in items]

    for made in (flow.from_(generated()), flow.from_(generated_later())):
        with pytest.raises(FlowError, match=AGAIN):
            asyncio.run(twice(made))


def test_a_generator_that_has_ended_is_known_to_each_flow() -> None:
    shared = generated()
    assert len(list(flow.from_(shared))) == 3
    with pytest.raises(FlowError, match=AGAIN):
        list(flow.from_(shared))


def test_a_generator_that_was_begun_before_gives_what_is_left() -> None:
    shared = generated()
    assert next(shared) == "a"
    assert list(flow.from_(shared)) == ["b", "c"]


def test_a_reusable_iterable_is_iterated_for_each_run() -> None:
    class Fresh:
        def __iter__(self) -> Iterator[int]:
            return iter((1, 2))

        def __next__(self) -> int:
            raise NotImplementedError

    for items in ([1, 2], (1, 2), range(1, 3), {1: "a", 2: "b"}, Fresh()):
        made = flow.from_(items)
        assert list(made) == list(made) == [1, 2]


def test_a_generator_that_is_made_for_each_run_serves_each_run() -> None:
    made = flow.defer(lambda: flow.from_(generated()))
    assert list(made) == list(made) == ["a", "b", "c"]


def test_of_two_threads_that_run_it_at_once_one_gets_all() -> None:
    for _ in range(50):
        items = flow.from_(map(str, range(3)))
        both = Barrier(2)

        def run(items: Flow[str] = items, both: Barrier = both) -> list[str] | None:
            both.wait(10)
            try:
                return list(items)
            except FlowError:
                return None

        with ThreadPoolExecutor(2) as pool:
            results = [future.result(10) for future in [pool.submit(run), pool.submit(run)]]
        assert sorted(results, key=bool) == [None, ["0", "1", "2"]]


def test_a_retry_of_an_iterator_says_that_it_cannot() -> None:
    tried = flow.from_(generated()).zip_with_iterable(iter("xyz"))
    assert list(tried) == [("a", "x"), ("b", "y"), ("c", "z")]
    with pytest.raises(FlowError, match=AGAIN):
        list(tried)
    fixed = flow.just(1, 2).zip_with_iterable(iter("xy"))
    assert list(fixed) == [(1, "x"), (2, "y")]
    with pytest.raises(FlowError, match=r"zip_with_iterable\(.*iterated over before"):
        list(fixed)


@pytest.mark.parametrize(
    "shared", [map(str, range(3)), (str(n) for n in range(3))], ids=["map", "a generator"]
)
def test_a_mapper_that_gives_the_same_iterator_for_two_items_is_refused(
    shared: Iterator[str],
) -> None:
    seen: list[str] = []
    with pytest.raises(FlowError, match=re.escape("gave the same object for two items")) as raised:
        flow.range(2).flat_map_iterable(lambda _: shared).for_each(seen.append)
    assert "flat_map_iterable" in raised.value.__notes__[0]
    assert seen == ["0", "1", "2"]


def test_a_mapper_may_give_the_same_list_for_all_items() -> None:
    shared = [1, 2]
    assert list(flow.range(2).flat_map_iterable(lambda _: shared)) == [1, 2, 1, 2]
