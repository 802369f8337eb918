"""Fusion is negotiated while `on_subscribe` runs, once, or not at all: one rule for all."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core import Fusion, ProtocolViolationError
from flow_core.protocols import QueueSubscription
from flow_testing import OperatorCase, Surroundings, TestSubscriber, VirtualClock


class Keeping(TestSubscriber[Any]):
    """Keeps its subscription, and asks for fusion the given number of times."""

    def __init__(self, asks: int = 0) -> None:
        super().__init__(0)
        self.asks = asks
        self.upstream: Any = None

    def on_subscribe(self, subscription: Any, /) -> None:
        super().on_subscribe(subscription)
        self.upstream = subscription
        if isinstance(subscription, QueueSubscription):
            for _ in range(self.asks):
                subscription.request_fusion(Fusion.ANY | Fusion.THREAD_BOUNDARY)


def inline(task: Any) -> None:
    task()


@pytest.mark.usefixtures("dropped_unseen")
@pytest.mark.parametrize("source", ["range", "hidden", "create"])
def test_a_request_for_fusion_after_on_subscribe_is_refused(
    case: OperatorCase, source: str
) -> None:
    up: flow.Flow[Any] = {
        "range": flow.range(3),
        "hidden": flow.range(3).hide(),
        "create": flow.create(lambda emitter: None),
    }[source]
    seen = Keeping()
    case.apply(up, Surroundings(inline, VirtualClock())).subscribe(seen)
    if isinstance(seen.upstream, QueueSubscription):
        with pytest.raises(ProtocolViolationError, match="in on_subscribe"):
            seen.upstream.request_fusion(Fusion.ANY)
    if not seen.terminated:
        seen.cancel()


@pytest.mark.parametrize(
    "source",
    [
        flow.range(3),
        flow.from_iterable([1, 2]),
        flow.just(1),
        flow.create(lambda emitter: None),
        flow.create(lambda emitter: None, overflow="drop"),
        flow.range(3).map(str),
        flow.range(3).hide().map(str),
    ],
    ids=repr,
)
def test_sources_and_stages_refuse_it_too(source: flow.Flow[Any]) -> None:
    seen = Keeping()
    source.subscribe(seen)
    if isinstance(seen.upstream, QueueSubscription):
        with pytest.raises(ProtocolViolationError, match="in on_subscribe"):
            seen.upstream.request_fusion(Fusion.ANY)


@pytest.mark.parametrize(
    "source", [flow.range(3), flow.create(lambda emitter: None)], ids=["range", "create"]
)
def test_a_second_request_for_fusion_is_refused(source: flow.Flow[Any]) -> None:
    with pytest.raises(ProtocolViolationError, match="once"):
        source.subscribe(Keeping(asks=2))
