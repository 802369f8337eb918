"""A bridge that has ended lets go of its subscriber, its items and its chain."""

from __future__ import annotations

import pytest
from reactivex import operators as ops
from reactivex.scheduler import ImmediateScheduler
from reactivex.subject import Subject

import flow_core as flow
from flow_rxcompat.rx import from_rx, from_rx_subject, rx, to_rx, via_flow
from flow_testing import ENDINGS, assert_released

BRIDGES = {
    "there and back": lambda items: from_rx(to_rx(items)),
    "in batches": lambda items: from_rx(to_rx(items, prefetch=2)),
    "on a scheduler": lambda items: from_rx(to_rx(items, ImmediateScheduler())),
    "as an operator": lambda items: items.pipe(rx(ops.map(lambda item: item))),
    "through ours": lambda items: from_rx(to_rx(items).pipe(via_flow(lambda inner: inner))),
}


@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
@pytest.mark.parametrize("bridge", BRIDGES.values(), ids=BRIDGES.keys())
def test_lets_go_of_everything(bridge, ending: str) -> None:
    assert_released(lambda payloads: bridge(flow.from_iterable(payloads)), only=ending.__eq__)


@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
@pytest.mark.parametrize("bridge", BRIDGES.values(), ids=BRIDGES.keys())
def test_lets_go_of_what_pushes(bridge, ending: str) -> None:
    assert_released(lambda payloads: bridge(payloads.pushed()), only=ending.__eq__)


def test_a_subject_releases_a_subscriber_that_has_cancelled() -> None:
    subject = Subject[int]()
    processor = from_rx_subject(subject)
    for _ in range(3):
        processor.flow.subscribe(lambda _: None).dispose()
    assert subject.observers == []
