"""``flow explain`` knows the operators of this package, and draws each flow that one reads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_cli.explain import explain
from flow_core import Flow

HERE = "test_explained.py"


def lines(made: Flow[Any]) -> list[str]:
    """The drawing without the places in this file."""
    return [line.partition(f"  {HERE}")[0] for line in explain(made).splitlines()]


def first() -> Flow[int]:
    return flow.range(10).map(abs)


def second() -> Flow[int]:
    return flow.range(5).filter(bool)


async def later(text: str) -> str:
    return text


ALL_READ: dict[str, Callable[[Flow[int], Flow[int]], Flow[Any]]] = {
    "zip": lambda a, b: a.zip(b),
    "zip, pushed": lambda a, b: a.hide().zip(b),
    "merge": lambda a, b: a.merge(b),
    "merge_sequential": lambda a, b: a.merge_sequential(b),
    "concat": lambda a, b: a.concat(b),
    "amb": lambda a, b: a.amb(b),
    "combine_latest": lambda a, b: a.combine_latest(b),
    "fork_join": lambda a, b: a.fork_join(b),
    "ordered_merge": lambda a, b: a.ordered_merge(b),
    "sequence_equal": lambda a, b: a.sequence_equal(b),
    "with_latest_from": lambda a, b: a.with_latest_from(b),
    "take_until_other": lambda a, b: a.take_until_other(b),
    "skip_until_other": lambda a, b: a.skip_until_other(b),
    "switch_if_empty": lambda a, b: a.switch_if_empty(b),
    "flow.zip": lambda a, b: flow.zip(a, b),
    "flow.merge": lambda a, b: flow.merge(a, b),
    "flow.concat": lambda a, b: flow.concat(a, b),
    "flow.amb": lambda a, b: flow.amb(a, b),
    "flow.combine_latest": lambda a, b: flow.combine_latest(a, b),
    "flow.ordered_merge": lambda a, b: flow.ordered_merge(a, b),
}


@pytest.mark.parametrize("make", ALL_READ.values(), ids=ALL_READ)
def test_each_flow_that_is_read_is_drawn_once_and_every_operator_is_known(
    make: Callable[[Flow[int], Flow[int]], Flow[Any]],
) -> None:
    text = explain(make(first(), second()))
    assert "no plugin" not in text
    for part in (
        "source range(0, 10)",
        "source range(0, 5)",
        f"map(abs)  {HERE}",
        "── filter(bool)",
    ):
        assert text.count(part) == 1, text


def test_a_branch_is_drawn_where_it_joins_with_loops_that_count_on() -> None:
    assert lines(first().zip(second()).map(str)) == [
        "flow",
        "├── source range(0, 10): an iterator",
        "├── loop 1, pulled by zip: map",
        "│   └── map(abs)",
        "├── boundary zip(2 flows): bounded; answers SYNC across threads",
        "├── also from",
        "│   ├── source range(0, 5): an iterator",
        "│   └── loop 2, pulled by zip, or pushed to it: filter",
        "│       └── filter(bool)",
        "└── loop 3, pulled by iteration, or pushed to a subscriber: map",
        "    └── map(str)",
    ]


def test_a_source_of_several_flows_has_a_branch_for_each() -> None:
    drawn = lines(flow.merge(first(), flow.concat(second(), flow.just(1))))
    assert drawn[1] == "├── source merge(2 flows): a publisher"
    assert drawn[2:6] == [
        "├── from",
        "│   ├── source range(0, 10): an iterator",
        "│   └── loop 1, pulled by merge, or pushed to it: map",
        "│       └── map(abs)",
    ]
    assert [line.strip(" │├└─") for line in drawn[6:]][2:] == [
        "from",
        "source range(0, 5): an iterator",
        "loop 2, pulled by concat, or pushed to it: filter",
        "filter(bool)",
        "from",
        "source just(1): a constant",
    ]


def test_a_flow_that_is_merged_again_is_drawn_once() -> None:
    text = explain(first().merge(second()).merge(flow.just(7)))
    assert text.count("source range(0, 10)") == text.count("source range(0, 5)") == 1
    assert text.count("source just(7)") == 1


def test_a_loop_says_on_whose_thread_it_runs() -> None:
    with ThreadPoolExecutor(1) as pool:
        made = flow.range(3).map(abs).subscribe_on(pool).map(abs).observe_on(pool).map(str)
        made = made.delay(1).filter(bool).map_concurrent(later, 2).map(len)
        loops = [line.partition(", ")[2] for line in lines(made) if "loop" in line]
        assert loops == [
            "pushed on the executor of subscribe_on: map",
            "fed on the executor of subscribe_on: map",
            "fed on the executor of observe_on: map",
            "fed on the clock of delay: filter",
            "fed on the workers of map_concurrent: map",
        ]
        moved = flow.range(3).map(abs).observe_on(pool).subscribe_on(pool)
        assert "loop 1, pushed: map" in explain(moved)  # observe_on requests on its executor
        polled = flow.range(3).skip(1).observe_on(pool)
        assert "polled by observe_on (SYNC fusion) on the executor of observe_on" in explain(polled)
    ticks = flow.interval(1).map(str)
    assert "interval(1 s): a publisher; items come on its clock" in explain(ticks)
    assert "fed on the clock of interval: map" in explain(ticks)
    assert "fed: map" in explain(ticks.merge(flow.just("a").hide()).map(len))  # from both threads


def test_rails_are_drawn_inside() -> None:
    with ThreadPoolExecutor(2) as pool:
        made = flow.range(9).parallel(2).run_on(pool).map(str).sequential().map(len)
        assert [line.partition("(")[0] for line in lines(made)[3:]] == [
            "├── each of 2 rails",
            "│   ├── source rail: a publisher",
            "│   ├── boundary observe_on",
            "│   └── loop 1, fed on the executor of observe_on: map",
            "│       └── map",
            "└── loop 2, pulled by iteration, or pushed to a subscriber: map",
            "    └── map",
        ]


def test_inner_flows_that_a_function_makes_are_explained() -> None:
    mapped = first().flat_map(flow.just, concurrency=4).concat_map(flow.just)
    told = [line.strip(" │├└─") for line in lines(mapped) if "inner flows" in line]
    assert told == [
        "inner flows: just makes one of each item, at most 4 at a time",
        "inner flows: just makes one of each item, one after the other",
    ]
    (told,) = [line for line in lines(first().map(flow.just).concat_all()) if "inner" in line]
    assert told.endswith("inner flows: the items, one after the other")
