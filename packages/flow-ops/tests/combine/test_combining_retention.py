"""Operators over several flows that have ended keep nothing alive."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_ops import (
    amb,
    amb_with,
    combine_latest,
    fork_join,
    ordered_merge,
    sequence_equal,
    skip_until_other,
    take_until_other,
    with_latest_from,
    zip_with,
)
from flow_ops import zip as zip_flows
from flow_testing import ENDINGS, Payloads, assert_released


def inline(task: Any) -> None:
    task()


OPERATORS: dict[str, Any] = {
    "zip": lambda source: zip_flows(source, flow.range(99)),
    "zip of two": lambda source: zip_flows(source, source.take(3), prefetch=2),
    "zip, starmap": lambda source: zip_flows(flow.range(99), source).starmap(lambda _, b: b),
    "zip with a flow that waits": lambda source: zip_flows(source, flow.never()).pipe(
        amb_with(source)
    ),
    "zip_with": lambda source: source.pipe(zip_with(flow.range(99).hide())),
    "combine_latest": lambda source: combine_latest(flow.just(0), source, prefetch=2),
    "combine_latest of two": lambda source: combine_latest(source, source),
    "with_latest_from": lambda source: source.pipe(with_latest_from(flow.just(0))),
    "with_latest_from the items": lambda source: flow.range(3).pipe(with_latest_from(source)),
    "amb": lambda source: amb(flow.never(), source),
    "amb of two": lambda source: amb(source, source),
    "fork_join": lambda source: fork_join(source, source),
    "sequence_equal": lambda source: sequence_equal(source, flow.range(99), prefetch=2),
    "ordered_merge": lambda source: ordered_merge(source, source, prefetch=2),
    "ordered_merge inline": lambda source: ordered_merge(source, source, executor=inline),
    "take_until_other": lambda source: source.pipe(take_until_other(flow.never())),
    "take_until_other the items": lambda source: (
        flow.range(3).hide().pipe(take_until_other(source))
    ),
    "skip_until_other": lambda source: source.pipe(skip_until_other(flow.just(0))),
    "skip_until_other the items": lambda source: (
        flow.range(3).hide().pipe(skip_until_other(source))
    ),
}

SOURCES: dict[str, Any] = {
    "iterable": flow.from_iterable,
    "hidden": lambda payloads: flow.from_iterable(payloads).hide(),
    "publisher": Payloads.pushed,
}


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", OPERATORS)
def test_it_lets_go_of_everything(name: str, source: str, ending: Any) -> None:
    def make(payloads: Payloads) -> Flow[Any]:
        return OPERATORS[name](SOURCES[source](payloads))

    assert_released(make, only=lambda each: each == ending.name)
