"""The rules behind sources that break them; and nothing is left when a flow has ended."""

from __future__ import annotations

from typing import Any

import pytest

from flow_ops import (
    on_backpressure_buffer,
    on_backpressure_drop,
    on_backpressure_error,
    on_backpressure_latest,
    on_backpressure_reduce,
)
from flow_testing import (
    BAD_SOURCES,
    ENDINGS,
    BadSource,
    Ending,
    VirtualClock,
    assert_released,
    check_bad_source,
)

ALL: dict[str, Any] = {
    "buffer": lambda: on_backpressure_buffer(2),
    "buffer, drop_oldest": lambda: on_backpressure_buffer(2, overflow="drop_oldest"),
    "buffer, drop_latest": lambda: on_backpressure_buffer(2, overflow="drop_latest"),
    "buffer, timed": lambda: on_backpressure_buffer(2, timeout=1, clock=VirtualClock()),
    "drop": on_backpressure_drop,
    "error": on_backpressure_error,
    "latest": on_backpressure_latest,
    "reduce": lambda: on_backpressure_reduce(lambda _, item: item),
}
FAILING = ("buffer", "buffer, timed", "error")

each = pytest.mark.parametrize("name", ALL)


@each
@pytest.mark.usefixtures("dropped")
@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
def test_it_keeps_the_rules_behind_a_bad_source(name: str, bad: BadSource) -> None:
    if bad.name == "two threads at once" and name in FAILING:
        return  # an item that comes while another is delivered finds no room
    check_bad_source(
        lambda source: source.pipe(ALL[name]()),
        bounded=name in FAILING,
        only=lambda each: each == bad.name,
    )


@each
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_it_lets_go_of_everything(name: str, ending: Ending) -> None:
    if ending.name == "completed, one by one" and name in FAILING:
        return  # it fails: there is not room for all of them
    capacity: dict[str, Any] = {
        "buffer": lambda: on_backpressure_buffer(9),
        "buffer, timed": lambda: on_backpressure_buffer(9, timeout=1, clock=VirtualClock()),
    }
    make = capacity.get(name, ALL[name])
    assert_released(
        lambda payloads: payloads.pushed().pipe(make()), only=lambda each: each == ending.name
    )
